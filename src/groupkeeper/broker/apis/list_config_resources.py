"""ListConfigResources (74): whose settings can be described. Version 0 asked for client metrics only (KIP-1142)."""

from __future__ import annotations

from groupkeeper.broker.apis._configs import BROKER, GROUP, TOPIC
from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.protocol.errors import ClusterAuthorizationFailed, UnsupportedVersion
from groupkeeper.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from groupkeeper.protocol.messages.list_config_resources_response import ConfigResource, ListConfigResourcesResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 74
VERSIONS = (0, 1)

_BROKER_LOGGER = 8
_CLIENT_METRICS = 16
_TYPES = (TOPIC, BROKER, _BROKER_LOGGER, _CLIENT_METRICS, GROUP)
"""The types that may be asked for; this broker has no loggers that clients could set, and no client metrics."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ListConfigResourcesRequest)
    if not broker.authorizer.allows(call, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ListConfigResourcesResponse(error_code=ClusterAuthorizationFailed.code)
    if not set(request.resource_types) <= set(_TYPES):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code)
    wanted = set(request.resource_types or _TYPES) if call.api_version else {_CLIENT_METRICS}
    listed = {
        GROUP: broker.group_configs.group_ids(),
        TOPIC: broker.topics.names(),
        BROKER: [str(broker.config.node_id)],
    }
    resources = [ConfigResource(name, one) for one, names in listed.items() if one in wanted for name in names]
    return ListConfigResourcesResponse(config_resources=resources)
