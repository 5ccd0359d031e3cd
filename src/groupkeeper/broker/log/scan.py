"""Reads a segment file batch by batch, verifies checksums, and skips damage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from groupkeeper.protocol.record_batch import HEADER_SIZE, BatchHeader, CorruptRecord, check_crc, read_header

MAGIC = 2
_MAGIC_AT = 16
_LENGTH_PREFIX = 12
_CHUNK = 1 << 20


class Damage(NamedTuple):
    """Damaged bytes of a segment file, from `position` to `end`.

    Attributes:
        first_offset, next_offset: the lost range of offsets.
        why: the error at the first of these bytes.
    """

    position: int
    end: int
    first_offset: int
    next_offset: int
    why: str

    def __str__(self) -> str:
        lost = self.next_offset - self.first_offset
        offsets = f", {lost} offsets from {self.first_offset} on cannot be read" if lost > 0 else ""
        return f"{self.end - self.position} bytes at position {self.position} are damaged ({self.why}){offsets}"


def scan(
    descriptor: int, size: int, next_offset: int, limit: int, known_end: int, damage: list[Damage]
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every intact batch of a file; appends damaged ranges to `damage`. Offsets are between
    `next_offset` and `limit`; records up to `known_end` existed. Checksums don't cover base offsets: after a gap, the
    next batch shows whether a base offset is right.
    """
    position = chunk_start = 0
    chunk = b""
    has_gaps = False
    while position < size:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_start, at = os.pread(descriptor, _CHUNK, position), position, 0
        lowest = next_offset
        try:
            header = _header(chunk, at, size - position)
            end = position + _LENGTH_PREFIX + header.batch_length
            if end - chunk_start > len(chunk):
                chunk, chunk_start, at = os.pread(descriptor, max(_CHUNK, end - position), position), position, 0
            check_crc(chunk, at, header)
            behind = header.base_offset + header.last_offset_delta + 1
            if header.base_offset != next_offset or behind > limit:
                found = os.pread(descriptor, 8, end)
                following = int.from_bytes(found, "big") if len(found) == 8 else None
                is_last_right = has_gaps or behind <= known_end
                if not _is_in_place(header, next_offset, limit, following, is_last_right=is_last_right):
                    if header.base_offset > next_offset:
                        lowest = min(next_offset + header.last_offset_delta + 1, limit)
                    raise CorruptRecord(f"base offset {header.base_offset} where {next_offset} is due")
                has_gaps = True
        except CorruptRecord as error:
            end = _next_intact(descriptor, position, size, lowest, limit)
            damage.append(Damage(position, end, next_offset, lowest, str(error).replace(f" at {at}", "")))
            position, next_offset, has_gaps = end, lowest, True
            continue
        if damage and damage[-1].end == position:
            damage[-1] = damage[-1]._replace(next_offset=header.base_offset)
        yield position, header
        position, next_offset = end, behind


def _header(chunk: bytes, at: int, rest: int) -> BatchHeader:
    """The header of the batch at a position of the chunk; the file has `rest` bytes there. Raises CorruptRecord."""
    if rest < HEADER_SIZE or len(chunk) - at < HEADER_SIZE:
        raise CorruptRecord(f"{rest} bytes are no batch header")
    if chunk[at + _MAGIC_AT] != MAGIC:
        raise CorruptRecord(f"magic {chunk[at + _MAGIC_AT]}")
    header = read_header(chunk, at)
    if header.batch_length > rest - _LENGTH_PREFIX:
        raise CorruptRecord(f"a batch of {header.size_in_bytes} bytes where the file has {rest}")
    return header


def _is_in_place(
    header: BatchHeader, next_offset: int, limit: int, following: int | None, *, is_last_right: bool
) -> bool:
    """Whether the base offset of a batch after a gap is right; `following`: the base offset of the next batch."""
    if header.base_offset < next_offset or header.next_offset > limit:
        return False
    if following is None:
        return is_last_right
    return header.next_offset <= following or following < next_offset


def _next_intact(descriptor: int, position: int, size: int, lowest: int, limit: int) -> int:
    """The position of the next intact batch after a damaged one at `position`; `size` without one."""
    start = position + 1
    while size - start >= HEADER_SIZE:
        chunk = os.pread(descriptor, min(_CHUNK, size - start), start)
        found = chunk.find(MAGIC, _MAGIC_AT)
        while found >= 0:
            at = found - _MAGIC_AT
            if lowest <= int.from_bytes(chunk[at : at + 8], "big") < limit and _is_intact(descriptor, start + at, size):
                return start + at
            found = chunk.find(MAGIC, found + 1)
        if len(chunk) <= _MAGIC_AT:
            break
        start += len(chunk) - _MAGIC_AT
    return size


def _is_intact(descriptor: int, position: int, size: int) -> bool:
    try:
        header = _header(os.pread(descriptor, HEADER_SIZE, position), 0, size - position)
        check_crc(os.pread(descriptor, header.size_in_bytes, position), 0, header)
    except CorruptRecord:
        return False
    return True
