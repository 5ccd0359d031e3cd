"""DeleteShareGroupOffsets (92): deletes topics' offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.apis._share_groups import trouble_of
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from groupkeeper.protocol.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from groupkeeper.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteShareGroupOffsetsRequest)
    trouble = trouble_of(broker)
    if trouble is None and not may(broker, call, Operation.DELETE, request.group_id):
        trouble = GroupAuthorizationFailed()
    if trouble is not None:
        refused = refuse_request(request, trouble)
        assert isinstance(refused, DeleteShareGroupOffsetsResponse)
        return refused
    allowed, hidden = [], []
    for topic in request.topics:
        if may_topic(broker, call, Operation.READ, topic.topic_name):
            allowed.append(topic)
        else:
            error = TopicAuthorizationFailed()
            hidden.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic.topic_name, error_code=error.code, error_message=error.message
                )
            )
    allowed_request = DeleteShareGroupOffsetsRequest(request.group_id, allowed)
    response = await broker.groups.ask(request.group_id, allowed_request, call)
    assert isinstance(response, DeleteShareGroupOffsetsResponse)
    if hidden and not response.error_code:
        response.responses = [*hidden, *response.responses]
    return response
