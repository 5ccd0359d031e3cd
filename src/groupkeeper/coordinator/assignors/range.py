"""The range assignor: consecutive partitions of each topic, the same members first in every topic."""

from __future__ import annotations

from itertools import pairwise

from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment


def assign(spec: GroupSpec) -> dict[str, TargetAssignment]:
    """The target assignment of every member, by member id."""
    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in spec.members}
    subscribers = _subscribers(spec)
    # Topics with the same subscribers and partitions get the same assignment, so its sets are shared.
    shares: dict[tuple[int, int], list[frozenset[int]]] = {}
    for topic_id in sorted(subscribers):
        members = subscribers[topic_id]
        shape = (spec.partition_counts[topic_id], len(members))
        if shape not in shares:
            shares[shape] = _share_out(*shape)
        for member_id, some in zip(members, shares[shape], strict=False):
            assigned[member_id][topic_id] = some
    return dict(assigned)


def _subscribers(spec: GroupSpec) -> dict[bytes, list[str]]:
    """Sorted subscribers by topic; topics without subscribers are absent."""
    ordered = sorted(spec.members.items(), key=_rank)
    if spec.is_homogeneous:
        everybody = [member_id for member_id, _ in ordered]
        return dict.fromkeys(spec.partition_counts, everybody) if everybody else {}
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in ordered:
        for topic_id in member.topic_ids:
            if topic_id in spec.partition_counts:
                subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


def _share_out(partition_count: int, member_count: int) -> list[frozenset[int]]:
    """The partitions of the first, second … member. The last members may get none, and are left out of the list."""
    quota, rest = divmod(partition_count, member_count)
    starts = [index * quota + min(index, rest) for index in range((member_count if quota else rest) + 1)]
    return [frozenset(range(start, end)) for start, end in pairwise(starts)]


def _rank(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id
