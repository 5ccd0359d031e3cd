"""The message sets of magic 0 and 1 (before Kafka 0.11), read only.

Each message is a batch of its own. A compressed message holds a message set: in magic 1 the offsets inside are
relative, and the outer one is that of the last message inside; in magic 0 they are absolute.
"""

from __future__ import annotations

from struct import Struct

from groupkeeper.protocol.compression import CorruptRecord, decompress
from groupkeeper.protocol.record import BatchHeader, Record

_START = Struct(">qiIbb")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_BODY = (18, 26)
"""Where the key begins, by magic: magic 1 adds a timestamp."""
_LENGTHS = 8


def legacy_header(buf: bytes, pos: int) -> BatchHeader:
    """The message at `pos` as a batch header. Raises struct.error when the bytes end within it."""
    offset, length, crc, magic, attributes = _START.unpack_from(buf, pos)
    if length < _BODY[magic] + _LENGTHS - 12:
        raise CorruptRecord(f"message of {length} bytes at {pos} is smaller than its header")
    timestamp = _INT64.unpack_from(buf, pos + 18)[0] if magic else -1
    count = -1 if attributes & 7 else 1
    return BatchHeader(offset, length, -1, magic, crc, attributes & 0xFF, 0, timestamp, timestamp, -1, -1, -1, count)


def read_legacy_records(buf: bytes, pos: int, header: BatchHeader, limit: int) -> list[Record]:
    """The records of the message at `pos`. Records of a compressed message get their order and offsets in the log."""
    key, value = _key_and_value(buf, pos, header)
    if not header.attributes & 7:
        return [Record(key, value, (), header.max_timestamp, header.base_offset)]
    if value is None:
        raise CorruptRecord("compressed message without a value")
    inner = decompress(header.attributes & 7, value, magic=header.magic, limit=limit)
    records = _read_inner(inner, header)
    if header.magic == 1 and header.base_offset != 0:  # some producers leave the outer offset 0
        shift = header.base_offset - records[-1].offset
        if shift < 0:
            raise CorruptRecord(
                f"offset {records[-1].offset} inside a compressed message of offset {header.base_offset}"
            )
        for record in records:
            record.offset += shift
    return records


def _read_inner(buf: bytes, outer: BatchHeader) -> list[Record]:
    records: list[Record] = []
    pos = 0
    while pos < len(buf):
        header = legacy_header(buf, pos) if buf[pos + 16] == outer.magic else None
        if header is None or header.attributes & 7:
            raise CorruptRecord("a compressed message holds one of another format, or a compressed one")
        key, value = _key_and_value(buf, pos, header)
        timestamp = outer.max_timestamp if outer.has_log_append_time else header.max_timestamp
        records.append(Record(key, value, (), timestamp, header.base_offset))
        pos += header.size_in_bytes
    if not records:
        raise CorruptRecord("compressed message without messages inside")
    return records


def _key_and_value(buf: bytes, pos: int, header: BatchHeader) -> tuple[bytes | None, bytes | None]:
    end = pos + header.size_in_bytes
    key, pos = _nullable_bytes(buf, pos + _BODY[header.magic], end - 4)
    value, pos = _nullable_bytes(buf, pos, end)
    if pos != end:
        raise CorruptRecord(f"{end - pos} bytes behind a message")
    return key, value


def _nullable_bytes(buf: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _INT32.unpack_from(buf, pos)
    pos += 4
    if length < 0:
        return None, pos
    if pos + length > min(end, len(buf)):
        raise CorruptRecord(f"{length} bytes at {pos} run past the end of the message")
    return buf[pos : pos + length], pos + length
