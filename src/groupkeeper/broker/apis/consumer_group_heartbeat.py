"""ConsumerGroupHeartbeat (68): members of the consumer protocol join, stay and leave (KIP-848)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import ask, may_topic
from groupkeeper.broker.apis.consumer_group_describe import is_consumer_protocol_on
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.protocol.errors import TopicAuthorizationFailed, UnsupportedVersion
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 68
VERSIONS = (0, 1)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    if not is_consumer_protocol_on(broker.config):
        response = refuse_request(request, UnsupportedVersion())
    elif not all(may_topic(broker, call, Operation.DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        response = refuse_request(request, TopicAuthorizationFailed())
    else:
        response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response
