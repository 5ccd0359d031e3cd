"""Reads stretches of logs for clones, with a digest of each record's content."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from operator import attrgetter
from struct import pack

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.clones.matcher import Trace
from groupkeeper.operations.plans.clones.translator import Ends
from groupkeeper.operations.plans.log_walk import Kept, Look, Tour, walk
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record import Record

CONTEXT = 32
"""How many offsets to compare on each side of a place."""

_WIDER = (CONTEXT, 1_000, 20_000)
"""The next wider distances, for places without near records: compaction removed them, or there are only markers."""

_BLOCK = 128
"""Reads begin and end at multiples of this, so that groups at near places share a read."""

_TOGETHER = 2_048
"""The longest stretch of offsets that is read at once for places near one another."""

_PIECE_BYTES = (64 * 1024, 512 * 1024)
"""The size of a fetch: for a stretch around one place, and for a longer one."""

_DIGITS = 19
"""The number of digits of the largest offset."""

_WALKS = 16
"""The most stretches of one partition that are read at the same time."""


class Reader:
    """Reads the logs of one cluster. Records are kept until they are forgotten.

    Places are given by positions in the source. `named`: the names of its partitions in this cluster.
    """

    def __init__(
        self,
        admin: Admin,
        ends: Mapping[TopicPartition, Ends],
        named: Mapping[TopicPartition, TopicPartition] | None = None,
        *,
        look: Look,
    ) -> None:
        self._admin = admin
        self._look = look
        self._ends = ends
        self._named = {tp: tp for tp in ends} if named is None else named
        self._kept: dict[TopicPartition, list[Trace]] = {}

    async def around(self, offsets: Mapping[Position, int]) -> dict[Position, Trace]:
        """The readable records on both sides of each offset, in a wider range if some are missing there."""
        found: dict[Position, Trace] = {}
        left = dict(offsets)
        for width in _WIDER:
            read = await self.between({key: (at - width, at + width) for key, at in left.items()})
            found |= read
            left = {key: left[key] for key, trace in read.items() if _lacks_a_side(trace, left[key])}
        return found

    async def between(
        self, ranges: Mapping[Position, tuple[int, int]], *, is_whole: bool = True
    ) -> dict[Position, Trace]:
        """The records of each range, as far as the log has them; unreadable ranges are left out.

        `is_whole` False: of a range that is too large, only the first records.
        """
        logs = {key: self._named[key.topic_partition] for key in ranges}
        wanted = {key: self._clipped(logs[key], *each) for key, each in ranges.items()}
        missing = self._missing(logs, wanted)
        try:
            await self._read(_merged(missing))
            await self._read(_apart(self._missing(logs, wanted), missing))  # those that were too much together
        except (KafkaError, ClientError):
            return {}
        found: dict[Position, Trace] = {}
        for key, (begin, end) in wanted.items():
            kept = self._having(logs[key], begin, end)
            if kept is None and not is_whole and (kept := self._having(logs[key], begin, begin)) is not None:
                end = kept.end
            if kept is not None:
                found[key] = self._cut(logs[key], kept, begin, end)
        return found

    def forget(self) -> None:
        """Keeps only the last stretch of each partition, as the next place may be near."""
        self._kept = {tp: kept[-1:] for tp, kept in self._kept.items()}

    def forget_all(self) -> None:
        """Drops all that was read."""
        self._kept.clear()

    def _missing(
        self, logs: Mapping[Position, TopicPartition], wanted: Mapping[Position, tuple[int, int]]
    ) -> dict[TopicPartition, list[tuple[int, int]]]:
        """The ranges that were not read yet, in blocks and in order."""
        missing: dict[TopicPartition, set[tuple[int, int]]] = {}
        for key, (begin, end) in wanted.items():
            if self._having(logs[key], begin, end) is None:
                blocks = self._clipped(logs[key], begin - begin % _BLOCK, end + -end % _BLOCK)
                missing.setdefault(logs[key], set()).add(blocks)
        return {tp: sorted(each) for tp, each in missing.items()}

    async def _read(self, stretches: Mapping[TopicPartition, Sequence[tuple[int, int]]]) -> None:
        rounds = max(map(len, stretches.values()), default=0)
        for start in range(0, rounds, _WALKS):
            some = [
                {tp: each[number] for tp, each in stretches.items() if number < len(each)}
                for number in range(start, min(start + _WALKS, rounds))
            ]
            await asyncio.gather(*map(self._walk, some))

    async def _walk(self, stretches: Mapping[TopicPartition, tuple[int, int]]) -> None:
        tours = {tp: Tour(*each, self._ends[tp].log_end, self._look) for tp, each in stretches.items()}
        longest = max(end - begin for begin, end in stretches.values())
        max_bytes = _PIECE_BYTES[longest > 4 * _BLOCK]
        failed = await walk(self._admin, tours, max_bytes=max_bytes)
        for tp, tour in tours.items():
            if tp not in failed:
                trace = self._trace(tp, tour.start, min(tour.reached, tour.until), tour.records)
                insort(self._kept.setdefault(tp, []), trace, key=attrgetter("begin"))

    def _clipped(self, tp: TopicPartition, begin: int, end: int) -> tuple[int, int]:
        log_start, log_end = self._ends[tp]
        begin = min(max(begin, log_start), log_end)
        return begin, max(begin, min(end, log_end))

    def _having(self, tp: TopicPartition, begin: int, end: int) -> Trace | None:
        """The kept stretch that has the whole range; None: none has."""
        kept = self._kept.get(tp, [])
        for one in reversed(kept[: bisect_right(kept, begin, key=attrgetter("begin"))]):
            if end <= one.end and begin <= one.end:
                return one
        return None

    def _cut(self, tp: TopicPartition, kept: Trace, begin: int, end: int) -> Trace:
        first, last = (bisect_left(kept.records, at, key=attrgetter("offset")) for at in (begin, end))
        return self._trace(tp, begin, end, kept.records[first:last])

    def _trace(self, tp: TopicPartition, begin: int, end: int, records: Sequence[Kept]) -> Trace:
        log_start, log_end = self._ends[tp]
        return Trace(begin, end, records, begin <= log_start, end >= log_end)


def _merged(ranges: Mapping[TopicPartition, Sequence[tuple[int, int]]]) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Joins adjoining ranges, unless they become too long."""
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for tp, each in ranges.items():
        stretches: list[tuple[int, int]] = []
        for begin, end in each:
            if stretches and begin <= stretches[-1][1] and max(end, stretches[-1][1]) - stretches[-1][0] <= _TOGETHER:
                begin, end = stretches[-1][0], max(end, stretches.pop()[1])
            stretches.append((begin, end))
        found[tp] = stretches
    return found


