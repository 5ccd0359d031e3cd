"""Places by MirrorMaker 2's syncs, and where it may have copied records again. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matcher import Match, Trace, match
from groupkeeper.operations.plans.clones.translator import Certainty, Ends, Translated


class Pair(NamedTuple):
    """The source's record at `upstream` was copied to `downstream`, and later records after it."""

    upstream: int
    downstream: int


class RepeatedRange(NamedTuple):
    """A part of the target, from `begin` to `end`, with possible further copies of earlier records: more offsets
    were written there than in the source. `most`: the number of these offsets.
    """

    begin: int
    end: int
    most: int


class SyncWay(NamedTuple):
    """The way to a place: the last sync at or before it, and the offset in the target at which its copies end."""

    pair: Pair
    end: int
    again: RepeatedRange | None


class Syncs:
    """The syncs of a partition, added in the order in which they were written."""

    def __init__(self) -> None:
        self._kept: list[Pair] = []
        """The last sync of each offset of the source: a sync replaces those of the same and larger offsets."""
        self._ends: dict[int, int] = {}
        self._again: list[RepeatedRange] = []
        """The parts; `most` of each also counts the parts before it."""
        self._last: Pair | None = None

    def add(self, pair: Pair) -> None:
        last = self._last
        if last is not None and pair.downstream <= last.downstream:  # the target's topic was created again
            self._kept, self._ends, self._again = [], {}, []
        elif last is not None:
            self._ends[last.downstream] = pair.downstream
            step = pair.upstream - last.upstream
            if step <= 0 or pair.downstream - last.downstream > step:
                self._again.append(_part(self._again, last.downstream, pair.downstream))
        while self._kept and self._kept[-1].upstream >= pair.upstream:
            self._kept.pop()
        self._kept.append(pair)
        self._last = pair

    def way_to(self, committed: int, here: Ends, there: Ends) -> SyncWay | None:
        """The way to a committed offset; None: no sync is at or before it."""
        number = bisect_right(self._kept, committed, key=attrgetter("upstream")) - 1
        if number < 0 or self._last is None:
            return None
        pair, last = self._kept[number], self._last
        first = bisect_left(self._again, pair.downstream, key=attrgetter("begin"))
        before = self._again[first - 1].most if first else 0
        later = self._again[-1:] if first < len(self._again) else []
        begin = self._again[first].begin if later else last.downstream
        if there.log_end - last.downstream > here.log_end - last.upstream:
            later = [_part(self._again, last.downstream, there.log_end)]
        again = RepeatedRange(begin, later[0].end, later[0].most - before) if later else None
        return SyncWay(pair, self._ends.get(pair.downstream, there.log_end), again)


class Looked(NamedTuple):
    """Records of both logs. `first`: the sync's, `source`: those around the place, in the source; `target`: after
    the sync, `again`: possible further copies, in the target; None: unreadable, or too much.
    """

    first: Trace
    source: Trace
    target: Trace
    again: Trace | None


def is_copied(pair: Pair, first: Trace, target: Trace) -> bool:
    """Whether the record is at the sync's place in the target, with the same content."""
    copies = [one.digest for one in target.unaborted if one.offset == pair.downstream]
    return copies == [one.digest for one in first.records] != []


def is_exactly_once(pair: Pair, target: Trace) -> bool:
    """Whether the record was copied in a transaction, as by a MirrorMaker 2 that copies nothing twice (KIP-618)."""
    return any(one.offset == pair.downstream and one.is_transactional for one in target.records)


def by_sync(way: SyncWay, committed: int, looked: Looked) -> Match | Translated:
    """The place by the records' content if that is better, otherwise by the sync."""
    pair, back = way.pair, committed - way.pair.upstream
    why = f"MirrorMaker 2 copied the record at offset {pair.upstream} to {pair.downstream}, and it is the same"
    replays = max(0, back - 1)  # of offsets: compaction may have removed records here that were copied before
    begin = pair.downstream + min(back, 1)
    near = match(looked.source, committed, looked.target, has_other_times=True) if replays else None
    if near is not None and (near.offset < begin or near.replays > replays):
        near = None
    if may_be_again(way, committed, looked):
        last = None if looked.again is None else match(looked.source, committed, looked.again, has_other_times=True)
        if last is not None and last.offset >= begin:
            return last._replace(why=f"{last.why}, in what was copied again")
        more = 0 if way.again is None else way.again.most
        doubt = "; records may have been copied again behind it"
        if near is not None:
            return near._replace(replays=near.replays + more, why=near.why + doubt)
        replays += more
        why += doubt
    elif near is not None:
        return near._replace(why=f"{near.why}, where MirrorMaker 2's sync leads to")
    if not replays:
        return Translated(begin, f"{why}: exact", 0, 0, certainty=Certainty.SYNC)
    why += f": up to {replays} records are read again"
    return Translated(begin, why, 0, replays, certainty=Certainty.BOUNDED)


def may_be_again(way: SyncWay, committed: int, looked: Looked) -> bool:
    """Whether further copies of records that the group has read may be after the sync's."""
    if way.again is None:
        return False
    if looked.again is None or way.again.begin == way.pair.downstream:
        return True
    read = {one.digest for one in looked.source.unaborted if one.offset < committed}
    return not read or any(one.digest in read for one in looked.again.unaborted)


def _part(before: Sequence[RepeatedRange], begin: int, end: int) -> RepeatedRange:
    return RepeatedRange(begin, end, (before[-1].most if before else 0) + end - begin)


_there = attrgetter("downstream")


def between(
    one: Translated, offset: int, known: Sequence[Pair], there: Ends, *, has_older_copies: bool = False
) -> Translated:
    """A translation by time (`one`) of `offset`, checked with `known` places around it. If it is outside of
    these, or the target has older records than the source (whose times lead too far), the earlier place is used
    instead: from there on, no record that the target has is skipped.
    """
    before = max((pair for pair in known if pair.upstream <= offset), key=_there, default=None)
    after = min((pair for pair in known if pair.upstream >= offset), key=_there, default=None)
    low = there.log_start if before is None else max(before.downstream, there.log_start)
    high = there.log_end if after is None else after.downstream
    is_there = one.offset == low or (low < one.offset <= high and not has_older_copies)
    if (before is None and after is None) or low > high or is_there:
        return one
    replays = min(high - low, offset - (0 if before is None else before.upstream))
    lacking = after.upstream - offset if before is None and after is not None else 0
    why = f"timestamps lead to {one.offset}, but records that both logs have show that the offset is "
    why += f"between {low} and {high}" if low < high else f"{low}"
    why += f": up to {replays} records are read again" if replays else ""
    why += f"; up to {lacking} records that the target does not have are skipped" if lacking else ""
    to_come = one.to_come if low == there.log_end else None
    return Translated(low, why, lacking, replays, certainty=Certainty.BOUNDED, to_come=to_come)
