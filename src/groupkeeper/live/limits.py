"""Limits for groups, and the findings for a group that exceeds one. Pure: a snapshot in, findings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupState
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.statuses import judge_status
from groupkeeper.live.waits import longest
from groupkeeper.operations.lag import LagStatus, sum_by_group
from groupkeeper.operations.problems import Problem
from groupkeeper.rules.limits import Measure, Verdict, verdict, verdict_of_status
from groupkeeper.rules.words import counted

Value = int | str | None


class GroupLimits(NamedTuple):
    """Limits of a group. None in any field: no limit."""

    max_lag: int | None = None
    max_time_lag_ms: int | None = None
    max_uncommitted: int | None = None
    """Offsets in partitions without a commit."""
    max_lost: int | None = None
    """Offsets that were removed unread."""
    min_margin_ms: int | None = None
    """Time until retention may remove unread records."""
    max_idle_ms: int | None = None
    """How long a group may commit nothing in a partition where a record waits."""
    max_rebalances: int | None = None
    """Since the first poll, or within the time that a rule says."""
    max_dead_letters: int | None = None
    """Records in the dead-letter queue of a share group."""
    min_members: int | None = None
    states: frozenset[GroupState] = frozenset()
    """The allowed ones; empty: all."""
    statuses: frozenset[str] = frozenset()
    """The statuses that break the limit."""

    def __bool__(self) -> bool:
        return self != GroupLimits()


class LimitFinding(NamedTuple):
    """One measure of one group, with its limit. A sum with an unknown part breaks a limit if its known part does;
    otherwise it is unknown.
    """

    group_id: str
    measure: Measure
    verdict: Verdict
    value: Value
    """None: unknown."""
    limit: Value
    why: Problem | None = None
    """Why it is unknown; None: it is known."""


def judge(
    snapshot: ClusterSnapshot, limits: GroupLimits, group_ids: Iterable[str] | None = None
) -> Iterator[LimitFinding]:
    """A finding for each limit of each group; `group_ids` None: of all groups of the snapshot, ordered by id."""
    for group_id in sorted(snapshot.groups) if group_ids is None else group_ids:
        yield from judge_group(snapshot.groups[group_id], limits, snapshot.at_ms)


def judge_group(group: GroupView, limits: GroupLimits, now_ms: int) -> Iterator[LimitFinding]:
    """A finding for each limit. Topics that no member reads break none."""
    group = read_part(group)
    why = _why_unknown(group)
    for measure, value, limit, is_whole in _measured(group, limits, now_ms):
        if limit is None:
            continue
        found = verdict(measure, value, limit, is_whole=is_whole)
        yield LimitFinding(group.group_id, measure, found, value, limit, why if found is Verdict.UNKNOWN else None)
    if limits.states:
        wanted = ",".join(sorted(limits.states))
        if group.group_state is None:
            yield LimitFinding(group.group_id, Measure.STATE, Verdict.UNKNOWN, None, wanted, why)
        else:
            is_well = group.group_state in limits.states
            found = Verdict.OK if is_well else Verdict.BROKEN
            yield LimitFinding(group.group_id, Measure.STATE, found, group.group_state.value, wanted)
    if limits.statuses:
        status, unwanted = judge_status(group, now_ms).status, ",".join(sorted(limits.statuses))
        found = verdict_of_status(status, limits.statuses)
        yield LimitFinding(group.group_id, Measure.STATUS, found, status.value, unwanted,
                      why if found is Verdict.UNKNOWN else None)  # fmt: skip


def read_part(group: GroupView) -> GroupView:
    """The group without topics that no member reads."""
    if not group.unread:
        return group
    read = [each for each in zip(group.rows, group.waits, strict=True) if each[0].topic not in group.unread]
    rows, waits = [row for row, _ in read], [wait for _, wait in read]
    return group._replace(rows=rows, waits=waits, lag=sum_by_group(group.group_id, rows), wait=longest(rows, waits))


def _measured(
    group: GroupView, limits: GroupLimits, now_ms: int
) -> Iterator[tuple[Measure, int | None, int | None, bool]]:
    """Each measure with its value, its limit, and whether all of it is known."""
    are_rows_known = not any(row.failure is not None and row.status is not LagStatus.DELETED for row in group.rows)
    is_seen = bool(group.rows) or not group.problems
    is_whole = are_rows_known and is_seen
    lag, wait = group.lag, group.wait
    is_start_known = is_whole and not lag.open_starts  # else only auto.offset.reset tells what the group reads
    is_lag_known = is_start_known and not lag.beyond
    is_wait_known = is_lag_known and not wait.unknown
    yield Measure.LAG, lag.lag, limits.max_lag, is_lag_known
    yield Measure.TIME_LAG, wait.lag_ms, limits.max_time_lag_ms, is_wait_known
    yield Measure.UNCOMMITTED, lag.uncommitted, limits.max_uncommitted, is_whole
    yield Measure.LOST, lag.lost, limits.max_lost, is_start_known
    is_margin_known = is_lag_known and all(each.is_margin_known for each in group.waits)
    yield Measure.MARGIN, wait.margin_ms, limits.min_margin_ms, is_margin_known
    yield Measure.IDLE, _idle_ms(group, now_ms), limits.max_idle_ms, is_wait_known
    queue = group.dead_letters
    is_queue_known = is_seen and (queue is None or queue.records is not None)
    dead = 0 if queue is None else queue.records
    yield Measure.DEAD_LETTERS, dead, limits.max_dead_letters, is_queue_known
    yield Measure.REBALANCES, group.rebalances, limits.max_rebalances, group.description is not None
    yield Measure.MEMBERS, group.members, limits.min_members, group.members is not None


def _idle_ms(group: GroupView, now_ms: int) -> int:
    stood = [
        min(wait.lag_ms, max(0, now_ms - known.since_ms))
        for row, wait in zip(group.rows, group.waits, strict=True)
        if wait.is_waiting and wait.lag_ms is not None and (known := group.stood.get(row.tp)) is not None
    ]
    if stood:
        return max(stood)
    # If it isn't known since when a record waits, the commits tell.
    is_behind = group.wait.unknown and group.lag.lag and group.progress_ms is not None
    return now_ms - (group.progress_ms or 0) if is_behind else 0


def _why_unknown(group: GroupView) -> Problem:
    if group.problems:
        return group.problems[0]
    if group.lag.open_starts:
        some = counted(group.lag.open_starts, "partition")
        text = f"{some} with records without a committed offset: (share.)auto.offset.reset decides what is read there"
        return Problem("UNCOMMITTED", text, group.group_id)
    return Problem("NOT_KNOWN", "a part of the value is not known yet", group.group_id)
