"""Broker settings that clients change while the broker runs (KIP-226): for this broker, or as defaults of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.catalog import broker_setting, change_of
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.features import has_eligible_replicas
from groupkeeper.broker.settings.order import in_java_order
from groupkeeper.broker.settings.table import ANY, FIXED, LISTENER, ONE
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry
from groupkeeper.protocol.errors import InvalidConfig

ALL_BROKERS = ""
"""The name of the resource that stands for every broker."""

MIN_INSYNC = "min.insync.replicas"


def _is_refused(name: str, change: str, broker: str) -> bool:
    # This broker opens listeners only at its start.
    return change_of(name) == change or (change == FIXED and broker != ALL_BROKERS and name in _LISTENERS)


_REFUSALS = (
    (FIXED, "Cannot update these configs dynamically"),
    (LISTENER, "These security configs can be dynamically updated only per-listener using the listener prefix"),
    (ONE, "Cannot update these configs at default cluster level, broker id must be specified"),
)
_LISTENERS = ("listeners", "listener.security.protocol.map")


class DynamicConfig:
    """Changes a `Config` in place; `Config.changed` has the given values.

    Attributes:
        on_changed: functions that are called after the settings of the broker changed.
        on_check: functions that are called with the settings that would result from a change; they raise
            `InvalidSetting` to refuse them.
    """

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        """Reads the stored overrides. Raises `InvalidSetting` when their file is damaged."""
        self.on_changed: list[Callable[[], None]] = []
        self.on_check: list[Callable[[Config], None]] = []
        self._config = config
        self._journal = registry(directory, "broker.journal", "broker settings")
        self._journal.replay(lambda entry: self._take(entry["broker"], entry["configs"]))
        if has_eligible_replicas(config):
            self._give_insync_to_all()
        self._journal.begin({"broker": one, "configs": dict(given)} for one, given in config.changed.items() if given)

    def check(self, broker: str, overrides: Mapping[str, str]) -> None:
        """Checks whether a broker, or all brokers (`ALL_BROKERS`), may have these overrides. Raises `InvalidSetting`,
        `InvalidConfig`.
        """
        for change, why in _REFUSALS if broker == ALL_BROKERS else _REFUSALS[:2]:
            refused = [name for name in overrides if _is_refused(name, change, broker)]
            if refused:
                raise InvalidSetting(f"{why}: [{', '.join(in_java_order(refused, len(refused)))}]")
        self._require_insync_kept(broker, overrides)
        for name, text in overrides.items():
            setting = broker_setting(name)
            if setting is not None:
                setting.parse(text)
        from groupkeeper.broker.settings.changes import check_change

        changed = {**self._config.changed, broker: dict(overrides)}
        node = broker or str(self._config.node_id)
        fresh = type(self._config).from_texts(self._texts(changed, node))
        fresh.changed = changed
        check_change(self._texts(self._config.changed, node), fresh.given, fresh.log_cleaner_dedupe_buffer_size)
        for callback in self.on_check:
            callback(fresh)

    def require_insync_kept(self, broker: str, name: str) -> None:
        """Raises `InvalidConfig` if `name` is `min.insync.replicas` of a single broker and the cluster has eligible
        leader replicas (KIP-966): then the value is the same for all brokers.
        """
        if has_eligible_replicas(self._config) and broker != ALL_BROKERS and name == MIN_INSYNC:
            raise InvalidConfig(f"Broker-level {MIN_INSYNC} cannot be altered while ELR is enabled.")

    def _require_insync_kept(self, broker: str, overrides: Mapping[str, str]) -> None:
        for name in overrides:
            self.require_insync_kept(broker, name)
        if has_eligible_replicas(self._config) and broker == ALL_BROKERS and MIN_INSYNC not in overrides:
            raise InvalidConfig(f"Cluster-level {MIN_INSYNC} cannot be removed while ELR is enabled.")

    def configure(self, broker: str, overrides: Mapping[str, str]) -> None:
        """Replaces the overrides of a broker, or of all (`ALL_BROKERS`). Raises `InvalidSetting`, `InvalidConfig`,
        `KafkaStorageError`.
        """
        self.check(broker, overrides)
        self._journal.write({"broker": broker, "configs": dict(overrides)})
        self._take(broker, overrides)
        for callback in self.on_changed:
            callback()

    def take_features(self) -> None:
        """To be called when feature levels changed: with eligible leader replicas, `min.insync.replicas` becomes a
        setting of all brokers. Raises `KafkaStorageError`.
        """
        if has_eligible_replicas(self._config) and MIN_INSYNC not in self._config.changed.get(ALL_BROKERS, {}):
            self._give_insync_to_all()
            for broker, given in self._config.changed.items():
                self._journal.write({"broker": broker, "configs": dict(given)})

    def _give_insync_to_all(self) -> None:
        """Gives all brokers the `min.insync.replicas` in force at this one, unless they have one, and removes their
        own.
        """
        changed = self._config.changed
        self._take(ALL_BROKERS, {MIN_INSYNC: str(self._config.min_insync_replicas), **changed.get(ALL_BROKERS, {})})
        for node in {str(self._config.node_id), *changed} - {ALL_BROKERS}:
            own = {name: text for name, text in changed.get(node, {}).items() if name != MIN_INSYNC}
            self._take(node, own)

    def _texts(self, changed: Mapping[str, Mapping[str, str]], node: str) -> dict[str, str]:
        """The texts in force at a node, with these overrides."""
        static = {**self._config.given, **self._config.own.get(node, {})}
        return {**static, **changed.get(ALL_BROKERS, {}), **changed.get(node, {})}

    def _common_texts(self) -> dict[str, str]:
        """The texts common to all nodes. Settings that only a single broker may have are those of the first node."""
        config = self._config
        texts = {**config.given, **config.changed.get(ALL_BROKERS, {})}
        own = config.changed.get(str(config.node_id), {})
        return texts | {name: text for name, text in own.items() if not config.own or change_of(name) == ONE}

    def _take(self, broker: str, overrides: Mapping[str, str]) -> None:
        config = self._config
        config.changed = {**config.changed, broker: dict(overrides)}
        _refresh(config, self._common_texts())
        for node, of_node in config.nodes.items():
            of_node.changed = config.changed
            _refresh(of_node, self._texts(config.changed, str(node)))


def _refresh(config: Config, texts: Mapping[str, str]) -> None:
    fresh = type(config).from_texts(texts)
    for attribute in (one.attribute for one in Config.settings() if one.change in (ANY, ONE)):
        config.__dict__.pop(attribute, None)
        if attribute in fresh.__dict__:
            config.__dict__[attribute] = fresh.__dict__[attribute]
