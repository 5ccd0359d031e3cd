"""DeleteRecords (21): moves the log start offset of partitions forward."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topics import Topic
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

_TO_HIGH_WATERMARK = -1


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DeleteRecordsRequest)
    topics = []
    for wanted in request.topics:
        topic = broker.topics.get(wanted.name)
        parts = []
        for part in wanted.partitions:
            try:
                require_topic(broker, call, Operation.DELETE, wanted.name)
                low = _advance(topic, part.partition_index, part.offset, call.node)
                parts.append(m.DeleteRecordsPartitionResult(part.partition_index, low))
            except errors.KafkaError as error:
                parts.append(m.DeleteRecordsPartitionResult(part.partition_index, -1, error.code))
        topics.append(m.DeleteRecordsTopicResult(wanted.name, parts))
    await broker.topics.write_start_offsets()
    return m.DeleteRecordsResponse(topics=topics)


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DeleteRecordsRequest)
    return m.DeleteRecordsResponse(
        topics=[
            m.DeleteRecordsTopicResult(
                topic.name,
                [m.DeleteRecordsPartitionResult(part.partition_index, -1, error.code) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _advance(topic: Topic | None, index: int, offset: int, node: int) -> int:
    log = topic.partition(index) if topic is not None else None
    if topic is None or log is None:
        raise errors.UnknownTopicOrPartition
    if topic.is_internal:
        raise errors.InvalidTopicException
    if "delete" not in topic.config.cleanup_policy:
        raise errors.PolicyViolation
    log.placement.require_leader(node)
    offset = log.high_watermark if offset == _TO_HIGH_WATERMARK else offset
    if not 0 <= offset <= log.high_watermark:
        raise errors.OffsetOutOfRange
    log.advance_start(offset)
    return log.log_start_offset
