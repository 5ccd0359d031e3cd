"""How a group is doing, by the names and times that the report has: by how long records wait, not by how many.

What only commits tell is not known here: whether a group without progress commits the same offsets again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from groupkeeper.live.model import GroupView

_LAGGING_MS = 5 * 60 * 1000
_PATIENCE_MS = 10 * 60 * 1000
_EMPTY_PATIENCE_MS = 60 * 1000
_LEFT_MS = 24 * 3600 * 1000
"""A group without members and without commits for this time counts as abandoned, and its records as not lost."""


class Status(StrEnum):
    """From best to worst."""

    OK = "ok"
    UNKNOWN = "unknown"
    LAGGING = "lagging"
    STOPPED = "stopped"
    LOSING = "losing"


class Judged(NamedTuple):
    """``still_ms``: how long the commits have stood still at least, None: not known."""

    status: Status
    still_ms: int | None


def judge_status(group: GroupView, now_ms: int) -> Judged:
    """The status of a group at that time."""
    still_ms = None if group.progress_ms is None else max(0, now_ms - group.progress_ms)
    return Judged(_status(group, still_ms, now_ms), still_ms)


def _status(group: GroupView, still_ms: int | None, now_ms: int) -> Status:
    lag, wait = group.lag, group.wait
    is_left = group.members == 0 and still_ms is not None and still_ms >= _LEFT_MS
    is_overdue = wait.margin_ms is not None and wait.margin_ms < 0
    if (lag.lost or is_overdue) and not is_left:
        return Status.LOSING
    if lag.lag and wait.waiting and wait.lag_ms is not None:
        stood_ms = min(wait.lag_ms, still_ms or 0) if group.stuck is None else group.stuck.stood_ms(now_ms)
        if stood_ms >= (_EMPTY_PATIENCE_MS if group.members == 0 else _PATIENCE_MS):
            return Status.STOPPED
        if wait.lag_ms >= _LAGGING_MS:
            return Status.LAGGING
    if (group.problems and lag.lag is None) or lag.is_least or (lag.lag and (wait.unknown or wait.lag_ms is None)):
        return Status.UNKNOWN
    return Status.OK
