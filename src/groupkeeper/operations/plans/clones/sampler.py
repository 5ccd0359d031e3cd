"""Finds places without the help of times: copies that got the time of copying, at other offsets."""

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
from groupkeeper.operations.plans.clones.translator import Certainty, Translated
from groupkeeper.operations.plans.log_walk import Kept

_REACH = 2 * CONTEXT
"""How many offsets a sample has on each side of its place."""

_WINDOWS = (1_000, None)
"""How many records of the other log to compare with samples: first these, then all within `searched`."""

_TOGETHER = 16
"""How many samples of a partition to read before they are compared."""

_PARTITIONS = 8
"""How many partitions to compare at a time: each may hold some megabytes of records."""

_ROUNDS = 6
"""How often a place is guessed from the places found so far."""

_MISSES = 3
"""After this many failed searches, no more places of a partition are searched."""

_REPEATED = 10_000
"""How many of the last records of both logs to check for repeated records."""

_CHECKED_PAIRS = 2
"""How many of the `told` places to check for each searched place."""

_REMEMBERED = 64
"""For how many partitions to remember repeated records."""


@dataclass
class _PartitionState:
    """The known places of one partition."""

    anchors: Anchors
    end: Pair | None = None
    """The target's last record, and its original."""
    has_end: bool = False
    """Whether a search for `end` was made."""
    seen: tuple[Seen, Seen] | None = None
    """The unique records of the source and of the target."""
    unique_places: tuple[Pair, ...] = ()
    """Places of records that are unique in both logs, as far as these were read."""
    has_older_copies: bool = False
    """Whether a record of the target is older than the same one of the source."""
    misses: int = 0
    asked: set[int] = field(default_factory=set)
    """Offsets that were searched for."""
    searched: set[int] = field(default_factory=set)
    """The offsets of `asked` whose surroundings were compared with samples."""


