"""ListOffsets (2): the earliest, latest and largest-timestamp offset of partitions, or the first since a timestamp."""

from __future__ import annotations

from collections import Counter

from groupkeeper.broker.apis._access import require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition, UnsupportedVersion
from groupkeeper.protocol.primitives import RootMessage

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED = 1


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ListOffsetsRequest)
    counts = Counter((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
    committed = request.isolation_level == _READ_COMMITTED
    topics: dict[str, dict[int, m.ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for part in topic.partitions:
            try:
                require_topic(broker, call, Operation.DESCRIBE, topic.name)
                if counts[topic.name, part.partition_index] > 1:
                    raise InvalidRequest
                log = broker.topics.partition(topic.name, part.partition_index)
                answer = await _find(broker, call, log, part, committed)
            except KafkaError as error:
                answer = m.ListOffsetsPartitionResponse(part.partition_index, error.code)
            answers[part.partition_index] = answer
    return m.ListOffsetsResponse(
        topics=[m.ListOffsetsTopicResponse(name, list(answers.values())) for name, answers in topics.items()]
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.ListOffsetsRequest)
    return m.ListOffsetsResponse(
        topics=[
            m.ListOffsetsTopicResponse(
                topic.name,
                [m.ListOffsetsPartitionResponse(part.partition_index, error.code) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _find(
    broker: Broker, call: Call, log: PartitionLog | None, part: m.ListOffsetsPartition, committed: bool
) -> m.ListOffsetsPartitionResponse:
    version = call.api_version
    if part.timestamp < 0 and version < _SINCE_VERSION.get(part.timestamp, 2**15):
        raise UnsupportedVersion
    if log is None:
        raise UnknownTopicOrPartition
    log = log.seen_by(call.node)
    placement = log.placement.known_to(call.node)
    placement.require_leader(call.node, part.current_leader_epoch)
    timestamp, offset = await _position(broker.topics.long_reads, log, part.timestamp, committed)
    epoch = -1
    if offset >= 0 and version >= 4:
        epoch = placement.epoch if part.timestamp == LATEST else placement.epoch_at(offset)
    return m.ListOffsetsPartitionResponse(part.partition_index, 0, timestamp, offset, epoch)


async def _position(reads: LongReads, log: PartitionLog, timestamp: int, committed: bool) -> tuple[int, int]:
    end = log.last_stable_offset if committed else log.high_watermark
    if log.failure is None:
        if timestamp == LATEST:
            return -1, end
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return -1, log.log_start_offset
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return -1, -1
    found = await (
        log.max_timestamp(reads) if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp, reads)
    )
    if found is None or found[1] >= end:
        return -1, -1
    return found
