"""The simple assignor of share groups: a partition may go to several members."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from groupkeeper.coordinator.assignors.spec import MemberSpec, TargetAssignment

_Partition = tuple[bytes, int]


def assign(
    members: Mapping[str, MemberSpec], assignable: Mapping[bytes, Collection[int]], *, is_homogeneous: bool
) -> dict[str, TargetAssignment]:
    """The target assignment of every member, by member id.

    Args:
        members: by id.
        assignable: the partitions that may be assigned, by the ids of the subscribed topics.
        is_homogeneous: whether all members subscribe to the same topics: then the topics are distributed together,
            otherwise each topic is distributed among its subscribers.
    """
    assigned: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in members}
    topic_ids = sorted(assignable)
    for together in [topic_ids] if is_homogeneous else [[topic_id] for topic_id in topic_ids]:
        partitions = [(topic_id, index) for topic_id in together for index in sorted(assignable[topic_id])]
        subscribers = [member_id for member_id, member in members.items() if not member.topic_ids.isdisjoint(together)]
        held = {member_id: _held(members[member_id], partitions) for member_id in subscribers}
        for member_id, some in _share_out(partitions, held).items():
            for topic_id, index in some:
                assigned[member_id].setdefault(topic_id, set()).add(index)
    return {
        member_id: {topic_id: frozenset(some) for topic_id, some in topics.items()}
        for member_id, topics in assigned.items()
    }


def _held(member: MemberSpec, partitions: Collection[_Partition]) -> list[_Partition]:
    return [(topic_id, index) for topic_id, index in partitions if index in member.target.get(topic_id, ())]


def _share_out(partitions: list[_Partition], held: Mapping[str, list[_Partition]]) -> dict[str, set[_Partition]]:
    """Gives every partition the same number of members, and every member about the same number of partitions; members
    keep their partitions as far as that allows.
    """
    if not partitions or not held:
        return {}
    sharing = -(-len(held) // len(partitions))
    quotas = _quotas(list(held), sharing * len(partitions))
    by_member = {member_id: set(some[: quotas[member_id]]) for member_id, some in held.items()}
    by_partition: dict[_Partition, list[str]] = {partition: [] for partition in partitions}
    for member_id, some in by_member.items():
        for partition in sorted(some):
            if len(by_partition[partition]) < sharing:
                by_partition[partition].append(member_id)
            else:
                some.remove(partition)
    _fill(by_partition, by_member, quotas, sharing)
    return by_member


def _quotas(member_ids: list[str], total: int) -> dict[str, int]:
    """Each member's share of `total`, as equal as possible."""
    count = len(member_ids)
    return {
        member_id: -(-total * (index + 1) // count) - -(-total * index // count)
        for index, member_id in enumerate(member_ids)
    }


def _fill(
    by_partition: dict[_Partition, list[str]],
    by_member: dict[str, set[_Partition]],
    quotas: Mapping[str, int],
    sharing: int,
) -> None:
    """Gives partitions that are short of members to members that are short of partitions, in turn."""
    short = [member_id for member_id, some in by_member.items() if len(some) < quotas[member_id]]
    turn = 0
    for partition, holders in by_partition.items():
        passed = 0
        while len(holders) < sharing and passed < len(short):
            turn %= len(short)
            member_id = short[turn]
            if partition in by_member[member_id]:
                turn += 1
                passed += 1
                continue
            passed = 0
            holders.append(member_id)
            by_member[member_id].add(partition)
            if len(by_member[member_id]) == quotas[member_id]:
                del short[turn]
            else:
                turn += 1
