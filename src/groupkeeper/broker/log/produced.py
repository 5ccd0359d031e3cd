"""The checks of a client's record batch before it enters a log (Kafka 4.4.0 ProduceRequest, UnifiedLog,
LogValidator).

The header must match the records: a wrong maximum timestamp is corrected; any other mismatch refuses the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.record_walk import QUICK_CONTENT, is_quick, is_refused_early, read_deltas, walk
from groupkeeper.protocol import errors
from groupkeeper.protocol.compression import CODECS, Content, ContentTooLarge, beginning, unpacked
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record import CODEC_MASK
from groupkeeper.protocol.record_batch import HEADER_SIZE, BatchHeader, CorruptRecord, check_crc, read_header, timed

_ZSTD_SINCE = 7
_MAGIC = 2
_MAGIC_AT = 16
_LEAST_SIZE = 26
_NAMED_ERRORS = 1000
NO_TIMESTAMP = -1
_FIRST_TIME, _LAST_TIME = -(1 << 63), (1 << 63) - 1
_APPEND_TIME = 0x08


class RefusedRecords(errors.InvalidRecord):
    """Some records of a batch are not allowed.

    Attributes:
        reason: class of the error in the producer's response.
        record_errors: index in the batch of each refused record, and the reason.
    """

    def __init__(self, reason: type[KafkaError], message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.reason = reason
        self.record_errors = record_errors


class Produced:
    """The batch of a Produce request for a partition.

    Attributes:
        log: the log to append it to.
        records: its bytes.
        header: its header, checked as far as possible without the records.
        content: after `read`: the decompressed records, from `start` on.
    """

    __slots__ = ("_codec", "_walked", "content", "header", "log", "records", "start")

    def __init__(self, records: bytes | None, log: PartitionLog, version: int) -> None:
        """Raises the `KafkaError` of a failed check."""
        self.log = log
        self.header = _only_batch(records or b"", version)
        assert records is not None
        self._codec = self.header.attributes & CODEC_MASK
        size = self.header.size_in_bytes
        self.records = records if size == len(records) else records[:size]
        if self.header.base_offset != 0:
            raise errors.InvalidRecord(
                f"The baseOffset of the record batch in the append to {log.topic}-{log.index} should be 0, "
                f"but it is {self.header.base_offset}"
            )
        if size > log.config.max_message_bytes:
            raise errors.MessageTooLarge(
                f"The record batch size in the append to {log.topic}-{log.index} is {size} bytes "
                f"which exceeds the maximum configured value of {log.config.max_message_bytes}."
            )
        try:
            check_crc(self.records, 0, self.header)
        except CorruptRecord as error:
            raise errors.CorruptMessage(
                f"Record is corrupt ({error}) in topic partition {log.topic}-{log.index}"
            ) from None
        _check_header(self.header, log)

    def read(self) -> bool:
        """Reads the records; returns False if that would take long. Raises `KafkaError`."""
        if not is_quick(self.header):
            return False
        try:
            self._read(QUICK_CONTENT, 0)
        except ContentTooLarge:
            return False
        return True

    def read_all(self, limit: int) -> None:
        """As `read`, however long it takes. `limit`: the most decompressed bytes."""
        if self._codec:
            first = beginning(self._codec, self.records[HEADER_SIZE:], QUICK_CONTENT)
            if is_refused_early(first, self.header.record_count):
                raise self._out_of_order()
        try:
            self._read(limit, len(self.records))
        except ContentTooLarge as error:
            raise errors.MessageTooLarge(f"{self.log.topic}-{self.log.index}: {error}") from None

    def _read(self, limit: int, size: int) -> None:
        self.content: Content = self.records
        self.start = HEADER_SIZE
        if self._codec:
            try:
                self.content, self.start = unpacked(self._codec, self.records[HEADER_SIZE:], limit=limit), 0
            except ContentTooLarge:
                raise
            except CorruptRecord as error:  # as Apache Kafka answers
                raise errors.UnknownServerError(f"{self.log.topic}-{self.log.index}: {error}") from None
        try:
            self._walked = walk(self.content, self.start, self.header.record_count, self._codec > 0, size)
        except ContentTooLarge:
            raise
        except CorruptRecord as error:
            raise errors.InvalidRecord(f"{error} in topic partition {self.log.topic}-{self.log.index}.") from None

    def admit(self, now_ms: int) -> None:
        """Checks the read records, and corrects the header. Raises `KafkaError`."""
        config, header = self.log.config, self.header
        largest, smallest, has_keyless, is_consecutive = self._walked
        is_stamped = bool(header.attributes & _APPEND_TIME)
        if is_stamped:
            largest = smallest = header.max_timestamp
        else:
            largest += header.base_timestamp
            smallest += header.base_timestamp
        has_own_times = config.message_timestamp_type == "CreateTime"
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        is_in_range = earliest <= smallest >= _FIRST_TIME and latest >= largest <= _LAST_TIME
        if is_stamped or (has_own_times and not is_in_range) or (has_keyless and config.is_compacted):
            self._refuse(max(earliest, _FIRST_TIME), min(latest, _LAST_TIME), has_own_times)
        if self._codec and not is_consecutive:
            raise self._out_of_order()
        if has_own_times and (largest != header.max_timestamp or is_stamped):
            largest = max(largest, NO_TIMESTAMP)
            self.records = timed(self.records, largest, is_append_time=False)
            self.header = read_header(self.records)

    def _out_of_order(self) -> KafkaError:
        # Apache Kafka tries to rewrite such a batch, and fails.
        where = f"{self.log.topic}-{self.log.index}"
        return errors.UnknownServerError(f"the offsets in the compressed batch for {where} are not consecutive")

    def _refuse(self, earliest: int, latest: int, has_own_times: bool) -> None:
        found = list(islice(self._errors(earliest, latest, has_own_times), _NAMED_ERRORS))
        if not found:
            return
        named = [(index, why) for _, index, why in found]
        if any(reason is errors.InvalidTimestamp for reason, _, _ in found):
            why = "One or more records have been rejected due to invalid timestamp"
            raise RefusedRecords(errors.InvalidTimestamp, why, named)
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{why}')" for index, why in named[:3])
        raise RefusedRecords(
            errors.InvalidRecord,
            f"One or more records have been rejected due to {len(named)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
            named,
        )

    def _errors(self, earliest: int, latest: int, has_own_times: bool) -> Iterator[tuple[type[KafkaError], int, str]]:
        header, where = self.header, f"topic partition {self.log.topic}-{self.log.index}"
        for index, (delta, offset_delta, has_key) in enumerate(
            read_deltas(self.content, self.start, header.record_count)
        ):
            time = header.max_timestamp if header.has_log_append_time else header.base_timestamp + delta
            if not has_key and self.log.config.is_compacted:
                yield errors.InvalidRecord, index, f"Compacted topic cannot accept message without key in {where}"
            elif has_own_times and time != NO_TIMESTAMP:
                if not earliest <= time <= latest:
                    allowed = f"The timestamp should be within [{earliest}, {latest}]"
                    why = f"Timestamp {time} of message with offset {offset_delta} is out of range. {allowed}"
                    yield errors.InvalidTimestamp, index, why
            elif header.has_log_append_time:
                why = "Invalid timestamp type. Producer should not set timestamp type to LogAppendTime."
                yield errors.InvalidTimestamp, index, why


def _only_batch(records: bytes, version: int) -> BatchHeader:
    """The header of the single whole batch; an incomplete batch after it is ignored."""
    size = _whole_size(records, 0)
    if not size:
        raise errors.InvalidRecord(
            f"Produce requests with version {version} must have at least one record batch per partition"
        )
    if records[_MAGIC_AT] != _MAGIC:
        raise errors.InvalidRecord(
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2"
        )
    try:
        header = read_header(records)
    except CorruptRecord as error:
        raise (errors.CorruptMessage if size < HEADER_SIZE else errors.InvalidRecord)(str(error)) from None
    codec = header.attributes & CODEC_MASK
    if codec >= len(CODECS):
        raise errors.UnknownServerError(f"unknown compression codec {codec}")  # as Apache Kafka answers
    if CODECS[codec] == "zstd" and version < _ZSTD_SINCE:
        raise errors.UnsupportedCompressionType(
            f"Produce requests with version {version} are not allowed to use ZStandard compression"
        )
    if size < len(records) and _whole_size(records, size):
        raise errors.InvalidRecord(
            f"Produce requests with version {version} are only allowed to contain "
            "exactly one record batch per partition"
        )
    return header


def _whole_size(records: bytes, at: int) -> int:
    """Size of the batch at a position; 0 if it is incomplete."""
    left = len(records) - at
    if left <= _MAGIC_AT:
        return 0
    size = 12 + int.from_bytes(records[at + 8 : at + 12], "big", signed=True)
    if size < _LEAST_SIZE or records[at + _MAGIC_AT] > _MAGIC:
        raise errors.CorruptMessage(f"a batch of {size} bytes in format {records[at + _MAGIC_AT]}")
    return size if size <= left else 0


def _check_header(header: BatchHeader, log: PartitionLog) -> None:
    why = ""
    if header.record_count != header.last_offset_delta + 1 or header.record_count <= 0:
        why = (
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records "
            f"{header.record_count}"
        )
    elif header.is_control:
        why = "Clients are not allowed to write control records"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        why = f"Invalid sequence number {header.base_sequence} in record batch with producerId"
    if why:
        raise errors.InvalidRecord(f"{why} in topic partition {log.topic}-{log.index}.")
