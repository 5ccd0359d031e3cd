"""ApiVersions (18): the versions that this broker serves, and its feature levels."""

from __future__ import annotations

from groupkeeper.broker.api_table import TABLE, Api
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.features import finalized_features, supported_features
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, RebootstrapRequired

_PRODUCE = 0
_CLIENT_NAME_SINCE = 3
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")


async def handle(broker: Broker, call: Call, request: m.ApiVersionsRequest) -> m.ApiVersionsResponse:
    if call.api_version >= _CLIENT_NAME_SINCE and not (
        _is_valid(request.client_software_name) and _is_valid(request.client_software_version)
    ):
        return m.ApiVersionsResponse(error_code=InvalidRequest.code)
    is_here = (request.cluster_id, request.node_id) == (broker.cluster_id, call.node)
    if request.cluster_id is not None and not is_here:  # the client's metadata is outdated
        return m.ApiVersionsResponse(error_code=RebootstrapRequired.code)
    keys = [m.ApiVersion(api.key, _advertised_lowest(api), api.highest_of(broker.config)) for api in TABLE.values()]
    if call.api_version < _CLIENT_NAME_SINCE:
        return m.ApiVersionsResponse(api_keys=keys)
    finalized = finalized_features(broker.config)
    return m.ApiVersionsResponse(
        api_keys=keys,
        supported_features=[
            m.SupportedFeatureKey(name, lowest, highest)
            for name, lowest, highest in supported_features(broker.config)
            # Before version 4 clients reject a lowest level of 0.
            if lowest > 0 or call.api_version > _CLIENT_NAME_SINCE
        ],
        finalized_features_epoch=broker.features.epoch,
        finalized_features=[m.FinalizedFeatureKey(name, level, level) for name, level in finalized.items()],
    )


def _advertised_lowest(api: Api) -> int:
    # As in Kafka 4: without Produce version 0, old librdkafka assumes an old broker (KAFKA-18659).
    return 0 if api.key == _PRODUCE else api.lowest


def _is_valid(software: str) -> bool:
    """Whether a name has only letters, digits, dots and dashes, and begins and ends with a letter or digit."""
    return bool(software) and _NAME_CHARACTERS.issuperset(software) and software[0].isalnum() and software[-1].isalnum()
