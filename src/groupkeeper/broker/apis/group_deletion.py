"""DeleteGroups (42), and OffsetDelete (47, KIP-496)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._access import may_topic, require_group
from groupkeeper.broker.apis._commits import joined
from groupkeeper.broker.apis._groups import ask, ask_each
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE, KafkaError
from groupkeeper.protocol.messages import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle_groups(broker: Broker, call: Call, request: DeleteGroupsRequest) -> RootMessage:
    once = copy(request)
    once.groups_names = list(dict.fromkeys(request.groups_names))
    response: RootMessage = await ask_each(broker, call, Operation.DELETE, once, "groups_names", _refused, parks=True)
    return response


def refuse_groups(call: Call, request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_refused(group_id, error) for group_id in request.groups_names])


def _refused(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id, error.code)


async def handle_offsets(broker: Broker, call: Call, request: m.OffsetDeleteRequest) -> m.OffsetDeleteResponse:
    require_group(broker, call, Operation.DELETE, request.group_id)
    responses: dict[str, list[m.OffsetDeleteResponsePartition]] = {}
    accepted = []
    for topic in request.topics:
        error_code = _check_topic(broker, call, topic.name)
        if error_code:
            refused = [m.OffsetDeleteResponsePartition(one.partition_index, error_code) for one in topic.partitions]
            responses.setdefault(topic.name, []).extend(refused)
            continue
        known = []
        for one in topic.partitions:
            if broker.topics.partition(topic.name, one.partition_index) is not None:
                known.append(one)
                continue
            refusal = m.OffsetDeleteResponsePartition(one.partition_index, errors.UnknownTopicOrPartition.code)
            responses.setdefault(topic.name, []).append(refusal)
        topic.partitions = known
        if known:
            accepted.append(topic)
    # Call the coordinator even if no topic is left: an error of the group comes first.
    request.topics = accepted
    response = await ask(broker, call, Operation.DELETE, request.group_id, request)
    assert isinstance(response, m.OffsetDeleteResponse)
    if response.error_code:
        return response
    refused_topics = {name: m.OffsetDeleteResponseTopic(name, partitions) for name, partitions in responses.items()}
    response.topics = joined(refused_topics, response.topics, lambda topic: topic.name)
    return response


def _check_topic(broker: Broker, call: Call, topic: str) -> int:
    """The error of a topic that isn't sent to the coordinator, or 0."""
    if not may_topic(broker, call, Operation.READ, topic):
        return errors.TopicAuthorizationFailed.code
    return NONE if broker.topics.get(topic) is not None else errors.UnknownTopicOrPartition.code
