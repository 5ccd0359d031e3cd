"""Record batches, the unit in which records are produced, stored and fetched.

Format 2 ("magic 2", Kafka 0.11 and later) is read and written; the older message sets (magic 0 and 1) are read. A
buffer may hold several batches one after the other and end within one, as the answer to a Fetch does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from google_crc32c import value as crc32c

from groupkeeper.protocol.compression import CODECS, MAX_DECOMPRESSED, CorruptRecord, compress, decompress
from groupkeeper.protocol.message_set import legacy_header, read_legacy_records
from groupkeeper.protocol.record import BatchHeader, Record
from groupkeeper.protocol.zigzag import SIGNED, ZIGZAG, read_zigzag

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "CorruptRecord",
    "EndTransaction",
    "Record",
    "check_crc",
    "end_transaction_record",
    "has_whole_batch",
    "iter_headers",
    "marker_in",
    "read_end_transaction",
    "read_header",
    "read_headers",
    "read_records",
    "stamped",
    "timed",
    "write_batch",
    "write_pairs",
]

_HEADER: Final = Struct(">qiibIhiqqqhii")
_new_tuple: Final = tuple.__new__
"""Makes a header without the check of the field count that `_make` adds."""
_UNCHECKED: Final = Struct(">qiibI")
CHECKED: Final = Struct(">hiqqqhii")
"""`_UNCHECKED` and `CHECKED` are the two parts of the header: the checksum covers the second."""
_CRC: Final = Struct(">I")
_FRONT: Final = Struct(">qii")
_SHORT_PAIR: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")

HEADER_SIZE: Final = _HEADER.size
"""Bytes before the records of a batch of format 2."""

_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_CHECKED_AT: Final = 21
_LEGACY_CHECKED_AT: Final = 16
_MIN_RECORD_SIZE: Final = 7
_KEPT: Final = 0x77
"""Mask of the attributes in use, without the timestamp type."""


def read_header(buf: bytes, pos: int = 0) -> BatchHeader:
    """The header of the batch at `pos`; its records need not be in `buf`. Raises CorruptRecord."""
    try:
        magic = buf[pos + _MAGIC_AT]
        if magic < 2:
            return legacy_header(buf, pos)
        header = _new_tuple(BatchHeader, _HEADER.unpack_from(buf, pos))
    except (IndexError, struct_error) as error:
        raise CorruptRecord(f"the batch at {pos} ends within its header") from error
    if magic != 2:
        raise CorruptRecord(f"unknown batch format {header.magic} at {pos}")
    if header.batch_length < HEADER_SIZE - 12:
        raise CorruptRecord(f"batch of {header.batch_length} bytes at {pos} is smaller than its header")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptRecord(f"batch at {pos} of {header.record_count} records, last one {header.last_offset_delta}")
    return header


def iter_headers(buf: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; an incomplete last batch ends the iteration. Raises CorruptRecord."""
    pos, size = 0, len(buf)
    while size - pos > _MAGIC_AT:
        if size - pos < 12 + int.from_bytes(buf[pos + 8 : pos + 12], "big", signed=True):
            return
        header = read_header(buf, pos)
        yield pos, header
        pos += header.size_in_bytes


def has_whole_batch(buf: bytes) -> bool:
    """Whether the first batch is complete."""
    return len(buf) > _MAGIC_AT and len(buf) >= 12 + int.from_bytes(buf[8:12], "big", signed=True)


def check_crc(buf: bytes, pos: int, header: BatchHeader) -> None:
    """Raises CorruptRecord unless the batch is complete and its checksum is that in its header."""
    end = pos + header.size_in_bytes
    if end > len(buf):
        raise CorruptRecord(f"batch of {header.size_in_bytes} bytes where {len(buf) - pos} remain")
    if header.magic == 2:
        found = crc32c(buf[pos + _CHECKED_AT : end])
    else:
        found = zlib.crc32(buf[pos + _LEGACY_CHECKED_AT : end])
    if found != header.crc:
        raise CorruptRecord(f"checksum {found:#010x} where the batch says {header.crc:#010x}")


def read_records(
    buf: bytes,
    pos: int = 0,
    *,
    verify: bool = True,
    max_size: int = MAX_DECOMPRESSED,
    header: BatchHeader | None = None,
) -> list[Record]:
    """The records of the one batch at `pos`, decompressed, with their offsets and timestamps.

    The checksum is compared unless `verify` is false; `max_size` bounds the decompressed bytes; `header` is the
    batch's where it was read already. Raises CorruptRecord.
    """
    if header is None:
        header = read_header(buf, pos)
    if verify:
        check_crc(buf, pos, header)
    elif pos + header.size_in_bytes > len(buf):
        raise CorruptRecord(f"batch of {header.size_in_bytes} bytes where {len(buf) - pos} remain")
    try:
        if header.magic < 2:
            return read_legacy_records(buf, pos, header, max_size)
        if header.record_count == 0:  # compaction has removed all records
            return []
        packed = buf[pos + HEADER_SIZE : pos + header.size_in_bytes]
        return _read_records(decompress(header.attributes & 7, packed, limit=max_size), header)
    except (IndexError, struct_error, UnicodeDecodeError) as error:
        raise CorruptRecord(f"batch at {pos}: {error}") from error


