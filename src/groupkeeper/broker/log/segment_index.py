"""Positions of batches in a segment, and the files that store them (Apache Kafka's `.index` and `.timeindex`).

Both are sparse: an entry per `index.interval.bytes` of log. An entry of `.index` has the last offset of a batch,
relative to the segment's base offset, and the batch's position; an entry of `.timeindex` the largest timestamp so far
and the relative last offset of the first batch with it.
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

NO_TIMESTAMP = -1
_ENTRY_SIZE = 8
_TIME = Struct(">qi")


class SegmentIndex:
    """The index of one segment in memory.

    Attributes:
        max_timestamp: largest batch timestamp; −1 when there is no batch with one.
        max_timestamp_offset: last offset of the first batch that has it.
    """

    __slots__ = (
        "_base_offset",
        "_interval",
        "_offsets",
        "_positions",
        "_time_offsets",
        "_timestamps",
        "_unindexed",
        "max_timestamp",
        "max_timestamp_offset",
    )

    def __init__(self, base_offset: int, interval: int) -> None:
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._base_offset = base_offset
        self._interval = interval
        self._unindexed = 0
        self._offsets = array("q")
        self._positions = array("q")
        self._timestamps = array("q")
        self._time_offsets = array("q")

    def add(self, last_offset: int, max_timestamp: int, position: int, length: int) -> None:
        """Adds the batch at a position, after all other batches."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._unindexed > self._interval:
            self._offsets.append(last_offset)
            self._positions.append(position)
            self._add_time()
            self._unindexed = 0
        self._unindexed += length

    def _add_time(self) -> None:
        last = self._timestamps[-1] if self._timestamps else NO_TIMESTAMP
        if self.max_timestamp > last:
            self._timestamps.append(self.max_timestamp)
            self._time_offsets.append(self.max_timestamp_offset)

    def position_before(self, offset: int) -> int:
        """The position from which to search for an offset: no earlier batch has this or a later offset."""
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def offset_after(self, position: int) -> int | None:
        """Last offset of the first indexed batch that begins at a position or later; None when there is none.

        The very first entry only counts for earlier positions: Apache Kafka's search never hits it.
        """
        entry = bisect_left(self._positions, position)
        if entry == 0 and self._positions and self._positions[0] == position:
            entry = 1
        return self._offsets[entry] if entry < len(self._offsets) else None

    def offset_before(self, timestamp: int) -> int:
        """The offset from which to search for a timestamp: batches that end before it have only smaller timestamps."""
        entry = bisect_right(self._timestamps, timestamp) - 1
        return self._time_offsets[entry] if entry >= 0 else self._base_offset

    # ------------------------------------------------------------------ on disk

    def encode(self) -> tuple[bytes, bytes]:
        """The contents of `.index` and `.timeindex`."""
        self._add_time()
        entries = array("i", bytes(_ENTRY_SIZE * len(self._offsets)))
        entries[0::2] = array("i", [offset - self._base_offset for offset in self._offsets])
        entries[1::2] = array("i", self._positions)
        times = [
            _TIME.pack(timestamp, offset - self._base_offset)
            for timestamp, offset in zip(self._timestamps, self._time_offsets, strict=True)
        ]
        return _big_endian(entries).tobytes(), b"".join(times)

    @classmethod
    def decode(cls, base_offset: int, interval: int, entries: bytes, times: bytes) -> SegmentIndex:
        """The index decoded from two files that are intact."""
        index = cls(base_offset, interval)
        pairs = _big_endian(array("i", entries))
        index._offsets = array("q", [base_offset + relative for relative in pairs[0::2]])
        index._positions = array("q", pairs[1::2])
        for timestamp, relative in _TIME.iter_unpack(times):
            index._timestamps.append(timestamp)
            index._time_offsets.append(base_offset + relative)
        if index._timestamps:
            index.max_timestamp, index.max_timestamp_offset = index._timestamps[-1], index._time_offsets[-1]
        return index


def _big_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def replace_bytes(path: str, content: bytes) -> None:
    """Writes a file so that it has either its old or its new content; does nothing when it has that content."""
    try:
        with open(path, "rb") as file:
            if file.read() == content:
                return
    except FileNotFoundError:
        pass
    with open(path + ".tmp", "wb") as file:
        file.write(content)
    os.replace(path + ".tmp", path)
