"""Finds the place in one log that corresponds to a place in another, by the content of records. Pure.

A place lies between two records: the last that the group has read, and the next. In a log with copies of the same
records, it is where a copy of the former ends and a copy of the latter begins, with the same neighbours around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import NamedTuple

from groupkeeper.operations.plans.log_walk import Kept

_PLENTY = 48
"""Equal consecutive records that identify a place even if each occurs elsewhere."""

_FEW = 3
"""Up to this many equal records at the edge of the range may be a coincidence."""

ENOUGH = 8
"""The number of different records that must be equal before times are left out of the comparison."""


class Trace(NamedTuple):
    """All records of a log from `begin` up to `end`, and whether these are the log's own start and end."""

    begin: int
    end: int
    records: Sequence[Kept]
    is_from_start: bool
    is_to_end: bool

    def offset(self, at: int) -> int:
        """The offset of the record with this index in `records`, or `end`."""
        return self.records[at].offset if at < len(self.records) else self.end

    @property
    def unaborted(self) -> list[Kept]:
        """The records without those of aborted transactions."""
        return [one for one in self.records if one.is_aborted is not True]


class Match(NamedTuple):
    """A place in the target."""

    offset: int
    """Where to continue."""
    equal: int
    """How many records around it are the same."""
    replays: int
    """The most records from there on that the group has read."""
    why: str
    has_times: bool = True
    """Whether times were compared, too; without, a wrong place far away may look the same."""
    unread: int | None = None
    """The offset of the first unread record; None: `offset`."""

    @property
    def is_exact(self) -> bool:
        return not self.replays


class _Stretch(NamedTuple):
    """Keys of records: of the source (`here`), read up to `at` and unread from it on, and of the target."""

    here: Sequence[Hashable]
    at: int
    there: Sequence[Hashable]
    target: Trace
    has_times: bool


def are_equal(here: Trace, there: Trace) -> bool:
    """Whether both logs have the same records at the same offsets, with the same times."""
    pairs = [[(one.offset, one.digest, one.timestamp) for one in trace.records] for trace in (here, there)]
    return pairs[0] == pairs[1]


def match(source: Trace, committed: int, target: Trace, *, has_other_times: bool = False) -> Match | None:
    """The place in the target at which the group would continue; None: the records there don't tell.
    `has_other_times`: copies got the times of copying.
    """
    target, kept = target._replace(records=target.unaborted), source.unaborted
    # Times of the source's, whose ever they are, can be copied.
    stamps = any(one.is_append_time for one in target.records)
    ways = [(kept, True), (source.records, True)] if len(kept) < len(source.records) else [(kept, True)]
    stretches = [_stretch(records, committed, target, has_times) for records, has_times in ways]
    for stretch in stretches:
        if (found := _in_one_run(stretch)) is not None:
            return found
    if (found := _by_copies(stretches[0])) is not None:
        return found
    return match_without_times(source, committed, target) if stamps or has_other_times else None


def match_without_times(source: Trace, committed: int, target: Trace) -> Match | None:
    """As `match`, for copies that got the times of copying; some may have kept theirs."""
    target, kept = target._replace(records=target.unaborted), source.unaborted
    untimed = _stretch(kept, committed, target, has_times=False)
    found = _in_one_run(untimed)
    stamps = any(one.is_append_time for one in target.records)
    if found is None or not _can_be_copies(untimed, found, kept, are_later=not stamps):
        return None
    return found._replace(has_times=False)


def _stretch(records: Sequence[Kept], committed: int, target: Trace, has_times: bool) -> _Stretch:
    at = sum(one.offset < committed for one in records)
    there = [_key(one, has_times) for one in target.records]
    return _Stretch([_key(one, has_times) for one in records], at, there, target, has_times)


def _key(record: Kept, has_time: bool) -> Hashable:
    return (record.digest, record.timestamp) if has_time else record.digest


def _in_one_run(stretch: _Stretch) -> Match | None:
    """The place around which everything that both stretches have is the same."""
    here, at, there, target, has_times = stretch
    if at < len(here):
        indexes = [index for index, key in enumerate(there) if key == here[at]]
        if target.is_to_end and at and there and there[-1] == here[at - 1]:
            indexes.append(len(there))  # the next record is not there yet
    else:
        indexes = [index + 1 for index, key in enumerate(there) if at and key == here[at - 1]]
    rare = {key for key, count in Counter(here).items() if count == 1}
    rare &= {key for key, count in Counter(there).items() if count == 1}
    found: list[tuple[int, int]] = []
    for index in indexes:
        back = _common(here[at - 1 :: -1] if at else (), there[index - 1 :: -1] if index else ())
        forth = _common(here[at:], there[index:])
        is_whole_back = back == at or (back == index and (target.is_from_start or back))
        is_whole_forth = at + forth == len(here) or (index + forth == len(there) and (target.is_to_end or forth))
        if is_whole_back and is_whole_forth:
            found.append((index, back + forth))
    if not found:
        return None
    first, last = found[0][0], found[-1][0]
    offset, equal = target.offset(first), max(equal for _, equal in found)
    if len(found) > 1:
        why = f"{len(found)} places here have the same {equal} records around them, and this is the first"
        return Match(offset, equal, last - first, why)
    if equal < min(len(here), _PLENTY) and rare.isdisjoint(there[max(0, first - equal) : first + equal]):
        return None  # so few may be the same anywhere
    read = set(here[:at]).difference(here[at:])
    again = sum(key in read for key in there[first:]) if has_times else 0  # copies that are there twice
    return Match(offset, equal, again, f"{_neighbours(here, at, first, there)}, as are {equal} records around it")


