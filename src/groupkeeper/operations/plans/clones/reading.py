"""Reads stretches of logs for clones, of each record what it holds as a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from struct import pack

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.clones.matching import Trace
from groupkeeper.operations.plans.clones.translating import Ends
from groupkeeper.operations.plans.walking import Kept, Tour, walk
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record import Record

CONTEXT = 32
"""So many offsets before a place and after it are compared."""

_WIDER = (CONTEXT, 1_000, 20_000)
"""Where no record is that near, as compaction has removed them, or only markers are there."""

_BLOCK = 128
"""What is read begins and ends at multiples of it, so that groups at places nearby share a read."""

_PIECE_BYTES = 64 * 1024


class Reader:
    """Of one cluster. What was read last of each partition is kept: places are looked at in their order."""

    def __init__(self, admin: Admin, ends: Mapping[TopicPartition, Ends], *, timeout_ms: int | None = None) -> None:
        self._admin = admin
        self._ends = ends
        self._timeout_ms = timeout_ms
        self._kept: dict[TopicPartition, Trace] = {}

    async def around(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Trace]:
        """The records on both sides of an offset, more of them where there are holes; of what can be read."""
        found: dict[TopicPartition, Trace] = {}
        left = dict(offsets)
        for width in _WIDER:
            read = await self.between({place: (at - width, at + width) for place, at in left.items()})
            found |= read
            left = {place: left[place] for place, trace in read.items() if _lacks_a_side(trace, left[place])}
        return found

    async def between(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], *, is_whole: bool = True
    ) -> dict[TopicPartition, Trace]:
        """The records from an offset up to another, as far as the log has them, where that can be read.

        ``is_whole`` False: or a part of them, where that would be too much.
        """
        wanted = {place: self._clipped(place, *each) for place, each in ranges.items()}
        missing = {place: each for place, each in wanted.items() if not self._has(place, *each)}
        tours = {
            place: Tour(*self._in_blocks(place, *each), self._ends[place].latest, digest_of)
            for place, each in missing.items()
        }
        try:
            failed = await walk(self._admin, tours, max_bytes=_PIECE_BYTES, timeout_ms=self._timeout_ms)
        except (KafkaError, ClientError):
            return {}
        for place, tour in tours.items():
            if place not in failed:
                self._kept[place] = self._trace(place, tour.start, min(tour.reached, tour.until), tour.records)
        if not is_whole:
            wanted = {
                place: (begin, min(end, self._kept[place].end))
                for place, (begin, end) in wanted.items()
                if self._has(place, begin, begin)
            }
        return {place: self._cut(place, *each) for place, each in wanted.items() if self._has(place, *each)}

    def forget(self) -> None:
        """Keep nothing of what was read."""
        self._kept.clear()

    def _clipped(self, place: TopicPartition, begin: int, end: int) -> tuple[int, int]:
        oldest, latest = self._ends[place]
        begin = min(max(begin, oldest), latest)
        return begin, max(begin, min(end, latest))

    def _in_blocks(self, place: TopicPartition, begin: int, end: int) -> tuple[int, int]:
        return self._clipped(place, begin - begin % _BLOCK, end + -end % _BLOCK)

    def _has(self, place: TopicPartition, begin: int, end: int) -> bool:
        kept = self._kept.get(place)
        return kept is not None and kept.begin <= begin and end <= kept.end

    def _cut(self, place: TopicPartition, begin: int, end: int) -> Trace:
        records = [one for one in self._kept[place].records if begin <= one.offset < end]
        return self._trace(place, begin, end, records)

    def _trace(self, place: TopicPartition, begin: int, end: int, records: list[Kept]) -> Trace:
        oldest, latest = self._ends[place]
        return Trace(begin, end, records, begin <= oldest, end >= latest)


def digest_of(record: Record) -> bytes:
    """Of key, value and headers."""
    found = hashlib.blake2b(digest_size=16)
    parts = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    for part in parts:
        found.update(pack(">i", -1) if part is None else pack(">i", len(part)) + part)
    return found.digest()


def _lacks_a_side(trace: Trace, offset: int) -> bool:
    sides = {one.offset < offset for one in trace.records if one.is_aborted is not True}
    return (True not in sides and not trace.is_from_start) or (False not in sides and not trace.is_to_end)
