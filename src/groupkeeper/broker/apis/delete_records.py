"""DeleteRecords (21): moves the log start offset of partitions forward."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topics import Topic
from groupkeeper.protocol.errors import (
    InvalidTopicException,
    KafkaError,
    OffsetOutOfRange,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.messages.delete_records_request import DeleteRecordsRequest
from groupkeeper.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from groupkeeper.protocol.primitives import RootMessage

_TO_HIGH_WATERMARK = -1


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteRecordsRequest)
    topics = []
    for wanted in request.topics:
        topic = broker.topics.get(wanted.name)
        parts = []
        for part in wanted.partitions:
            try:
                require_topic(broker, call, Operation.DELETE, wanted.name)
                low = _advance(topic, part.partition_index, part.offset, call.node)
                parts.append(DeleteRecordsPartitionResult(part.partition_index, low))
            except KafkaError as error:
                parts.append(DeleteRecordsPartitionResult(part.partition_index, -1, error.code))
        topics.append(DeleteRecordsTopicResult(wanted.name, parts))
    await broker.topics.write_start_offsets()
    return DeleteRecordsResponse(topics=topics)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteRecordsRequest)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name,
                [DeleteRecordsPartitionResult(part.partition_index, -1, error.code) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _advance(topic: Topic | None, index: int, offset: int, node: int) -> int:
    log = topic.partition(index) if topic is not None else None
    if topic is None or log is None:
        raise UnknownTopicOrPartition
    if topic.is_internal:
        raise InvalidTopicException
    if "delete" not in topic.config.cleanup_policy:
        raise PolicyViolation
    log.placement.require_leader(node)
    offset = log.high_watermark if offset == _TO_HIGH_WATERMARK else offset
    if not 0 <= offset <= log.high_watermark:
        raise OffsetOutOfRange
    log.advance_start(offset)
    return log.log_start_offset
