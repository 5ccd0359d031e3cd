"""Dead-letter queues of share groups (KIP-1191): records that members reject, or that were delivered too often, are
written to a topic of the group.

As in Apache Kafka, a failing queue does not block the group: the records are archived, and the broker's log names those
that the queue lacks.
"""

from __future__ import annotations

from logging import getLogger

from groupkeeper.broker.log.produced import Produced
from groupkeeper.broker.meters import DeadLetters, ShareMeters
from groupkeeper.broker.settings.features import feature_level
from groupkeeper.protocol.errors import InvalidConfig, KafkaError, NotLeaderOrFollower
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import HEADER_SIZE, CorruptRecord, iter_headers, read_records, write_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from groupkeeper.broker.base import BrokerBase
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.settings.config import Config
    from groupkeeper.broker.settings.group_overrides import GroupConfig
    from groupkeeper.coordinator.share_partition.partition import DeadRecords

_log = getLogger("groupkeeper.broker")

_SINCE_SHARE_VERSION = 2
_PRODUCE_VERSION = 13
_READ_AT_ONCE = 1 << 20
_VARINTS = 21
"""The most bytes of a record besides its key, value and headers."""
_REJECTED = "Offset rejected by client."
_DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."


def has_dead_letter_queues(config: Config) -> bool:
    """Whether the cluster's level of share.version includes dead-letter queues."""
    return feature_level(config, "share.version") >= _SINCE_SHARE_VERSION


async def bury(
    broker: BrokerBase, group_id: str, log: PartitionLog, dead: Sequence[DeadRecords], meters: ShareMeters
) -> None:
    """Writes these records of a share-partition, in order, to the group's dead-letter queue, and counts them."""
    config = broker.group_configs.of(group_id)
    try:
        queue = _queue(broker, group_id, config.errors_deadletterqueue_topic_name, log)
    except KafkaError as error:
        _report(group_id, log, dead[0].first_offset, dead[-1].last_offset, error)
        return
    records: list[Record] = []
    room = queue.config.max_message_bytes - HEADER_SIZE
    async for letter in _letters(broker, group_id, log, dead, config, queue.config.max_message_bytes):
        size = _size(letter)
        if records and size > room:
            _append(broker, group_id, log, queue, records, meters)
            records, room = [], queue.config.max_message_bytes - HEADER_SIZE
        records.append(letter)
        room -= size
    _append(broker, group_id, log, queue, records, meters)


def _queue(broker: BrokerBase, group_id: str, name: str, log: PartitionLog) -> PartitionLog:
    """The dead-letter queue's log for a partition; creates the topic if needed. Raises `KafkaError`."""
    topic = broker.topics.get(name)
    prefix = broker.config.errors_deadletterqueue_topic_name_prefix
    if not name:
        raise InvalidConfig("the group no longer has one (errors.deadletterqueue.topic.name)")
    if name.startswith("__"):
        raise InvalidConfig(f"its name {name} begins with __")
    if topic is not None and not topic.config.errors_deadletterqueue_group_enable:
        setting = "errors.deadletterqueue.group.enable"
        raise InvalidConfig(f"topic {name} does not allow it: set {setting}=true for the topic")
    if topic is None and not broker.config.errors_deadletterqueue_auto_create_topics_enable:
        setting = "errors.deadletterqueue.auto.create.topics.enable"
        raise InvalidConfig(f"topic {name} does not exist: create it, or set {setting}=true for the broker")
    if not name.startswith(prefix):
        setting = "errors.deadletterqueue.topic.name.prefix"
        raise InvalidConfig(f"the name of topic {name} does not begin with {prefix!r} ({setting} of the broker)")
    if topic is None:
        own = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        topic = broker.topics.create(name, broker.config.num_partitions, own)
    queue = topic.partition(log.index % len(topic.partitions))
    assert queue is not None
    if not broker.topics.placements.reaches(log.placement.leader, queue.placement.leader):
        raise NotLeaderOrFollower(f"its leader {queue.placement.leader} cannot be reached")
    return queue


