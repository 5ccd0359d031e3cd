"""Groups, their partitions and their members as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from groupkeeper.client.addresses import Address
from groupkeeper.client.admin.types import GroupListing, MemberDescription, TopicPartition
from groupkeeper.operations.groups import AnyGroup, AnyMember
from groupkeeper.operations.lag import LagSum, PartitionLag
from groupkeeper.operations.share_groups import DeadLetterQueue

Value = str | int | bool | None | Sequence[Mapping[str, str | int]]
Row = Mapping[str, Value]


def listing_row(group: GroupListing, more: Row = MappingProxyType({})) -> Row:
    """A group as a row of the schema `group_list`. `more`: further columns."""
    return {
        "group": group.group_id,
        "type": None if group.group_type is None else str(group.group_type),
        "state": None if group.group_state is None else str(group.group_state),
        **more,
    }


def lag_row(row: PartitionLag, more: Row = MappingProxyType({})) -> Row:
    """A partition as a row of the schema `offsets`. `more`: further columns."""
    commit, member = row.committed, row.member
    return {
        "group": row.group_id,
        "topic": row.topic,
        "partition": row.partition,
        "committed_offset": commit.offset if commit else None,
        "log_start_offset": row.log_start_offset,
        "log_end_offset": row.log_end_offset,
        "last_stable_offset": row.last_stable_offset,
        "lag": row.lag,
        "done_ahead": row.done_ahead,
        "lost": row.lost,
        "status": row.status.value,
        "member_id": member.member_id if member else None,
        "client_id": member.client_id if member else None,
        "host": member.host if member else None,
        "leader_epoch": commit.leader_epoch if commit else None,
        "metadata": commit.metadata if commit else None,
        "readable": row.readable,
        **more,
    }


def sum_row(sums: LagSum) -> Row:
    """Partitions together as a row of the schema `lag_by_group`, or `lag_by_topic`."""
    row: dict[str, str | int | None] = {"group": sums.group_id}
    if sums.topic is not None:
        row["topic"] = sums.topic
    return row | {
        "partitions": sums.partitions,
        "uncommitted_partitions": sums.uncommitted_partitions,
        "unknown": sums.unknown,
        "lag": sums.lag,
        "max_lag": sums.max_lag,
        "lost": sums.lost,
        "uncommitted": sums.uncommitted,
        "readable": sums.readable,
    }


def is_unread(member: AnyMember) -> bool:
    """Whether the member's client wrote its assignment in a form that cannot be read."""
    return isinstance(member, MemberDescription) and not member.is_assignment_readable


def member_row(group_id: str, member: AnyMember) -> Row:
    """A member as a row of the schema `members`."""
    # Columns that share groups don't have: static members, targets and members of an older protocol.
    own = member if isinstance(member, MemberDescription) else None
    target = own.target_assignment if own else None
    return {
        "group": group_id,
        "member_id": member.member_id,
        "instance_id": own.instance_id if own else None,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.member_epoch,
        "partitions": None if is_unread(member) else len(member.assignment),
        "assignment": None if is_unread(member) else _partitions(member.assignment),
        "target_assignment": None if target is None else _partitions(target),
        "rack_id": member.rack_id,
        "upgraded": own.upgraded if own else None,
    }


def _partitions(partitions: Iterable[TopicPartition]) -> list[dict[str, str | int]]:
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(partitions)]


def state_row(group: AnyGroup, queue: DeadLetterQueue | None, more: Row = MappingProxyType({})) -> Row:
    """A group as a row of the schema `group_states`. `queue`: of a share group. `more`: further columns."""
    return {
        "group": group.group_id,
        "type": str(group.group_type),
        "state": str(group.group_state),
        "members": len(group.members),
        "assignor": group.partition_assignor or None,
        "coordinator": str(Address(group.coordinator.host, group.coordinator.port)),
        "group_epoch": group.group_epoch,
        "target_epoch": group.target_assignment_epoch,
        **more,
        "cluster": None,
        "dead_letter_queue": queue and (queue.topic or None),
        "dead_letters": queue and queue.records,
    }
