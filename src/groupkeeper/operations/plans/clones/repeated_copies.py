"""Searches behind known places for second copies of records that groups have read: a restarted copier makes them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.matcher import ENOUGH, Trace
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.record_reader import Reader
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.translator import EXACT, Certainty, Translated
from groupkeeper.operations.plans.log_walk import Kept


class Tail(NamedTuple):
    """The records of a target from `begin` on. `copies`: its offset of each further copy, with that of the source,
    in the target's order; `last_other`: the last record that is no copy; `is_whole`: the log was read to its end.
    """

    begin: int = 0
    copies: Sequence[tuple[int, int]] = ()
    last_other: int = -1
    is_whole: bool = False

    def read_again(self, offset: int, there: int) -> int:
        """How many copies a group reads again that has read the source to `offset` and continues at `there`."""
        return sum(at < offset for _, at in self.copies[bisect_left(self.copies, (there, -1)) :])

    def is_all_again(self, there: int) -> bool:
        """Whether only copies follow from `there` on."""
        return self.is_whole and self.begin <= there and self.last_other < there


def tail_of(source: Trace, target: Trace) -> Tail:
    """The target's Tail. `source`: the source to its end; `target`: the target from about that end's copy on."""
    records, kept = target.unaborted, source.unaborted
    offsets = {(one.digest, one.timestamp): one.offset for one in kept}
    found = [
        offsets.get((one.digest, one.timestamp), other)
        for one, other in zip(records, _with_other_times(kept, records), strict=True)
    ]
    copies = [(one.offset, at) for one, at in zip(records, found, strict=True) if at is not None]
    others = [one.offset for one, at in zip(records, found, strict=True) if at is None]
    return Tail(target.begin, copies, max(others, default=-1), target.is_to_end)


def _with_other_times(records: Sequence[Kept], copies: Sequence[Kept]) -> list[int | None]:
    """The source's offset for each of the `copies`, whose times are those of copying; None: it has none. Only records
    that are there once count, and there must be ENOUGH in a row each time that the copier began.
    """
    counts = Counter(one.digest for one in records)
    offsets = {one.digest: one.offset for one in records if counts[one.digest] == 1}
    found = [offsets.get(one.digest) for one in copies]
    known = [at for at in found if at is not None]
    begun = 1 + sum(one >= other for one, other in pairwise(known))
    is_copied = len(known) >= ENOUGH * begun
    return found if is_copied else [None] * len(copies)


_TOGETHER = 8
"""The number of log ends to compare at a time: each may hold some megabytes of records."""

_NEAR = 1_000
"""How many offsets after a place to search for further copies of the records before it."""


class _CopiedStretch(NamedTuple):
    """A range of offsets to read in each log."""

    source_range: tuple[int, int]
    target_range: tuple[int, int]


class RepeatedCopies:
    """Finds further copies: reads the end of each partition, and records shortly after places where the target may have
    more than the source. `searched`: the most records of each of the two logs.
    """

    def __init__(self, sides: Sides, source: Reader, target: Reader, searched: int) -> None:
        self._sides, self._source, self._target, self._searched = sides, source, target, searched
        self._ends: dict[TopicPartition, tuple[int, Tail]] = {}
        """For each partition, where its end begins in the target, and the Tail there."""
        self._left: dict[TopicPartition, int] = {}
        """How many offsets after places may still be searched."""

    def forget(self) -> None:
        """Drops all that was read, before other partitions."""
        self._ends.clear()
        self._left.clear()

    async def find(
        self, offsets: Mapping[Position, int], found: Mapping[Position, Translated]
    ) -> dict[Position, Translated]:
        """Changes results of places known by content because of further copies. `offsets`: their offsets within the
        source's log. A group that has read everything continues after the copies; for others they count as `replays`.
        """
        known = {at: one for at, one in found.items() if at in offsets and one.certainty is not Certainty.TIME}
        known = {at: one for at, one in known.items() if at.offset >= self._sides.here[at.topic_partition].log_start}
        exact = {at for at, one in known.items() if one.certainty in EXACT and not one.replays}
        tps: dict[TopicPartition, list[Pair]] = {}
        for at in sorted(known, key=lambda at: (at in exact, at)):
            most = found[at].offset + (0 if at in exact else found[at].replays or 0)
            tps.setdefault(at.topic_partition, []).append(Pair(offsets[at], most))
        # Where the copies of the whole source end, if none is missing: by the last place, as it is the nearest.
        ends = {tp: self._sides.here[tp].log_end + each[-1].downstream - each[-1].upstream for tp, each in tps.items()}
        await self._read_ends(ends)
        near = await self._near(tps, ends)
        changed: dict[Position, Translated] = {}
        for at, one in known.items():
            tp, (_, end) = at.topic_partition, self._ends[at.topic_partition]
            at_end = end.read_again(at.offset, one.offset)
            # Copies near a place may be in `replays` already.
            replays = at_end + max(one.replays or 0, sum(each.read_again(at.offset, one.offset) for each in near[tp]))
            if replays == one.replays:
                continue
            if at in exact and at.offset >= self._sides.here[tp].log_end and end.is_all_again(one.offset):
                why = f"all is read, and only {replays} further copies of records already read follow: exact"
                changed[at] = Translated(self._last(tp).downstream, why, one.skips, 0, certainty=Certainty.CONTENT)
            else:
                more = replays - (one.replays or 0)
                why = f"{one.why.replace(': exact', '')}; {more} of the records read are here a second time, further on"
                changed[at] = one._replace(why=why, replays=replays, certainty=Certainty.BOUNDED)
        return changed

    def _last(self, tp: TopicPartition) -> Pair:
        return Pair(self._sides.here[tp].log_end, self._sides.ends_there(tp).log_end)

    async def _read_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        stretches: dict[Position, _CopiedStretch] = {}
        for tp, end in ends.items():
            if tp in self._ends and abs(end - self._ends[tp][0]) < _NEAR:
                continue
            self._ends[tp] = end, Tail()
            upstream, downstream = self._last(tp)
            if downstream > end:
                target_range = end, min(downstream, end + self._searched)
                stretches[Position(*tp, end)] = _CopiedStretch((upstream - self._searched, upstream), target_range)
        for at, tail in (await self._tails(stretches)).items():
            self._ends[at.topic_partition] = at.offset, tail

    async def _near(
        self, tps: Mapping[TopicPartition, Sequence[Pair]], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, list[Tail]]:
        """The Tails shortly after such places, up to the log's end, which is read anyway; the last places first."""
        stretches: dict[Position, _CopiedStretch] = {}
        for tp, each in tps.items():
            left = self._left.setdefault(tp, self._searched)
            for some in reversed(list(_together(_behind_which_is_more(each, self._last(tp))))):
                (upstream, begin), last = some[0], some[-1]
                target_range = begin, min(last.downstream + _NEAR, ends[tp], begin + left)
                if target_range[0] < target_range[1]:
                    # Copies of unread records show that these are copies, too.
                    source_range = upstream - _NEAR, min(last.upstream, upstream + left) + _NEAR
                    stretches[Position(*tp, begin)] = _CopiedStretch(source_range, target_range)
                    left -= target_range[1] - target_range[0]
            self._left[tp] = left
        found: dict[TopicPartition, list[Tail]] = {tp: [] for tp in tps}
        for at, tail in (await self._tails(stretches)).items():
            found[at.topic_partition].append(tail)
        return found

    async def _tails(self, stretches: Mapping[Position, _CopiedStretch]) -> dict[Position, Tail]:
        tails: dict[Position, Tail] = {}
        positions = list(stretches)
        for start in range(0, len(positions), _TOGETHER):
            some = {at: stretches[at] for at in positions[start : start + _TOGETHER]}
            targets = await self._target.between({at: one.target_range for at, one in some.items()}, is_whole=False)
            sources = await self._source.between({at: one.source_range for at, one in some.items()}, is_whole=False)
            # Only the first of large records were read; the last ones of the source matter, too.
            stops = {at: min(some[at].source_range[1], self._sides.here[at.topic_partition].log_end) for at in sources}
            cut = {at: stop for at, stop in stops.items() if sources[at].end < stop}
            last = await self._source.between({at: (end - _NEAR, end) for at, end in cut.items()}, is_whole=False)
            for at, one in last.items():
                more = [each for each in one.records if each.offset >= sources[at].end]
                sources[at] = sources[at]._replace(records=[*sources[at].records, *more])
            tails |= {at: tail_of(sources[at], targets[at]) for at in some if at in sources and at in targets}
            self._source.forget()
            self._target.forget()
        return tails


def _behind_which_is_more(pairs: Sequence[Pair], end: Pair) -> list[Pair]:
    """The pairs soon after which the target has more offsets than the source: other records, markers of transactions,
    or further copies. The last place counts too, as the rest may not be copied yet.
    """
    found: list[Pair] = []
    more: int | None = None
    for one, other in reversed(list(pairwise([*sorted(pairs), end]))):
        if other == end or other.downstream - one.downstream > other.upstream - one.upstream:
            more = one.downstream
        if more is not None and more - one.downstream < _NEAR:
            found.append(one)
    return found[::-1]


def _together(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Groups pairs that are so near to one another that the records after them are read in one stretch."""
    some: list[Pair] = []
    for one in pairs:
        if some and one.downstream - some[-1].downstream > _NEAR:
            yield some
            some = []
        some.append(one)
    if some:
        yield some
