"""The order in which a place in one log is looked for in another one: what is cheap and certain comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin.types import Failure, Position, TopicPartition
from groupkeeper.operations.errors import TimeUnknown
from groupkeeper.operations.plans.clones.matching import Match, Trace, match
from groupkeeper.operations.plans.clones.reading import CONTEXT, Reader
from groupkeeper.operations.plans.clones.timing import Sides, facts_of
from groupkeeper.operations.plans.clones.translating import Certainty, Ends, Found, translate


class Hints(NamedTuple):
    """``searched``: so many records of a partition are read where times don't lead to one place."""

    searched: int = 10_000


_AT_ONCE = 1_000
"""So many partitions are looked at together; what was read of them is forgotten after their last offset."""

_SAMPLES = 4
"""How many places all over a log are compared before its offsets count as the same as the other's."""


class Settled(NamedTuple):
    """The places that were found, and why others were not."""

    found: dict[Position, Found]
    failed: dict[Position, Failure]


async def settle(
    sides: Sides, positions: Iterable[Position], hints: Hints, say: Callable[[str], None] = lambda text: None
) -> Settled:
    """Where in the target groups that stand at these positions of the source would go on."""
    offsets: dict[TopicPartition, list[int]] = {}
    for topic, partition, offset in sorted(set(positions)):
        offsets.setdefault(TopicPartition(topic, partition), []).append(offset)
    total, done = sum(map(len, offsets.values())), 0
    settler, settled = _Settler(sides, hints), Settled({}, {})
    places = list(offsets)
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        for turn in range(max(len(offsets[place]) for place in some)):
            say(f"comparing records: {done:,} of {total:,} places")
            now = {place: offsets[place][turn] for place in some if turn < len(offsets[place])}
            found, failed = await settler.settle(now)
            settled.found.update((Position(*place, now[place]), one) for place, one in found.items())
            settled.failed.update((Position(*place, now[place]), why) for place, why in failed.items())
            done += len(now)
        settler.forget()
    return settled


