"""OffsetDelete (47), KIP-496."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import ask, may, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed, UnknownTopicOrPartition
from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from groupkeeper.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 47
VERSIONS = (0, 0)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, OffsetDeleteRequest)
    if not may(broker, call, Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=GroupAuthorizationFailed.code)
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    accepted = []
    for topic in request.topics:
        code_by_partition = {
            one.partition_index: _check(broker, call, topic.name, one.partition_index) for one in topic.partitions
        }
        refused = [OffsetDeleteResponsePartition(index, code) for index, code in code_by_partition.items() if code]
        if refused:
            answers.setdefault(topic.name, []).extend(refused)
        known = [one for one in topic.partitions if not code_by_partition[one.partition_index]]
        accepted.append(OffsetDeleteRequestTopic(topic.name, known))
    # Asked even with nothing left: the group's own error wins (K496-33).
    response = await ask(
        broker, call, Operation.DELETE, request.group_id, OffsetDeleteRequest(request.group_id, accepted)
    )
    assert isinstance(response, OffsetDeleteResponse)
    if response.error_code:
        return response
    for answer in response.topics:
        answers.setdefault(answer.name, []).extend(answer.partitions)
    return OffsetDeleteResponse(
        topics=[OffsetDeleteResponseTopic(name, partitions) for name, partitions in answers.items()]
    )


def _check(broker: Broker, call: Call, topic: str, partition: int) -> int:
    """The error of a partition that the coordinator isn't asked for (K496-31, K496-32), or 0."""
    if not may_topic(broker, call, Operation.READ, topic):
        return TopicAuthorizationFailed.code
    if broker.topics.partition(topic, partition) is None:
        return UnknownTopicOrPartition.code
    return 0
