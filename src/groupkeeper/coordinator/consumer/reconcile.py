"""Reconciles one member with its target: first it revokes partitions, then it gets new ones.

A pure function of the member, its target, the partitions of other members, and the partitions that the member reports.
A partition is assigned to a member only when no other member has it or still has to revoke it, so two members never
have it at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.consumer.group import (
    STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
    OwnedPartitions,
)
from groupkeeper.protocol.errors import FencedMemberEpoch

ReportedPartitions: TypeAlias = Mapping[bytes, Collection[int]]
"""Owned partitions that a member reports, by topic id."""

_Partitions: TypeAlias = dict[bytes, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Goal:
    """The target of a member's reconciliation."""

    assignment_epoch: int
    target: TargetAssignment
    subscribed_topic_ids: frozenset[bytes]
    """The existing topics that it subscribes to; partitions of other topics are revoked."""
    has_changed_subscription: bool
    owner_by_partition: Mapping[bytes, Mapping[int, str]]
    """The owning member's id, by topic id and partition."""
    reported: ReportedPartitions | None
    """The owned partitions in the request; None: the heartbeat does not have this field."""


def reconcile(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member after one step; unchanged when it has to wait.

    Raises `FencedMemberEpoch` for a member in an unknown state that still has partitions.
    """
    if not goal.has_changed_subscription and member.is_reconciled_to(goal.assignment_epoch):
        return member
    if member.state == STABLE:
        if member.member_epoch != goal.assignment_epoch:
            return _next_assignment(member, goal)
        return _without_unsubscribed(member, goal) if goal.has_changed_subscription else member
    if member.state == UNREVOKED_PARTITIONS:
        if _still_has(member.pending_revocation, goal):
            return _without_unsubscribed(member, goal) if goal.has_changed_subscription else member
        return _next_assignment(member, goal)
    if member.state == UNRELEASED_PARTITIONS:
        return _next_assignment(member, goal)
    if goal.reported is None or any(goal.reported.values()):
        raise FencedMemberEpoch(
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
        )
    return _next_assignment(member, goal)


def _still_has(partitions: OwnedPartitions, goal: Goal) -> bool:
    """Whether the member reports some of the partitions as owned, or doesn't report its partitions."""
    if goal.reported is None:
        return True
    return any(
        not partitions[topic_id].keys().isdisjoint(some)
        for topic_id, some in goal.reported.items()
        if topic_id in partitions
    )


def _without_unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """Removes topics from the assignment that the member no longer subscribes to; its epoch stays."""
    gone = [topic_id for topic_id in member.assigned if topic_id not in goal.subscribed_topic_ids]
    if not gone:
        return member
    assigned = {topic_id: some for topic_id, some in member.assigned.items() if topic_id not in gone}
    pending: _Partitions = {topic_id: dict(some) for topic_id, some in member.pending_revocation.items()}
    for topic_id in gone:
        pending.setdefault(topic_id, {}).update(member.assigned[topic_id])
    moved = replace(member, assigned=assigned, previous_member_epoch=member.member_epoch)
    if _still_has(pending, goal):
        return replace(moved, state=UNREVOKED_PARTITIONS, pending_revocation=pending)
    return moved


def _next_assignment(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    kept, revoked, wanted, is_waiting = _split(member, goal)
    if revoked and _still_has(revoked, goal):
        return replace(
            member,
            state=UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    for topic_id, partitions in wanted.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, goal.assignment_epoch))
    return replace(
        member,
        state=UNRELEASED_PARTITIONS if is_waiting else STABLE,
        previous_member_epoch=member.member_epoch,
        member_epoch=goal.assignment_epoch,
        assigned=kept,
        pending_revocation={},
    )


def _split(member: ConsumerMember, goal: Goal) -> tuple[_Partitions, _Partitions, dict[bytes, list[int]], bool]:
    """The partitions that the member keeps, that it must revoke, and that are free for it; and whether other members
    still have partitions of its target.
    """
    kept: _Partitions = {}
    revoked: _Partitions = {}
    wanted: dict[bytes, list[int]] = {}
    is_waiting = False
    for topic_id in sorted(member.assigned.keys() | goal.target.keys()):
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed_topic_ids else frozenset()
        assigned = member.assigned.get(topic_id, {})
        owners = goal.owner_by_partition.get(topic_id, {})
        stays = {partition: epoch for partition, epoch in assigned.items() if partition in target}
        goes = {partition: epoch for partition, epoch in assigned.items() if partition not in target}
        missing = [partition for partition in sorted(target) if partition not in assigned]
        free = [partition for partition in missing if owners.get(partition, member.member_id) == member.member_id]
        is_waiting |= len(free) < len(missing)
        if stays:
            kept[topic_id] = stays
        if goes:
            revoked[topic_id] = goes
        if free:
            wanted[topic_id] = free
    return kept, revoked, wanted, is_waiting
