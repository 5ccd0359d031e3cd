"""Reconciles a member of a streams group with its target: first it revokes tasks, then it gets released ones.

Like `reconcile` of consumer groups, but tasks have roles, and processes matter because they hold the tasks' state. A
task waits until no other member of the same process has it in any role; an active task also waits until no other member
anywhere runs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks
from groupkeeper.coordinator.streams.group import STABLE, UNRELEASED_TASKS, UNREVOKED_TASKS, StreamsMember
from groupkeeper.protocol.errors import FencedMemberEpoch

_Holders: TypeAlias = Mapping[tuple[str, int], Collection[tuple[TaskRole, str]]]


@dataclass(frozen=True, slots=True)
class TaskGoal:
    """The target of a member's reconciliation.

    Attributes:
        assignment_epoch: of the target.
        target: the member's target assignment.
        members: all members of the group.
        reported: the owned tasks in the heartbeat; None when the heartbeat has none of these fields.
    """

    assignment_epoch: int
    target: Tasks
    members: Iterable[StreamsMember]
    reported: Tasks | None


def reconcile_tasks(member: StreamsMember, goal: TaskGoal) -> StreamsMember:
    """The member after one step; unchanged when it has to wait.

    Raises `FencedMemberEpoch` for a member in an unknown state that still has tasks.
    """
    if member.is_reconciled_to(goal.assignment_epoch):
        return member
    if member.state == UNREVOKED_TASKS and _still_has(member.pending_revocation, goal):
        return member
    is_known = member.state in (STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS)
    if not is_known and (goal.reported is None or goal.reported):
        raise FencedMemberEpoch(
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        )
    return _next_assignment(member, goal)


def _still_has(tasks: Iterable[Task], goal: TaskGoal) -> bool:
    """Whether the member reports some of the tasks as owned, or doesn't report its tasks."""
    return goal.reported is None or not goal.reported.isdisjoint(tasks)


def _next_assignment(member: StreamsMember, goal: TaskGoal) -> StreamsMember:
    kept = {task: epoch for task, epoch in member.assigned.items() if task in goal.target}
    revoked = {task: epoch for task, epoch in member.assigned.items() if task not in goal.target}
    if revoked and _still_has(revoked, goal):
        epoch = member.member_epoch + (member.state == UNREVOKED_TASKS)
        return replace(
            member,
            state=UNREVOKED_TASKS,
            previous_member_epoch=member.member_epoch,
            member_epoch=epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    missing = goal.target - kept.keys()
    holders = _holders(goal.members) if missing else {}
    free = [task for task in missing if _is_free(task, member.process_id, holders)]
    return replace(
        member,
        state=STABLE if len(free) == len(missing) else UNRELEASED_TASKS,
        previous_member_epoch=member.member_epoch,
        member_epoch=goal.assignment_epoch,
        assigned=kept | dict.fromkeys(free, goal.assignment_epoch),
        pending_revocation={},
    )


def _holders(members: Iterable[StreamsMember]) -> _Holders:
    """By subtopology and partition: the roles and processes that have the task, or must still revoke it."""
    holders: dict[tuple[str, int], list[tuple[TaskRole, str]]] = {}
    for member in members:
        for role, subtopology_id, partition in (*member.assigned, *member.pending_revocation):
            holders.setdefault((subtopology_id, partition), []).append((role, member.process_id))
    return holders


def _is_free(task: Task, process_id: str, holders: _Holders) -> bool:
    return not any(
        holder == process_id or (role is TaskRole.ACTIVE and task.role is TaskRole.ACTIVE)
        for role, holder in holders.get((task.subtopology_id, task.partition), ())
    )