async def _letters(
    broker: BrokerBase,
    group_id: str,
    log: PartitionLog,
    dead: Sequence[DeadRecords],
    config: GroupConfig,
    max_bytes: int,
) -> AsyncIterator[Record]:
    """The dead letter of each record; its `offset` is the original's."""
    for one in dead:
        offset = one.first_offset
        while offset <= one.last_offset:
            originals: dict[int, Record] = {}
            end = one.last_offset
            if config.errors_deadletterqueue_copy_record_enable:
                block = _read(log, offset)
                originals, end = await broker.topics.long_reads.run(_originals, block, offset, end, max_bytes)
            for at in range(offset, end + 1):
                original = originals.get(at)
                key, value = (None, None) if original is None else (original.key, original.value)
                yield Record(key, value, _headers(group_id, log, one, at), broker.now_ms(), at)
            offset = end + 1


def _read(log: PartitionLog, offset: int) -> bytes:
    try:
        return log.read(offset, _READ_AT_ONCE, end_offset=log.high_watermark)
    except KafkaError as error:  # for example, the records were deleted meanwhile
        _log.warning("dead letters from offset %d of %r have no key and value: %s", offset, log, error.message)
        return b""


def _originals(block: bytes, first: int, last: int, max_bytes: int) -> tuple[dict[int, Record], int]:
    """Records of a range by offset, and the last offset that the block covers. Records that are too large, or in a
    compressed batch that is too large, are absent.
    """
    found: dict[int, Record] = {}
    end, size = first - 1, 0
    for position, header in iter_headers(block):
        if header.base_offset > last or size > max_bytes:
            break
        limit = max_bytes if header.attributes & 7 else header.size_in_bytes
        try:
            records = read_records(block, position, header=header, max_size=limit)
        except CorruptRecord:
            records = []
        for record in records:
            if first <= record.offset <= last and _size(record) <= max_bytes:
                found[record.offset] = record
                size += _size(record)
        end = min(header.last_offset, last)
    return found, (last if end < first else end)


def _headers(group_id: str, log: PartitionLog, dead: DeadRecords, offset: int) -> list[tuple[str, bytes | None]]:
    texts = {
        "topic": log.topic,
        "partition": str(log.index),
        "offset": str(offset),
        "group": group_id,
        "delivery.count": str(dead.delivery_count),
        "message": _REJECTED if dead.is_rejected else _DELIVERED_TOO_OFTEN,
    }
    return [(f"__dlq.errors.{name}", text.encode()) for name, text in texts.items()]


def _size(record: Record) -> int:
    """The most bytes that a record takes in a batch."""
    headers = sum(10 + len(name) + len(value or b"") for name, value in record.headers)
    return _VARINTS + len(record.key or b"") + len(record.value or b"") + headers


def _append(
    broker: BrokerBase,
    group_id: str,
    log: PartitionLog,
    queue: PartitionLog,
    records: Sequence[Record],
    meters: ShareMeters,
) -> None:
    meters.dead_letters[DeadLetters.WRITES, group_id] += 1
    try:
        produced = Produced(write_batch(records), queue, _PRODUCE_VERSION)
        produced.read_all(len(produced.records))
        produced.admit(broker.now_ms())
        queue.append(produced.records, broker.now_ms(), produced.header)
        meters.dead_letters[DeadLetters.RECORDS, group_id] += len(records)
    except KafkaError as error:
        meters.dead_letters[DeadLetters.FAILURES, group_id] += 1
        _report(group_id, log, records[0].offset, records[-1].offset, error)


def _report(group_id: str, log: PartitionLog, first: int, last: int, error: KafkaError) -> None:
    text = "share group %s: offsets %d to %d of %s-%d are not in its dead-letter queue: %s"
    _log.error(text, group_id, first, last, log.topic, log.index, error.message)