class _Settler:
    """One offset of each partition at a time; what was learned about a partition serves for its next one."""

    def __init__(self, sides: Sides, hints: Hints) -> None:
        self._sides = sides
        self._searched = hints.searched
        self._ours = Reader(sides.source, sides.here, timeout_ms=sides.timeout_ms)
        self._theirs = Reader(sides.target, sides.there, timeout_ms=sides.timeout_ms)
        self._distances: dict[TopicPartition, int] = {}
        """From an offset to its counterpart, of the last that was found."""
        self._is_same: dict[TopicPartition, bool] = {}
        """Whether samples all over both logs are the same at the same offsets."""

    async def settle(
        self, offsets: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, Found], dict[TopicPartition, Failure]]:
        found, failed = self._of_empty_logs(offsets)
        full = {tp: at for tp, at in offsets.items() if tp not in found and tp not in failed}
        inside = {tp: min(max(at, self._here(tp).oldest), self._here(tp).latest) for tp, at in full.items()}
        ours = await self._ours.around(inside)
        found |= await self._guessed(full, inside, ours)
        left = {tp: at for tp, at in full.items() if tp not in found}
        by_time, why_not = await self._by_time(left, ours)
        return found | by_time, failed | why_not

    def forget(self) -> None:
        """What was read is of no use for other partitions."""
        self._ours.forget()
        self._theirs.forget()

    def _here(self, tp: TopicPartition) -> Ends:
        return self._sides.here[tp]

    def _there(self, tp: TopicPartition) -> Ends:
        return self._sides.there[self._sides.named[tp]]

    def _of_empty_logs(
        self, offsets: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, Found], dict[TopicPartition, Failure]]:
        """There is no record to look for."""
        found: dict[TopicPartition, Found] = {}
        failed: dict[TopicPartition, Failure] = {}
        for tp, committed in offsets.items():
            here, there = self._here(tp), self._there(tp)
            if here.oldest != here.latest:
                continue
            if there.oldest == there.latest and committed >= here.latest:
                why = "all is read, and both logs are empty: the end of the log"
                found[tp] = Found(there.latest, why, 0, 0, certainty=Certainty.CONTENT)
            elif here.latest == 0 == committed:
                why = "the source has never had a record: the start of the log"
                found[tp] = Found(there.oldest, why, 0, 0, certainty=Certainty.CONTENT)
            else:
                failed[tp] = TimeUnknown(f"the source's log is empty up to its end at offset {here.latest}")
        return found, failed

    async def _guessed(
        self,
        offsets: Mapping[TopicPartition, int],
        inside: Mapping[TopicPartition, int],
        ours: Mapping[TopicPartition, Trace],
    ) -> dict[TopicPartition, Found]:
        """Of those that are exactly at the same offset, or as far from it as another one of the partition."""
        found: dict[TopicPartition, Found] = {}
        for distances in ({}, self._distances):
            guesses = {tp: inside[tp] + distances.get(tp, 0) for tp in ours if tp not in found}
            matches = await self._matched(inside, ours, {tp: (at, at) for tp, at in guesses.items()})
            # Without times any place with the same records would do: the lookup by time begins before the right one.
            matches = {tp: one for tp, one in matches.items() if one.is_exact and one.has_times}
            same = [tp for tp, one in matches.items() if one.offset == inside[tp]]
            await self._compare_samples([tp for tp in same if tp not in self._is_same])
            for tp, one in matches.items():
                lost = self._here(tp).oldest - offsets[tp]
                if one.offset == inside[tp] and self._is_same[tp]:
                    found[tp] = self._same(tp, offsets[tp], one, ours[tp])
                elif lost <= 0:
                    found[tp] = self._said(tp, one, ours[tp], inside[tp])
        return found

    def _same(self, tp: TopicPartition, committed: int, one: Match, ours: Trace) -> Found:
        there = self._there(tp)
        offset = min(committed, one.offset)
        why = f"the same offset: samples all over both logs are the same, as are {one.equal} records around it: exact"
        skips = max(0, there.oldest - max(offset, self._here(tp).oldest))
        if offset < there.oldest:
            why += f"; the target's log has lost the {there.oldest - offset} records before"
        to_come = self._to_come(tp, one.offset, ours, one.offset)
        return Found(max(offset, there.oldest), why, skips, 0, certainty=Certainty.IDENTITY, to_come=to_come)

    def _said(self, tp: TopicPartition, one: Match, ours: Trace, inside: int) -> Found:
        """What a match says, and how far from the source's offset it is."""
        to_come = self._to_come(tp, one.offset, ours, inside)
        if one.is_exact:
            self._distances[tp] = one.offset - inside
            return Found(one.offset, f"{one.why}: exact", 0, 0, certainty=Certainty.CONTENT, to_come=to_come)
        why = f"{one.why}: up to {one.replays} records are read again"
        return Found(one.offset, why, 0, one.replays, certainty=Certainty.BOUNDED, to_come=to_come)

    def _to_come(self, tp: TopicPartition, offset: int, ours: Trace, inside: int) -> int | None:
        """The time of the next record, where it is not copied yet."""
        if offset < self._there(tp).latest:
            return None
        unread = (each.timestamp for each in ours.records if each.offset >= inside and each.is_aborted is not True)
        return next(unread, None)

    async def _matched(
        self,
        inside: Mapping[TopicPartition, int],
        ours: Mapping[TopicPartition, Trace],
        guesses: Mapping[TopicPartition, tuple[int, int]],
    ) -> dict[TopicPartition, Match]:
        """What the target has from the first of two offsets up to the second, and around both, compared."""
        named = self._sides.named
        ranges = {named[tp]: (begin - CONTEXT, end + CONTEXT) for tp, (begin, end) in guesses.items()}
        theirs = await self._theirs.between(ranges, is_whole=False)
        found: dict[TopicPartition, Match] = {}
        for tp in guesses:
            trace = theirs.get(named[tp])
            one = None if trace is None else match(ours[tp], inside[tp], trace)
            if one is not None:
                found[tp] = one
        return found

    async def _compare_samples(self, places: Iterable[TopicPartition]) -> None:
        """Learn whether offsets are the same all over both logs."""
        self._is_same.update(dict.fromkeys(places, True))
        for part in range(_SAMPLES + 1):
            at = {tp: self._sample(tp, part) for tp in places if self._is_same[tp]}
            ours = await self._ours.between({tp: (offset, offset + 1) for tp, offset in at.items()})
            theirs = await self._theirs.between(
                {self._sides.named[tp]: (offset, offset + 1) for tp, offset in at.items()}
            )
            for tp in at:
                here, there = ours.get(tp), theirs.get(self._sides.named[tp])
                self._is_same[tp] = here is not None and there is not None and _is_equal(here, there)

    def _sample(self, tp: TopicPartition, part: int) -> int:
        """An offset that both logs have: the first, the last, or one between."""
        here, there = self._here(tp), self._there(tp)
        oldest, latest = max(here.oldest, there.oldest), min(here.latest, there.latest)
        return oldest + (latest - 1 - oldest) * part // _SAMPLES

    async def _by_time(
        self, offsets: Mapping[TopicPartition, int], ours: Mapping[TopicPartition, Trace]
    ) -> tuple[dict[TopicPartition, Found], dict[TopicPartition, Failure]]:
        """By the times of records, and by what they hold where these lead to."""
        facts, failed = await facts_of(self._sides, offsets)
        found = {tp: translate(one) for tp, one in facts.items()}
        inside = {tp: min(offsets[tp], self._here(tp).latest) for tp in found if offsets[tp] >= self._here(tp).oldest}
        guesses = {
            tp: (found[tp].offset, found[tp].offset + min(found[tp].replays or 0, self._searched))
            for tp in inside
            if tp in ours
        }
        for tp, one in (await self._matched(inside, ours, guesses)).items():
            at_most = found[tp].replays or 0
            if at_most > self._searched:  # what is behind was not looked at: the same records may be there, too
                why = f"{one.why}, in the {self._searched:,} that were compared"
                one = one._replace(replays=max(one.replays, at_most), why=why)
            said = self._said(tp, one, ours[tp], inside[tp])
            is_further = said.offset >= found[tp].offset  # times alone do not tell what is there twice
            if one.is_exact or is_further or (found[tp].replays or 0) >= one.replays:
                found[tp] = said
        return found, failed


def _is_equal(here: Trace, there: Trace) -> bool:
    pairs = [[(one.offset, one.digest, one.timestamp) for one in trace.records] for trace in (here, there)]
    return pairs[0] == pairs[1]
