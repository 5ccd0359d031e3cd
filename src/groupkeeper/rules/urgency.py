"""In which order groups that need someone are shown: by what can still be saved."""

from __future__ import annotations

from enum import StrEnum

from groupkeeper.rules.status import RANKS, Status

SOON_MS = 3600 * 1000


class Urgency(StrEnum):
    """From first to last. ``expiring``: retention is about to remove records that the group has not read.
    ``standing``: it has members, and stands still or loses records. ``behind``: it has members, and falls behind.
    ``storm``: it rebalances all the time. ``rest``: what else is not well, or has members that commit nothing.
    ``left``: it has no members, and has not had any for as long as anything is known of it: one row tells how many
    there are. ``none``: nobody is needed.
    """

    EXPIRING = "expiring"
    STANDING = "standing"
    BEHIND = "behind"
    STORM = "storm"
    REST = "rest"
    LEFT = "left"
    NONE = "none"


def urgency(
    status: Status, members: int | None, margin_ms: int | None, *, is_old: bool, never_commits: bool = False
) -> Urgency:
    """``margin_ms``: until records may be removed; long overdue ones, which lie in segments that are still needed, are
    no reason to wake someone for a group without members. ``is_old``: no commit of the group was ever seen to happen.
    ``never_commits``: nothing is committed in partitions with records.
    """
    if status is Status.ABANDONED:
        return Urgency.LEFT
    if status is Status.UNKNOWN and members and never_commits:
        return Urgency.REST
    if RANKS[status] <= RANKS[Status.UNKNOWN]:
        return Urgency.NONE
    if margin_ms is not None and margin_ms < SOON_MS and (members or margin_ms > -SOON_MS):
        return Urgency.EXPIRING
    if members == 0 and is_old:
        return Urgency.LEFT
    if status is Status.UNSTABLE:
        return Urgency.STORM
    if not members:
        return Urgency.REST
    return Urgency.BEHIND if status in (Status.LAGGING, Status.REWOUND) else Urgency.STANDING
