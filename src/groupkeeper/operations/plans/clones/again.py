"""Looks behind exact places for further copies of what groups have read: a copier that began again copies twice."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.admin.types import Position, TopicPartition
from groupkeeper.operations.plans.clones.reading import Reader
from groupkeeper.operations.plans.clones.tails import Tail, tail_of
from groupkeeper.operations.plans.clones.timing import Sides
from groupkeeper.operations.plans.clones.translating import Certainty, Ends, Found

_TOGETHER = 8
"""So many ends of logs are looked at together: what is read of each may be some megabytes."""

_EXACT = (Certainty.IDENTITY, Certainty.HEADER, Certainty.SYNC, Certainty.CONTENT)


class CopiedAgain:
    """Reads the end of each partition once. ``searched``: so many records of both logs, at most."""

    def __init__(self, sides: Sides, ours: Reader, theirs: Reader, searched: int) -> None:
        self._sides, self._ours, self._theirs, self._searched = sides, ours, theirs, searched
        self._tails: dict[TopicPartition, Tail] = {}

    def forget(self) -> None:
        """What was read is of no use for other partitions."""
        self._tails.clear()

    async def find(self, inside: Mapping[Position, int], found: Mapping[Position, Found]) -> dict[Position, Found]:
        """Of those at an exact place, which is of an offset ``inside`` the source's log, the ones that have to be told
        otherwise: who has read all goes behind the copies, for others they are counted.
        """
        exact = {at: one for at, one in found.items() if at in inside and one.certainty in _EXACT and not one.replays}
        # Where the copies of all that the source has end, if none is missing: by the last place, as it is the nearest.
        ends = {_place(at): self._here(at).latest + exact[at].offset - inside[at] for at in sorted(exact)}
        await self._read({tp: end for tp, end in ends.items() if tp not in self._tails})
        changed: dict[Position, Found] = {}
        for at, one in exact.items():
            tail = self._tails[_place(at)]
            if not (again := tail.read_again(at.offset, one.offset)):
                continue
            if at.offset >= self._here(at).latest and tail.is_all_again(one.offset):
                why = f"all is read, and all that is here behind its copy are {again} further copies: exact"
                end = self._sides.there[self._sides.named[_place(at)]].latest
                changed[at] = Found(end, why, one.skips, 0, certainty=Certainty.CONTENT)
            else:
                why = f"{one.why.replace(': exact', '')}; {again} of those read are here once more, further on"
                changed[at] = one._replace(why=why, replays=again, certainty=Certainty.BOUNDED)
        return changed

    def _here(self, at: Position) -> Ends:
        return self._sides.here[_place(at)]

    async def _read(self, ends: Mapping[TopicPartition, int]) -> None:
        here, there, named = self._sides.here, self._sides.there, self._sides.named
        self._tails.update(dict.fromkeys(ends, Tail()))
        longer = [tp for tp, end in ends.items() if there[named[tp]].latest > end]
        for start in range(0, len(longer), _TOGETHER):
            keys = {Position(*tp, here[tp].latest): tp for tp in longer[start : start + _TOGETHER]}
            behind = {
                at: (ends[tp], min(there[named[tp]].latest, ends[tp] + self._searched)) for at, tp in keys.items()
            }
            before = {at: (at.offset - self._searched, at.offset) for at in keys}
            theirs = await self._theirs.between(behind, is_whole=False)
            ours = await self._ours.between(before, is_whole=False)
            for at, tp in keys.items():
                if at in ours and at in theirs:
                    self._tails[tp] = tail_of(ours[at], theirs[at])


def _place(at: Position) -> TopicPartition:
    return TopicPartition(at.topic, at.partition)
