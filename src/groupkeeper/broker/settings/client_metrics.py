"""Subscriptions to metrics that clients push (KIP-714): their settings are stored and described.

Clients get no subscriptions: Apache Kafka gives them out only if a metrics reporter receives the metrics, and this
broker has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.table import SettingsTable, names, whole
from groupkeeper.protocol.errors import InvalidRequest

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
