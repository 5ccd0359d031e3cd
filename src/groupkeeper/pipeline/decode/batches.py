"""The batches of fetched record sets: their headers as columns, and which of them are visible to a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from google_crc32c import value as crc32c

from groupkeeper.pipeline.decode.views import Bools, Ints, View, choose
from groupkeeper.protocol import record_batch

_MAGIC_AT = 16
_CHECKED_AT = 21
_PREFIX = 12
_MIN_LENGTH = record_batch.HEADER_SIZE - _PREFIX
_INT32 = Struct(">i")
_CODEC = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class AbortedRange(NamedTuple):
    """An aborted transaction, as the answer to a Fetch names it."""

    producer_id: int
    first_offset: int


class RecordSet(NamedTuple):
    """The answer of a Fetch for one partition: batches, of which the last one may be cut off. Offsets from `start` to
    before `end` are wanted.
    """

    data: bytes
    start: int
    end: int
    aborted: Sequence[AbortedRange] = ()


class CorruptBatch(record_batch.CorruptRecord):
    """A batch cannot be read: `index` is the record set's number, `offset` the batch's first offset."""

    def __init__(self, index: int, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Batches:
    """The whole batches of several record sets, one element per batch, in the order of the sets and their offsets."""

    data: bytes
    set_index: Ints
    at: Ints
    """Position of the batch in `data`."""
    size: Ints
    base_offset: Ints
    last_offset: Ints
    base_timestamp: Ints
    max_timestamp: Ints
    attributes: Ints
    producer_id: Ints
    record_count: Ints
    next_offsets: list[int | None]
    """For each record set, the offset after its last whole batch; None: it has none."""

    @property
    def codec(self) -> Ints:
        return self.attributes & _CODEC

    def _has(self, flag: int) -> Bools:
        found: Bools = (self.attributes & flag) != 0
        return found

    @property
    def has_log_append_time(self) -> Bools:
        return self._has(_LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> Bools:
        return self._has(_TRANSACTIONAL)

    @property
    def is_control(self) -> Bools:
        return self._has(_CONTROL)


def read_batches(sets: Sequence[RecordSet], *, verify: bool = True) -> Batches:
    """Headers of all whole batches; message sets of old formats are converted to batches of format 2.

    Raises CorruptBatch; with `verify`, also for a wrong checksum.
    """
    parts = [_modern(index, each.data) for index, each in enumerate(sets)]
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    at: list[int] = []
    counts: list[int] = []
    pos = 0
    for index, part in enumerate(parts):
        found = _positions(index, data, pos, pos + len(part))
        at += found
        counts.append(len(found))
        pos += len(part)
    batches = _headers(data, np.array(at, np.int64), np.repeat(np.arange(len(sets)), counts))
    if verify:
        _verify(batches)
    return replace(batches, next_offsets=_next_offsets(batches, counts))


def seen_by_reader(batches: Batches, sets: Sequence[RecordSet]) -> Batches:
    """The batches that hold wanted offsets and do not belong to an aborted transaction."""
    start = np.array([each.start for each in sets], np.int64)[batches.set_index]
    end = np.array([each.end for each in sets], np.int64)[batches.set_index]
    wanted = (batches.last_offset >= start) & (batches.base_offset < end) & (batches.record_count > 0)
    for index, each in enumerate(sets):
        if each.aborted:
            rows = np.flatnonzero((batches.set_index == index) & batches.is_transactional)
            wanted[_aborted(batches, rows, each.aborted)] = False
    return choose(batches, wanted)


def _aborted(batches: Batches, rows: npt.NDArray[np.intp], transactions: Sequence[AbortedRange]) -> list[int]:
    """The aborted ones of `rows`, transactional batches of one partition: readers of committed records don't
    see them. Raises CorruptBatch.
    """
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    open_producers: set[int] = set()
    found = []
    for row in rows.tolist():
        while waiting and waiting[-1].first_offset <= batches.last_offset[row]:
            open_producers.add(waiting.pop().producer_id)
        producer = int(batches.producer_id[row])
        if not batches.is_control[row]:
            if producer in open_producers:
                found.append(row)
        elif producer in open_producers:
            try:
                records = record_batch.read_records(batches.data, int(batches.at[row]), verify=False)
                marker = record_batch.read_end_transaction(records[0]) if records else None
            except record_batch.CorruptRecord as error:
                raise CorruptBatch(int(batches.set_index[row]), int(batches.base_offset[row]), str(error)) from error
            if marker is not None and not marker.is_commit:
                open_producers.discard(producer)
    return found


def _modern(index: int, data: bytes) -> bytes:
    if len(data) <= _MAGIC_AT or data[_MAGIC_AT] >= 2:
        return data  # an old format never follows a new one within a partition's log
    out = bytearray()
    for pos, header in record_batch.iter_headers(data):
        if header.magic >= 2:
            return bytes(out) + data[pos:]
        try:
            records = record_batch.read_records(data, pos)
        except record_batch.CorruptRecord as error:
            raise CorruptBatch(index, header.base_offset, str(error)) from error
        if records:
            appended_ms = header.max_timestamp if header.has_log_append_time else None
            out += record_batch.write_batch(
                records, base_offset=records[0].offset, keeps_offsets=True, log_append_time_ms=appended_ms
            )
    return bytes(out)


def _positions(index: int, data: bytes, pos: int, end: int) -> list[int]:
    """Where whole batches begin between two positions."""
    found: list[int] = []
    append, length_at = found.append, _INT32.unpack_from
    last = end - record_batch.HEADER_SIZE
    while pos <= last:
        (length,) = length_at(data, pos + 8)
        behind = pos + _PREFIX + length
        if behind > end:
            break
        if length < _MIN_LENGTH or data[pos + _MAGIC_AT] != 2:
            raise _corrupt(index, data, pos)
        append(pos)
        pos = behind
    return found


def _corrupt(index: int, data: bytes, pos: int) -> CorruptBatch:
    offset = int.from_bytes(data[pos : pos + 8], "big", signed=True)
    try:
        record_batch.check_crc(data, pos, record_batch.read_header(data, pos))
        record_batch.read_records(data, pos)
    except record_batch.CorruptRecord as error:
        return CorruptBatch(index, offset, str(error))
    return CorruptBatch(index, offset, f"batch at {pos} is of an old format where a new one must be")


def _headers(data: bytes, at: Ints, set_index: Ints) -> Batches:
    view = View(data)
    base_offset = view.int64(at)
    return Batches(
        data=data,
        set_index=set_index,
        at=at,
        size=view.int32(at + 8) + _PREFIX,
        base_offset=base_offset,
        last_offset=base_offset + view.int32(at + 23),
        base_timestamp=view.int64(at + 27),
        max_timestamp=view.int64(at + 35),
        attributes=view.int16(at + 21),
        producer_id=view.int64(at + 43),
        record_count=view.int32(at + 57),
        next_offsets=[],
    )


def _verify(batches: Batches) -> None:
    data = batches.data
    stored = View(data).int32(batches.at + 17) & 0xFFFFFFFF
    rows = zip(batches.at.tolist(), batches.size.tolist(), stored.tolist(), strict=True)
    for row, (at, size, crc) in enumerate(rows):
        if crc32c(data[at + _CHECKED_AT : at + size]) != crc:
            raise _corrupt(int(batches.set_index[row]), data, at)
    bad = (batches.record_count < 0) | (batches.last_offset < batches.base_offset)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise _corrupt(int(batches.set_index[row]), data, int(batches.at[row]))


def _next_offsets(batches: Batches, counts: Sequence[int]) -> list[int | None]:
    last = np.cumsum(counts) - 1
    return [
        int(batches.last_offset[row]) + 1 if count else None for row, count in zip(last.tolist(), counts, strict=True)
    ]
