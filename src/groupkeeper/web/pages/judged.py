"""The groups of a snapshot with their statuses, judged once for all pages that show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.verdicts import Judged, judge_status
from groupkeeper.rules.progress import catch_up_ms

_MOST_KEPT = 20


class JudgedGroup(NamedTuple):
    """A group with its status."""

    group: GroupView
    judged: Judged
    cluster: str

    @property
    def catch_up_ms(self) -> int | None:
        """In how long the lag is 0 if it goes on like that; None: the lag doesn't shrink, is 0, or is unknown."""
        change, lag = self.group.lag_change_per_s, self.group.lag.lag
        return catch_up_ms(lag, change, 0) if lag and change is not None else None


Judge = Callable[[ClusterSnapshot], Sequence[JudgedGroup]]
"""The groups of a snapshot by their names, as they were at its instant: as series, `check` and alerts say it."""


def rows_of(snapshot: ClusterSnapshot) -> Sequence[JudgedGroup]:
    """A ``Judge``."""
    at_ms = snapshot.at_ms
    groups = (group for _, group in sorted(snapshot.groups.items()))
    return [JudgedGroup(group, judge_status(group, at_ms), snapshot.cluster) for group in groups]


class KeptRows:
    """The rows of snapshots, until ``forget``. Without pages there are none."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[Mapping[str, GroupView], Sequence[JudgedGroup]]] = {}

    def rows_of(self, snapshot: ClusterSnapshot) -> Sequence[JudgedGroup]:
        """A ``Judge`` that judges the groups of a poll once."""
        key = snapshot.cluster, id(snapshot.groups)
        kept = self._kept.get(key)
        if kept is None:
            kept = snapshot.groups, rows_of(snapshot)  # with the groups, so that no others get the id
            if len(self._kept) < _MOST_KEPT:
                self._kept[key] = kept
        return kept[1]

    def forget(self, cluster: str) -> None:
        """There is a newer snapshot."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != cluster}


class ClusterSums(NamedTuple):
    """The groups of a snapshot together, as far as they are known. ``lag`` None: of no group; ``time_lag_ms``: the
    longest; ``margin_ms``: the shortest; None: nothing waits, or it isn't known.
    """

    members: int
    lag: int | None
    lost: int
    time_lag_ms: int | None
    margin_ms: int | None


def sums_of(snapshot: ClusterSnapshot) -> ClusterSums:
    """The sums of a snapshot."""
    groups = snapshot.groups.values()
    lags = [group.lag.lag for group in groups if group.lag.lag is not None]
    return ClusterSums(
        sum(group.members or 0 for group in groups),
        sum(lags) if lags else None,
        sum(group.lag.lost or 0 for group in groups),
        max((group.wait.lag_ms for group in groups if group.wait.lag_ms is not None), default=None),
        min((group.wait.margin_ms for group in groups if group.wait.margin_ms is not None), default=None),
    )
