"""The coordinator's records in a partition log: appending and loading."""

from __future__ import annotations

from logging import getLogger

from groupkeeper.broker.topic_log import LEADER_EPOCH
from groupkeeper.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidFetchSize,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.offsets_topic import UnknownRecord, decode_record, encode_record
from groupkeeper.protocol.record_batch import Record as LogRecord
from groupkeeper.protocol.record_batch import read_end_transaction, write_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from groupkeeper.broker.topic_log import PartitionLog
    from groupkeeper.coordinator.coordinator import Coordinator
    from groupkeeper.coordinator.result import ProducerEpoch, Record, Result
    from groupkeeper.protocol.record_batch import BatchHeader

_log = getLogger("groupkeeper.broker")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_RECORDS_PER_BATCH = 5_000
_MAPPED: dict[type[KafkaError], type[KafkaError]] = {
    NetworkException: CoordinatorLoadInProgress,
    UnknownTopicOrPartition: CoordinatorNotAvailable,
    NotEnoughReplicas: CoordinatorNotAvailable,
    NotEnoughReplicasAfterAppend: CoordinatorNotAvailable,
    RequestTimedOut: CoordinatorNotAvailable,
    NotLeaderOrFollower: NotCoordinator,
    KafkaStorageError: NotCoordinator,
    MessageTooLarge: UnknownServerError,
    RecordListTooLarge: UnknownServerError,
    InvalidFetchSize: UnknownServerError,
}


def map_log_error(error: KafkaError) -> KafkaError:
    """The error of a log as clients of the coordinator are told it."""
    mapped = _MAPPED.get(type(error))
    return error if mapped is None else mapped()


def batches_of(result: Result) -> Iterator[Sequence[Record]]:
    """A result's records as they may be appended: all together, or in parts where they stand for themselves."""
    size = len(result.records) if result.is_atomic else _RECORDS_PER_BATCH
    for start in range(0, len(result.records), size or 1):
        yield result.records[start : start + size]


def append_records(
    log: PartitionLog, records: Sequence[Record], now_ms: int, codec: int = 0, transaction: ProducerEpoch | None = None
) -> int:
    """Appends records as one batch, of a producer's transaction if one is given, and returns the first one's offset.

    Raises the log's `KafkaError`, or `RecordListTooLarge`; then nothing was appended.
    """
    producer_id, producer_epoch = transaction or (-1, -1)
    batch = write_batch(
        [LogRecord(*encode_record(record), (), now_ms) for record in records],
        base_offset=log.log_end_offset,
        partition_leader_epoch=LEADER_EPOCH,
        compression=CODECS[codec],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=transaction is not None,
    )
    if len(batch) > log.config.max_message_bytes:
        raise RecordListTooLarge
    return log.append(batch, now_ms)


def load_records(log: PartitionLog, coordinator: Coordinator) -> Iterator[int]:
    """Replays the log into a coordinator; yields the number of records after each batch, so that others get a turn.

    Raises `MalformedMessage` for a record that can't be understood, `KafkaError` when the log can't be read.
    """
    end_offset = log.log_end_offset
    for header, records in log.records(log.log_start_offset):
        if header.base_offset >= end_offset:
            return
        if header.is_control:
            _replay_marker(header, records, coordinator)
        else:
            _replay_batch(log, header, records, coordinator)
        yield len(records)


def _replay_batch(
    log: PartitionLog, header: BatchHeader, records: Sequence[LogRecord], coordinator: Coordinator
) -> None:
    producer_id = header.producer_id if header.is_transactional else -1
    for record in records:
        decoded = decode_record(record.key or b"", record.value)
        if isinstance(decoded, UnknownRecord):
            _log.warning("%r: skipping a record of unknown type %d at offset %d", log, decoded.key_type, record.offset)
        else:
            coordinator.replay(decoded, record.offset, producer_id)


def _replay_marker(header: BatchHeader, records: Sequence[LogRecord], coordinator: Coordinator) -> None:
    for record in records:
        marker = read_end_transaction(record)
        if marker is not None:
            coordinator.replay_end_transaction(header.producer_id, is_commit=marker.is_commit)
