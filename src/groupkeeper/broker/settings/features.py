"""The cluster's feature levels, as Apache Kafka 4.4.0 names them (KIP-584)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry

METADATA_VERSION = "metadata.version"
SCRAM_SINCE, TOKENS_SINCE = 11, 14
"""Levels of metadata.version (3.5-IV2, 3.6-IV2) from which Kafka stores SCRAM credentials, and delegation tokens."""

_METADATA_VERSION = 33
_KRAFT = "kraft.version"


def supported_features(config: Config) -> list[tuple[str, int, int]]:
    """Name, lowest and highest level of each of Kafka's features. Some have no effect here, as this broker has no
    voters.
    """
    metadata_version = _METADATA_VERSION + config.unstable_feature_versions_enable
    return [
        ("group.version", 0, 1),
        (_KRAFT, 0, 1),
        (METADATA_VERSION, 7, metadata_version),
        ("share.version", 0, 2),
        ("streams.version", 0, 1),
        ("transaction.version", 0, 2),
        ("eligible.leader.replicas.version", 0, 1),
    ]


def finalized_features(config: Config) -> dict[str, int]:
    """The level of each feature that is on: the highest, unless a `feature.<name>` key sets another one."""
    levels = {
        name: config.features.get(name, 0 if name == _KRAFT else highest)
        for name, _, highest in supported_features(config)
    }
    return {name: level for name, level in levels.items() if level > 0}


def feature_level(config: Config, name: str) -> int:
    """Level of a feature; 0 when it is off or not served."""
    return finalized_features(config).get(name, 0)


def has_eligible_replicas(config: Config) -> bool:
    """Whether the cluster has eligible leader replicas (KIP-966)."""
    return feature_level(config, "eligible.leader.replicas.version") > 0


class FeatureLevels:
    """Levels that clients changed while the broker ran. They override the configured ones, `Config.features`.

    Attributes:
        epoch: grows with every change.
        on_changed: functions that are called after levels changed.
    """

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        """Reads the stored levels. Raises `InvalidSetting` when their file is damaged."""
        self.epoch = 1
        self.on_changed: list[Callable[[], None]] = []
        self._config = config
        self._changed: dict[str, int] = {}
        self._journal = registry(directory, "features.journal", "feature levels")
        self._journal.replay(lambda entry: self._take(entry["epoch"], entry["levels"]))
        self._journal.begin([{"epoch": self.epoch, "levels": self._changed}] if self._changed else [])

    def update(self, levels: Mapping[str, int]) -> None:
        """Sets and stores levels of features. Raises `KafkaStorageError`."""
        self._journal.write({"epoch": self.epoch + 1, "levels": dict(levels)})
        self._take(self.epoch + 1, levels)
        for callback in self.on_changed:
            callback()

    def _take(self, epoch: int, levels: Mapping[str, int]) -> None:
        self.epoch = epoch
        self._changed |= levels
        self._config.features = {**self._config.features, **self._changed}
