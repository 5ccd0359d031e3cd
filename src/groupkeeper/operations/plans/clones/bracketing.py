"""Bounds a place by known ones before it and after it, as both logs have their records in one order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from groupkeeper.operations.plans.clones.syncing import Pair
from groupkeeper.operations.plans.clones.translating import Certainty, Ends, Translated

_there = attrgetter("downstream")


def between(
    one: Translated, offset: int, known: Sequence[Pair], there: Ends, *, has_older_copies: bool = False
) -> Translated:
    """``one``, which times tell of an offset of the source. Where it isn't between the ``known`` places around that
    offset, times mislead, and the earlier one of these is taken: from there on nothing is skipped that is here. So it
    is anywhere if records of the target are older than those of the source: the later times are too far on.
    """
    before = max((pair for pair in known if pair.upstream <= offset), key=_there, default=None)
    after = min((pair for pair in known if pair.upstream >= offset), key=_there, default=None)
    low = there.oldest if before is None else max(before.downstream, there.oldest)
    high = there.latest if after is None else after.downstream
    is_there = one.offset == low or (low < one.offset <= high and not has_older_copies)
    if (before is None and after is None) or low > high or is_there:
        return one
    replays = min(high - low, offset - (0 if before is None else before.upstream))
    lacking = after.upstream - offset if before is None and after is not None else 0
    why = f"timestamps lead to {one.offset}, but records that both logs have show that the offset is "
    why += f"between {low} and {high}" if low < high else f"{low}"
    why += f": up to {replays} records are read again" if replays else ""
    why += f"; up to {lacking} records that the target does not have are skipped" if lacking else ""
    to_come = one.to_come if low == there.latest else None
    return Translated(low, why, lacking, replays, certainty=Certainty.BOUNDED, to_come=to_come)
