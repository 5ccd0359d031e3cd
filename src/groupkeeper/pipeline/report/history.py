"""How far a group was behind at past times.

The history of a committed offset is exact. A log end is known at the times when it was measured, and at the times of
the records that were read then; between these times it is interpolated. Before them, it is at least the highest offset
that any group had committed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Steps:
    """A value that changes over time: each one holds until the next. None before the first one, and where it was
    removed.
    """

    def __init__(self, changes: Sequence[tuple[float, int | None]]) -> None:
        """`changes` in the order of their times, in seconds."""
        self._times = [time for time, _ in changes]
        self._values = [value for _, value in changes]

    def at(self, time: float) -> int | None:
        position = bisect_right(self._times, time)
        return self._values[position - 1] if position else None


class Log(NamedTuple):
    """A partition: the known ends of its log, in the order of their times, and the highest offset that any group had
    committed.
    """

    ends: tuple[tuple[float, int], ...]
    furthest: Steps

    @property
    def known_from(self) -> float | None:
        """The first time at which its end is known, in seconds; None: it was never known."""
        return self.ends[0][0] if self.ends else None

    def end_at(self, time: float) -> int:
        """Its end at a time, or the lower bound of it."""
        least = self.furthest.at(time) or 0
        position = bisect_right(self.ends, time, key=lambda each: each[0])
        if not position:
            return least
        begun, low = self.ends[position - 1]
        if position == len(self.ends):
            return max(least, low)
        ended, high = self.ends[position]
        return max(least, low + int((high - low) * (time - begun) / (ended - begun)))


def log_of(ends: Sequence[tuple[float, int]], furthest: Sequence[tuple[float, int]]) -> Log:
    """`ends` in any order; of those that contradict each other (clients may set any time) the later ones count."""
    known: list[tuple[float, int]] = []
    for time, end in sorted(ends, reverse=True):
        if not known or (time < known[-1][0] and end <= known[-1][1]):
            known.append((time, end))
    highest, raised = 0, []
    for time, offset in furthest:
        highest = max(highest, offset)
        raised.append((time, highest))
    return Log(tuple(reversed(known)), Steps(raised))


def lag_at(time: float, parts: Sequence[tuple[Steps, Log]]) -> int:
    """The lag of a group at a time, in records. `parts`: for each partition, its committed offsets and its log."""
    total = 0
    for committed, log in parts:
        offset = committed.at(time)
        if offset is not None:
            total += max(0, log.end_at(time) - offset)
    return total
