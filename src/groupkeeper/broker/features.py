"""The cluster's feature levels, as Apache Kafka 4.3.1 names them (KIP-584)."""

from __future__ import annotations

from groupkeeper.broker.apis import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.config import Config

_METADATA_VERSION = 30
_CONSUMER_GROUP_HEARTBEAT = 68
_SHARE_GROUP_HEARTBEAT = 76
_ADD_PARTITIONS_TO_TXN = 24

_NEEDED_API = {
    "group.version": _CONSUMER_GROUP_HEARTBEAT,
    "share.version": _SHARE_GROUP_HEARTBEAT,
    "transaction.version": _ADD_PARTITIONS_TO_TXN,
}


def supported_features() -> list[tuple[str, int, int]]:
    """Name, lowest and highest level of each feature whose APIs are served."""
    known = [
        ("group.version", 0, 1),
        ("metadata.version", 7, _METADATA_VERSION),
        ("share.version", 0, 1),
        ("transaction.version", 0, 2),
    ]
    return [feature for feature in known if feature[0] not in _NEEDED_API or _NEEDED_API[feature[0]] in TABLE]


def finalized_features(config: Config) -> dict[str, int]:
    """The level of each feature that is on: the highest, unless a `feature.<name>` key says otherwise."""
    levels = {name: config.features.get(name, highest) for name, _, highest in supported_features()}
    return {name: level for name, level in levels.items() if level > 0}


def feature_level(config: Config, name: str) -> int:
    """Level of a feature; 0 when it is off or not served."""
    return finalized_features(config).get(name, 0)
