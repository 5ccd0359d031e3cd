"""Settings of the broker that clients change while it runs (KIP-226): for this broker, and defaults for all of them."""

from __future__ import annotations

from groupkeeper.broker.config import Config
from groupkeeper.broker.journal import Journal
from groupkeeper.broker.settings import InvalidSetting
from groupkeeper.broker.topic_config import SYNONYM_BY_SETTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from groupkeeper.broker.storage_directory import StorageDirectory

JOURNAL = "broker.journal"

ALL_BROKERS = ""
"""The name of the resource that stands for every broker."""

_FOR_ALL = frozenset(
    """
    background.threads config.providers follower.fetch.last.tiered.offset.enable follower.replication.throttled.rate
    group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
    group.share.assignment.interval.ms group.streams.assignment.interval.ms leader.replication.throttled.rate
    log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor
    log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads max.connection.creation.rate
    max.connections max.connections.per.ip max.connections.per.ip.overrides metric.reporters num.io.threads
    num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers producer.id.expiration.ms
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.follower.thread.pool.size remote.log.reader.threads
    replica.alter.log.dirs.io.max.bytes.per.second share.coordinator.cached.buffer.max.bytes
    transaction.partition.verification.enable
    """.split()
) | frozenset(SYNONYM_BY_SETTING.values())
_OF_ONE = ("cordoned.log.dirs", "listener.name.", "listener.security.", "listeners", "principal.", "sasl.", "ssl.")
"""Beginnings of names that one broker may change, but not all of them at once. Here they are fixed."""


def is_dynamic(name: str) -> bool:
    """Whether a setting can be changed while the broker runs. Kafka's list, without listeners and their security."""
    return name in _FOR_ALL


def _is_fixed(name: str) -> bool:
    """Whether it is a setting of the broker, and cannot be changed. Names that nobody knows are kept (KIP-226)."""
    return not is_dynamic(name) and (Config.setting(name) is not None or name.startswith(_OF_ONE))


class DynamicConfig:
    """Changes a `Config` in place; `Config.changed` says what was given."""

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        self._config = config
        self._journal = Journal(directory.file(JOURNAL), "broker settings")
        self._on_changed: list[Callable[[], None]] = []

    def on_changed(self, callback: Callable[[], None]) -> None:
        """`callback` is called after the settings of the broker changed."""
        self._on_changed.append(callback)

    def check(self, broker: str, overrides: Mapping[str, str]) -> None:
        """Raises `InvalidSetting` unless a broker may be given these."""
        fixed = sorted(filter(_is_fixed, overrides))
        if fixed and broker == ALL_BROKERS and all(name.startswith(_OF_ONE) for name in fixed):
            raise InvalidSetting(
                "Cannot update these configs at default cluster level, broker id must be specified: "
                f"[{', '.join(fixed)}]"
            )
        if fixed:
            raise InvalidSetting(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
        self._with(broker, overrides)

    def configure(self, broker: str, overrides: Mapping[str, str]) -> None:
        """Replaces what was given to a broker, or to all. Raises `InvalidSetting`, `KafkaStorageError`."""
        self.check(broker, overrides)
        self._journal.write({"broker": broker, "configs": dict(overrides)})
        self._take(broker, overrides)
        for callback in self._on_changed:
            callback()

    def load(self) -> None:
        """Reads what the directory holds. Raises `InvalidSetting` when it is damaged."""
        for entry in self._journal.read():
            try:
                self._take(entry["broker"], entry["configs"])
            except InvalidSetting as error:
                raise InvalidSetting(f"{self._journal.path}: {error}") from None
        self._journal.begin(
            {"broker": one, "configs": dict(given)} for one, given in self._config.changed.items() if given
        )

    def close(self) -> None:
        """Closes the registry."""
        self._journal.close()

    def _with(self, broker: str, overrides: Mapping[str, str]) -> tuple[Mapping[str, Mapping[str, str]], Config]:
        """What was given to all with that of a broker, and the settings that come out. Raises `InvalidSetting`."""
        changed = {**self._config.changed, broker: dict(overrides)}
        given = {**self._config.given, **changed.get(ALL_BROKERS, {}), **changed.get(str(self._config.node_id), {})}
        return changed, type(self._config).from_texts(given)

    def _take(self, broker: str, overrides: Mapping[str, str]) -> None:
        self._config.changed, fresh = self._with(broker, overrides)
        for attribute in (name.replace(".", "_") for name in _FOR_ALL):
            self._config.__dict__.pop(attribute, None)
            if attribute in fresh.__dict__:
                self._config.__dict__[attribute] = fresh.__dict__[attribute]
