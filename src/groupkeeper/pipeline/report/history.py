"""How far a group was behind at times that have passed.

A committed offset's history is exact. The end of a partition's log is known when it was measured, and at the times of
the records that were read then; between those it is taken to grow evenly. Whatever any group committed was there
already, so before all of them the end is at least that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Log", "Steps", "lag_at", "log_of"]


class Steps:
    """A value that holds from its time on until the next one; None before the first, and where it was taken away."""

    def __init__(self, changes: Sequence[tuple[float, int | None]]) -> None:
        """`changes` in the order of their times, in seconds."""
        self._times = [time for time, _ in changes]
        self._values = [value for _, value in changes]

    def at(self, time: float) -> int | None:
        position = bisect_right(self._times, time)
        return self._values[position - 1] if position else None


class Log(NamedTuple):
    """A partition: the known ends of its log, in the order of their times, and the furthest that any group had read."""

    ends: tuple[tuple[float, int], ...]
    furthest: Steps

    @property
    def known_from(self) -> float | None:
        """None: its end was never known."""
        return self.ends[0][0] if self.ends else None

    def end_at(self, time: float) -> int:
        """Its end then, or the least that it can have been."""
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
    """Records that a group had to read then: each part is its committed offset of a partition, and the partition."""
    total = 0
    for committed, log in parts:
        offset = committed.at(time)
        if offset is not None:
            total += max(0, log.end_at(time) - offset)
    return total
