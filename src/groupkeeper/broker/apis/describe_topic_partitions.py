"""DescribeTopicPartitions (75): as Metadata for topics, but in pages (KIP-966)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from groupkeeper.broker.apis._access import may_topic, topic_operations
from groupkeeper.broker.authorizer import NOT_REQUESTED, Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.describe_topic_partitions_response import Cursor
from groupkeeper.protocol.primitives import ZERO_UUID


async def handle(
    broker: Broker, call: Call, request: m.DescribeTopicPartitionsRequest
) -> m.DescribeTopicPartitionsResponse:
    names, first = _start(broker, call, request)
    room = min(request.response_partition_limit, broker.config.max_request_partition_size_limit)
    room = max(room, 1)
    topics: list[m.DescribeTopicPartitionsResponseTopic] = []
    async for name in in_turns(names):
        if room == 0:
            return m.DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, first))
        topic = broker.topics.get(name)
        if not may_topic(broker, call, Operation.DESCRIBE, name):
            topics.append(_refused(name, errors.TopicAuthorizationFailed.code, NOT_REQUESTED))
        elif topic is None:
            topics.append(_unknown(broker, call, name))
        else:
            last = min(first + room, len(topic.partitions))
            operations = topic_operations(broker, call, name)
            topics.append(_describe(broker, call.node, topic, first, last, operations))
            room -= last - first
            if last < len(topic.partitions):
                return m.DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, last))
        first = 0
    return m.DescribeTopicPartitionsResponse(topics=topics)


def refuse(
    call: Call, request: m.DescribeTopicPartitionsRequest, error: errors.KafkaError
) -> m.DescribeTopicPartitionsResponse:
    return m.DescribeTopicPartitionsResponse(
        topics=[m.DescribeTopicPartitionsResponseTopic(error.code, topic.name) for topic in request.topics]
    )


def _start(broker: Broker, call: Call, request: m.DescribeTopicPartitionsRequest) -> tuple[Sequence[str], int]:
    """The topic names to describe, in order, and the first partition of the first one."""
    names: Sequence[str] = sorted({topic.name for topic in request.topics})
    if not names:
        names = [name for name in broker.topics.names() if may_topic(broker, call, Operation.DESCRIBE, name)]
    if request.cursor is None:
        return names, 0
    if request.cursor.partition_index < 0:
        raise errors.InvalidRequest(
            "DescribeTopicPartitionsRequest cursor partition must be valid: " + str(request.cursor)
        )
    names = names[bisect_left(names, request.cursor.topic_name) :]
    is_inside = bool(names) and names[0] == request.cursor.topic_name
    return names, request.cursor.partition_index if is_inside else 0


def _describe(
    broker: Broker, node: int, topic: Topic, first: int, last: int, operations: int
) -> m.DescribeTopicPartitionsResponseTopic:
    running = broker.topics.placements.running_known_to(node)
    return m.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            m.DescribeTopicPartitionsResponsePartition(
                0,
                log.index,
                (at := log.placement.known_to(node)).leader,
                at.epoch,
                at.replicas,
                at.isr,
                # Null would mean "unknown", which Kafka's own tools cannot digest.
                eligible_leader_replicas=at.eligible,
                last_known_elr=() if at.last_leader == NO_LEADER else [at.last_leader],
                offline_replicas=[one for one in at.replicas if one not in running],
            )
            for log in topic.partitions[first:last]
        ],
        topic_authorized_operations=operations,
    )


def _unknown(broker: Broker, call: Call, name: str) -> m.DescribeTopicPartitionsResponseTopic:
    operations = topic_operations(broker, call, name)
    try:
        require_valid_name(name)
    except errors.InvalidTopicException as error:
        return _refused(name, error.code, operations)
    return _refused(name, errors.UnknownTopicOrPartition.code, operations, is_internal=broker.is_internal(name))


def _refused(
    name: str, code: int, operations: int, *, is_internal: bool = False
) -> m.DescribeTopicPartitionsResponseTopic:
    return m.DescribeTopicPartitionsResponseTopic(code, name, ZERO_UUID, is_internal, (), operations)
