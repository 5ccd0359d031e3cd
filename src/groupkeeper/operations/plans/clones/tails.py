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
    """Offsets of the source's records of which there are further copies, in order; ``is_all``: nothing else."""

    offsets: Sequence[int] = ()
    is_all: bool = False

    def read_by(self, offset: int) -> int:
        """How many of these a group has read that stands at an offset of the source."""
        return bisect_left(self.offsets, offset)


def tail_of(ours: Trace, theirs: Trace) -> Tail:
    """``ours``: the source up to its end; ``theirs``: the target from the copy of that end on."""
    copies = [one for one in theirs.records if one.is_aborted is not True]
    offsets = {(one.digest, one.timestamp): one.offset for one in ours.records}
    found = [offsets.get((one.digest, one.timestamp)) for one in copies]
    if not any(at is not None for at in found):
        found = _with_other_times(ours.records, copies)
    return Tail(sorted(at for at in found if at is not None), theirs.is_to_end and None not in found)


def _with_other_times(records: Sequence[Kept], copies: Sequence[Kept]) -> list[int | None]:
    """The same where copies got the times of copying: enough of them, in order, of records that are there once."""
    counts = Counter(one.digest for one in records)
    offsets = {one.digest: one.offset for one in records if counts[one.digest] == 1}
    found = [offsets.get(one.digest) for one in copies]
    known = [at for at in found if at is not None]
    is_copied = len(known) >= ENOUGH and all(one < other for one, other in pairwise(known))
    return found if is_copied else [None] * len(copies)
