"""The records of batches as columns: where their keys and values lie in one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from groupkeeper.pipeline.decode.batches import Batches, CorruptBatch, RecordSet, seen_by_reader
from groupkeeper.pipeline.decode.views import Bools, Bytes, Ints, View, choose, read_varints
from groupkeeper.protocol.compression import MAX_DECOMPRESSED, decompress
from groupkeeper.protocol.record_batch import HEADER_SIZE, CorruptRecord, read_records
from groupkeeper.protocol.zigzag import read_zigzag

_MIN_RECORD_SIZE = 7
_LOCKSTEP = 256
"""The minimum number of batches that are stepped through together; walking fewer one by one is faster."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records of several record sets, one element each, in order. A size of −1 is a null key or value."""

    data: bytes
    set_index: Ints
    offset: Ints
    timestamp: Ints
    """Milliseconds, −1 for none."""
    has_log_append_time: Bools
    producer_id: Ints
    """The transaction's producer, −1 outside of transactions."""
    is_control: Bools
    key_at: Ints
    key_size: Ints
    value_at: Ints
    value_size: Ints
    headers_at: Ints
    """Position of the number of headers."""

    def __len__(self) -> int:
        return len(self.offset)

    def where(self, mask: Bools | Ints) -> Records:
        """The records that `mask` chooses: booleans, or row numbers in ascending order."""
        return choose(self, mask)

    def key(self, row: int) -> bytes | None:
        return self._bytes(self.key_at[row], self.key_size[row])

    def value(self, row: int) -> bytes | None:
        return self._bytes(self.value_at[row], self.value_size[row])

    def _bytes(self, at: np.int64, size: np.int64) -> bytes | None:
        return None if size < 0 else self.data[int(at) : int(at + size)]


def records_seen(batches: Batches, sets: Sequence[RecordSet]) -> Records:
    """The wanted records of the sets that a reader of committed records sees, control records included.

    Raises CorruptBatch.
    """
    records = records_of(seen_by_reader(batches, sets))
    start = np.array([each.start for each in sets], np.int64)[records.set_index]
    end = np.array([each.end for each in sets], np.int64)[records.set_index]
    wanted = (records.offset >= start) & (records.offset < end)
    return records if wanted.all() else records.where(wanted)


def records_of(batches: Batches) -> Records:
    """All records of the batches. Raises CorruptBatch."""
    try:
        data, begin, end = _bodies(batches)
        return _records(batches, data, begin, end)
    except (CorruptRecord, IndexError, ValueError) as error:
        raise _blame(batches, error) from error


def _bodies(batches: Batches) -> tuple[bytes, Ints, Ints]:
    """A buffer with the uncompressed records of each batch, and where they begin and end."""
    begin = batches.at + HEADER_SIZE
    end = batches.at + batches.size
    codecs = batches.codec
    if not codecs.any():
        return batches.data, begin, end
    bodies = [
        decompress(codec, batches.data[start:stop], limit=MAX_DECOMPRESSED)
        for codec, start, stop in zip(codecs.tolist(), begin.tolist(), end.tolist(), strict=True)
    ]
    end = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    begin = np.concatenate((np.zeros(1, np.int64), end[:-1]))
    return b"".join(bodies), begin, end


def _records(batches: Batches, data: bytes, begin: Ints, end: Ints) -> Records:
    counts = batches.record_count
    if (counts > (end - begin) // _MIN_RECORD_SIZE).any():
        raise CorruptRecord("more records than the batch has room for")
    octets = View(data).octets
    starts, behind = _starts(data, octets, begin, end, counts)
    row = np.repeat(np.arange(len(counts)), counts)
    pos = behind + 1  # the attributes of a record are not used yet
    delta, pos = read_varints(octets, pos)
    offset_delta, pos = read_varints(octets, pos)
    key_size, key_at = read_varints(octets, pos)
    pos = key_at + np.maximum(key_size, 0)
    _check(key_size, pos, starts)
    value_size, value_at = read_varints(octets, pos)
    pos = value_at + np.maximum(value_size, 0)
    _check(value_size, pos, starts)
    bare = octets[pos] == 0
    if (pos + bare > starts).any() or (pos[bare] + 1 != starts[bare]).any():
        raise CorruptRecord("a record's fields do not fill it")
    appended = batches.has_log_append_time
    timestamp = batches.base_timestamp[row] + delta
    if appended.any():
        timestamp = np.where(appended[row], batches.max_timestamp[row], timestamp)
    return Records(
        data=data,
        set_index=batches.set_index[row],
        offset=batches.base_offset[row] + offset_delta,
        timestamp=timestamp,
        has_log_append_time=appended[row],
        producer_id=np.where(batches.is_transactional, batches.producer_id, -1)[row],
        is_control=batches.is_control[row],
        key_at=key_at,
        key_size=np.maximum(key_size, -1),  # Kafka takes every negative length for null
        value_at=value_at,
        value_size=np.maximum(value_size, -1),
        headers_at=pos,
    )


def _check(size: Ints, pos: Ints, end: Ints) -> None:
    if ((pos >= end) | (size > end)).any():
        raise CorruptRecord("a key or value runs past its record")


def _starts(data: bytes, octets: Bytes, begin: Ints, end: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """For each record, the position after it, and the position after its length.

    The start of a record is known only from the record before it, so many batches are stepped through at once.
    """
    total = int(counts.sum())
    ends = np.empty(total, np.int64)
    bodies = np.empty(total, np.int64)
    order = np.argsort(-counts, kind="stable")
    descending = counts[order]
    at = (np.cumsum(counts) - counts)[order]
    pos = begin[order]
    step = 0
    while (active := int(np.searchsorted(-descending, -step))) >= _LOCKSTEP:
        size, body = read_varints(octets, pos[:active])
        if size.min() < 0:
            raise CorruptRecord("a record of negative length")
        pos[:active] = body + size
        bodies[at[:active] + step] = body
        ends[at[:active] + step] = pos[:active]
        step += 1
    for index in range(active):
        first = int(at[index]) + step
        count = int(descending[index]) - step
        found, pos[index] = _walk(data, int(pos[index]), count)
        bodies[first : first + count] = found[0::2]
        ends[first : first + count] = found[1::2]
    if (pos != end[order]).any():
        raise CorruptRecord("the records do not fill their batch")
    return ends, bodies


def _walk(data: bytes, pos: int, count: int) -> tuple[list[int], int]:
    """For `count` records from `pos` on, the positions after the length and after the record, in turn; and the last
    one.
    """
    found: list[int] = []
    append = found.append
    for _ in range(count):
        octet = data[pos]
        if octet < 0x80:
            pos += 1
        elif (second := data[pos + 1]) < 0x80:
            octet += (second << 7) - 0x80
            pos += 2
        else:
            size, pos = read_zigzag(data, pos)
            octet = size << 1
        if octet & 1 or octet < 0:
            raise CorruptRecord("a record of negative length")
        append(pos)
        pos += octet >> 1
        append(pos)
    return found, pos


def _blame(batches: Batches, error: Exception) -> CorruptBatch:
    """The error, with the batch that caused it."""
    rows = zip(batches.set_index.tolist(), batches.at.tolist(), batches.base_offset.tolist(), strict=True)
    for index, at, offset in rows:
        try:
            read_records(batches.data, at, verify=False)
        except CorruptRecord as found:
            return CorruptBatch(index, offset, str(found))
    raise AssertionError("batches that are well formed one by one were refused together") from error
