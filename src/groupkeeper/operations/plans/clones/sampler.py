"""Looks for places where times say nothing: copies that got the time of copying, at other offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.anchors import Anchors, Seen, outwards, same_records
from groupkeeper.operations.plans.clones.matcher import Trace, match_without_times
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.record_reader import CONTEXT, Reader
from groupkeeper.operations.plans.clones.record_times import Sides
from groupkeeper.operations.plans.clones.translator import Certainty, Ends, Translated
from groupkeeper.operations.plans.log_walk import Kept

_REACH = 2 * CONTEXT
"""Offsets in a sample on each side of its place."""

_WINDOWS = (1_000, None)
"""Records of the other log that samples are compared with: first so many, then all that are searched."""

_TOGETHER = 16
"""Samples of a partition that are read before they are compared."""

_PARTITIONS = 8
"""Partitions that are compared at a time: each may hold some megabytes of records."""

_ROUNDS = 6
"""How often a place is guessed from the places found so far."""

_MISSES = 3
"""Places not found after which the search in a partition ends."""

_REPEATED = 10_000
"""The last records of both logs in which repeated records are counted."""

_TOLD = 2
"""Told places that are checked for each place that is searched."""

_REMEMBERED = 64
"""Partitions whose repeated records are remembered."""


@dataclass
class _Learned:
    """What is known of one partition. ``end``: the last record of the target, and what it is a copy of."""

    anchors: Anchors
    end: Pair | None = None
    has_end: bool = False
    """Whether that was looked for."""
    seen: tuple[Seen, Seen] | None = None
    """Of the source and of the target."""
    sure: tuple[Pair, ...] = ()
    """Places of records that are nowhere else in either log, as far as these were read."""
    has_older_copies: bool = False
    """Whether a record of the target is older than the same one of the source."""
    misses: int = 0
    asked: set[int] = field(default_factory=set)
    """Offsets of places that were looked for."""
    searched: set[int] = field(default_factory=set)
    """Of those whose surroundings were compared with samples."""


class Sampler:
    """What was learned about a partition serves for its next places.

    ``searched``: the number of records of each log that are compared for a place whose surroundings are unknown.
    ``told``: places that somebody else knows, which are checked.
    """

    def __init__(
        self, sides: Sides, readers: tuple[Reader, Reader], searched: int, told: Mapping[TopicPartition, Sequence[Pair]]
    ) -> None:
        self._sides = sides
        self._ours, self._theirs = readers
        self._searched = searched
        self._told = told
        self._learned: dict[TopicPartition, _Learned] = {}

    async def find(self, inside: Mapping[Position, int], ours: Mapping[Position, Trace]) -> dict[Position, Translated]:
        """Those of the places that are found; a place that was not is not looked for a second time."""
        found: dict[Position, Translated] = {}
        new = {at: offset for at, offset in inside.items() if at in ours and self._is_new(at)}
        places = list(dict.fromkeys(at.topic_partition for at in new))
        for start in range(0, len(places), _PARTITIONS):
            some = places[start : start + _PARTITIONS]
            await asyncio.gather(*map(self._learn, some))
            found |= await self._found({at: offset for at, offset in new.items() if at.topic_partition in some}, ours)
            for tp in some:
                self._learned[tp].sure = self._sure(tp)
            self._ours.forget()
            self._theirs.forget()
        left = {at: offset for at, offset in inside.items() if at not in found}
        return found | {at: one for at in left if (one := self._behind_the_copies(at, left[at])) is not None}

    def places(self, tp: TopicPartition) -> Sequence[Pair]:
        """Those of a partition that are sure."""
        return () if tp not in self._learned else self._learned[tp].sure

    def has_older_copies(self, tp: TopicPartition) -> bool:
        """Whether times of the source lead too far: the target, too, has copies, which were made earlier."""
        return tp in self._learned and self._learned[tp].has_older_copies

    def _sure(self, tp: TopicPartition) -> tuple[Pair, ...]:
        known = self._learned[tp]
        assert known.seen is not None, "a partition that is worked on is remembered"
        here, there = (seen.once() for seen in known.seen)
        sure = [
            each
            for each in known.anchors.kept
            if each.upstream in here and here[each.upstream] == there.get(each.downstream)
        ]
        return *sure, *(Pair(each.upstream + 1, each.downstream + 1) for each in sure)

    def forget(self) -> None:
        """What was learned is of no use for other partitions."""
        self._learned.clear()

    def _here(self, tp: TopicPartition) -> Ends:
        return self._sides.here[tp]

    def _there(self, tp: TopicPartition) -> Ends:
        return self._sides.there[self._sides.named[tp]]

    async def _learn(self, tp: TopicPartition) -> None:
        """Look at the ends of both logs, if that wasn't done."""
        here, there = self._here(tp), self._there(tp)
        known = self._learned[tp] = self._learned.pop(tp)  # the last that was worked on
        if known.seen is None:
            known.seen = Seen(), Seen()
            for seen, reader, end in zip(
                known.seen, (self._ours, self._theirs), (here.latest, there.latest), strict=True
            ):
                seen.add((await self._long(reader, tp, (end - _REPEATED, end))).records)
            with_seen = [one for one in self._learned.values() if one.seen is not None]
            for one in with_seen[:-_REMEMBERED]:
                one.seen = None
        if not known.has_end:
            known.end, known.has_end = await self._copied_last(tp), True

    async def _found(self, left: dict[Position, int], ours: Mapping[Position, Trace]) -> dict[Position, Translated]:
        """Places near known ones; where there is no known one, the search begins with one place of each partition."""
        found: dict[Position, Translated] = {}
        while left:
            found |= await self._near(left, ours)
            for at in [at for at in left if at in found or self._is_over(at)]:
                del left[at]
            scouts = list({at.topic_partition: at for at in reversed(left)}.values())
            has_met = await asyncio.gather(*(self._meet(at, left[at]) for at in scouts))
            for at, is_met in zip(scouts, has_met, strict=True):
                if not is_met:
                    self._learned[at.topic_partition].misses += 1
                    del left[at]
        return found

    def _is_new(self, at: Position) -> bool:
        tp = at.topic_partition
        known = self._learned.setdefault(tp, _Learned(Anchors(self._here(tp), self._there(tp))))
        is_new = at.offset not in known.asked and known.misses < _MISSES
        known.asked.add(at.offset)
        return is_new

    def _is_over(self, at: Position) -> bool:
        known = self._learned[at.topic_partition]
        return known.misses >= _MISSES or at.offset in known.searched

    def _behind_the_copies(self, at: Position, offset: int) -> Translated | None:
        """The end of the target, where the last record that was copied is one that the group has read."""
        known = self._learned.get(at.topic_partition)
        end = None if known is None else known.end
        if end is None or offset <= end.upstream + 1:
            return None
        replays = offset - end.upstream - 1
        why = f"the target's last record is a copy, with another time, of that at offset {end.upstream}: when "
        why += f"the others are copied, up to {replays} records are read again"
        return Translated(self._there(at.topic_partition).latest, why, 0, replays, certainty=Certainty.BOUNDED)

    async def _near(self, inside: Mapping[Position, int], ours: Mapping[Position, Trace]) -> dict[Position, Translated]:
        """Places that are where known ones lead to."""
        found: dict[Position, Translated] = {}
        tried: dict[Position, int] = {}
        for _ in range(_ROUNDS):
            guesses = {
                at: self._learned[at.topic_partition].anchors.guess(inside[at]) for at in inside if at not in found
            }
            new = {at: guess for at, guess in guesses.items() if guess is not None and guess != tried.get(at)}
            tried |= new
            theirs = await self._theirs.between({at: _around(guess) for at, guess in new.items()}, is_whole=False)
            strange = []
            for at, trace in theirs.items():
                one = self._matched(at, inside[at], ours[at], trace)
                if one is not None:
                    found[at] = one
                    self._add(at, [Pair(inside[at], one.offset)])
                elif not self._add(at, self._same(at.topic_partition, ours[at].records, trace.records)):
                    strange.append(at)
            wider = {at: (inside[at] - _WINDOWS[0], inside[at] + _WINDOWS[0]) for at in strange}
            for at, trace in (await self._ours.between(wider, is_whole=False)).items():
                self._add(at, self._same(at.topic_partition, trace.records, theirs[at].records))
        return found

    def _matched(self, at: Position, offset: int, ours: Trace, theirs: Trace) -> Translated | None:
        one = match_without_times(ours, offset, theirs)
        if one is None or not one.is_exact or not self._has_enough(at.topic_partition, ours, theirs.records):
            return None
        why = f"{one.why}, but for the times of the copies: exact"
        return Translated(one.offset, why, 0, 0, certainty=Certainty.CONTENT)

    def _has_enough(self, tp: TopicPartition, ours: Trace, theirs: Sequence[Kept]) -> bool:
        """Whether what both have is nowhere else in either log, as far as these were read."""
        seen, same = self._learned[tp].seen, {one.digest for one in ours.records}
        assert seen is not None, "a partition that is worked on is remembered"
        both = ours.records, [one for one in theirs if one.digest in same]
        for log, records in zip(seen, both, strict=True):
            log.add(records)
        return all(log.has_enough(records) for log, records in zip(seen, both, strict=True))

    def _same(self, tp: TopicPartition, ours: Sequence[Kept], theirs: Sequence[Kept]) -> list[Pair]:
        """The records that both have, which are remembered."""
        pairs, known = same_records(ours, theirs), self._learned[tp]
        assert known.seen is not None, "a partition that is worked on is remembered"
        if pairs:
            times = [{one.offset: one.timestamp for one in records} for records in (ours, theirs)]
            known.has_older_copies |= any(times[1][each.downstream] < times[0][each.upstream] for each in pairs)
            known.seen[0].add(ours)
            known.seen[1].add(theirs)
        return pairs

    def _add(self, at: Position, pairs: Sequence[Pair]) -> bool:
        """The nearest two, as what is between them is known then; whether one is new."""
        anchors = self._learned[at.topic_partition].anchors
        nearest = sorted(pairs, key=lambda one: abs(one.upstream - at.offset))[:2]
        return sum(map(anchors.add, nearest)) > 0

    async def _meet(self, at: Position, offset: int) -> bool:
        """Whether a sample of the target is somewhere around the place in the source."""
        tp = at.topic_partition
        known, there = self._learned[tp], self._there(tp)
        known.searched.add(at.offset)
        guess = known.anchors.guess(offset)
        nearest = sorted(self._told.get(tp, ()), key=lambda one: abs(one.upstream - offset))[:_TOLD]
        told = [one.downstream + offset - one.upstream for one in nearest]
        guesses = [*([] if guess is None else [guess]), *told, *known.anchors.first_guesses(offset)]
        for window in self._windows():
            around = await self._long(self._ours, tp, (offset - window // 2, offset), (offset, offset + window // 2))
            samples = outwards(guesses[0], there, max(window // 2, 1), self._searched // (2 * _REACH))
            if pairs := await self._samples(self._theirs, tp, [*guesses, *samples], around, is_source=False):
                return self._add(at, pairs)
        return False

    async def _copied_last(self, tp: TopicPartition) -> Pair | None:
        """The target's last record, with its counterpart in the source."""
        here, there = self._here(tp), self._there(tp)
        last = await self._long(self._theirs, tp, (there.latest - _REACH, there.latest))
        if not last.is_to_end:
            return None
        for window in self._windows():
            tail = await self._long(self._theirs, tp, (there.latest - window, there.latest - _REACH))
            tail = tail._replace(end=last.end, records=[*tail.records, *last.records])
            samples = outwards(here.latest, here, max(window // 2, 1), self._searched // (2 * _REACH))
            if pairs := await self._samples(self._ours, tp, samples, tail, is_source=True):
                return await self._followed(tp, pairs[-1], tail)
        return None

    async def _followed(self, tp: TopicPartition, pair: Pair, tail: Trace) -> Pair | None:
        """From a record of the target's end to its last one."""
        anchors = self._learned[tp].anchors
        records = [one for one in tail.records if one.is_aborted is not True]
        for _ in range(_ROUNDS):
            anchors.add(pair)
            guess = Position(*tp, pair.upstream + records[-1].offset - pair.downstream)
            trace = (await self._ours.between({guess: _around(guess.offset)}, is_whole=False)).get(guess)
            pairs = [] if trace is None else self._same(tp, trace.records, records[-2 * _REACH :])
            if trace is None or not pairs or pairs[-1] == pair:
                return None
            pair = pairs[-1]
            if pair.downstream == records[-1].offset:
                return pair if anchors.add(pair) and self._has_enough(tp, trace, records) else None
        return None

    def _windows(self) -> list[int]:
        """How much of one log samples of the other are compared with; none where so little is searched."""
        windows = [self._searched if one is None else one for one in _WINDOWS]
        return sorted({one for one in windows if one <= self._searched and one >= 2 * _REACH})

    async def _long(self, reader: Reader, tp: TopicPartition, *ranges: tuple[int, int]) -> Trace:
        """The records of these ranges, which follow one another, as far as they can be read."""
        keys = {Position(*tp, begin): (begin, end) for begin, end in ranges}
        read = await reader.between(keys, is_whole=False)
        records = [record for trace in read.values() for record in trace.records]
        is_to_end = any(trace.is_to_end for trace in read.values())
        return Trace(ranges[0][0], ranges[-1][1], records, is_from_start=False, is_to_end=is_to_end)

    async def _samples(
        self, reader: Reader, tp: TopicPartition, offsets: Sequence[int], other: Trace, *, is_source: bool
    ) -> list[Pair]:
        """Of the first sample that the other log has: its records with their counterparts."""
        for start in range(0, len(offsets), _TOGETHER):
            some = dict.fromkeys(offsets[start : start + _TOGETHER])
            traces = await reader.between({Position(*tp, at): _around(at) for at in some}, is_whole=False)
            for trace in traces.values():
                both = (trace.records, other.records) if is_source else (other.records, trace.records)
                if pairs := self._same(tp, *both):
                    return pairs
        return []


def _around(offset: int) -> tuple[int, int]:
    return offset - _REACH, offset + _REACH
