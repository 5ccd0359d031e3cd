"""The order of methods for finding a place of one log in another: cheap and certain ones come first."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from groupkeeper.client.admin.types import Batch, Failure, Position, TopicPartition
from groupkeeper.operations.errors import TimeUnknown
from groupkeeper.operations.plans.clones.matcher import Match, Stretch, Trace, are_equal, are_unlike, match
from groupkeeper.operations.plans.clones.mirror_syncs import (
    Looked,
    Pair,
    Syncs,
    SyncWay,
    between,
    by_sync,
    is_copied,
    is_exactly_once,
    may_be_again,
)
from groupkeeper.operations.plans.clones.origins import HeaderSearch, is_in_order, match_origins, narrowed, nearest
from groupkeeper.operations.plans.clones.record_reader import CONTEXT, Reader, look_of
from groupkeeper.operations.plans.clones.record_times import Sides, facts_of
from groupkeeper.operations.plans.clones.repeated_copies import RepeatedCopies
from groupkeeper.operations.plans.clones.sampler import Sampler
from groupkeeper.operations.plans.clones.translator import EXACT, Certainty, Ends, Translated, translate


class Hints(NamedTuple):
    """`searched`: how many records of a partition to read if times don't lead to one place. `offset_header`: the
    header of the target's records with their offset in the source.
    """

    searched: int = 10_000
    offset_header: str | None = None


_AT_ONCE = 1_000
"""How many partitions, and places in them, to search at a time."""

_SAMPLES = 4
"""How many places all over a log to compare before its offsets count as the same as the other's."""


_REPEATED = 10_000
"""How many records to check for repeated ones, before offsets count as the same without times."""

_SLACK = 1_000
"""The most records that only the target may have between a known place and the next one."""

_WIDER = 1_000
"""How many further offsets to compare on both sides if copies are not in order."""


FoundOffsets = Batch[Position, Translated]
"""The places that were found, and why others were not."""


