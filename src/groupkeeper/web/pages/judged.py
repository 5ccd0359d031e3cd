"""The groups of a snapshot with their statuses, judged once for all pages that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.verdicts import Judged, judge_status
from groupkeeper.rules.progress import catch_up_ms

_MOST_KEPT = 20
_LONGEST_MS = 15_000
"""Polls may be far apart, and statuses age."""


class Row(NamedTuple):
    """A group with its status."""

    group: GroupView
    judged: Judged

    @property
    def catch_up_ms(self) -> int | None:
        """In how long the lag is 0 if it goes on like that; None: the lag doesn't shrink, is 0, or is unknown."""
        change, lag = self.group.lag_change_per_s, self.group.lag.lag
        return catch_up_ms(lag, change, 0) if lag and change is not None else None


Judge = Callable[[ClusterSnapshot, int], Sequence[Row]]
"""The groups of a snapshot by their names, as they are at a time."""


def rows_of(snapshot: ClusterSnapshot, now_ms: int) -> Sequence[Row]:
    """A ``Judge``."""
    return [Row(group, judge_status(group, now_ms)) for _, group in sorted(snapshot.groups.items())]


class KeptRows:
    """The rows of snapshots, until ``forget``. Without pages there are none."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[int, Sequence[Row]]] = {}

    def rows_of(self, snapshot: ClusterSnapshot, now_ms: int) -> Sequence[Row]:
        """A ``Judge`` that gives the rows of when they were first asked for, a moment ago at most."""
        key = snapshot.cluster, id(snapshot.groups)  # the rows hold the groups, so that no others get the id
        at_ms, rows = self._kept.get(key, (0, ()))
        if len(rows) != len(snapshot.groups) or abs(now_ms - at_ms) > _LONGEST_MS:
            rows = rows_of(snapshot, now_ms)
            if key in self._kept or len(self._kept) < _MOST_KEPT:
                self._kept[key] = now_ms, rows
        return rows

    def forget(self, cluster: str) -> None:
        """There is a newer snapshot."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != cluster}
