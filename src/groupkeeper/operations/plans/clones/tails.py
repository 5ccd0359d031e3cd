"""What a log has behind the copies of all that the other one has: a copier that began again copies twice. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matching import ENOUGH, Trace
from groupkeeper.operations.plans.walking import Kept


class Tail(NamedTuple):
    """What a target has from ``begin`` on: where it has further copies, and of which of the source's offsets, in its
    order; and where the last record is that is no copy. ``is_whole``: it was read to its end.
    """

    begin: int = 0
    copies: Sequence[tuple[int, int]] = ()
    last_other: int = -1
    is_whole: bool = False

    def read_again(self, offset: int, place: int) -> int:
        """How many of these a group reads again that has read up to an offset of the source, and goes on at a place."""
        return sum(at < offset for _, at in self.copies[bisect_left(self.copies, (place, -1)) :])

    def is_all_again(self, place: int) -> bool:
        """Whether there is nothing but copies from the place on."""
        return self.is_whole and self.begin <= place and self.last_other < place


def tail_of(ours: Trace, theirs: Trace) -> Tail:
    """``ours``: the source up to its end; ``theirs``: the target from about the copy of that end on."""
    records = [one for one in theirs.records if one.is_aborted is not True]
    kept = [one for one in ours.records if one.is_aborted is not True]
    offsets = {(one.digest, one.timestamp): one.offset for one in kept}
    found = [
        offsets.get((one.digest, one.timestamp), other)
        for one, other in zip(records, _with_other_times(kept, records), strict=True)
    ]
    copies = [(one.offset, at) for one, at in zip(records, found, strict=True) if at is not None]
    others = [one.offset for one, at in zip(records, found, strict=True) if at is None]
    return Tail(theirs.begin, copies, max(others, default=-1), theirs.is_to_end)


def _with_other_times(records: Sequence[Kept], copies: Sequence[Kept]) -> list[int | None]:
    """The same where copies got the times of copying: of records that are there once, enough in a row each time that
    the copier began.
    """
    counts = Counter(one.digest for one in records)
    offsets = {one.digest: one.offset for one in records if counts[one.digest] == 1}
    found = [offsets.get(one.digest) for one in copies]
    known = [at for at in found if at is not None]
    begun = 1 + sum(one >= other for one, other in pairwise(known))
    is_copied = len(known) >= ENOUGH * begun
    return found if is_copied else [None] * len(copies)