def _apart(
    left: Mapping[TopicPartition, Sequence[tuple[int, int]]], before: Mapping[TopicPartition, Sequence[tuple[int, int]]]
) -> dict[TopicPartition, Sequence[tuple[int, int]]]:
    """The ranges to read one by one: a partition whose single range was too much is left out, as it would be again."""
    return {tp: each for tp, each in left.items() if len(before[tp]) > 1}


def look_of(offset_header: str | None = None) -> Look:
    """Makes a record's digest, of all but `offset_header`, and its origin, from that header."""

    def look(record: Record) -> tuple[bytes, int | None]:
        found, origin = hashlib.blake2b(digest_size=16), None
        parts = [record.key, record.value]
        for name, value in record.headers:
            if name == offset_header:
                origin = origin_of(value)
            else:
                parts += [name.encode(), value]
        for part in parts:
            found.update(pack(">i", -1) if part is None else pack(">i", len(part)) + part)
        return found.digest(), origin

    return look


def origin_of(value: bytes | None) -> int | None:
    """The offset in a header, as text or as eight bytes, big endian; None: it has none."""
    if value is None:
        return None
    if value.isdigit() and len(value) <= _DIGITS:  # as a number eight digits would be more than any log has
        return int(value)
    return None if len(value) != 8 or value[0] > 127 else int.from_bytes(value, "big")


def _lacks_a_side(trace: Trace, offset: int) -> bool:
    sides = {one.offset < offset for one in trace.unaborted}
    return (True not in sides and not trace.is_from_start) or (False not in sides and not trace.is_to_end)
