"""Subscriptions to metrics that clients push (KIP-714): their settings are stored and described.

Clients get no subscriptions: Apache Kafka gives them out only if a metrics reporter receives the metrics, and this
broker has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.table import SettingsTable, names, whole
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import RegistryJournal
from groupkeeper.protocol.errors import InvalidRequest

JOURNAL = "client-metrics.journal"

_SHORTEST_MS, _LONGEST_MS = 100, 3_600_000
_SELECTORS = frozenset(
    """
    client_instance_id client_id client_software_name client_software_version client_source_address
    client_source_port
    """.split()
)


class MetricsSubscription(SettingsTable):
    """One subscription's settings as typed attributes.

    Attributes:
        overrides: the given settings, as texts by name.
    """

    interval_ms = whole(300000, doc="How often a client pushes its metrics.")
    match = names((), doc="Patterns of clients, as selector=pattern; empty: all clients.")
    metrics = names((), doc="Prefixes of the metrics' names; *: all; empty: none.")

    overrides: Mapping[str, str]

    def __init__(self, overrides: Mapping[str, str]) -> None:
        """Raises `InvalidSetting` for a bad value, `InvalidRequest` for an unknown name or a bad interval."""
        self.overrides = dict(overrides)
        for name in overrides:
            if self.setting(name) is None:
                raise InvalidRequest(f"Unknown client metrics configuration: {name}")
        self.assign(overrides)
        if not _SHORTEST_MS <= self.interval_ms <= _LONGEST_MS:
            raise InvalidRequest(
                f"Invalid value {self.interval_ms} for interval.ms, interval must be between {_SHORTEST_MS} and "
                f"{_LONGEST_MS} (1 hour)"
            )
        for pattern in self.match:
            if not _is_pattern(pattern):
                raise InvalidSetting(f"Illegal client matching pattern: {pattern}")


def _is_pattern(text: str) -> bool:
    selector, separator, pattern = text.partition("=")
    try:
        re.compile(pattern.strip())
    except re.error:
        return False
    return bool(separator) and selector.strip() in _SELECTORS


class ClientMetrics:
    """The subscriptions by name, kept in the data directory."""

    def __init__(self, directory: StorageDirectory) -> None:
        self._subscription_by_name: dict[str, MetricsSubscription] = {}
        self._journal = RegistryJournal(directory.file(JOURNAL), "client metrics")

    def of(self, name: str) -> MetricsSubscription:
        """The subscription of this name; if it doesn't exist, all its settings have their defaults."""
        return self._subscription_by_name.get(name) or MetricsSubscription({})

    def names(self) -> Sequence[str]:
        """The names of the subscriptions, sorted."""
        return sorted(self._subscription_by_name)

    def configure(self, name: str, overrides: Mapping[str, str]) -> None:
        """Replaces a subscription's settings; empty `overrides` delete it. Raises `InvalidSetting`, `InvalidRequest`,
        `KafkaStorageError`.
        """
        subscription = MetricsSubscription(overrides)
        self._journal.write({"name": name, "configs": dict(overrides)})
        self._set(name, subscription)

    def _set(self, name: str, subscription: MetricsSubscription) -> None:
        self._subscription_by_name.pop(name, None)
        if subscription.overrides:
            self._subscription_by_name[name] = subscription

    def load(self) -> None:
        """Reads the stored subscriptions. Raises `InvalidSetting` when their file is damaged."""
        self._journal.replay(lambda entry: self._set(entry["name"], MetricsSubscription(entry["configs"])))
        self._journal.begin(
            {"name": name, "configs": dict(one.overrides)} for name, one in self._subscription_by_name.items()
        )

    def close(self) -> None:
        """Closes the registry."""
        self._journal.close()
