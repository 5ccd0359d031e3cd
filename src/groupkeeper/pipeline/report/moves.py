"""Rewinds and jumps, folded: all that one change moved, or a group within a minute, is one entry. An undo is shown with
the change that it undid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from groupkeeper.pipeline.report.model import Rewind
from groupkeeper.rules import words

_FOLDED = timedelta(seconds=60)
_UNDO = "undo"
_NO_ENTRY = "no journal entry is known"
_HOW = {
    True: "a reset, as it had no members", False: "by the group, which had members",
    None: "by the group, or a reset",
}  # fmt: skip


class Move(NamedTuple):
    """Rewinds that belong together, the latest first. `undone`: their undos, and undos of these."""

    rewinds: tuple[Rewind, ...]
    undone: tuple[Move, ...] = ()

    @property
    def change(self) -> Rewind:
        """One of the rewinds, as they all have the same change."""
        return self.rewinds[0]

    @property
    def time(self) -> datetime:
        return self.rewinds[-1].rewind_time

    @property
    def until(self) -> datetime:
        return self.rewinds[0].rewind_time

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(each.group_id for each in self.rewinds))

    @property
    def partitions(self) -> int:
        """How many there are, by group: one may have been moved more than once."""
        return len({(each.group_id, each.topic, each.partition) for each in self.rewinds})


def moves_of(rewinds: Sequence[Rewind]) -> list[Move]:
    """The moves of rewinds, which must be sorted with the latest first; moves are in the same order."""
    folded: list[list[Rewind]] = []
    last: dict[tuple[object, ...], list[Rewind]] = {}
    for each in rewinds:
        key: tuple[object, ...] = (each.cluster, each.change_id)
        if each.change_id is None:
            key = (each.cluster, None, each.group_id, (each.records or 0) < 0, each.was_empty)
        found = last.get(key)
        if found is None or (each.change_id is None and found[-1].rewind_time - each.rewind_time > _FOLDED):
            found = last[key] = []
            folded.append(found)
        found.append(each)
    return _undone([Move(tuple(each)) for each in folded])


def sums(rewinds: Iterable[Rewind]) -> tuple[int, int]:
    """Records that are read again, and those that are skipped."""
    known = [each.records for each in rewinds if each.records is not None]
    return sum(each for each in known if each > 0), -sum(each for each in known if each < 0)


def made_by(move: Move) -> str:
    """Who moved the offsets, in a sentence."""
    change = move.change
    if change.change_id is None:
        return f"{_HOW[change.was_empty]}: {_NO_ENTRY}"
    where = f" on {words.name(change.changed_on)}" if change.changed_on else ""
    by = f"{words.name(change.change_kind)} by {words.name(change.changed_by)}{where}"
    return by + (f", of {words.name(change.undoes)}" if change.undoes else "")


def _undone(moves: Sequence[Move]) -> list[Move]:
    """The moves, with each undo in the entry of the change that it undid, directly or through another undo."""
    by_id: dict[tuple[str, str | None], Move] = {
        (each.change.cluster, each.change.change_id): each for each in moves if each.change.change_id
    }
    undone: dict[tuple[str, str | None], list[Move]] = {}
    placed = set()
    for move in moves:
        root, seen = move, {move.change.change_id}
        while root.change.change_kind == _UNDO:
            earlier = by_id.get((root.change.cluster, root.change.undoes))
            if earlier is None or earlier.change.change_id in seen:
                break
            root = earlier
            seen.add(root.change.change_id)
        if root is not move:
            placed.add((move.change.cluster, move.change.change_id))
            undone.setdefault((root.change.cluster, root.change.change_id), []).append(move)
    return [
        each._replace(undone=tuple(undone.get((each.change.cluster, each.change.change_id), ())))
        for each in moves
        if (each.change.cluster, each.change.change_id) not in placed
    ]
