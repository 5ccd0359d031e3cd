"""What MirrorMaker 2's syncs say of a place, and where it may have copied records again. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from groupkeeper.operations.plans.clones.matching import Match, Trace, match
from groupkeeper.operations.plans.clones.translating import Certainty, Ends, Found


class Pair(NamedTuple):
    """The source's record at ``upstream`` was copied to ``downstream``, and what comes after it was copied after it."""

    upstream: int
    downstream: int


class Way(NamedTuple):
    """To a place: the last sync at or before it, and up to where its copies are. ``again``: where copies of what was
    read before may be further on, as more was written there than the source has.
    """

    pair: Pair
    end: int
    again: tuple[tuple[int, int], ...]

    @property
    def again_range(self) -> tuple[int, int]:
        return self.again[0][0], self.again[-1][1]


class Syncs:
    """Of a partition, in the order in which they were written."""

    def __init__(self) -> None:
        self._kept: list[Pair] = []
        """The last sync of each offset of the source: later ones are all beyond it."""
        self._ends: dict[int, int] = {}
        self._again: list[tuple[int, int]] = []
        self._last: Pair | None = None

    def add(self, pair: Pair) -> None:
        last = self._last
        if last is not None and pair.downstream <= last.downstream:  # the target's topic was made anew
            self._kept, self._ends, self._again = [], {}, []
        elif last is not None:
            self._ends[last.downstream] = pair.downstream
            step = pair.upstream - last.upstream
            if step <= 0 or pair.downstream - last.downstream > step:
                self._again.append((last.downstream, pair.downstream))
        while self._kept and self._kept[-1].upstream >= pair.upstream:
            self._kept.pop()
        self._kept.append(pair)
        self._last = pair

    def way_to(self, committed: int, here: Ends, there: Ends) -> Way | None:
        """None: no sync is at or before it."""
        number = bisect_right(self._kept, committed, key=_upstream) - 1
        if number < 0 or self._last is None:
            return None
        pair, again = self._kept[number], list(self._again)
        if there.latest - self._last.downstream > here.latest - self._last.upstream:
            again.append((self._last.downstream, there.latest))
        later = tuple(each for each in again if each[0] >= pair.downstream)
        return Way(pair, self._ends.get(pair.downstream, there.latest), later)


class Looked(NamedTuple):
    """What was read: of the source the record of the sync, and what is around the place; of the target what is behind
    the sync, and where copies may be again. None: it could not be, or would be too much.
    """

    first: Trace
    ours: Trace
    theirs: Trace
    again: Trace | None


def is_copied(pair: Pair, first: Trace, theirs: Trace) -> bool:
    """Whether the record is where the sync says, with what it holds."""
    copies = [one.digest for one in theirs.records if one.offset == pair.downstream and one.is_aborted is not True]
    return copies == [one.digest for one in first.records] != []


def by_sync(way: Way, committed: int, looked: Looked) -> Match | Found:
    """The place by what records hold, if that is better, else by the sync."""
    pair, back = way.pair, committed - way.pair.upstream
    why = f"MirrorMaker 2 copied the record at offset {pair.upstream} to {pair.downstream}, and it is the same"
    replays = max(0, back - 1)  # of offsets: compaction may have removed records here that were copied before
    begin = pair.downstream + min(back, 1)
    if may_be_again(way, committed, looked):
        last = None if looked.again is None else match(looked.ours, committed, looked.again, has_other_times=True)
        if last is not None and last.offset >= begin:
            return last._replace(why=f"{last.why}, in what was copied again")
        replays += sum(end - start for start, end in way.again)
        why += "; records may have been copied again after it"
    elif replays:
        near = match(looked.ours, committed, looked.theirs, has_other_times=True)
        if near is not None and near.offset >= begin and near.replays <= replays:
            return near._replace(why=f"{near.why}, where MirrorMaker 2's sync leads to")
    if not replays:
        return Found(begin, f"{why}: exact", 0, 0, certainty=Certainty.SYNC)
    why += f": up to {replays} records are read again"
    return Found(begin, why, 0, replays, certainty=Certainty.BOUNDED)


def may_be_again(way: Way, committed: int, looked: Looked) -> bool:
    """Whether copies of records that were read may be further on than the sync's."""
    if not way.again:
        return False
    if looked.again is None or way.again[0][0] == way.pair.downstream:
        return True
    read = {one.digest for one in looked.ours.records if one.offset < committed and one.is_aborted is not True}
    return not read or any(one.digest in read for one in looked.again.records if one.is_aborted is not True)


def _upstream(pair: Pair) -> int:
    return pair.upstream
