"""ConsumerGroupHeartbeat (68): members of the consumer protocol join, stay and leave (KIP-848)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic, without_consumer_groups
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    trouble = without_consumer_groups(broker) or await _trouble_of(broker, call, request)
    if trouble is not None:
        response = refuse_request(request, trouble)
    else:
        response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


async def _trouble_of(broker: Broker, call: Call, request: ConsumerGroupHeartbeatRequest) -> errors.KafkaError | None:
    """What refuses the request before its group is looked at, or None."""
    if not may(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    async for name in in_turns(request.subscribed_topic_names or ()):
        if not may_topic(broker, call, Operation.DESCRIBE, name):
            return errors.TopicAuthorizationFailed()
    return None
