"""What a log with the same offsets has behind the other one's end: a copier that began again copies twice. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matching import Trace


class Tail(NamedTuple):
    """Offsets of the source's records of which there are further copies, in order; ``is_all``: nothing else."""

    offsets: Sequence[int] = ()
    is_all: bool = False

    def read_by(self, offset: int) -> int:
        """How many of these a group has read that stands at an offset of the source."""
        return bisect_left(self.offsets, offset)


def tail_of(ours: Trace, theirs: Trace, *, has_times: bool) -> Tail:
    """``ours``: the source up to its end; ``theirs``: the target from there on. ``has_times``: copies kept them."""
    offsets = {(one.digest, one.timestamp if has_times else 0): one.offset for one in ours.records}
    copies = [one for one in theirs.records if one.is_aborted is not True]
    found = [offsets.get((one.digest, one.timestamp if has_times else 0)) for one in copies]
    return Tail(sorted(at for at in found if at is not None), theirs.is_to_end and None not in found)