class Sampler:
    """Finds places by samples of both logs; each place helps with the next ones of its partition.

    `searched`: how many records of each log to compare for a place in unknown surroundings. `told`: places from
    elsewhere, which are checked.
    """

    def __init__(
        self, sides: Sides, readers: tuple[Reader, Reader], searched: int, told: Mapping[TopicPartition, Sequence[Pair]]
    ) -> None:
        self._sides = sides
        self._source, self._target = readers
        self._searched = searched
        self._told = told
        self._learned: dict[TopicPartition, _PartitionState] = {}

    async def find(
        self, offsets: Mapping[Position, int], sources: Mapping[Position, Trace]
    ) -> dict[Position, Translated]:
        """The places that are found. A place that was not found is not searched again."""
        found: dict[Position, Translated] = {}
        new = {at: offset for at, offset in offsets.items() if at in sources and self._is_new(at)}
        tps = list(dict.fromkeys(at.topic_partition for at in new))
        for start in range(0, len(tps), _PARTITIONS):
            some = tps[start : start + _PARTITIONS]
            await asyncio.gather(*map(self._learn, some))
            found |= await self._found(
                {at: offset for at, offset in new.items() if at.topic_partition in some}, sources
            )
            for tp in some:
                self._learned[tp].unique_places = self._unique_places(tp)
            self._source.forget()
            self._target.forget()
        left = {at: offset for at, offset in offsets.items() if at not in found}
        return found | {at: one for at in left if (one := self._behind_the_copies(at, left[at])) is not None}

    def pairs(self, tp: TopicPartition) -> Sequence[Pair]:
        """The places of a partition that are known for sure."""
        return () if tp not in self._learned else self._learned[tp].unique_places

    def has_older_copies(self, tp: TopicPartition) -> bool:
        """Whether the target has copies with older timestamps, so that lookups by timestamp land too late."""
        return tp in self._learned and self._learned[tp].has_older_copies

    def _unique_places(self, tp: TopicPartition) -> tuple[Pair, ...]:
        known = self._learned[tp]
        assert known.seen is not None, "a partition that is worked on is remembered"
        here, there = (seen.once() for seen in known.seen)
        unique = [
            each
            for each in known.anchors.kept
            if each.upstream in here and here[each.upstream] == there.get(each.downstream)
        ]
        return *unique, *(Pair(each.upstream + 1, each.downstream + 1) for each in unique)

    def forget(self) -> None:
        """Drops all that was learned, before other partitions."""
        self._learned.clear()

    async def _learn(self, tp: TopicPartition) -> None:
        """Reads the ends of both logs, unless that was done."""
        here, there = self._sides.here[tp], self._sides.ends_there(tp)
        known = self._learned[tp] = self._learned.pop(tp)  # the last that was worked on
        if known.seen is None:
            known.seen = Seen(), Seen()
            for seen, reader, end in zip(
                known.seen, (self._source, self._target), (here.log_end, there.log_end), strict=True
            ):
                seen.add((await self._long(reader, tp, (end - _REPEATED, end))).records)
            with_seen = [one for one in self._learned.values() if one.seen is not None]
            for one in with_seen[:-_REMEMBERED]:
                one.seen = None
        if not known.has_end:
            known.end, known.has_end = await self._copied_last(tp), True

    async def _found(self, left: dict[Position, int], sources: Mapping[Position, Trace]) -> dict[Position, Translated]:
        """Finds places near known ones; without a known one, the search begins with one place of each partition."""
        found: dict[Position, Translated] = {}
        while left:
            found |= await self._near(left, sources)
            for at in [at for at in left if at in found or self._is_over(at)]:
                del left[at]
            scouts = list({at.topic_partition: at for at in reversed(left)}.values())
            are_found = await asyncio.gather(*(self._search_by_samples(at, left[at]) for at in scouts))
            for at, is_found in zip(scouts, are_found, strict=True):
                if not is_found:
                    self._learned[at.topic_partition].misses += 1
                    del left[at]
        return found

    def _is_new(self, at: Position) -> bool:
        tp = at.topic_partition
        known = self._learned.setdefault(tp, _PartitionState(Anchors(self._sides.here[tp], self._sides.ends_there(tp))))
        is_new = at.offset not in known.asked and known.misses < _MISSES
        known.asked.add(at.offset)
        return is_new

    def _is_over(self, at: Position) -> bool:
        known = self._learned[at.topic_partition]
        return known.misses >= _MISSES or at.offset in known.searched

    def _behind_the_copies(self, at: Position, offset: int) -> Translated | None:
        """The end of the target, if the last copied record is one that the group has read."""
        known = self._learned.get(at.topic_partition)
        end = None if known is None else known.end
        if end is None or offset <= end.upstream + 1:
            return None
        replays = offset - end.upstream - 1
        why = f"the target's last record is a copy, with another time, of that at offset {end.upstream}: when "
        why += f"the others are copied, up to {replays} records are read again"
        return Translated(
            self._sides.ends_there(at.topic_partition).log_end, why, 0, replays, certainty=Certainty.BOUNDED
        )

    async def _near(
        self, offsets: Mapping[Position, int], sources: Mapping[Position, Trace]
    ) -> dict[Position, Translated]:
        """Finds places by estimates from known ones."""
        found: dict[Position, Translated] = {}
        tried: dict[Position, int] = {}
        for _ in range(_ROUNDS):
            guesses = {
                at: self._learned[at.topic_partition].anchors.guess(offsets[at]) for at in offsets if at not in found
            }
            new = {at: guess for at, guess in guesses.items() if guess is not None and guess != tried.get(at)}
            tried |= new
            targets = await self._target.between({at: _around(guess) for at, guess in new.items()}, is_whole=False)
            strange = []
            for at, trace in targets.items():
                one = self._matched(at, offsets[at], sources[at], trace)
                if one is not None:
                    found[at] = one
                    self._add(at, [Pair(offsets[at], one.offset)])
                elif not self._add(at, self._common_records(at.topic_partition, sources[at].records, trace.records)):
                    strange.append(at)
            wider = {at: (offsets[at] - _WINDOWS[0], offsets[at] + _WINDOWS[0]) for at in strange}
            for at, trace in (await self._source.between(wider, is_whole=False)).items():
                self._add(at, self._common_records(at.topic_partition, trace.records, targets[at].records))
        return found

    def _matched(self, at: Position, offset: int, source: Trace, target: Trace) -> Translated | None:
        one = match_without_times(source, offset, target)
        if one is None or not one.is_exact or not self._has_enough(at.topic_partition, source, target.records):
            return None
        why = f"{one.why}, but for the times of the copies: exact"
        return Translated(one.offset, why, 0, 0, certainty=Certainty.CONTENT)

    def _has_enough(self, tp: TopicPartition, source: Trace, target_records: Sequence[Kept]) -> bool:
        """Whether enough of the common records are unique in both logs, as far as these were read."""
        seen, same = self._learned[tp].seen, {one.digest for one in source.records}
        assert seen is not None, "a partition that is worked on is remembered"
        both = source.records, [one for one in target_records if one.digest in same]
        for log, records in zip(seen, both, strict=True):
            log.add(records)
        return all(log.has_enough(records) for log, records in zip(seen, both, strict=True))

    def _common_records(
        self, tp: TopicPartition, source_records: Sequence[Kept], target_records: Sequence[Kept]
    ) -> list[Pair]:
        """The common records, as pairs of offsets; they are remembered."""
        pairs, known = same_records(source_records, target_records), self._learned[tp]
        assert known.seen is not None, "a partition that is worked on is remembered"
        if pairs:
            times = [{one.offset: one.timestamp for one in records} for records in (source_records, target_records)]
            known.has_older_copies |= any(times[1][each.downstream] < times[0][each.upstream] for each in pairs)
            known.seen[0].add(source_records)
            known.seen[1].add(target_records)
        return pairs

    def _add(self, at: Position, pairs: Sequence[Pair]) -> bool:
        """Adds the two pairs nearest to the place, so that the place lies between known ones; True: one is new."""
        anchors = self._learned[at.topic_partition].anchors
        nearest = sorted(pairs, key=lambda one: abs(one.upstream - at.offset))[:2]
        return sum(map(anchors.add, nearest)) > 0

    async def _search_by_samples(self, at: Position, offset: int) -> bool:
        """Searches around the place in the source for a sample of the target, whose pairs it adds; False: none."""
        tp = at.topic_partition
        known, there = self._learned[tp], self._sides.ends_there(tp)
        known.searched.add(at.offset)
        guess = known.anchors.guess(offset)
        nearest = sorted(self._told.get(tp, ()), key=lambda one: abs(one.upstream - offset))[:_CHECKED_PAIRS]
        told = [one.downstream + offset - one.upstream for one in nearest]
        guesses = [*([] if guess is None else [guess]), *told, *known.anchors.first_guesses(offset)]
        for window in self._windows():
            around = await self._long(self._source, tp, (offset - window // 2, offset), (offset, offset + window // 2))
            samples = outwards(guesses[0], there, max(window // 2, 1), self._searched // (2 * _REACH))
            if pairs := await self._samples(self._target, tp, [*guesses, *samples], around, is_source=False):
                return self._add(at, pairs)
        return False

    async def _copied_last(self, tp: TopicPartition) -> Pair | None:
        """The target's last record, with its counterpart in the source."""
        here, there = self._sides.here[tp], self._sides.ends_there(tp)
        last = await self._long(self._target, tp, (there.log_end - _REACH, there.log_end))
        if not last.is_to_end:
            return None
        for window in self._windows():
            tail = await self._long(self._target, tp, (there.log_end - window, there.log_end - _REACH))
            tail = tail._replace(end=last.end, records=[*tail.records, *last.records])
            samples = outwards(here.log_end, here, max(window // 2, 1), self._searched // (2 * _REACH))
            if pairs := await self._samples(self._source, tp, samples, tail, is_source=True):
                return await self._followed(tp, pairs[-1], tail)
        return None

    async def _followed(self, tp: TopicPartition, pair: Pair, tail: Trace) -> Pair | None:
        """Follows copies from a record near the target's end to the target's last one; None: they don't lead there."""
        anchors = self._learned[tp].anchors
        records = tail.unaborted
        for _ in range(_ROUNDS):
            anchors.add(pair)
            guess = Position(*tp, pair.upstream + records[-1].offset - pair.downstream)
            trace = (await self._source.between({guess: _around(guess.offset)}, is_whole=False)).get(guess)
            pairs = [] if trace is None else self._common_records(tp, trace.records, records[-2 * _REACH :])
            if trace is None or not pairs or pairs[-1] == pair:
                return None
            pair = pairs[-1]
            if pair.downstream == records[-1].offset:
                return pair if anchors.add(pair) and self._has_enough(tp, trace, records) else None
        return None

    def _windows(self) -> list[int]:
        """How many records of one log to compare with samples of the other; empty: too few are searched."""
        windows = [self._searched if one is None else one for one in _WINDOWS]
        return sorted({one for one in windows if one <= self._searched and one >= 2 * _REACH})

    async def _long(self, reader: Reader, tp: TopicPartition, *ranges: tuple[int, int]) -> Trace:
        """The readable records of these consecutive ranges, as one Trace."""
        keys = {Position(*tp, begin): (begin, end) for begin, end in ranges}
        read = await reader.between(keys, is_whole=False)
        records = [record for trace in read.values() for record in trace.records]
        is_to_end = any(trace.is_to_end for trace in read.values())
        return Trace(ranges[0][0], ranges[-1][1], records, is_from_start=False, is_to_end=is_to_end)

    async def _samples(
        self, reader: Reader, tp: TopicPartition, offsets: Sequence[int], other: Trace, *, is_source: bool
    ) -> list[Pair]:
        """Pairs of the records in the first sample that the other log has."""
        for start in range(0, len(offsets), _TOGETHER):
            some = dict.fromkeys(offsets[start : start + _TOGETHER])
            traces = await reader.between({Position(*tp, at): _around(at) for at in some}, is_whole=False)
            for trace in traces.values():
                both = (trace.records, other.records) if is_source else (other.records, trace.records)
                if pairs := self._common_records(tp, *both):
                    return pairs
        return []


def _around(offset: int) -> tuple[int, int]:
    return offset - _REACH, offset + _REACH