def _read_records(buf: bytes, header: BatchHeader) -> list[Record]:
    if header.record_count > len(buf) // _MIN_RECORD_SIZE:
        raise CorruptRecord(f"{header.record_count} records in {len(buf)} bytes")
    records, end = _parse_records(buf, header)
    if end != len(buf):
        raise CorruptRecord(f"{len(buf) - end} bytes behind the last record")
    if header.has_log_append_time:
        for record in records:
            record.timestamp = header.max_timestamp
    return records


def _parse_records(buf: bytes, header: BatchHeader) -> tuple[list[Record], int]:
    """The records from the start of `buf` and the position after them. Varints of one byte are read in line."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records: list[Record] = []
    append, signed, varint, nullable_bytes = records.append, SIGNED, read_zigzag, _read_bytes
    pos = 0
    for _ in range(header.record_count):
        length, pos = varint(buf, pos)
        end = pos + length
        pos += 2  # a record's own attributes are unused
        if (delta := buf[pos - 1]) < 0x80:
            delta = signed[delta]
        else:
            delta, pos = varint(buf, pos - 1)
        if (offset_delta := buf[pos]) < 0x80:
            offset_delta = signed[offset_delta]
            pos += 1
        else:
            offset_delta, pos = varint(buf, pos)
        key, pos = nullable_bytes(buf, pos)
        value, pos = nullable_bytes(buf, pos)
        headers: Sequence[tuple[str, bytes | None]] = ()
        if buf[pos]:
            headers, pos = read_headers(buf, pos)
        else:
            pos += 1
        if pos != end:
            raise CorruptRecord(f"a record of {length} bytes has {length + pos - end}")
        append(Record(key, value, headers, base_timestamp + delta, base_offset + offset_delta))
    return records, pos


def _read_bytes(buf: bytes, pos: int) -> tuple[bytes | None, int]:
    size = buf[pos]
    start = pos + 1
    if size > 0x7F:
        more = buf[start]
        if more > 0x7F:
            length, start = read_zigzag(buf, pos)
            return (None, start) if length < 0 else (buf[start : start + length], start + length)
        size += (more << 7) - 0x80
        start += 1
    if size & 1:
        return None, start
    end = start + (size >> 1)
    return buf[start:end], end


def read_headers(buf: bytes, pos: int) -> tuple[list[tuple[str, bytes | None]], int]:
    """A record's headers, whose number is at `pos`, and the position after them. Raises CorruptRecord."""
    count, pos = read_zigzag(buf, pos)
    if not 0 <= count <= (len(buf) - pos) // 2:
        raise CorruptRecord(f"{count} record headers in {len(buf) - pos} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, pos = _read_bytes(buf, pos)
        if name is None:
            raise CorruptRecord("record header without a name")
        value, pos = _read_bytes(buf, pos)
        headers.append((name.decode(), value))
    return headers, pos


def write_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    keeps_offsets: bool = False,
) -> bytes:
    """A batch of format 2 with `records`, at least one.

    The records get consecutive offsets from `base_offset`; with `keeps_offsets` each record keeps its own, as
    compaction needs. `log_append_time_ms`, if given, replaces every record's timestamp. Raises ValueError for no
    records or an unknown compression.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    if log_append_time_ms is None:
        base_timestamp = records[0].timestamp
        deltas = [record.timestamp - base_timestamp for record in records]
        max_timestamp = base_timestamp + max(deltas)
    else:
        base_timestamp = max_timestamp = log_append_time_ms
        deltas = [0] * len(records)
    offset_deltas = [r.offset - base_offset for r in records] if keeps_offsets else range(len(records))
    body = compress(compression, _write_records(records, deltas, offset_deltas))
    attributes = CODECS.index(compression)
    attributes |= (log_append_time_ms is not None) << 3 | is_transactional << 4 | is_control << 5
    checked = CHECKED.pack(
        attributes,
        offset_deltas[-1],
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return assembled(base_offset, partition_leader_epoch, checked + body)


def write_pairs(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp: int,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    compression: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """A batch of format 2 from pairs of key and value, all with the same timestamp. This is a fast path of
    `write_batch`, as it runs for every commit of a consumer. Raises the errors of `write_batch`.
    """
    if not pairs:
        raise ValueError("a batch has at least one record")
    varint = ZIGZAG
    count = 0
    parts: list[bytes] = []
    for key, value in pairs:
        if value is None:
            record = b"".join((b"\0\0", varint[count], varint[len(key)], key, b"\1\0"))
        else:
            record = b"".join((b"\0\0", varint[count], varint[len(key)], key, varint[len(value)], value, b"\0"))
        parts.append(varint[len(record)])
        parts.append(record)
        count += 1
    body = b"".join(parts)
    attributes = is_transactional << 4
    if compression != "none":
        body = compress(compression, body)
        attributes |= CODECS.index(compression)
    last = count - 1
    checked = CHECKED.pack(attributes, last, timestamp, timestamp, producer_id, producer_epoch, -1, count) + body
    length = _CHECKED_AT - 12 + len(checked)
    return _UNCHECKED.pack(base_offset, length, partition_leader_epoch, 2, crc32c(checked)) + checked


def assembled(base_offset: int, partition_leader_epoch: int, checked: bytes) -> bytes:
    """A batch of format 2 from the part that its checksum covers."""
    length = _CHECKED_AT - 12 + len(checked)
    return _UNCHECKED.pack(base_offset, length, partition_leader_epoch, 2, crc32c(checked)) + checked


def _write_records(records: Sequence[Record], deltas: Sequence[int], offset_deltas: Sequence[int]) -> bytes:
    varint = ZIGZAG
    out = bytearray()
    for record, delta, offset_delta in zip(records, deltas, offset_deltas, strict=True):
        key, value = record.key, record.value
        body = b"".join(
            (
                b"\x00",
                varint[delta],
                varint[offset_delta],
                b"\x01" if key is None else varint[len(key)] + key,
                b"\x01" if value is None else varint[len(value)] + value,
                _write_headers(record.headers) if record.headers else b"\x00",
            )
        )
        out += varint[len(body)]
        out += body
    return bytes(out)


def _write_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    parts = [ZIGZAG[len(headers)]]
    for name, value in headers:
        encoded = name.encode()
        parts += (ZIGZAG[len(encoded)], encoded)
        parts += (b"\x01",) if value is None else (ZIGZAG[len(value)], value)
    return b"".join(parts)


def stamped(
    batch: bytes, *, base_offset: int, partition_leader_epoch: int, log_append_time_ms: int | None = None
) -> bytes:
    """The single batch (format 2) as the leader stores it: with offset, leader epoch, and append time if given."""
    front = _FRONT.pack(base_offset, len(batch) - 12, partition_leader_epoch)
    if log_append_time_ms is not None:
        batch = timed(batch, log_append_time_ms, is_append_time=True)
    return front + batch[_MAGIC_AT:]


def timed(batch: bytes, max_timestamp: int, *, is_append_time: bool) -> bytes:
    """The single batch (format 2) with another maximum timestamp; with `is_append_time` that of all its records."""
    checked = bytearray(batch[_CHECKED_AT:])
    checked[:2] = bytes((0, checked[1] & _KEPT | is_append_time << 3))
    checked[14:22] = max_timestamp.to_bytes(8, "big", signed=True)
    return b"".join((batch[:_CRC_AT], _CRC.pack(crc32c(bytes(checked))), checked))


class EndTransaction(NamedTuple):
    """A marker that ends a producer's transaction in a partition."""

    is_commit: bool
    coordinator_epoch: int


def read_end_transaction(record: Record) -> EndTransaction | None:
    """The marker in a control record; None for a control record of another kind, which is skipped. Raises
    CorruptRecord.
    """
    try:
        version, kind = _SHORT_PAIR.unpack_from(record.key or b"")
        if version < 0:
            raise CorruptRecord(f"control record of version {version}")
        if kind not in (0, 1):
            return None
        version, epoch = _MARKER.unpack_from(record.value or b"")
    except struct_error as error:
        raise CorruptRecord(f"control record: {error}") from error
    if version < 0:
        raise CorruptRecord(f"end of transaction of version {version}")
    return EndTransaction(kind == 1, epoch)


def marker_in(batch: bytes, header: BatchHeader) -> EndTransaction | None:
    """The transaction marker in a batch; None if the batch is no marker."""
    return read_end_transaction(read_records(batch)[0]) if header.is_control and header.record_count else None


def end_transaction_record(marker: EndTransaction, timestamp: int) -> Record:
    """The record of a marker; it is the only record in a control batch of its producer."""
    return Record(_SHORT_PAIR.pack(0, int(marker.is_commit)), _MARKER.pack(0, marker.coordinator_epoch), (), timestamp)
