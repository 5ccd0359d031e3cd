"""Record batches after compaction: the retained records, with their offsets, in a batch of the same offset range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import error as struct_error
from typing import NamedTuple

from groupkeeper.protocol.compression import CODECS, CorruptRecord, compress, decompress
from groupkeeper.protocol.record import CODEC_MASK, BatchHeader
from groupkeeper.protocol.record_batch import CHECKED, HEADER_SIZE, assembled
from groupkeeper.protocol.zigzag import SIGNED, ZIGZAG, read_zigzag

_DELETE_HORIZON = 0x40
_CHECKED_ORDER = 10_000
"""Compressed batches with at least this many records must have rising offsets: an earlier version accepted millions of
records in a few bytes.
"""


class BatchEntry(NamedTuple):
    """A record of a decompressed body, parsed only as far as compaction needs. Positions are in the body."""

    offset: int
    """In the partition."""
    key: bytes | None
    """None: null."""
    has_value: bool
    """False: a tombstone."""
    delta: int
    """The record's timestamp minus the batch's base timestamp."""
    start: int
    """Position of the record."""
    rest: int
    """Position of the field after its timestamp."""
    end: int
    """Position of its end."""


def read_keys(buf: bytes, pos: int, header: BatchHeader) -> Iterator[tuple[bytes, int]]:
    """Key and offset of each record of the batch at `pos` that has a key. Raises CorruptRecord."""
    body = _body(buf, pos, header)
    end = len(body)
    base_offset, at, last = header.base_offset, 0, -1
    try:
        for count in range(header.record_count):
            length, at = read_zigzag(body, at)
            following = at + length
            if length < 0 or following > end:
                raise CorruptRecord(f"a record of {length} bytes at {at} of {end}")
            _, at = read_zigzag(body, at + 1)
            offset_delta, at = read_zigzag(body, at)
            if offset_delta <= last and count > _CHECKED_ORDER and header.attributes & CODEC_MASK:
                raise CorruptRecord(f"batch at offset {base_offset}: too many records of the same offsets")
            last = offset_delta
            size, at = read_zigzag(body, at)
            if size >= 0:
                yield body[at : at + size], base_offset + offset_delta
            at = following
    except IndexError as error:
        raise CorruptRecord(f"batch at offset {base_offset}: {error}") from error


def _body(buf: bytes, pos: int, header: BatchHeader) -> bytes:
    body = buf[pos + HEADER_SIZE : pos + header.size_in_bytes]
    codec = header.attributes & CODEC_MASK
    return decompress(codec, body) if codec and header.record_count else body


def read_entries(buf: bytes, pos: int, header: BatchHeader) -> tuple[bytes, list[BatchEntry]]:
    """The decompressed records of the batch at `pos`: all bytes, and an entry per record. Raises CorruptRecord."""
    try:
        body = _body(buf, pos, header)
        return body, _entries(body, header)
    except (IndexError, struct_error) as error:
        raise CorruptRecord(f"batch at offset {header.base_offset}: {error}") from error


def _entries(body: bytes, header: BatchHeader) -> list[BatchEntry]:
    found = []
    start = 0
    base_offset = header.base_offset
    for _ in range(header.record_count):
        length, pos = read_zigzag(body, start)
        end = pos + length
        if length < 0 or end > len(body):
            raise CorruptRecord(f"a record of {length} bytes at {start} of {len(body)}")
        delta, rest = read_zigzag(body, pos + 1)
        offset_delta, pos = read_zigzag(body, rest)
        size, pos = read_zigzag(body, pos)
        key = None
        if size >= 0:
            key = body[pos : pos + size]
            pos += size
        value_size = SIGNED[body[pos]] if body[pos] < 0x80 else 1
        found.append(BatchEntry(base_offset + offset_delta, key, value_size >= 0, delta, start, rest, end))
        start = end
    return found


def retained_batch(
    header: BatchHeader, body: bytes, entries: Sequence[BatchEntry], *, delete_horizon_ms: int | None = None
) -> bytes:
    """A batch with only the given entries of a batch, and the same offset range and producer.

    `delete_horizon_ms` sets when its tombstones and markers may be removed; None leaves it unchanged. Without entries
    the result is an empty batch that only keeps the producer's last sequence number.
    """
    attributes, base_timestamp, max_timestamp = header.attributes, header.base_timestamp, header.max_timestamp
    if not entries:
        attributes &= ~(CODEC_MASK | _DELETE_HORIZON)
        base_timestamp = max_timestamp
        packed = b""
    else:
        if not header.has_log_append_time:
            max_timestamp = base_timestamp + max(entry.delta for entry in entries)
        if delete_horizon_ms is None:
            records = b"".join([body[entry.start : entry.end] for entry in entries])
        else:
            records = _shifted(body, entries, base_timestamp - delete_horizon_ms)
            attributes |= _DELETE_HORIZON
            base_timestamp = delete_horizon_ms
        packed = compress(CODECS[attributes & CODEC_MASK], records)
    checked = CHECKED.pack(
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(entries),
    )
    return assembled(header.base_offset, header.partition_leader_epoch, checked + packed)


def _shifted(body: bytes, entries: Sequence[BatchEntry], shift: int) -> bytes:
    """The encoded records, with `shift` added to their timestamp deltas."""
    parts: list[bytes] = []
    for entry in entries:
        # A record's own attributes are unused.
        record = b"\x00" + ZIGZAG[entry.delta + shift] + body[entry.rest : entry.end]
        parts += (ZIGZAG[len(record)], record)
    return b"".join(parts)
