"""The status of a group and of each of its partitions: one of `Status`.

A status depends on how long a record has waited while its group stood still. It does not depend on how often a group
commits, on how many records a topic gets, or on the lag. Times are in ms, and compared without correction: a clock that
is off by a minute moves the limits by a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from groupkeeper.rules.words import counted, duration, within

LAGGING_MS = 5 * 60 * 1000
PATIENCE_MS = 10 * 60 * 1000
MOST_PATIENCE_MS = 3 * 3600 * 1000
EMPTY_PATIENCE_MS = 60 * 1000
GAPS = 3
"""A group's patience in usual gaps between its commits."""
ABANDONED_MS = 24 * 3600 * 1000
LOOK_BACK_MS = 24 * 3600 * 1000
"""A move back of the committed offset counts for this long."""
REBALANCES = 10
REBALANCES_MS = 10 * 60 * 1000


class Status(StrEnum):
    """From best to worst.

    `losing`: records were removed before the group read them. `stopped`: a record waits, and nothing was committed
    for as long as the group's patience lasts. `stalled`: the group commits, but the same offset. `rewound`: its
    offset was moved back, and has not reached the earlier one again. `lagging`: the next record has waited for five
    minutes, or for more than half of its retention. `unstable`: for whole groups only: the group rebalances all the
    time. `abandoned`: records wait, but the group has had neither members nor commits for a day, or it has members,
    and none of them reads the topic.
    """

    OK = "ok"
    ABANDONED = "abandoned"
    UNKNOWN = "unknown"
    UNSTABLE = "unstable"
    LAGGING = "lagging"
    REWOUND = "rewound"
    STALLED = "stalled"
    STOPPED = "stopped"
    LOSING = "losing"


RANKS: Mapping[Status, int] = {status: rank for rank, status in enumerate(Status)}


class Facts(NamedTuple):
    """Facts about a partition of a group. None: not known, unless a field says otherwise."""

    committed_offset: int | None = None
    """None: nothing is committed."""
    lag: int | None = None
    """Offsets to the end of the log."""
    lost: int | None = None
    """Offsets of the lag that were removed unread."""
    in_log: int | None = None
    """The number of offsets in the log, 0 also if none of them is to be read."""
    is_beyond: bool = False
    """Whether the committed offset is past the end of the log."""
    is_waiting: bool | None = None
    """Whether a record waits; aborted records and markers of transactions don't."""
    waits_ms: int | None = None
    """How long the next record has waited."""
    margin_ms: int | None = None
    """Time until retention may remove it; None: not known, or no retention by age."""
    still_ms: int | None = None
    """For how long the committed offset has not moved."""
    quiet_ms: int | None = None
    """For how long nothing was committed, not even the same offset; None where only offsets are seen."""
    offset_before_rewind: int | None = None
    """The highest one before a move back within the last day; None: not known, or no move back."""
    members: int | None = None
    """The number of the group's members."""
    is_simple: bool = False
    """Whether the group never has members, and a program only commits for it."""
    is_read: bool | None = None
    """Whether a member reads the topic."""
    idle_ms: int | None = None
    """For how long the group has committed nothing at all."""
    usual_gap_ms: int | None = None
    """The usual time between commits; None: not known, or short."""
    usual_move_ms: int | None = None
    """The usual time between commits that change the offset; None: not known, or short."""


def patience_ms(usual_ms: int | None, members: int | None, *, is_simple: bool = False) -> int:
    """How long a group may stand still while a record waits: three times its usual gap (None: not known), but at least
    10 minutes and at most 3 hours; a minute if it has no members.
    """
    if members == 0 and not is_simple:
        return EMPTY_PATIENCE_MS
    return min(max(GAPS * (usual_ms or 0), PATIENCE_MS), MOST_PATIENCE_MS)


def is_abandoned(members: int | None, idle_ms: int | None) -> bool:
    """Whether a group has had neither members nor commits for a day."""
    return members == 0 and idle_ms is not None and idle_ms >= ABANDONED_MS


def are_well(longest_ms: int, margin_ms: int | None, members: int | None, idle_ms: int | None) -> bool:
    """Whether all partitions are ok for certain, given that no record was lost and members read each topic.
    `longest_ms`: the longest wait of a record; `margin_ms`: the shortest retention margin.
    """
    is_late = longest_ms >= EMPTY_PATIENCE_MS or (margin_ms is not None and margin_ms < longest_ms)
    return not is_late and not is_abandoned(members, idle_ms)


def partition_status(facts: Facts) -> Status:
    """The status of a partition. Statuses that make all others meaningless are checked first."""
    if facts.committed_offset is None and facts.lag is None:
        if facts.in_log == 0:
            return Status.OK
        return Status.ABANDONED if is_abandoned(facts.members, facts.idle_ms) else Status.UNKNOWN
    if facts.lag is None or facts.is_beyond:
        return Status.UNKNOWN
    if not facts.lag:
        return Status.OK
    if facts.is_read is False or is_abandoned(facts.members, facts.idle_ms):
        return Status.ABANDONED
    if facts.lost:
        return Status.LOSING
    if facts.is_waiting is False:
        return Status.OK
    if facts.waits_ms is None or facts.is_waiting is None:
        return Status.UNKNOWN
    return _status_of_waiting(facts, facts.waits_ms)


