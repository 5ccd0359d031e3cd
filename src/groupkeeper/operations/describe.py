"""Describe groups: committed offsets with their lag (K88-50, K1099-50 …), as typed rows free of presentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    ListedOffset,
    MemberDescription,
    OffsetAndMetadata,
    OffsetSpec,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import LeaderNotAvailable, UnknownTopicOrPartition


class OffsetRow(NamedTuple):
    """One partition that a group has an offset for, or that a member is assigned.

    None: nothing committed (``current_offset``, ``leader_epoch``), not known (``log_end_offset``), either of the two
    (``lag``), assigned to no member (``member``). ``failure`` says why the log end isn't known: no leader, no topic,
    no permission …
    """

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    member: MemberDescription | None
    failure: Failure | None = None


class GroupOffsets(NamedTuple):
    """Rows by member, those with most partitions first, then what no member is assigned (K1099-59)."""

    description: ConsumerGroupDescription
    rows: tuple[OffsetRow, ...]


class LogEnds(NamedTuple):
    """Where logs end, and why that isn't known of some partitions."""

    offsets: Mapping[TopicPartition, ListedOffset]
    failed: Mapping[TopicPartition, Failure]


Committed = Mapping[TopicPartition, OffsetAndMetadata | None]


async def describe_offsets(
    admin: Admin, groups: Iterable[ConsumerGroupDescription], *, timeout_ms: int | None = None
) -> Batch[str, GroupOffsets]:
    """The offsets of groups that are described already: one fetch per coordinator and one look at each log's end.

    A group whose committed offsets are refused is in ``failed``; a partition whose log end isn't known has its row.
    """
    described = {group.group_id: group for group in groups}
    committed = await admin.list_consumer_group_offsets(dict.fromkeys(described), timeout_ms=timeout_ms)
    wanted = {
        partition
        for group_id, offsets in committed.done.items()
        for partition in partitions_of(described[group_id], offsets.done)
    }
    ends = await log_ends(admin, wanted, timeout_ms=timeout_ms)
    return Batch(
        {
            group_id: GroupOffsets(described[group_id], offset_rows(described[group_id].members, offsets.done, ends))
            for group_id, offsets in committed.done.items()
        },
        dict(committed.failed),
    )


def partitions_of(group: ConsumerGroupDescription, committed: Committed) -> set[TopicPartition]:
    """The partitions of a group: those with a committed offset, and those assigned to its members."""
    return set(committed).union(*(member.assignment for member in group.members))


async def log_ends(admin: Admin, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None) -> LogEnds:
    """Where the logs end. Partitions that cannot be asked for fail at once, and don't hold up the others."""
    wanted = sorted(partitions)
    topics = await describe_topics(admin, [topic for topic, _ in wanted], timeout_ms=timeout_ms)
    failed = dict(unreachable(wanted, topics))
    specs = dict.fromkeys((partition for partition in wanted if partition not in failed), OffsetSpec.latest())
    listed: Batch[TopicPartition, ListedOffset] = (
        await admin.list_offsets(specs, timeout_ms=timeout_ms) if specs else Batch()
    )
    return LogEnds(listed.done, failed | listed.failed)


def unreachable(
    partitions: Iterable[TopicPartition], topics: Batch[str, TopicDescription]
) -> Iterable[tuple[TopicPartition, Failure]]:
    """Those of the partitions that no broker can be asked about, and why."""
    leader_by_partition = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in topics.done.values()
        for partition in topic.partitions
    }
    for partition in partitions:
        if partition.topic in topics.failed:
            yield partition, topics.failed[partition.topic]
        elif partition not in leader_by_partition:
            yield partition, UnknownTopicOrPartition()
        elif leader_by_partition[partition] is None:
            yield partition, LeaderNotAvailable()


def offset_rows(members: Iterable[MemberDescription], committed: Committed, ends: LogEnds) -> tuple[OffsetRow, ...]:
    """The rows of one group, in order (K1099-59)."""
    rows: list[OffsetRow] = []
    assigned: set[TopicPartition] = set()
    for member in sorted(members, key=lambda member: -len(member.assignment)):
        assigned.update(member.assignment)
        rows += (offset_row(partition, committed, ends, member) for partition in sorted(set(member.assignment)))
    rows += (offset_row(partition, committed, ends) for partition in sorted(set(committed) - assigned))
    return tuple(rows)


def offset_row(
    partition: TopicPartition, committed: Committed, ends: LogEnds, member: MemberDescription | None = None
) -> OffsetRow:
    """The row of one partition, with the lag where both ends of it are known (K1099-60)."""
    commit = committed.get(partition)
    end = ends.offsets.get(partition)
    return OffsetRow(
        partition.topic,
        partition.partition,
        commit.offset if commit is not None else None,
        end.offset if end is not None else None,
        end.offset - commit.offset if commit is not None and end is not None else None,
        commit.leader_epoch if commit is not None else None,
        member,
        ends.failed.get(partition),
    )
