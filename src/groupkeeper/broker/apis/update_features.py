"""UpdateFeatures (57): sets levels of the cluster's features, permanently (KIP-584)."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.features import METADATA_VERSION, finalized_features, supported_features
from groupkeeper.protocol.errors import InvalidUpdateVersion, KafkaError
from groupkeeper.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from groupkeeper.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

_UPGRADE_TYPES_SINCE = 1
_NO_RESULTS_SINCE = 2
_UPGRADE, _SAFE, _UNSAFE = 1, 2, 3
_FAILED = "The update failed for all features since the following feature had an error: "
_KRAFT = "kraft.version"
_LOSSY_LEVELS = (7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
"""Levels of metadata.version that cannot be lowered: they write records that earlier levels cannot read."""


async def handle(broker: Broker, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    require_cluster(broker, call, Operation.ALTER)
    changed = {}
    for update in request.feature_updates:
        why = _why_not(broker, update, call.api_version)
        if why is not None:
            raise InvalidUpdateVersion(_FAILED + why)
        if update.max_version_level != finalized_features(broker.config).get(update.feature, 0):
            changed[update.feature] = update.max_version_level
    if changed and not request.validate_only:
        broker.features.update(changed)
    results = [UpdatableFeatureResult(update.feature, 0, "NONE") for update in request.feature_updates]
    return UpdateFeaturesResponse(error_message=None, results=results if call.api_version < _NO_RESULTS_SINCE else [])


def refuse(call: Call, request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


def _why_not(broker: Broker, update: FeatureUpdateKey, version: int) -> str | None:
    """Why a level can't be set, in Apache Kafka's words; None: it can."""
    level = finalized_features(broker.config).get(update.feature, 0)
    if version >= _UPGRADE_TYPES_SINCE:
        upgrade_type = update.upgrade_type
    else:
        upgrade_type = _SAFE if update.allow_downgrade else _UPGRADE
    why = _unsupported(broker, update, upgrade_type)
    is_downgrade = why is None and update.max_version_level < level
    if why is None and update.max_version_level > level and upgrade_type != _UPGRADE:
        why = "Can't downgrade to a newer version."
    if is_downgrade and upgrade_type == _UPGRADE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    elif is_downgrade and update.feature == _KRAFT:
        why = "Can't downgrade the version of this feature."
    elif is_downgrade and update.feature == METADATA_VERSION:
        return _loss(level, update.max_version_level, is_safe=upgrade_type == _SAFE)
    wrong = f"Invalid update version {update.max_version_level} for feature {update.feature}."
    return None if why is None else f"{wrong} {why}"


def _unsupported(broker: Broker, update: FeatureUpdateKey, upgrade_type: int) -> str | None:
    node_id = broker.config.node_id
    ranges = {name: (lowest, highest) for name, lowest, highest in supported_features(broker.config)}
    if not _UPGRADE <= upgrade_type <= _UNSAFE:
        return "The controller does not support the given upgrade type."
    if update.max_version_level < 0:
        return "A feature version cannot be less than 0."
    if update.feature not in ranges:
        if update.max_version_level == 0:
            return f"Feature {update.feature} not found."
        return f"Local controller {node_id} does not support this feature."
    lowest, highest = ranges[update.feature]
    if not lowest <= update.max_version_level <= highest:
        return f"Local controller {node_id} only supports versions {lowest}-{highest}"
    return None


def _loss(level: int, wanted: int, *, is_safe: bool) -> str | None:
    """Why metadata.version can't be lowered, as it would lose metadata; None: it can."""
    if not any(wanted < lossy <= level for lossy in _LOSSY_LEVELS):
        return None
    why = (
        "Refusing to perform the requested downgrade because it might delete metadata information."
        if is_safe
        else "Unsafe metadata downgrade is not supported in this version."
    )
    return f"Unsupported {METADATA_VERSION} downgrade from {level} to {wanted}. {why}"