def _status_of_waiting(facts: Facts, waits_ms: int) -> Status:
    stood_ms = min(waits_ms, facts.still_ms or 0)
    quiet_ms = stood_ms if facts.quiet_ms is None else min(waits_ms, facts.quiet_ms)
    patience = patience_ms(facts.usual_gap_ms, facts.members, is_simple=facts.is_simple)
    if quiet_ms >= patience:
        return Status.STOPPED
    if stood_ms >= max(patience, patience_ms(facts.usual_move_ms, facts.members, is_simple=facts.is_simple)):
        return Status.STALLED
    if facts.offset_before_rewind is not None and (facts.committed_offset or 0) < facts.offset_before_rewind:
        return Status.REWOUND
    is_half_gone = facts.margin_ms is not None and facts.margin_ms < waits_ms
    return Status.LAGGING if waits_ms >= LAGGING_MS or is_half_gone else Status.OK


def group_status(worst: Status, members: int | None, lately: int | None) -> Status:
    """A group's status: its worst partition's, or unstable. If it has members, topics that no member reads don't count.

    `lately`: rebalances in the last 10 minutes; None: not known.
    """
    if worst is Status.ABANDONED and members:
        worst = Status.OK
    is_unstable = lately is not None and lately >= REBALANCES and RANKS[worst] < RANKS[Status.UNSTABLE]
    return Status.UNSTABLE if is_unstable else worst


def status_age_ms(facts: Facts, status: Status) -> int | None:
    """For how long a partition has had its status; None: not known, or the status has no start time. Stopped, stalled
    and abandoned begin when the group came to a stop, not when its patience ended.
    """
    waits_ms = facts.waits_ms or 0
    if status is Status.ABANDONED:
        return facts.idle_ms if is_abandoned(facts.members, facts.idle_ms) else None
    if status is Status.STOPPED and facts.quiet_ms is not None:
        return min(waits_ms, facts.quiet_ms)
    if status in (Status.STOPPED, Status.STALLED):
        return min(waits_ms, facts.still_ms or 0)
    if status is Status.LAGGING:
        half_gone_ms = 0 if facts.margin_ms is None else (waits_ms - facts.margin_ms) // 2
        return max(waits_ms - LAGGING_MS, half_gone_ms)
    return None


class Subscription(NamedTuple):
    """The topics of a member. `topics`: those that it subscribed to by name, None: not known. `has_pattern`: it
    also subscribed by a regular expression. `assigned`: the topics of partitions that
    it has, or will have.
    """

    topics: Collection[str] | None
    has_pattern: bool
    assigned: Iterable[str]


def topics_read(members: Iterable[Subscription]) -> frozenset[str] | None:
    """The topics that members of a stable group read; None: not known for every member, or the group has none."""
    found: set[str] = set()
    known = list(members)
    for member in known:
        if member.topics is None or member.has_pattern:
            return None
        found.update(member.topics, member.assigned)
    return frozenset(found) if known else None


def reason(facts: Facts, status: Status) -> str:
    """Why a partition has its status, as a phrase."""
    if status is Status.LOSING:
        return f"{counted(facts.lost or 0, 'record')} removed before the group read them"
    if status is Status.ABANDONED:
        if facts.is_read is False:
            return "no member of the group reads this topic"
        return f"the group has had neither members nor commits for {duration(facts.idle_ms)}"
    if status is Status.UNKNOWN:
        return _reason_unknown(facts)
    if not facts.lag:
        return "nothing to read"
    if facts.is_waiting is False:
        return "no record waits: the lag is markers of transactions, aborted or removed records"
    return f"the next record has waited for {duration(facts.waits_ms)}{_and(facts, status)}"


def rebalanced(lately: int, *, is_least: bool = False) -> str:
    """Why a group is unstable, as a phrase. `is_least`: `lately` is a lower bound."""
    return f"{counted(lately, 'rebalance')}{' or more' * is_least} in the last {duration(REBALANCES_MS)}"


def _reason_unknown(facts: Facts) -> str:
    if facts.is_beyond:
        return "the committed offset is past the end of the log"
    if facts.lag is None:
        if facts.committed_offset is None:
            return "nothing is committed: (share.)auto.offset.reset decides where the group begins"
        return "the log's end is not known"
    return "there are records to read, of unknown age"


def _and(facts: Facts, status: Status) -> str:
    none = "; the group has no members" if facts.members == 0 and not facts.is_simple else ""
    if status is Status.STOPPED:
        if facts.quiet_ms is None:
            return f", and the committed offset has not moved for {duration(facts.still_ms)}{none}"
        return f", and nothing was committed for {duration(facts.quiet_ms)}{none}"
    if status is Status.STALLED:
        return f", and commits are of the same offset for {duration(facts.still_ms)}"
    if status is Status.REWOUND:
        return f"; the group had been at offset {facts.offset_before_rewind}, and is at {facts.committed_offset}"
    if status is Status.LAGGING and facts.margin_ms is not None and facts.margin_ms < (facts.waits_ms or 0):
        return f", and may be removed {within(facts.margin_ms)}{none}"
    return none


def not_judged(facts: Facts) -> dict[Status, str]:
    """The statuses that could not be checked for a partition where records wait, each with the missing fact."""
    missing = {
        Status.ABANDONED: "whether a member reads the topic" if facts.is_read is None else "",
        Status.STALLED: "whether the group commits the same offset" if facts.quiet_ms is None else "",
        Status.STOPPED: "since when the committed offset stands" if facts.still_ms is None else "",
        Status.LAGGING: "since when the next record waits" if facts.waits_ms is None else "",
        Status.LOSING: "where the log begins" if facts.lost is None else "",
    }
    return {status: f"{what} is not known" for status, what in missing.items() if what}
