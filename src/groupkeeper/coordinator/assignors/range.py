"""The range assignor: consecutive partitions of each topic, the same members first in every topic (GN-21)."""

from __future__ import annotations

from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment


def assign(spec: GroupSpec) -> dict[str, TargetAssignment]:
    """The target assignment of every member, by member id."""
    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in spec.members}
    ordered = sorted(spec.members.items(), key=_rank)
    for topic_id in sorted(spec.partition_counts):
        subscribers = [member_id for member_id, member in ordered if topic_id in member.topic_ids]
        if not subscribers:
            continue
        quota, rest = divmod(spec.partition_counts[topic_id], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers if quota else subscribers[:rest]):
            end = start + quota + (index < rest)
            assigned[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assigned)


def _rank(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id
