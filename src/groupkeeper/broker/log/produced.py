"""The checks of a client's record batch before it enters a log (Kafka 4.3.1 ProduceRequest, UnifiedLog,
LogValidator).
"""

from __future__ import annotations

from groupkeeper.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    KafkaError,
    MessageTooLarge,
    UnsupportedCompressionType,
)
from groupkeeper.protocol.record_batch import CorruptRecord, check_crc, read_header, read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.protocol.record_batch import BatchHeader, Record

_HEADER_SIZE = 61
_ZSTD_SINCE = 7


class RefusedRecords(InvalidRecord):
    """Some records of a batch are not allowed.

    Attributes:
        reason: class of the error in the producer's response.
        record_errors: index in the batch of each such record, and what is wrong with it.
    """

    def __init__(self, reason: type[KafkaError], message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.reason = reason
        self.record_errors = record_errors


def check_produced(records: bytes | None, log: PartitionLog, version: int, now_ms: int) -> bytes:
    """The only batch that a Produce request may have for a partition. Raises the `KafkaError` of a failed check."""
    if not records:
        raise InvalidRecord(
            f"Produce requests with version {version} must have at least one record batch per partition"
        )
    header = _whole_batch(records, log, version)
    if header.compression == "zstd" and version < _ZSTD_SINCE:
        raise UnsupportedCompressionType(
            f"Produce requests with version {version} are not allowed to use ZStandard compression"
        )
    if len(records) > log.config.max_message_bytes:
        raise MessageTooLarge(
            f"The record batch size in the append to {log.topic}-{log.index} is {len(records)} bytes "
            f"which exceeds the maximum configured value of {log.config.max_message_bytes}."
        )
    try:
        check_crc(records, 0, header)
    except CorruptRecord as error:
        raise CorruptMessage(f"Record is corrupt ({error}) in topic partition {log.topic}-{log.index}") from None
    _check_header(header, log)
    _check_timestamps(records, header, log, now_ms)
    if log.config.is_compacted:
        _require_keys(records, log)
    return records


def _whole_batch(records: bytes, log: PartitionLog, version: int) -> BatchHeader:
    if len(records) > 16 and records[16] != 2:
        raise InvalidRecord(
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2"
        )
    if len(records) < _HEADER_SIZE:
        raise InvalidRecord(f"{len(records)} bytes are no record batch in topic partition {log.topic}-{log.index}")
    header = read_header(records)
    if header.size_in_bytes > len(records) or header.size_in_bytes < _HEADER_SIZE:
        raise InvalidRecord(
            f"a record batch of {header.size_in_bytes} bytes in {len(records)} for {log.topic}-{log.index}"
        )
    if header.size_in_bytes < len(records):
        raise InvalidRecord(
            f"Produce requests with version {version} are only allowed to contain "
            "exactly one record batch per partition"
        )
    return header


def _check_header(header: BatchHeader, log: PartitionLog) -> None:
    where = f"topic partition {log.topic}-{log.index}"
    if header.base_offset != 0:
        raise InvalidRecord(
            f"The baseOffset of the record batch in the append to {log.topic}-{log.index} should be 0, "
            f"but it is {header.base_offset}"
        )
    if header.is_control:
        raise InvalidRecord(f"Clients are not allowed to write control records in {where}.")
    if header.record_count != header.last_offset_delta + 1 or header.record_count <= 0:
        raise InvalidRecord(
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records "
            f"{header.record_count} in {where}."
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidRecord(
            f"Invalid sequence number {header.base_sequence} in record batch with producerId in {where}."
        )


def _check_timestamps(records: bytes, header: BatchHeader, log: PartitionLog, now_ms: int) -> None:
    if log.config.message_timestamp_type != "CreateTime":
        return
    latest = now_ms + log.config.message_timestamp_after_max_ms
    earliest = now_ms - log.config.message_timestamp_before_max_ms
    # The largest timestamp nearly always shows that all timestamps are valid, without decompressing anything.
    if earliest <= 0 and header.max_timestamp <= latest:
        return
    stamps = [record.timestamp for record in _decoded(records)]
    allowed = f"The timestamp should be within [{earliest}, {latest}]"
    errors = [
        (index, f"Timestamp {stamp} of message with offset {index} is out of range. {allowed}")
        for index, stamp in enumerate(stamps)
        if stamp != -1 and not earliest <= stamp <= latest
    ]
    if errors:
        raise RefusedRecords(
            InvalidTimestamp, "One or more records have been rejected due to invalid timestamp", errors
        )


def _require_keys(records: bytes, log: PartitionLog) -> None:
    why = f"Compacted topic cannot accept message without key in topic partition {log.topic}-{log.index}"
    errors = [(index, why) for index, record in enumerate(_decoded(records)) if record.key is None]
    if errors:
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{why}')" for index, why in errors[:3])
        raise RefusedRecords(
            InvalidRecord,
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            errors,
        )


def _decoded(records: bytes) -> list[Record]:
    try:
        return read_records(records, verify=False)
    except CorruptRecord as error:
        raise CorruptMessage(str(error)) from None
