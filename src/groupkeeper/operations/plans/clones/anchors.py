"""Estimates where a place of one log is in another, by records that are equal except for their times. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from groupkeeper.operations.plans.clones.matcher import ENOUGH
from groupkeeper.operations.plans.clones.mirror_syncs import Pair
from groupkeeper.operations.plans.clones.translator import Ends
from groupkeeper.operations.plans.log_walk import Kept


class Seen:
    """The records of a log that occur only once in the part that was read."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        """Offsets by digest; -1: several records have it."""

    def add(self, records: Iterable[Kept]) -> None:
        for one in records:
            if self._offsets.setdefault(one.digest, one.offset) != one.offset:
                self._offsets[one.digest] = -1

    def once(self) -> dict[int, bytes]:
        """The digests of these records, by offset."""
        return {offset: digest for digest, offset in self._offsets.items() if offset >= 0}

    def has_enough(self, records: Iterable[Kept]) -> bool:
        """Whether enough of the given records occur only once, so that an equal place is no coincidence."""
        return sum(self._offsets[one.digest] == one.offset for one in records) >= ENOUGH


class Anchors:
    """Places that are known in both logs, in the same order in both."""

    def __init__(self, here: Ends, there: Ends) -> None:
        self._here, self._there = here, there
        self._kept: list[Pair] = []

    @property
    def kept(self) -> Sequence[Pair]:
        return self._kept

    def add(self, pair: Pair) -> bool:
        """Adds a pair; False: it is known, or contradicts the order of the others, as repeated copies may."""
        number = bisect_right(self._kept, pair)
        around = self._kept[max(0, number - 1) : number + 1]
        if any((one.upstream < pair.upstream) != (one.downstream < pair.downstream) or one == pair for one in around):
            return False
        self._kept.insert(number, pair)
        return True

    def guess(self, offset: int) -> int | None:
        """The estimated offset in the target for an offset of the source; None: no place is known."""
        number = bisect_right(self._kept, offset, key=attrgetter("upstream"))
        below = self._kept[number - 1] if number else None
        above = self._kept[number] if number < len(self._kept) else None
        if below is not None and above is not None:
            share = (offset - below.upstream) / (above.upstream - below.upstream)
            return below.downstream + round(share * (above.downstream - below.downstream))
        one = below or above
        if one is None:
            return None
        return min(max(one.downstream + offset - one.upstream, self._there.log_start), self._there.log_end)

    def first_guesses(self, offset: int) -> list[int]:
        """Guesses for an offset of the source: both logs end alike, have equal offsets, or begin alike."""
        here, there = self._here, self._there
        guesses = [there.log_end - (here.log_end - offset), offset, there.log_start + offset - here.log_start]
        return [min(max(guess, there.log_start), there.log_end) for guess in guesses]


def same_records(source_records: Sequence[Kept], target_records: Sequence[Kept]) -> list[Pair]:
    """The records that occur once in each log, as pairs of offsets; empty if they are few, or in another order."""
    here, there = (_once(records) for records in (source_records, target_records))
    pairs = sorted(Pair(here[digest], there[digest]) for digest in here.keys() & there.keys())
    is_in_order = all(one.downstream < other.downstream for one, other in pairwise(pairs))
    return pairs if len(pairs) >= ENOUGH and is_in_order else []


def outwards(guess: int, ends: Ends, step: int, most: int) -> list[int]:
    """At most `most` offsets of a log, `step` apart, the nearest to the guess first."""
    return sorted(_steps(guess, ends, step), key=lambda at: abs(at - guess))[:most] if most > 0 else []


def _steps(guess: int, ends: Ends, step: int) -> Iterator[int]:
    yield from range(guess, ends.log_start - step, -step)
    yield from range(guess + step, ends.log_end + step, step)


def _once(records: Iterable[Kept]) -> dict[bytes, int]:
    records = [one for one in records if one.is_aborted is not True]
    counts = Counter(one.digest for one in records)
    return {one.digest: one.offset for one in records if counts[one.digest] == 1}