def _by_copies(stretch: _Stretch) -> Match | None:
    """The place at which copies of unread records begin, if records between are missing or there twice."""
    here, at, there, target, _ = stretch
    keys, unread = set(here[:at]), set(here[at:])
    first = next((index for index, key in enumerate(there) if key in unread), None)
    copied = [number for number in range(at) if here[number] in there]
    missing = at - 1 - here.index(here[copied[-1]]) if copied and target.is_to_end else 0  # perhaps still to be copied
    equal = sum(key in there for key in here)
    if first is not None:
        begin = next((index + 1 for index in range(first - 1, -1, -1) if there[index] in keys), first)
        again = first - begin + (missing if keys.issuperset(unread.intersection(there)) else 0)
    elif len(copied) > _FEW and target.is_to_end:
        begin, again = there.index(here[copied[-1]]) + 1, missing
    else:
        return None
    again += sum(key in keys for key in there[max(begin, first or 0) :])
    is_between = first is not None and begin > 0 and there[begin - 1] in keys
    is_near = any(key in there for key in here[max(0, at - 1) : at + 1])
    if not again and not is_between and not is_near:
        return None  # records far from the place prove little about it
    why = f"{equal} of the {len(here)} records around it are here"
    new = next((index for index, key in enumerate(there) if key in unread - keys), len(there))
    return Match(target.offset(begin), equal, again, why, unread=target.offset(new))


def _can_be_copies(stretch: _Stretch, found: Match, records: Sequence[Kept], *, are_later: bool) -> bool:
    """Whether records match as copies with the time of copying: enough different ones (or all) are equal, and, with
    `are_later`, those of one log are never older than those of the other.
    """
    here, at, _, target, _ = stretch
    index = sum(one.offset < found.offset for one in target.records)
    pairs = [
        (records[at + step], target.records[index + step])
        for step in range(-min(at, index), min(len(here) - at, len(target.records) - index))
    ]
    same = [(one, other) for one, other in pairs if one.digest == other.digest]
    is_enough = len({one.digest for one, _ in same}) >= min(ENOUGH, len(records))
    return is_enough and (not are_later or have_one_order(same))


def have_one_order(pairs: Sequence[tuple[Kept, Kept]]) -> bool:
    """Whether one log's records are never older than their counterparts. Either log may have the copies."""
    times = [(one.timestamp, other.timestamp) for one, other in pairs]
    return all(one <= other for one, other in times) or all(one >= other for one, other in times)


def _common(some: Sequence[Hashable], others: Sequence[Hashable]) -> int:
    pairs = zip(some, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _neighbours(here: Sequence[Hashable], at: int, index: int, there: Sequence[Hashable]) -> str:
    has_next = at < len(here) and index < len(there)
    if at and index:
        return "the last record read and the next one are the same" if has_next else "the last record read is the same"
    return "the next record is the same"


class Stretch(NamedTuple):
    """The records of both logs in the same range of offsets."""

    here: Trace
    there: Trace

    @property
    def is_same(self) -> bool:
        """Whether the records are equal except for their times, and copies, in whichever log, are not older than
        originals.
        """
        here, there = self.here.records, self.there.records
        if [(one.offset, one.digest) for one in here] != [(one.offset, one.digest) for one in there]:
            return False
        return have_one_order(list(zip(here, there, strict=True)))

    @property
    def has_other_times(self) -> bool:
        pairs = zip(self.here.records, self.there.records, strict=True)
        return any(one.timestamp != other.timestamp for one, other in pairs)


def are_unlike(stretches: Sequence[Stretch], more: Trace) -> bool:
    """Whether each stretch has enough records that are nowhere else in the records read of the source.

    Records that repeat (the same devices in turn) would be the same at other offsets, too.
    """
    digests = {one.offset: one.digest for trace in (more, *(each.here for each in stretches)) for one in trace.records}
    counts = Counter(digests.values())
    return all(sum(counts[one.digest] == 1 for one in each.here.records) >= ENOUGH for each in stretches)
