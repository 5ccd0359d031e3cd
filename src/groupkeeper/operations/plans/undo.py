"""Plans that undo a change of the journal."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.builder import Otherwise
from groupkeeper.operations.plans.changes import ApplyResult, ChangeSummary, Recorded, maker_of
from groupkeeper.operations.plans.cluster_state import find_groups, find_logs
from groupkeeper.operations.plans.fit import PlanFit, fit_of, refuse_other_cluster
from groupkeeper.operations.plans.model import Change, GroupPlan, Kind, Plan, Subject, is_same
from groupkeeper.operations.times import utc_text


class AlreadyUndone(OperationRefused):
    """The change was already undone, and nothing of it is left. The text names who, and when."""


def undo_of(summaries: Iterable[ChangeSummary], change_id: str) -> ChangeSummary | None:
    """The change that undid another one; None: none of these did."""
    known = {one.head.id: one for one in summaries}
    return known.get(known[change_id].undone_by or "") if change_id in known else None


def undone_text(change_id: str, undo: ChangeSummary) -> str:
    """Who has undone a change already, and when. What it changed may be there again: other changes may do the same."""
    return f"{change_id} was undone already by {maker_of(undo.head)} at {utc_text(undo.head.time_ms)} ({undo.head.id})"


async def make_undo(
    admin: Admin,
    recorded: Recorded,
    command: tuple[str, ...],
    made_ms: int,
    *,
    undo: ChangeSummary | None = None,
    if_out_of_range: Otherwise = Otherwise.FAIL,
) -> tuple[Plan, PlanFit]:
    """The plan that restores the offsets before a change, and deletes those that didn't exist; and how it fits now.

    Its `before` is the change's `after`, so that it is stale if the group has committed since. Partitions that the
    brokers refused to change are left out if they are still as before. `if_out_of_range`: the policy for offsets that
    are outside of the log now: FAIL leaves them to the guard, EXACT commits them. `undo`: the earlier undo of the
    change. Raises WrongCluster, AlreadyUndone, and OperationRefused for a change that cannot be undone.
    """
    if recorded.head.subject is Subject.TRANSACTION:
        raise OperationRefused(f"{recorded.head.id} aborted a transaction, and an abort cannot be taken back")
    refused = {(one.group_id, one.topic, one.partition) for one in recorded.lost}
    group_ids = list(recorded.groups)
    groups = await find_groups(admin, group_ids)
    partitions = dict.fromkeys(tp for pairs in recorded.groups.values() for tp in pairs)
    logs = await find_logs(admin, partitions)
    plans = []
    why = "as before " + recorded.head.id
    for group_id, pairs in recorded.groups.items():
        changes: dict[TopicPartition, Change] = {}
        was_refused = (group_id, None, None) in refused
        for tp, (before, after) in pairs.items():
            is_as_before = is_same(groups.committed.get(group_id, {}).get(tp), before)
            if before == after or (is_as_before and (was_refused or (group_id, *tp) in refused)):
                continue
            change = Change(after, before, logs.log_starts.get(tp), logs.log_ends.get(tp), None, None, why)
            fitting = _fitted(change, if_out_of_range)
            if fitting is not None:
                changes[tp] = fitting
        if changes:
            plans.append(GroupPlan(group_id, changes, (), str(groups.state(group_id))))
    settles = recorded.result is ApplyResult.UNFINISHED
    head = recorded.head
    plan = Plan(head.cluster_id, tuple(plans), Kind.UNDO, made_ms, command, {}, head.id, settles=settles)
    await refuse_other_cluster(admin, plan)
    fit = fit_of(plan, groups, logs, takes_any=if_out_of_range is Otherwise.EXACT)
    if undo is not None and not fit.ready and {each.group_id for each in fit.troubles} <= {*undo.names}:
        raise AlreadyUndone(undone_text(head.id, undo))
    return plan, fit


def _fitted(change: Change, policy: Otherwise) -> Change | None:
    """The change, clamped to the log by the policy CLAMP; None: the policy leaves it out."""
    if policy in (Otherwise.FAIL, Otherwise.EXACT) or change.clamped == change:
        return change
    return change.clamped if policy is Otherwise.CLAMP else None
