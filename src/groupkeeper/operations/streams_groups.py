"""Streams groups (KIP-1071) among other groups: what their members read, as members of a consumer group have it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    GroupType,
    ListedOffset,
    MemberDescription,
    OffsetAndMetadata,
    OffsetSpec,
    StreamsGroupDescription,
    StreamsTask,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError


async def streams_groups_among(
    admin: Admin, failed: Mapping[str, Failure], *, timeout_ms: int | None = None
) -> Batch[str, ConsumerGroupDescription]:
    """The streams groups among the groups whose description as another type failed.

    Their members have the partitions that their active tasks read. Groups that are no streams groups either are in
    neither, nor is any when the brokers don't have streams groups.
    """
    found = await find_streams_groups(admin, failed, timeout_ms=timeout_ms)
    return Batch(await as_readers(admin, found.done, timeout_ms=timeout_ms), found.failed)


async def find_streams_groups(
    admin: Admin, failed: Mapping[str, Failure], *, timeout_ms: int | None = None
) -> Batch[str, StreamsGroupDescription]:
    """The same groups, with their topologies and tasks."""
    wanted = [group_id for group_id, failure in failed.items() if isinstance(failure, GroupIdNotFound)]
    if not wanted:
        return Batch()
    try:
        described = await admin.describe_streams_groups(wanted, timeout_ms=timeout_ms)
    except (KafkaError, ClientError):
        return Batch()
    refused: dict[str, Failure] = {
        group_id: failure
        for group_id, failure in described.failed.items()
        if isinstance(failure, KafkaError) and not isinstance(failure, GroupIdNotFound)
    }
    found = {key: group for key, group in described.done.items() if group.group_state is not GroupState.DEAD}
    return Batch(found, refused)


async def as_readers(
    admin: Admin, found: Mapping[str, StreamsGroupDescription], *, timeout_ms: int | None = None
) -> dict[str, ConsumerGroupDescription]:
    """Streams groups as groups of consumers, whose members have what their active tasks read."""
    names = sorted({name for group in found.values() for some in topics_of(group).values() for name in some})
    topics = (await describe_topics(admin, names, timeout_ms=timeout_ms)).done if names else {}
    counts = {name: len(topic.partitions) for name, topic in topics.items()}
    return {group_id: _as_readers(group, counts) for group_id, group in found.items()}


K = TypeVar("K")
V = TypeVar("V")


class Progress(NamedTuple):
    """The progress of a group in a partition. ``commit`` None: nothing is committed, ``lag`` is the whole log."""

    commit: OffsetAndMetadata | None
    end: int
    lag: int


class StreamsProgress(NamedTuple):
    """Where logs begin and end that active tasks of groups read, and what the groups have committed."""

    begins: Batch[TopicPartition, ListedOffset]
    ends: Batch[TopicPartition, ListedOffset]
    commits: Batch[str, Batch[TopicPartition, OffsetAndMetadata | None]]

    def of(self, group_id: str, partition: TopicPartition) -> Progress:
        """The group's progress in a partition. The log's ends and the group's offsets must be known."""
        begin, end = self.begins.done[partition].offset, self.ends.done[partition].offset
        commit = self.commits.done[group_id].done.get(partition)
        return Progress(commit, end, end - (begin if commit is None else commit.offset))


async def streams_progress(
    admin: Admin, groups: Collection[StreamsGroupDescription], *, timeout_ms: int | None = None
) -> StreamsProgress:
    """The progress of groups in the partitions that their active tasks read, requested for all groups at once."""
    partitions = {partition for group in groups for partition in read_by_tasks(group)}

    async def listed(spec: OffsetSpec) -> Batch[TopicPartition, ListedOffset]:
        return await _or_failed(
            admin.list_offsets(dict.fromkeys(partitions, spec), timeout_ms=timeout_ms), tuple(partitions)
        )

    group_ids = [group.group_id for group in groups]
    return StreamsProgress(
        *await asyncio.gather(
            listed(OffsetSpec.earliest()),
            listed(OffsetSpec.latest()),
            _or_failed(admin.list_consumer_group_offsets(dict.fromkeys(group_ids), timeout_ms=timeout_ms), group_ids),
        )
    )


async def _or_failed(call: Awaitable[Batch[K, V]], keys: Sequence[K]) -> Batch[K, V]:
    """What the call answers; when no broker replies, that failure for each key."""
    try:
        return await call
    except (KafkaError, ClientError) as failure:
        return Batch({}, dict.fromkeys(keys, failure))


def read_by_tasks(group: StreamsGroupDescription) -> list[TopicPartition]:
    """What the active tasks of all members read, whether there are such partitions or not."""
    topics = topics_of(group)
    tasks = {task for member in group.members for task in member.assignment.active}
    return [
        TopicPartition(name, task.partition) for task in sorted(tasks) for name in topics.get(task.subtopology_id, ())
    ]


def topics_of(group: StreamsGroupDescription) -> dict[str, list[str]]:
    """What the tasks of each subtopology read."""
    return {
        one.subtopology_id: [*one.source_topics, *(topic.name for topic in one.repartition_source_topics)]
        for one in group.subtopologies
    }


def _as_readers(group: StreamsGroupDescription, counts: Mapping[str, int]) -> ConsumerGroupDescription:
    topics = topics_of(group)

    def read_by(tasks: Iterable[StreamsTask]) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(name, task.partition)
            for task in tasks
            for name in topics.get(task.subtopology_id, ())
            if task.partition < counts.get(name, 0)
        )

    members = tuple(
        MemberDescription(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.host,
            assignment=read_by(member.assignment.active),
            target_assignment=read_by(member.target_assignment.active),
            member_epoch=member.member_epoch,
            rack_id=member.rack_id,
        )
        for member in group.members
    )
    return ConsumerGroupDescription(
        group_id=group.group_id,
        group_type=GroupType.STREAMS,
        group_state=group.group_state,
        is_simple=False,
        partition_assignor=group.assignor or "",
        members=members,
        coordinator=group.coordinator,
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.target_assignment_epoch,
        authorized_operations=group.authorized_operations,
    )
