"""Share groups (KIP-932): descriptions and start offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import keyed, one_group, partitions_each, several
from groupkeeper.client.admin.coordinators import by_group, coordinator_at, of_one_group, routed
from groupkeeper.client.admin.group_descriptions import partitions_of
from groupkeeper.client.admin.offsets import COMMIT_RETRIES
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
from groupkeeper.client.errors import MissingResult
from groupkeeper.client.peer import Peer
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

if TYPE_CHECKING:
    from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, Member

_GROUPS_PER_REQUEST = 100

ShareOffsets = Batch[TopicPartition, SharePartitionOffset | None]


class ShareGroupCalls:
    """Calls of Admin about share groups."""

    _cluster: Cluster

    async def describe_share_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ShareGroupDescription]:
        """Describe share groups (KIP-932).

        Fails per group: GroupIdNotFound, also for a group of another type, GroupAuthorizationFailed,
        TopicAuthorizationFailed; UnsupportedVersion when the broker is older than 4.1.
        """
        deadline = self._cluster.deadline("describeShareGroups", timeout_ms)

        async def ask(peer: Peer, keys: list[str]) -> dict[str, ShareGroupDescription | Failure]:
            response = await peer.ask(
                m.ShareGroupDescribeResponse, m.ShareGroupDescribeRequest(keys, include_authorized_operations), deadline
            )
            return by_group(response.groups, lambda group: _description(group, coordinator_at(peer)))

        wanted = several(group_ids, "group_ids")
        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(wanted)

    async def list_share_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, timeout_ms: int | None = None
    ) -> Batch[str, Batch[TopicPartition, SharePartitionOffset | None]]:
        """The start offsets and lags of share groups in their partitions. None as a group's partitions: all that the
        group has ever subscribed to. `None` in the inner `done`: the group has no start offset in the partition,
        because no member has fetched it yet or the group does not read it. A partition that the broker refused is in
        the inner `failed`. A group that doesn't exist has no offsets.
        """
        deadline = self._cluster.deadline("listShareGroupOffsets", timeout_ms)
        wanted = partitions_each(groups)

        async def ask(peer: Peer, keys: list[str]) -> dict[str, ShareOffsets | Failure]:
            request = m.DescribeShareGroupOffsetsRequest([_wanted(group_id, wanted[group_id]) for group_id in keys])
            response = await peer.ask(m.DescribeShareGroupOffsetsResponse, request, deadline)
            return by_group(response.groups, lambda group: _offsets(group, wanted.get(group.group_id)))

        return await routed(self._cluster, deadline, ask, chunk=_GROUPS_PER_REQUEST).run(list(wanted))

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Batch[TopicPartition, None]:
        """Set the start offsets of a share group without members; creates the group if it doesn't exist.

        UnknownTopicOrPartition, TopicAuthorizationFailed per partition. Raises the KafkaError of the whole group:
        NonEmptyGroup, GroupIdNotFound for a group of another type, InvalidGroupId, GroupAuthorizationFailed.
        """
        deadline = self._cluster.deadline("alterShareGroupOffsets", timeout_ms)
        keyed(offsets, TopicPartition, "offsets", int)
        topics = by_topic(
            (tp.topic, m.AlterShareGroupOffsetsRequestPartition(tp.partition, offset)) for tp, offset in offsets.items()
        )
        request = m.AlterShareGroupOffsetsRequest(
            group_id, [m.AlterShareGroupOffsetsRequestTopic(topic, partitions) for topic, partitions in topics.items()]
        )

        async def ask(peer: Peer) -> Batch[TopicPartition, None] | Failure:
            response = await peer.ask(m.AlterShareGroupOffsetsResponse, request, deadline)
            if response.error_code:
                return error_for(response.error_code, response.error_message)
            failures = {
                TopicPartition(topic.topic_name, partition.partition_index): failure_of(
                    partition.error_code, partition.error_message
                )
                for topic in response.responses
                for partition in topic.partitions
            }
            return batch_of(offsets, failures, "the reply has no result for partition {}")

        return await of_one_group(self._cluster, deadline, one_group(group_id), ask, COMMIT_RETRIES)

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Delete a share group's offsets of whole topics; the group must have no members.

        UnknownTopicOrPartition per topic, also if the group has no offsets in it. Raises the KafkaError of the whole
        group: GroupIdNotFound, NonEmptyGroup, InvalidGroupId, GroupAuthorizationFailed.
        """
        deadline = self._cluster.deadline("deleteShareGroupOffsets", timeout_ms)
        wanted = list(dict.fromkeys(several(topics, "topics")))
        request = m.DeleteShareGroupOffsetsRequest(
            group_id, [m.DeleteShareGroupOffsetsRequestTopic(name) for name in wanted]
        )

        async def ask(peer: Peer) -> Batch[str, None] | Failure:
            response = await peer.ask(m.DeleteShareGroupOffsetsResponse, request, deadline)
            if response.error_code:
                return error_for(response.error_code, response.error_message)
            failures = {one.topic_name: failure_of(one.error_code, one.error_message) for one in response.responses}
            return batch_of(wanted, failures, "the reply has no result for topic {}")

        return await of_one_group(self._cluster, deadline, one_group(group_id), ask, COMMIT_RETRIES)


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
        assignment=partitions_of(member.assignment),
        rack_id=member.rack_id,
        subscribed_topics=tuple(member.subscribed_topic_names),
    )


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
            tp = TopicPartition(topic.topic_name, partition.partition_index)
            epoch, lag = partition.leader_epoch, partition.lag
            if partition.error_code:
                offsets.failed[tp] = error_for(partition.error_code, partition.error_message)
            elif partition.start_offset < 0:
                offsets.done[tp] = None
            else:
                offsets.done[tp] = SharePartitionOffset(
                    partition.start_offset, None if epoch < 0 else epoch, None if lag < 0 else lag
                )
    for tp in wanted or ():
        if tp not in offsets.done and tp not in offsets.failed:
            offsets.failed[tp] = MissingResult(f"the reply has no offset of {tp}")
    return offsets
