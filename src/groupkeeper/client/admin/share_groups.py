"""Share groups (KIP-932): their description, and the offsets from which they share out records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupkeeper.client.admin.coordinators import by_group, coordinator_at, of_one_group, routed
from groupkeeper.client.admin.offsets import COMMIT_RETRIES, by_topic
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    GroupState,
    Node,
    ShareGroupDescription,
    ShareMemberDescription,
    SharePartitionOffset,
    TopicPartition,
    operation_names,
)
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import MissingResult
from groupkeeper.client.peer import Peer
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, Member

_GROUPS_PER_REQUEST = 100

ShareOffsets = Batch[TopicPartition, SharePartitionOffset | None]


async def describe_share_groups(
    cluster: Cluster, group_ids: Iterable[str], include_authorized_operations: bool, timeout_ms: int | None
) -> Batch[str, ShareGroupDescription]:
    """Admin.describe_share_groups."""
    deadline = cluster.deadline("describeShareGroups", timeout_ms)

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, ShareGroupDescription | Failure]:
        answer = await peer.ask(
            m.ShareGroupDescribeResponse, m.ShareGroupDescribeRequest(keys, include_authorized_operations), deadline
        )
        return by_group(answer.groups, lambda group: _description(group, coordinator_at(peer)))

    return await routed(cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(list(group_ids))


def _description(group: DescribedGroup, coordinator: Node) -> ShareGroupDescription:
    return ShareGroupDescription(
        group_id=group.group_id,
        group_state=GroupState.parse(group.group_state),
        members=tuple(_member(member) for member in group.members),
        coordinator=coordinator,
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        partition_assignor=group.assignor_name,
        authorized_operations=operation_names(group.authorized_operations),
    )


def _member(member: Member) -> ShareMemberDescription:
    return ShareMemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        member_epoch=member.member_epoch,
        assignment=tuple(
            TopicPartition(topic.topic_name, index)
            for topic in member.assignment.topic_partitions
            for index in topic.partitions
        ),
        rack_id=member.rack_id,
        subscribed_topics=tuple(member.subscribed_topic_names),
    )


async def list_share_group_offsets(
    cluster: Cluster, groups: Mapping[str, Iterable[TopicPartition] | None], timeout_ms: int | None
) -> Batch[str, ShareOffsets]:
    """Admin.list_share_group_offsets."""
    deadline = cluster.deadline("listShareGroupOffsets", timeout_ms)
    wanted = {group_id: None if tps is None else list(dict.fromkeys(tps)) for group_id, tps in groups.items()}

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, ShareOffsets | Failure]:
        request = m.DescribeShareGroupOffsetsRequest([_wanted(group_id, wanted[group_id]) for group_id in keys])
        answer = await peer.ask(m.DescribeShareGroupOffsetsResponse, request, deadline)
        return by_group(answer.groups, lambda group: _offsets(group, wanted.get(group.group_id)))

    return await routed(cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(list(wanted))


def _wanted(group_id: str, partitions: list[TopicPartition] | None) -> m.DescribeShareGroupOffsetsRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            m.DescribeShareGroupOffsetsRequestTopic(topic, indexes) for topic, indexes in by_topic(partitions).items()
        ]
    return m.DescribeShareGroupOffsetsRequestGroup(group_id, topics)


def _offsets(group: m.DescribeShareGroupOffsetsResponseGroup, wanted: list[TopicPartition] | None) -> ShareOffsets:
    offsets: ShareOffsets = Batch()
    for topic in group.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.topic_name, partition.partition_index)
            epoch, lag = partition.leader_epoch, partition.lag
            if partition.error_code:
                offsets.failed[topic_partition] = error_for(partition.error_code, partition.error_message)
            elif partition.start_offset < 0:
                offsets.done[topic_partition] = None
            else:
                offsets.done[topic_partition] = SharePartitionOffset(
                    partition.start_offset, None if epoch < 0 else epoch, None if lag < 0 else lag
                )
    for topic_partition in wanted or ():
        if topic_partition not in offsets.done and topic_partition not in offsets.failed:
            offsets.failed[topic_partition] = MissingResult(f"the reply has no offset of {topic_partition}")
    return offsets


async def alter_share_group_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int], timeout_ms: int | None
) -> Batch[TopicPartition, None]:
    """Admin.alter_share_group_offsets."""
    deadline = cluster.deadline("alterShareGroupOffsets", timeout_ms)
    topics: dict[str, list[m.AlterShareGroupOffsetsRequestPartition]] = {}
    for topic_partition, offset in offsets.items():
        topics.setdefault(topic_partition.topic, []).append(
            m.AlterShareGroupOffsetsRequestPartition(topic_partition.partition, offset)
        )
    request = m.AlterShareGroupOffsetsRequest(
        group_id, [m.AlterShareGroupOffsetsRequestTopic(topic, partitions) for topic, partitions in topics.items()]
    )

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, Batch[TopicPartition, None] | Failure]:
        answer = await peer.ask(m.AlterShareGroupOffsetsResponse, request, deadline)
        if answer.error_code:
            return {group_id: error_for(answer.error_code, answer.error_message)}
        failures = {
            TopicPartition(topic.topic_name, partition.partition_index): failure_of(
                partition.error_code, partition.error_message
            )
            for topic in answer.responses
            for partition in topic.partitions
        }
        return {group_id: batch_of(offsets, failures, "the reply has no result for partition {}")}

    return await of_one_group(cluster, deadline, group_id, ask, COMMIT_RETRIES)


async def delete_share_group_offsets(
    cluster: Cluster, group_id: str, topics: Iterable[str], timeout_ms: int | None
) -> Batch[str, None]:
    """Admin.delete_share_group_offsets."""
    deadline = cluster.deadline("deleteShareGroupOffsets", timeout_ms)
    wanted = list(dict.fromkeys(topics))
    request = m.DeleteShareGroupOffsetsRequest(
        group_id, [m.DeleteShareGroupOffsetsRequestTopic(name) for name in wanted]
    )

    async def ask(peer: Peer, keys: list[str], deadline: Deadline) -> dict[str, Batch[str, None] | Failure]:
        answer = await peer.ask(m.DeleteShareGroupOffsetsResponse, request, deadline)
        if answer.error_code:
            return {group_id: error_for(answer.error_code, answer.error_message)}
        failures = {topic.topic_name: failure_of(topic.error_code, topic.error_message) for topic in answer.responses}
        return {group_id: batch_of(wanted, failures, "the reply has no result for topic {}")}

    return await of_one_group(cluster, deadline, group_id, ask, COMMIT_RETRIES)
