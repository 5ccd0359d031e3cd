"""ListConfigResources (74): resources with settings that can be described. Version 0 lists client metrics only
(KIP-1142).
"""

from __future__ import annotations

from groupkeeper.broker.apis._configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import ClusterAuthorizationFailed, UnsupportedVersion
from groupkeeper.protocol.messages import ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse
from groupkeeper.protocol.primitives import RootMessage

_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
"""The types that may be requested, in the response's order."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ListConfigResourcesRequest)
    if not broker.authorizer.allows(call, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ListConfigResourcesResponse(error_code=ClusterAuthorizationFailed.code)
    if not set(request.resource_types) <= set(_TYPES):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code)
    wanted = set(request.resource_types or _TYPES) if call.api_version else {CLIENT_METRICS}
    nodes = [str(node) for node in broker.fronts]
    listed = {
        GROUP: broker.group_configs.group_ids(),
        CLIENT_METRICS: broker.client_metrics.names(),
        BROKER_LOGGER: nodes,
        BROKER: nodes,
        TOPIC: broker.topics.names(),
    }
    resources = [ConfigResource(name, one) for one in _TYPES if one in wanted for name in listed[one]]
    return ListConfigResourcesResponse(config_resources=resources)
