"""The cluster's feature levels, as Apache Kafka 4.3.1 names them (KIP-584)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.config import Config

_METADATA_VERSION = 30
_KRAFT = "kraft.version"


def supported_features(config: Config) -> list[tuple[str, int, int]]:
    """Name, lowest and highest level of each feature that Kafka has.

    There is nothing behind some of them here: one replica is always eligible, and nobody votes.
    """
    metadata_version = _METADATA_VERSION + config.unstable_feature_versions_enable
    return [
        ("group.version", 0, 1),
        (_KRAFT, 0, 1),
        ("metadata.version", 7, metadata_version),
        ("share.version", 0, 1),
        ("streams.version", 0, 1),
        ("transaction.version", 0, 2),
        ("eligible.leader.replicas.version", 0, 1),
    ]


def finalized_features(config: Config) -> dict[str, int]:
    """The level of each feature that is on: the highest, unless a `feature.<name>` key says otherwise."""
    levels = {
        name: config.features.get(name, 0 if name == _KRAFT else highest)
        for name, _, highest in supported_features(config)
    }
    return {name: level for name, level in levels.items() if level > 0}


def feature_level(config: Config, name: str) -> int:
    """Level of a feature; 0 when it is off or not served."""
    return finalized_features(config).get(name, 0)
