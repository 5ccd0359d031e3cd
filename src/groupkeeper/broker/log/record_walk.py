"""Reads the timestamps, offsets and keys of a batch's records without an object for each record. Most batches have runs
of records with the same layout. A run is checked column by column: a slice with a step has the bytes at one position of
all its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from groupkeeper.protocol.compression import MAX_DECOMPRESSED, Content, ContentTooLarge, CorruptRecord, unpacked
from groupkeeper.protocol.record import CODEC_MASK, BatchHeader
from groupkeeper.protocol.record_batch import HEADER_SIZE, check_crc, read_header
from groupkeeper.protocol.zigzag import INT32, SIGNED, read_zigzag

_LEAST_SIZE = 7
_BEYOND = 1 << 64
_READ_ANYWAY = 10_000
"""Records that are read even if an earlier one already refuses the batch."""
_FEW_HEADERS, _HEADERS_FOR_A_BYTE = 10_000, 8
"""The most record headers of a batch: a fixed number, plus some for each of its bytes. Only attacks have more: a few
bytes may decompress to millions of empty headers.
"""
QUICK_CONTENT = 1 << 20
"""The most decompressed bytes of a batch that are read without a thread."""
_QUICK_BYTES, _QUICK_RECORDS = 1 << 17, 5000
_PAUSE = 256
"""Records that are read singly before the next search for a run."""
_SHORT_RUN, _LONGEST_RUN = 6, 4096
_DELTAS = range(0x2000)
_EVEN = bytes(delta << 1 for delta in range(0x40))
_LOW = bytes(delta << 1 & 0x7F | 0x80 for delta in _DELTAS)
_HIGH = bytes(delta >> 6 for delta in _DELTAS)
_MIDDLE = bytes(delta >> 6 | 0x80 for delta in _DELTAS)
"""The bytes of the varints of consecutive offset deltas, one table per byte."""
_BYTES = bytes(range(0x100))
_ORDERED = bytes(signed + 0x40 for signed in SIGNED) + bytes(0x80)
"""Translates a one-byte varint to a byte that sorts as its number does."""


def is_quick(header: BatchHeader) -> bool:
    """Whether the records of a batch are read quickly if their content is not larger than `QUICK_CONTENT`."""
    is_packed = header.attributes & CODEC_MASK
    return header.record_count <= _QUICK_RECORDS and not (is_packed and header.batch_length > _QUICK_BYTES)


class Walked(NamedTuple):
    """All records of a batch.

    Attributes:
        largest, smallest: largest and smallest timestamp, less the batch's base timestamp.
        has_keyless: whether a record has no key.
        is_consecutive: whether the offset deltas are 0, 1, 2 and so on.
    """

    largest: int
    smallest: int
    has_keyless: bool
    is_consecutive: bool


def walk(body: Content, pos: int, count: int, must_be_consecutive: bool, size: int) -> Walked:
    """Reads `count` records, at least one, which fill `body` from `pos` on. Raises CorruptRecord, and ContentTooLarge
    for too many record headers for a batch of `size` bytes. `must_be_consecutive`: stops early in a long batch whose
    offset deltas are not consecutive.
    """
    if count > (len(body) - pos) // _LEAST_SIZE:
        raise CorruptRecord(f"{count} records in {len(body) - pos} bytes")
    try:
        found, end = _walk(body, pos, count, must_be_consecutive, _FEW_HEADERS + _HEADERS_FOR_A_BYTE * size)
    except IndexError:
        raise CorruptRecord("the last record ends early") from None
    if end != len(body) and (found.is_consecutive or not must_be_consecutive):
        raise CorruptRecord(f"{len(body) - end} bytes behind the last record")
    return found


def is_refused_early(first: bytes, count: int) -> bool:
    """Whether the first bytes of `count` records show that the offset deltas are not consecutive."""
    try:
        return not _walk(first, 0, count, True, _FEW_HEADERS)[0].is_consecutive
    except (IndexError, CorruptRecord):
        return False


def _walk(body: Content, pos: int, count: int, must_be_consecutive: bool, most_headers: int) -> tuple[Walked, int]:
    """Returns the result and the end position. Inlines varints of one byte, as this runs for each Produce request."""
    signed, varint = SIGNED, read_zigzag
    largest, smallest, has_keyless, is_consecutive = -_BEYOND, _BEYOND, False, True
    offset_delta = next_run = 0
    while offset_delta < count:
        start = pos
        length, pos = varint(body, pos, INT32)
        end = pos + length
        # After the record's own attributes, which are unused.
        delta, pos = (signed[delta], pos + 2) if (delta := body[pos + 1]) < 0x80 else varint(body, pos + 1)
        largest = delta if delta > largest else largest
        smallest = delta if delta < smallest else smallest
        offset, pos = (signed[offset], pos + 1) if (offset := body[pos]) < 0x80 else varint(body, pos, INT32)
        if offset != offset_delta:
            is_consecutive = False
            if must_be_consecutive and offset_delta > _READ_ANYWAY:
                break
        length, pos = (signed[length], pos + 1) if (length := body[pos]) < 0x80 else varint(body, pos, INT32)
        if length < 0:
            has_keyless = True
            length = 0
        length, pos = varint(body, pos + length, INT32)
        pos = pos + length if length > 0 else pos
        if body[pos]:
            length, pos = varint(body, pos, INT32)
            most_headers -= length
            pos = _behind_headers(body, pos, length, most_headers)
        else:
            pos += 1
        if pos != end:
            raise CorruptRecord(f"a record of {end - start} bytes has {pos - start}")
        offset_delta += 1
        if next_run <= offset_delta < count - _SHORT_RUN and body[pos] == body[start]:
            size = pos - start
            times = _times_of_run(body, start, size, offset_delta, count - offset_delta)
            next_run = offset_delta if times else offset_delta + _PAUSE
            if times:
                first, last = _bounds(times)
                largest, smallest = max(largest, last), min(smallest, first)
                offset_delta += len(times)
                pos += size * len(times)
    return Walked(largest, smallest, has_keyless, is_consecutive), pos


def _times_of_run(body: Content, start: int, size: int, offset_delta: int, most: int) -> bytes:
    """The time deltas (one byte each, translated by `_ORDERED`) of a run: the records from `offset_delta` on with the
    same layout as the record before them, which has `size` bytes from `start` on. Empty without such a run.
    """
    _, at_time = read_zigzag(body, start)
    at_time += 1
    _, at_key = read_zigzag(body, at_time + 1)
    offsets = _offsets_from(offset_delta, at_key - at_time - 1)
    count = min(most, len(body) // size, len(offsets[0]))
    if count <= 0 or body[at_time] > 0x7F:
        return b""
    length, pos = read_zigzag(body, at_key)
    at_value = pos + max(length, 0)
    length, at_content = read_zigzag(body, at_value)
    if at_content + max(length, 0) != start + size - 1:  # it has headers
        return b""
    alike = (*range(start, at_time - 1), *range(at_key, pos), *range(at_value, at_content), start + size - 1)
    span = size * (count - 1) + 1
    for at in alike:
        if body[at + size : at + size + span : size].count(body[at]) != count:
            return b""
    for at, expected in enumerate(offsets, at_time + 1 + size):
        if body[at : at + span : size] != expected[:count]:
            return b""
    times = bytes(body[at_time + size : at_time + size + span : size])
    return times.translate(_ORDERED) if times.isascii() else b""


def _offsets_from(offset_delta: int, width: int) -> tuple[bytes, ...]:
    """The `width`-byte varints of the offset deltas from this one on, one column per byte; empty for other widths."""
    at = offset_delta % len(_LOW)
    end = at + _LONGEST_RUN
    if width == 1:
        return (_EVEN[offset_delta:],)
    if width == 2:
        return _LOW[offset_delta : offset_delta + _LONGEST_RUN], _HIGH[offset_delta : offset_delta + _LONGEST_RUN]
    low = _LOW[at:end]
    return (
        (low, _MIDDLE[at:end], bytes((offset_delta >> 13,)) * len(low))
        if width == 3 and offset_delta >> 20 == 0
        else (b"",)
    )


def _bounds(times: bytes) -> tuple[int, int]:
    """Smallest and largest time delta of a run; mostly those of its first and last record."""
    first, last = min(times[0], times[-1]), max(times[0], times[-1])
    others = times.translate(None, _BYTES[first : last + 1])
    if others:
        first, last = min(first, min(others)), max(last, max(others))
    return first - 0x40, last - 0x40


def _behind_headers(body: Content, pos: int, count: int, left: int) -> int:
    if count < 0 or count > (len(body) - pos) // 2:
        raise CorruptRecord(f"{count} record headers in {len(body) - pos} bytes")
    if left < 0:
        raise ContentTooLarge("the record headers are too many for so small a batch")
    for _ in range(count):
        length, pos = read_zigzag(body, pos, INT32)
        if length < 0:
            raise CorruptRecord("record header without a name")
        length, pos = read_zigzag(body, pos + length, INT32)
        pos += max(length, 0)
    return pos


def read_deltas(body: Content, pos: int, count: int) -> Iterator[tuple[int, int, bool]]:
    """For each record: its timestamp and its offset, both relative to the batch's base, and whether it has a key.
    Raises CorruptRecord, IndexError.
    """
    for _ in range(count):
        length, pos = read_zigzag(body, pos)
        end = pos + length
        if length < 0 or end > len(body):
            raise CorruptRecord(f"a record of {length} bytes at {pos} of {len(body)}")
        delta, pos = read_zigzag(body, pos + 1)
        offset_delta, pos = read_zigzag(body, pos)
        yield delta, offset_delta, not body[pos] & 1
        pos = end


def first_of(batch: bytes, times: range, offset: int, limit: int = MAX_DECOMPRESSED) -> tuple[int, int] | None:
    """Timestamp and offset of a batch's first record at or after `offset` with a timestamp in `times`, if any.

    Raises CorruptRecord, and ContentTooLarge for records of more than `limit` bytes.
    """
    header = read_header(batch)
    if header.next_offset <= offset:
        return None
    check_crc(batch, 0, header)
    body: Content = batch
    start = HEADER_SIZE
    if codec := header.attributes & CODEC_MASK:
        body, start = unpacked(codec, batch[HEADER_SIZE:], limit=limit) if header.record_count else b"", 0
    try:
        for delta, offset_delta, _ in read_deltas(body, start, header.record_count):
            time = header.max_timestamp if header.has_log_append_time else header.base_timestamp + delta
            if time in times and header.base_offset + offset_delta >= offset:
                return time, header.base_offset + offset_delta
    except IndexError:
        raise CorruptRecord("the last record ends early") from None
    return None
