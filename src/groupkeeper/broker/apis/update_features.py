"""UpdateFeatures (57): checks what is wanted as Kafka does; levels are changed in the broker's settings only."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.features import finalized_features, supported_features
from groupkeeper.protocol.errors import FeatureUpdateFailed, InvalidUpdateVersion, KafkaError
from groupkeeper.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from groupkeeper.protocol.messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 57
VERSIONS = (0, 2)

_UPGRADE_TYPES_SINCE = 1
_NO_RESULTS_SINCE = 2
_UPGRADE, _UNSAFE = 1, 3
_FAILED = "The update failed for all features since the following feature had an error: "


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, UpdateFeaturesRequest)
    require_cluster(broker, call, Operation.ALTER)
    for update in request.feature_updates:
        wrong = f"{_FAILED}Invalid update version {update.max_version_level} for feature {update.feature}."
        why = _trouble(broker, update, call.api_version)
        if why is not None:
            raise InvalidUpdateVersion(f"{wrong} {why}")
        level = finalized_features(broker.config).get(update.feature, 0)
        if update.max_version_level != level and not request.validate_only:
            setting = f"feature.{update.feature}={update.max_version_level}"
            raise FeatureUpdateFailed(f"{wrong} Set {setting} in the settings of this broker instead.")
    results = [UpdatableFeatureResult(update.feature, 0, "NONE") for update in request.feature_updates]
    return UpdateFeaturesResponse(error_message=None, results=results if call.api_version < _NO_RESULTS_SINCE else [])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)


def _trouble(broker: Broker, update: FeatureUpdateKey, version: int) -> str | None:
    node_id, config = broker.config.node_id, broker.config
    ranges = {name: (lowest, highest) for name, lowest, highest in supported_features(config)}
    if update.feature not in ranges:
        return f"Local controller {node_id} does not support this feature."
    lowest, highest = ranges[update.feature]
    if not lowest <= update.max_version_level <= highest:
        return f"Local controller {node_id} only supports versions {lowest}-{highest}"
    if version >= _UPGRADE_TYPES_SINCE and not _UPGRADE <= update.upgrade_type <= _UNSAFE:
        return "The controller does not support the given upgrade type."
    level = finalized_features(config).get(update.feature, 0)
    is_upgrade = update.upgrade_type == _UPGRADE if version >= _UPGRADE_TYPES_SINCE else not update.allow_downgrade
    if update.max_version_level < level and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    return None
