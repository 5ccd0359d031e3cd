"""Streams groups (KIP-1071) presented like other groups: the partitions that their members read."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.streams_types import StreamsGroupDescription, StreamsTask
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    GroupType,
    ListedOffset,
    MemberDescription,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from groupkeeper.client.batch import or_failed
from groupkeeper.operations.topics import describe_topics


async def as_readers(admin: Admin, found: Mapping[str, StreamsGroupDescription]) -> dict[str, ConsumerGroupDescription]:
    """Streams groups as consumer groups, whose members have the partitions that their active tasks read."""
    names = sorted({name for group in found.values() for some in topics_of(group).values() for name in some})
    topics = (await describe_topics(admin, names)).done if names else {}
    counts = {name: len(topic.partitions) for name, topic in topics.items()}
    return {group_id: _as_readers(group, counts) for group_id, group in found.items()}


class PartitionProgress(NamedTuple):
    """The progress of a group in a partition. `commit` None: nothing is committed, `lag` is the whole log."""

    commit: OffsetAndMetadata | None
    end: int
    lag: int


class StreamsProgress(NamedTuple):
    """The ends of the logs that active tasks of groups read, and the groups' committed offsets."""

    begins: Batch[TopicPartition, ListedOffset]
    ends: Batch[TopicPartition, ListedOffset]
    commits: Batch[str, Batch[TopicPartition, OffsetAndMetadata | None]]

    def of(self, group_id: str, tp: TopicPartition) -> PartitionProgress:
        """The group's progress in a partition. The log's ends and the group's offsets must be known."""
        begin, end = self.begins.done[tp].offset, self.ends.done[tp].offset
        commit = self.commits.done[group_id].done.get(tp)
        return PartitionProgress(commit, end, end - (begin if commit is None else commit.offset))


async def streams_progress(admin: Admin, groups: Collection[StreamsGroupDescription]) -> StreamsProgress:
    """The progress of groups in the partitions that their active tasks read, requested for all groups at once."""
    partitions = {tp for group in groups for tp in read_by_tasks(group)}

    async def listed(spec: OffsetSpec) -> Batch[TopicPartition, ListedOffset]:
        return await or_failed(admin.list_offsets(dict.fromkeys(partitions, spec)), partitions)

    group_ids = [group.group_id for group in groups]
    return StreamsProgress(
        *await asyncio.gather(
            listed(OffsetSpec.earliest()),
            listed(OffsetSpec.latest()),
            or_failed(admin.list_consumer_group_offsets(dict.fromkeys(group_ids)), group_ids),
        )
    )


def read_by_tasks(group: StreamsGroupDescription) -> list[TopicPartition]:
    """The partitions that the active tasks of all members read, whether they exist or not."""
    topics = topics_of(group)
    tasks = {task for member in group.members for task in member.assignment.active}
    return [
        TopicPartition(name, task.partition) for task in sorted(tasks) for name in topics.get(task.subtopology_id, ())
    ]


def topics_of(group: StreamsGroupDescription) -> dict[str, list[str]]:
    """The topics that the tasks of each subtopology read."""
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
