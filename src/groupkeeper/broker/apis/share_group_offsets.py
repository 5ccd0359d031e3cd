"""AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92): the start offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from copy import copy
from typing import Any

from groupkeeper.broker.apis._groups import may, may_topic, without_share_groups
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from groupkeeper.protocol.primitives import RootMessage

_ERROR = TopicAuthorizationFailed()


async def handle(broker: Broker, call: Call) -> RootMessage:
    """The group coordinator's reply; topics that the caller may not read are answered here."""
    request: Any = copy(call.message)
    is_deletion = isinstance(request, m.DeleteShareGroupOffsetsRequest)
    trouble = without_share_groups(broker)
    operation = Operation.DELETE if is_deletion else Operation.READ
    if trouble is None and not may(broker, call, operation, request.group_id):
        trouble = GroupAuthorizationFailed()
    if trouble is not None:
        response: Any = refuse_request(request, trouble)
    else:
        hidden = _not_deleted if is_deletion else _not_altered
        readable, results = [], []
        async for topic in in_turns(request.topics):
            if may_topic(broker, call, Operation.READ, topic.topic_name):
                readable.append(topic)
            else:
                results.append(hidden(topic))
        request.topics = readable
        response = await broker.groups.ask(request.group_id, request, call)
        if results and not response.error_code:
            response.responses = [*results, *response.responses]
    assert isinstance(response, RootMessage)
    return response


def _not_altered(topic: m.AlterShareGroupOffsetsRequestTopic) -> Any:
    partitions = [
        m.AlterShareGroupOffsetsResponsePartition(one.partition_index, _ERROR.code, _ERROR.message)
        for one in topic.partitions
    ]
    return m.AlterShareGroupOffsetsResponseTopic(topic.topic_name, partitions=partitions)


def _not_deleted(topic: m.DeleteShareGroupOffsetsRequestTopic) -> Any:
    return m.DeleteShareGroupOffsetsResponseTopic(
        topic.topic_name, error_code=_ERROR.code, error_message=_ERROR.message
    )
