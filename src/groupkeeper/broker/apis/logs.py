"""APIs about the content of partitions' logs: ListOffsets (2), DeleteRecords (21), OffsetForLeaderEpoch (23),
DescribeLogDirs (35) and DescribeProducers (61).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from groupkeeper.broker.apis._access import may_cluster, may_topic, require_cluster, require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.offset_for_leader_epoch_response import EpochEndOffset

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


async def handle_offsets(broker: Broker, call: Call, request: m.ListOffsetsRequest) -> m.ListOffsetsResponse:
    """The earliest, latest and largest-timestamp offset of partitions, or the first since a timestamp."""
    counts = Counter((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
    committed = request.isolation_level == _READ_COMMITTED
    topics: dict[str, dict[int, m.ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        responses = topics.setdefault(topic.name, {})
        for part in topic.partitions:
            try:
                require_topic(broker, call, Operation.DESCRIBE, topic.name)
                if counts[topic.name, part.partition_index] > 1:
                    raise errors.InvalidRequest
                log = broker.topics.partition(topic.name, part.partition_index)
                response = await _find(broker, call, log, part, committed)
            except KafkaError as error:
                response = m.ListOffsetsPartitionResponse(part.partition_index, error.code)
            responses[part.partition_index] = response
    return m.ListOffsetsResponse(
        topics=[m.ListOffsetsTopicResponse(name, list(responses.values())) for name, responses in topics.items()]
    )


def refuse_offsets(call: Call, request: m.ListOffsetsRequest, error: KafkaError) -> m.ListOffsetsResponse:
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
        raise errors.UnsupportedVersion
    if log is None:
        raise errors.UnknownTopicOrPartition
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


_TO_HIGH_WATERMARK = -1


async def handle_delete(broker: Broker, call: Call, request: m.DeleteRecordsRequest) -> m.DeleteRecordsResponse:
    """Moves the log start offset of partitions forward."""
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


def refuse_delete(call: Call, request: m.DeleteRecordsRequest, error: errors.KafkaError) -> m.DeleteRecordsResponse:
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


async def handle_epochs(
    broker: Broker, call: Call, request: m.OffsetForLeaderEpochRequest
) -> m.OffsetForLeaderEpochResponse:
    """The end offset of a leader epoch."""
    topics = []
    may_all = may_cluster(broker, call, Operation.CLUSTER_ACTION)
    for wanted in request.topics:
        parts = []
        for part in wanted.partitions:
            try:
                if not may_all:
                    require_topic(broker, call, Operation.DESCRIBE, wanted.topic)
                parts.append(_end(broker.topics.partition(wanted.topic, part.partition), part, call.node))
            except KafkaError as error:
                parts.append(EpochEndOffset(error.code, part.partition))
        topics.append(m.OffsetForLeaderTopicResult(wanted.topic, parts))
    return m.OffsetForLeaderEpochResponse(topics=topics)


def refuse_epochs(
    call: Call, request: m.OffsetForLeaderEpochRequest, error: KafkaError
) -> m.OffsetForLeaderEpochResponse:
    return m.OffsetForLeaderEpochResponse(
        topics=[
            m.OffsetForLeaderTopicResult(
                topic.topic, [EpochEndOffset(error.code, part.partition) for part in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _end(log: PartitionLog | None, part: m.OffsetForLeaderPartition, node: int) -> EpochEndOffset:
    if log is None:
        raise errors.UnknownTopicOrPartition
    log = log.seen_by(node)
    placement = log.placement.known_to(node)
    placement.require_leader(node, part.current_leader_epoch)
    if log.failure is not None:
        raise errors.KafkaStorageError
    return EpochEndOffset(0, part.partition, *placement.end_of(part.leader_epoch, log.log_end_offset))


async def handle_dirs(broker: Broker, call: Call, request: m.DescribeLogDirsRequest) -> m.DescribeLogDirsResponse:
    """The size in bytes of each partition."""
    require_cluster(broker, call, Operation.DESCRIBE)
    parts_by_topic: dict[str, list[m.DescribeLogDirsPartition]] = {}
    async for log in in_turns(_wanted(broker, request)):
        if log is not None and call.node in log.placement.replicas:
            part = m.DescribeLogDirsPartition(log.index, log.size, 0, False)
            parts_by_topic.setdefault(log.topic, []).append(part)
    path = os.path.abspath(broker.storage_path)
    disk = os.statvfs(path)
    result = m.DescribeLogDirsResult(
        log_dir=path,
        topics=[m.DescribeLogDirsTopic(name, parts) for name, parts in parts_by_topic.items()],
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
    )
    return m.DescribeLogDirsResponse(results=[result])


def _wanted(broker: Broker, request: m.DescribeLogDirsRequest) -> Iterator[PartitionLog | None]:
    """The logs to describe; None for each partition that does not exist."""
    if request.topics is None:
        for name in broker.topics.names():
            topic = broker.topics.get(name)
            yield from list(topic.partitions) if topic is not None else ()
        return
    for wanted in request.topics:
        topic = broker.topics.get(wanted.topic)
        if topic is None:
            yield None
        else:
            yield from map(topic.partition, wanted.partitions)


async def handle_producers(
    broker: Broker, call: Call, request: m.DescribeProducersRequest
) -> m.DescribeProducersResponse:
    """The state of idempotent producers in a partition."""
    topics = []
    for wanted in request.topics:
        if may_topic(broker, call, Operation.READ, wanted.name):
            parts = [
                _describe(broker.topics.partition(wanted.name, index), index, call.node)
                for index in wanted.partition_indexes
            ]
        else:
            parts = [
                m.PartitionResponse(index, errors.TopicAuthorizationFailed.code) for index in wanted.partition_indexes
            ]
        topics.append(m.TopicResponse(wanted.name, parts))
    return m.DescribeProducersResponse(topics=topics)


def refuse_producers(
    call: Call, request: m.DescribeProducersRequest, error: errors.KafkaError
) -> m.DescribeProducersResponse:
    return m.DescribeProducersResponse(
        topics=[
            m.TopicResponse(topic.name, [m.PartitionResponse(index, error.code) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _describe(log: PartitionLog | None, index: int, node: int) -> m.PartitionResponse:
    if log is None:
        return m.PartitionResponse(index, errors.UnknownTopicOrPartition.code)
    if node not in log.placement.replicas:
        return m.PartitionResponse(index, errors.NotLeaderOrFollower.code)
    states = [
        m.ProducerState(
            producer_id,
            producer.epoch,
            producer.last_sequence,
            producer.last_timestamp,
            producer.coordinator_epoch,
            -1 if producer.transaction_start is None else producer.transaction_start,
        )
        for producer_id, producer in log.producers.items()
    ]
    return m.PartitionResponse(index, active_producers=states)
