"""The start offsets of share groups: DescribeShareGroupOffsets (90), with lags, and for empty groups
AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92); KIP-932, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from groupkeeper.broker.apis._access import may_topic, require_group
from groupkeeper.broker.apis._groups import require_served
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share_state.state import UNKNOWN_COUNT, UNKNOWN_OFFSET, SharePartitionKey
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.primitives import ZERO_UUID, Message

_UNKNOWN_LAG = -1


async def handle_describe(
    broker: Broker, call: Call, request: m.DescribeShareGroupOffsetsRequest
) -> m.DescribeShareGroupOffsetsResponse:
    require_served(broker, "share")
    return m.DescribeShareGroupOffsetsResponse(
        groups=[await _describe(broker, call, group) for group in request.groups]
    )


def refuse_describe(
    call: Call, request: m.DescribeShareGroupOffsetsRequest, error: KafkaError
) -> m.DescribeShareGroupOffsetsResponse:
    return m.DescribeShareGroupOffsetsResponse(groups=[_failure(group.group_id, error) for group in request.groups])


def _failure(group_id: str, error: KafkaError) -> m.DescribeShareGroupOffsetsResponseGroup:
    return m.DescribeShareGroupOffsetsResponseGroup(group_id, error_code=error.code, error_message=error.message)


async def _describe(
    broker: Broker, call: Call, group: m.DescribeShareGroupOffsetsRequestGroup
) -> m.DescribeShareGroupOffsetsResponseGroup:
    try:
        require_group(broker, call, Operation.DESCRIBE, group.group_id)
        topics = await (_describe_all if group.topics is None else _describe_named)(broker, call, group)
    except KafkaError as error:
        return _failure(group.group_id, error)
    return m.DescribeShareGroupOffsetsResponseGroup(group.group_id, topics)


async def _describe_all(
    broker: Broker, call: Call, group: m.DescribeShareGroupOffsetsRequestGroup
) -> list[m.DescribeShareGroupOffsetsResponseTopic]:
    """All initialized share-partitions, of topics that the caller may see."""
    shard = broker.groups.shard_for_request(group.group_id, call.node)
    shard.require_active()
    known = shard.coordinator.state.find(group.group_id, ShareGroup)
    if known is None:
        return []
    described = []
    for topic_id, (_, partitions) in known.has.initialized.items():
        topic = broker.topics.by_id(topic_id)
        if topic is not None and may_topic(broker, call, Operation.DESCRIBE, topic.name):
            described.append(await _describe_topic(broker, call, group.group_id, topic, sorted(partitions)))
    return described


async def _describe_named(
    broker: Broker, call: Call, group: m.DescribeShareGroupOffsetsRequestGroup
) -> list[m.DescribeShareGroupOffsetsResponseTopic]:
    broker.groups.shard_for_request(group.group_id, call.node).require_active()
    described, unknown = [], []
    for wanted in group.topics or ():
        topic = broker.topics.get(wanted.topic_name)
        if not may_topic(broker, call, Operation.DESCRIBE, wanted.topic_name):
            unknown.append(_unknown_topic(wanted.topic_name, wanted.partitions, errors.TopicAuthorizationFailed()))
        elif topic is None:
            unknown.append(_unknown_topic(wanted.topic_name, wanted.partitions, None))
        else:
            described.append(await _describe_topic(broker, call, group.group_id, topic, wanted.partitions))
    return [*unknown, *described]


def _unknown_topic(
    name: str, partitions: Iterable[int], error: KafkaError | None
) -> m.DescribeShareGroupOffsetsResponseTopic:
    code, message = (0, None) if error is None else (error.code, error.message)
    start_offset = UNKNOWN_OFFSET if error is None else 0
    return m.DescribeShareGroupOffsetsResponseTopic(
        name,
        ZERO_UUID,
        [
            m.DescribeShareGroupOffsetsResponsePartition(index, start_offset, error_code=code, error_message=message)
            for index in partitions
        ],
    )


async def _describe_topic(
    broker: Broker, call: Call, group_id: str, topic: Topic, partitions: Iterable[int]
) -> m.DescribeShareGroupOffsetsResponseTopic:
    described = [await _describe_partition(broker, call.node, group_id, topic, index) for index in partitions]
    return m.DescribeShareGroupOffsetsResponseTopic(topic.name, topic.topic_id, described)


async def _describe_partition(
    broker: Broker, node: int, group_id: str, topic: Topic, index: int
) -> m.DescribeShareGroupOffsetsResponsePartition:
    """The offsets from the share coordinator; offset −1 without an error if it has none."""
    key = SharePartitionKey(group_id, topic.topic_id, index)
    try:
        await broker.share_states.ready(key)
        broker.share_states.require_reached(key, node)
        state = broker.share_states.summary(key)
    except KafkaError:
        return m.DescribeShareGroupOffsetsResponsePartition(index, UNKNOWN_OFFSET)
    log = topic.partition(index)
    lag = _UNKNOWN_LAG
    if log is not None and state.start_offset != UNKNOWN_OFFSET and state.delivery_complete_count != UNKNOWN_COUNT:
        lag = log.high_watermark - state.start_offset - state.delivery_complete_count
    return m.DescribeShareGroupOffsetsResponsePartition(index, state.start_offset, state.leader_epoch, lag)


_ERROR = errors.TopicAuthorizationFailed()


async def handle_alter(broker: Broker, call: Call, request: m.AlterShareGroupOffsetsRequest) -> Message:
    def hidden(topic: m.AlterShareGroupOffsetsRequestTopic) -> m.AlterShareGroupOffsetsResponseTopic:
        partitions = [
            m.AlterShareGroupOffsetsResponsePartition(one.partition_index, _ERROR.code, _ERROR.message)
            for one in topic.partitions
        ]
        return m.AlterShareGroupOffsetsResponseTopic(topic.topic_name, partitions=partitions)

    return await _change(broker, call, request, Operation.READ, hidden)


async def handle_delete(broker: Broker, call: Call, request: m.DeleteShareGroupOffsetsRequest) -> Message:
    def hidden(topic: m.DeleteShareGroupOffsetsRequestTopic) -> m.DeleteShareGroupOffsetsResponseTopic:
        return m.DeleteShareGroupOffsetsResponseTopic(topic.topic_name, ZERO_UUID, _ERROR.code, _ERROR.message)

    return await _change(broker, call, request, Operation.DELETE, hidden)


async def _change(
    broker: Broker, call: Call, request: Any, operation: Operation, hidden: Callable[[Any], Any]
) -> Message:
    """The group coordinator's response, with errors for topics that the caller may not read."""
    try:
        require_served(broker, "share")
        require_group(broker, call, operation, request.group_id)
    except KafkaError as refusal:
        return refuse_request(request, refusal)
    readable, results = [], []
    async for topic in in_turns(request.topics):
        if may_topic(broker, call, Operation.READ, topic.topic_name):
            readable.append(topic)
        else:
            results.append(hidden(topic))
    part = copy(request)
    part.topics = readable
    response: Any = await broker.groups.ask(request.group_id, part, call)
    if results and not response.error_code:
        response.responses = [*results, *response.responses]
    return response  # type: ignore[no-any-return]
