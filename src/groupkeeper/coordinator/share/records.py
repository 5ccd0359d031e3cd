"""The records of a share group, in Apache Kafka's format: types 10 to 15."""

from __future__ import annotations

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.epochs.log import by_topic
from groupkeeper.coordinator.share.group import PartitionsByTopic, PartitionStates, ShareMember
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import share_group_current_member_assignment_value as current_value
from groupkeeper.protocol.messages import share_group_state_partition_metadata_value as partitions_value
from groupkeeper.protocol.messages import share_group_target_assignment_member_value as target_value
from groupkeeper.protocol.offsets_topic import Entry

_STABLE = 0


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Entry:
    """The group's epoch, and the fingerprint of its topics that belongs to it."""
    return Entry(m.ShareGroupMetadataKey(group_id), m.ShareGroupMetadataValue(group_epoch, metadata_hash))


def member_record(group_id: str, member: ShareMember) -> Entry:
    """A member, with its subscription."""
    value = m.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
    )
    return Entry(m.ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: TargetAssignment) -> Entry:
    """A member's target assignment."""
    value = target_value.ShareGroupTargetAssignmentMemberValue(by_topic(target, target_value.TopicPartition))
    return Entry(m.ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)


def assignment_record(group_id: str, member: ShareMember) -> Entry:
    """A member's current assignment, with its state and epoch."""
    value = current_value.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STABLE,
        assigned_partitions=by_topic(member.assigned, current_value.TopicPartitions),
    )
    return Entry(m.ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def partitions_record(group_id: str, partitions: PartitionStates) -> Entry:
    """The life cycle of its share-partitions: initializing, initialized, deleting."""
    value = partitions_value.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_write_partitions(partitions.initializing),
        initialized_topics=_write_partitions(partitions.initialized),
        deleting_topics=[
            partitions_value.TopicInfo(topic_id, partitions.deleting[topic_id])
            for topic_id in sorted(partitions.deleting)
        ],
    )
    return Entry(m.ShareGroupStatePartitionMetadataKey(group_id), value)


def _write_partitions(topics: PartitionsByTopic) -> list[partitions_value.TopicPartitionsInfo]:
    return [
        partitions_value.TopicPartitionsInfo(topic_id, topics[topic_id].name, sorted(topics[topic_id].partitions))
        for topic_id in sorted(topics)
    ]