async def find_offsets(
    sides: Sides,
    positions: Iterable[Position],
    hints: Hints,
    say: Callable[[str], None] = lambda text: None,
    *,
    syncs: Mapping[TopicPartition, Syncs] | None = None,
    told: Mapping[TopicPartition, Sequence[Pair]] | None = None,
) -> FoundOffsets:
    """Finds the places in the target at which groups at these positions of the source would continue. `told`: pairs
    from elsewhere, which are checked.
    """
    offsets: dict[TopicPartition, list[int]] = {}
    for topic, partition, offset in sorted(set(positions)):
        offsets.setdefault(TopicPartition(topic, partition), []).append(offset)
    total, done = sum(map(len, offsets.values())), 0
    finder, all_found = _PlaceFinder(sides, hints, syncs or {}, told or {}), FoundOffsets()
    tps = list(offsets)
    for start in range(0, len(tps), _AT_ONCE):
        some = tps[start : start + _AT_ONCE]
        most = max(len(offsets[tp]) for tp in some)
        each = max(1, _AT_ONCE // len(some))
        for turn in range(0, most, each):
            say(f"comparing records: {done:,} of {total:,} places")
            now = [Position(*tp, offset) for tp in some for offset in offsets[tp][turn : turn + each]]
            found, failed = await finder.find(now)
            all_found.done.update(found)
            all_found.failed.update(failed)
            done += len(now)
        finder.forget()
    return all_found


class _Sought:
    """The places that one call is to find."""

    def __init__(
        self,
        found: dict[Position, Translated],
        failed: dict[Position, Failure],
        offsets: Mapping[Position, int],
        sources: Mapping[Position, Trace],
    ) -> None:
        self.found = found
        self.failed = failed
        self.offsets = offsets
        """By place, its offset within the source's log."""
        self.sources = sources
        """By place, the source's records around it, if they could be read."""
        self.bounds: dict[Position, Translated] = {}
        """Places by syncs: never too far."""
        self.tried_distances: dict[TopicPartition, int] = {}
        self.tried_neighbours: dict[Position, tuple[int, int]] = {}
        """By place, the known one before it."""

    def missing(self) -> list[Position]:
        """The places with records in the source that are not found."""
        return [at for at in self.sources if at not in self.found]


class _PlaceFinder:
    """Finds several places of each partition at a time; each helps with the next ones of its partition."""

    def __init__(
        self,
        sides: Sides,
        hints: Hints,
        syncs: Mapping[TopicPartition, Syncs],
        told: Mapping[TopicPartition, Sequence[Pair]],
    ) -> None:
        self._sides = sides
        self._syncs = syncs
        self._searched = hints.searched
        self._has_origins = hints.offset_header is not None
        look = look_of(hints.offset_header)
        self._source = Reader(sides.source, sides.here, look=look)
        self._target = Reader(sides.target, sides.there, sides.named, look=look)
        self._sampler = Sampler(sides, (self._source, self._target), hints.searched, told)
        self._distances: dict[TopicPartition, int] = {}
        """By partition, the distance from the last found place's offset in the source to that in the target."""
        self._known: dict[TopicPartition, list[tuple[int, int]]] = {}
        """By partition, the found places: offset in the source, and in the target."""
        self._is_same: dict[TopicPartition, bool] = {}
        """Whether samples all over both logs are the same at the same offsets."""
        self._is_restamped: dict[TopicPartition, bool] = {}
        """Whether they are the same except for times, which copies got when they were made."""
        self._again = RepeatedCopies(sides, self._source, self._target, hints.searched)

    async def find(self, positions: Sequence[Position]) -> tuple[dict[Position, Translated], dict[Position, Failure]]:
        """Finds places by all methods. `positions` must be sorted."""
        search = await self._begin(positions)
        search.found |= await self._guessed(search, search.sources, {})
        search.found |= await self._restamped(search, search.missing())
        if self._has_origins:
            search.found |= await self._by_origins(search, search.missing())
        await self._find_by_syncs(search)
        left = [at for at in search.offsets if at not in search.found]
        while left:
            await self._find_by_neighbours(search, left)
            scouts = {at.topic_partition: at for at in reversed(left) if at not in search.found}
            await self._find_by_time(search, left, scouts)
            left = [at for at in left if at not in search.found and at not in scouts.values()]
        search.found |= self._between(search)
        search.found |= await self._again.find(search.offsets, search.found)
        self._source.forget()
        self._target.forget()
        self._known = {tp: known[-1:] for tp, known in self._known.items()}
        return search.found, search.failed

    async def _begin(self, positions: Sequence[Position]) -> _Sought:
        """Reads the source's records around the positions, but for empty logs, which have none."""
        found, failed = self._of_empty_logs(positions)
        offsets = {at: self._offset_in_log(at) for at in positions if at not in found and at not in failed}
        return _Sought(found, failed, offsets, await self._source.around(offsets))

    async def _find_by_syncs(self, search: _Sought) -> None:
        """Takes the places of MirrorMaker 2's syncs that are exact, or behind what content has found: the last of
        several copies. The others are bounds.
        """
        sure = (Certainty.IDENTITY, Certainty.HEADER)
        unsure = [at for at in search.sources if at not in search.found or search.found[at].certainty not in sure]
        search.bounds, copied_again = await self._by_syncs(search, unsure)
        for at, one in search.bounds.items():
            is_behind = at in search.found and search.found[at].offset < one.offset
            if not one.replays or at in copied_again or is_behind:
                search.found[at] = one

    async def _find_by_neighbours(self, search: _Sought, left: Sequence[Position]) -> None:
        """Finds places at the same distance as a found place of the partition, and shortly behind one."""
        distances = {tp: self._distances[tp] for at in left if (tp := at.topic_partition) in self._distances}
        new = {tp: distance for tp, distance in distances.items() if search.tried_distances.get(tp, 0) != distance}
        search.tried_distances |= new
        search.found |= await self._guessed(search, [at for at in left if at.topic_partition in new], new)
        before = {at: pair for at in left if at not in search.found and (pair := self._known_before(at)) is not None}
        before = {at: pair for at, pair in before.items() if search.tried_neighbours.get(at) != pair}
        search.tried_neighbours |= before
        search.found |= await self._behind(search, before)

    async def _find_by_time(
        self, search: _Sought, left: Sequence[Position], scouts: Mapping[TopicPartition, Position]
    ) -> None:
        """Finds the place of each partition's scout by time. Where time alone tells it, or nothing does, compares
        samples for all places of the partition. A scout without a better place has its bound, or fails.
        """
        by_time, why_not = await self._by_time(search, list(scouts.values()))
        unsure = {tp for tp, at in scouts.items() if at in why_not or by_time[at].certainty is Certainty.TIME}
        some = [at for at in left if at not in search.found and at.topic_partition in unsure]
        sampled = await self._sampled(search, some, by_time)
        search.found |= sampled
        for at in scouts.values():
            bound = search.bounds.get(at)
            if at in sampled:
                continue
            if at in by_time:
                search.found[at] = _nearer(by_time[at], bound)
            elif bound is not None:
                search.found[at] = bound
            else:
                search.failed[at] = why_not[at]

    def forget(self) -> None:
        """Drops all that was read, before other partitions."""
        self._known.clear()
        self._again.forget()
        self._sampler.forget()
        self._source.forget_all()
        self._target.forget_all()

    def _offset_in_log(self, position: Position) -> int:
        here = self._here(position)
        return min(max(position.offset, here.log_start), here.log_end)

    def _here(self, at: Position) -> Ends:
        return self._sides.here[at.topic_partition]

    def _there(self, at: Position) -> Ends:
        return self._sides.ends_there(at.topic_partition)

    def _is_in_log(self, at: Position) -> bool:
        """Whether the source's log has all records from the place on."""
        return at.offset >= self._here(at).log_start

    def _of_empty_logs(
        self, positions: Iterable[Position]
    ) -> tuple[dict[Position, Translated], dict[Position, Failure]]:
        """The places in empty logs, which have no record to look for; and failures."""
        found: dict[Position, Translated] = {}
        failed: dict[Position, Failure] = {}
        for at in positions:
            here, there = self._here(at), self._there(at)
            if here.log_start != here.log_end:
                continue
            if there.log_start == there.log_end and at.offset >= here.log_end:
                why = "all is read, and both logs are empty: the end of the log"
                found[at] = Translated(there.log_end, why, 0, 0, certainty=Certainty.CONTENT)
            elif here.log_end == 0 == at.offset:
                why = "the source has never had a record: the start of the log"
                found[at] = Translated(there.log_start, why, 0, 0, certainty=Certainty.CONTENT)
            else:
                failed[at] = TimeUnknown(f"the source's log is empty up to its end at offset {here.log_end}")
        return found, failed

    async def _guessed(
        self, search: _Sought, places: Iterable[Position], distances: Mapping[TopicPartition, int]
    ) -> dict[Position, Translated]:
        """Finds places at the same offset, or at the same distance from it as another place of the partition."""
        found: dict[Position, Translated] = {}
        offsets = search.offsets
        guesses = {at: offsets[at] + distances.get(at.topic_partition, 0) for at in places if at in search.sources}
        matches = await self._matched(search, {at: (guess, guess) for at, guess in guesses.items()})
        # Without times, any place with the same records would match; the lookup by time begins before the right one.
        matches = {at: one for at, one in matches.items() if one.is_exact and one.has_times}
        same = dict.fromkeys(at.topic_partition for at, one in matches.items() if one.offset == offsets[at])
        await self._compare_samples([tp for tp in same if tp not in self._is_same])
        for at, one in matches.items():
            if one.offset == offsets[at] and self._is_same[at.topic_partition]:
                found[at] = self._same(search, at, one)
            elif self._is_in_log(at):
                found[at] = self._result_of(search, at, one)
        return found

    def _known_before(self, at: Position) -> tuple[int, int] | None:
        """The last known place at or before this one, if it is near enough."""
        known = self._known.get(at.topic_partition, ())
        number = bisect_right(known, at.offset, key=itemgetter(0)) - 1
        if number < 0 or not self._here(at).log_start <= at.offset <= known[number][0] + self._searched:
            return None
        return known[number]

    async def _behind(self, search: _Sought, known: Mapping[Position, tuple[int, int]]) -> dict[Position, Translated]:
        """Finds places shortly after a known one. As that is a lower bound, records may be compared without times."""
        guesses = {
            at: (there, there + search.offsets[at] - offset + _SLACK)
            for at, (offset, there) in known.items()
            if at in search.sources
        }
        matches = await self._matched(search, guesses)
        return {
            at: self._result_of(search, at, one)
            for at, one in matches.items()
            if one.is_exact and one.offset >= known[at][1]
        }

    async def _sampled(
        self, search: _Sought, places: Iterable[Position], by_time: Mapping[Position, Translated]
    ) -> dict[Position, Translated]:
        """Finds places whose copies have other times, unless the times lead to a better place."""
        within = {at: search.offsets[at] for at in places if self._is_in_log(at)}
        found = await self._sampler.find(within, search.sources)
        return {
            at: one._replace(to_come=self._to_come(search, at, one.offset))
            for at, one in found.items()
            if not one.replays or (at in by_time and by_time[at].skips) or _nearer(one, by_time.get(at)) is one
        }

    def _between(self, search: _Sought) -> dict[Position, Translated]:
        """Corrects places found by times alone that contradict known places around them."""
        known: dict[TopicPartition, list[Pair]] = {}
        by_time: dict[Position, Translated] = {}
        for at, one in search.found.items():
            if at not in search.offsets or not self._is_in_log(at):
                continue
            if one.certainty in EXACT:
                known.setdefault(at.topic_partition, []).append(Pair(search.offsets[at], one.offset))
            elif one.certainty is Certainty.TIME:
                by_time[at] = one
        for tp in dict.fromkeys(at.topic_partition for at in by_time):
            known.setdefault(tp, []).extend((*map(Pair._make, self._known.get(tp, ())), *self._sampler.pairs(tp)))
        bounded: dict[Position, Translated] = {}
        for at, one in by_time.items():
            tp = at.topic_partition
            has_older = self._sampler.has_older_copies(tp)
            bounded[at] = between(one, search.offsets[at], known[tp], self._there(at), has_older_copies=has_older)
        return bounded

    async def _restamped(self, search: _Sought, places: Sequence[Position]) -> dict[Position, Translated]:
        """Finds places at the same offset in logs that are the same except for the copies' times."""
        tps = dict.fromkeys(at.topic_partition for at in places)
        await self._compare_stretches([tp for tp in tps if tp not in self._is_restamped and not self._is_same.get(tp)])
        some = {at: search.offsets[at] for at in places if self._is_restamped.get(at.topic_partition)}
        ranges = {at: (offset - CONTEXT, offset + CONTEXT) for at, offset in some.items()}
        targets = await self._target.between(ranges, is_whole=False)
        found: dict[Position, Translated] = {}
        for at, trace in targets.items():
            one = match(search.sources[at], some[at], trace, has_other_times=True)
            if one is not None and one.is_exact and one.offset == some[at]:
                found[at] = self._same(search, at, one)
        return found

    async def _compare_stretches(self, tps: Iterable[TopicPartition]) -> None:
        """Finds out whether the records around samples all over both logs are the same, except for their times."""
        stretches: dict[TopicPartition, list[Stretch]] = {tp: [] for tp in tps}
        self._is_restamped.update(dict.fromkeys(stretches, False))
        for part in range(_SAMPLES + 1):
            ranges = {}
            for tp in stretches:
                here, there = self._sides.here[tp], self._sides.ends_there(tp)
                sample = self._sample(tp, part)
                begin = max(here.log_start, there.log_start, sample - CONTEXT)
                end = min(here.log_end, there.log_end, sample + CONTEXT)
                if begin < end:
                    ranges[Position(*tp, sample)] = begin, end
            sources, targets = await self._source.between(ranges), await self._target.between(ranges)
            both = {
                at.topic_partition: Stretch(sources[at], targets[at])
                for at in ranges
                if at in sources and at in targets
            }
            stretches = {tp: [*each, both[tp]] for tp, each in stretches.items() if tp in both and both[tp].is_same}
        stretches = {tp: each for tp, each in stretches.items() if any(one.has_other_times for one in each)}
        ends = {Position(*tp, 0): self._sides.here[tp].log_end for tp in stretches}
        more = await self._source.between({at: (end - _REPEATED, end) for at, end in ends.items()}, is_whole=False)
        for at, trace in more.items():
            self._is_restamped[at.topic_partition] = are_unlike(stretches[at.topic_partition], trace)

    async def _by_origins(self, search: _Sought, places: Iterable[Position]) -> dict[Position, Translated]:
        """Finds places by the source's offsets in headers of the target's records."""
        offsets, sources = search.offsets, search.sources
        searches: dict[Position, HeaderSearch] = {}
        for at in filter(self._is_in_log, places):
            low, high = self._there(at)
            guess = offsets[at] + self._distances.get(at.topic_partition, 0)
            searches[at] = HeaderSearch(low, high, min(max(guess, low), high))
        left, reached = dict(searches), dict[Position, Trace]()
        while left:
            targets = await self._target.between({at: one.bounds(CONTEXT) for at, one in left.items()}, is_whole=False)
            reached |= targets
            left = {at: narrowed(left[at], offsets[at], trace) for at, trace in targets.items()}
            searches |= left
            left = {at: one for at, one in left.items() if one.guess is not None}
        near = {at: one for at, one in searches.items() if 0 <= one.high - one.low <= 2 * _WIDER}
        reached |= await self._target.between({at: one.bounds(CONTEXT) for at, one in near.items()})
        mixed = [at for at, trace in reached.items() if not is_in_order(trace)]
        wide = {at: (reached[at].begin - _WIDER, reached[at].end + _WIDER) for at in mixed}
        reached |= await self._target.between(wide, is_whole=False)
        far = {at: nearest(sources[at], offsets[at], trace) for at, trace in reached.items()}
        ranges = {at: (near - CONTEXT, near + CONTEXT) for at, near in far.items() if near is not None}
        nearby = {**sources, **await self._source.between(ranges)}
        matches = {at: match_origins(nearby[at], offsets[at], trace) for at, trace in reached.items()}
        return {
            at: self._result_of(search, at, one, Certainty.HEADER) for at, one in matches.items() if one is not None
        }

    async def _by_syncs(
        self, search: _Sought, places: Iterable[Position]
    ) -> tuple[dict[Position, Translated], set[Position]]:
        """Finds places after a record whose copy is at the offset of MirrorMaker 2's sync. Also returns the places
        whose records may have been copied again.
        """
        ways: dict[Position, SyncWay] = {}
        for at in filter(self._is_in_log, places):
            syncs = self._syncs.get(at.topic_partition)
            way = None if syncs is None else syncs.way_to(search.offsets[at], self._here(at), self._there(at))
            if way is not None:
                ways[at] = way
        first = await self._source.between({at: (way.pair.upstream, way.pair.upstream + 1) for at, way in ways.items()})
        ranges = {
            at: (way.pair.downstream, self._most(way.pair.downstream, way.end) + CONTEXT) for at, way in ways.items()
        }
        targets = await self._target.between(ranges, is_whole=False)
        again = {at: (way.again.begin, way.again.end) for at, way in ways.items() if way.again is not None}
        again = {at: (begin, end) for at, (begin, end) in again.items() if end == self._most(begin, end)}
        behind = await self._target.between(again)
        found: dict[Position, Translated] = {}
        doubtful: set[Position] = set()
        for at, trace in targets.items():
            if at not in first or not is_copied(ways[at].pair, first[at], trace):
                continue  # compaction removed it, or it is the copy of another log
            if is_exactly_once(ways[at].pair, trace):
                ways[at] = ways[at]._replace(again=None)  # the other offsets there are markers
            looked = Looked(first[at], search.sources[at], trace, behind.get(at))
            one = by_sync(ways[at], search.offsets[at], looked)
            if isinstance(one, Match):
                found[at] = self._result_of(search, at, one)
            else:
                found[at] = one._replace(to_come=self._to_come(search, at, one.offset))
            if may_be_again(ways[at], search.offsets[at], looked):
                doubtful.add(at)
        return found, doubtful

    def _most(self, begin: int, end: int) -> int:
        return min(end, begin + self._searched)

    def _same(self, search: _Sought, at: Position, one: Match) -> Translated:
        there = self._there(at)
        offset = min(at.offset, one.offset)
        but = "" if one.has_times else ", but for the times of the copies"
        why = f"the same offset: samples all over both logs are the same{but}"
        why += f", as are {one.equal} records around it: exact"
        skips = max(0, there.log_start - max(offset, self._here(at).log_start))
        if offset < there.log_start:
            why += f"; the target's log has lost the {there.log_start - offset} records before"
        to_come = self._to_come(search, at, one.offset)
        return Translated(max(offset, there.log_start), why, skips, 0, certainty=Certainty.IDENTITY, to_come=to_come)

    def _result_of(self, search: _Sought, at: Position, one: Match, exact: Certainty = Certainty.CONTENT) -> Translated:
        """The result of a match; an exact one is kept as a known place."""
        to_come, offset_in_log = self._to_come(search, at, one.offset), search.offsets[at]
        if one.is_exact:
            self._distances[at.topic_partition] = one.offset - offset_in_log
            insort(self._known.setdefault(at.topic_partition, []), (offset_in_log, one.offset))
            return Translated(one.offset, f"{one.why}: exact", 0, 0, certainty=exact, to_come=to_come)
        why = f"{one.why}: up to {one.replays} records are read again"
        return Translated(one.offset, why, 0, one.replays, certainty=Certainty.BOUNDED, to_come=to_come)

    def _to_come(self, search: _Sought, at: Position, offset: int) -> int | None:
        """The time of the next unread record if it is not copied yet; else None."""
        if offset < self._there(at).log_end:
            return None
        unread = (each.timestamp for each in search.sources[at].unaborted if each.offset >= search.offsets[at])
        return next(unread, None)

    async def _matched(self, search: _Sought, guesses: Mapping[Position, tuple[int, int]]) -> dict[Position, Match]:
        """Compares the records around each place with those of the target around a range of guesses."""
        ranges = {at: (begin - CONTEXT, end + CONTEXT) for at, (begin, end) in guesses.items()}
        targets = await self._target.between(ranges, is_whole=False)
        matches = {at: match(search.sources[at], search.offsets[at], trace) for at, trace in targets.items()}
        return {at: one for at, one in matches.items() if one is not None}

    async def _compare_samples(self, tps: Iterable[TopicPartition]) -> None:
        """Finds out whether offsets are the same all over both logs."""
        self._is_same.update(dict.fromkeys(tps, True))
        for part in range(_SAMPLES + 1):
            samples = (Position(*tp, self._sample(tp, part)) for tp in tps if self._is_same[tp])
            ranges = {at: (at.offset, at.offset + 1) for at in samples}
            sources, targets = await self._source.between(ranges), await self._target.between(ranges)
            for at in ranges:
                here, there = sources.get(at), targets.get(at)
                self._is_same[at.topic_partition] = here is not None and there is not None and are_equal(here, there)

    def _sample(self, tp: TopicPartition, part: int) -> int:
        """An offset that both logs have: the first, the last, or one between."""
        here, there = self._sides.here[tp], self._sides.ends_there(tp)
        log_start, log_end = max(here.log_start, there.log_start), min(here.log_end, there.log_end)
        return log_start + (log_end - 1 - log_start) * part // _SAMPLES

    async def _by_time(
        self, search: _Sought, positions: Sequence[Position]
    ) -> tuple[dict[Position, Translated], dict[Position, Failure]]:
        """Finds places by times of records, and by content around these. At most one position of each partition."""
        of_place = {at.topic_partition: at for at in positions}
        facts, why_not = await facts_of(self._sides, {tp: at.offset for tp, at in of_place.items()})
        failed = {of_place[tp]: why for tp, why in why_not.items()}
        found = {of_place[tp]: translate(one) for tp, one in facts.items()}
        guesses = {
            at: (one.offset, one.offset + min(one.replays or 0, self._searched))
            for at, one in found.items()
            if at in search.sources and self._is_in_log(at)
        }
        for at, one in (await self._matched(search, guesses)).items():
            at_most = found[at].replays or 0
            if at_most > self._searched:  # the rest was not searched: the same records may be there, too
                why = f"{one.why}, in the {self._searched:,} that were compared"
                one = one._replace(replays=max(one.replays, at_most), why=why)
            result = self._result_of(search, at, one)
            is_further = result.offset >= found[at].offset  # times alone do not tell which records are there twice
            skips = one.unread is not None and one.unread < found[at].offset  # nor that copies are in another order
            if one.is_exact or is_further or skips or (found[at].replays or 0) >= one.replays:
                found[at] = result
        return found, failed


def _nearer(one: Translated, sync: Translated | None) -> Translated:
    """The place by time, if it skips nothing and is after the sync's, which is never too far; else the sync's."""
    if sync is None or (not one.skips and one.offset > sync.offset):
        return one
    return sync
