"""Whether a log has the records of another one at the same offsets, though with times of their own. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matching import ENOUGH, Trace, have_one_order


class Stretch(NamedTuple):
    """Of both logs, at the same offsets: those that both have."""

    here: Trace
    there: Trace

    @property
    def is_same(self) -> bool:
        """Whether the records are, but for their times; copies are not older than what they are copies of, whichever
        log has them.
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
    """Whether each stretch has enough records that are nowhere else in what was read of the source.

    Records that come again and again (the same devices in turn) would be the same at other offsets, too.
    """
    digests = {one.offset: one.digest for trace in (more, *(each.here for each in stretches)) for one in trace.records}
    counts = Counter(digests.values())
    return all(sum(counts[one.digest] == 1 for one in each.here.records) >= ENOUGH for each in stretches)
