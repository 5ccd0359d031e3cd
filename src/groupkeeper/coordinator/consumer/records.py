"""The records of a consumer group, in Apache Kafka's format: types 3, 5, 6, 7, 8, 16, and tombstones of type 4."""

from __future__ import annotations

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.consumer.group import ConsumerMember, OwnedPartitions, ResolvedRegex
from groupkeeper.coordinator.epochs.log import by_topic
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import consumer_group_current_member_assignment_value as current_value
from groupkeeper.protocol.messages import consumer_group_target_assignment_member_value as target_value
from groupkeeper.protocol.offsets_topic import Entry, Tombstone


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Entry:
    """The group's epoch, and the fingerprint of its topics that belongs to it."""
    return Entry(m.ConsumerGroupMetadataKey(group_id), m.ConsumerGroupMetadataValue(group_epoch, metadata_hash))


def member_record(group_id: str, member: ConsumerMember) -> Entry:
    """A member, with its subscription."""
    classic = None
    if member.classic is not None:
        protocols = [m.ClassicProtocol(name, metadata) for name, metadata in member.classic.protocols]
        classic = m.ClassicMemberMetadata(member.classic.session_timeout_ms, protocols)
    value = m.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return Entry(m.ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: TargetAssignment) -> Entry:
    """A member's target assignment."""
    value = target_value.ConsumerGroupTargetAssignmentMemberValue(by_topic(target, target_value.TopicPartition))
    return Entry(m.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def assignment_record(group_id: str, member: ConsumerMember) -> Entry:
    """A member's current assignment, with its state and epoch."""
    value = current_value.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_write_partitions(member.assigned),
        partitions_pending_revocation=_write_partitions(member.pending_revocation),
    )
    return Entry(m.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _write_partitions(owned: OwnedPartitions) -> list[current_value.TopicPartitions]:
    written = []
    for topic_id in sorted(owned):
        partitions = sorted(owned[topic_id])
        epochs = [owned[topic_id][partition] for partition in partitions]
        written.append(current_value.TopicPartitions(topic_id, partitions, epochs))
    return written


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Entry:
    """The topics of a regular expression."""
    value = m.ConsumerGroupRegularExpressionValue(sorted(resolved.topics), resolved.version, resolved.time_ms)
    return Entry(m.ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> Tombstone:
    """No member subscribes to the regular expression."""
    return Tombstone(m.ConsumerGroupRegularExpressionKey(group_id, regex))


def partition_metadata_tombstone(group_id: str) -> Tombstone:
    """Removes the topic metadata that versions before 4.1 stored."""
    return Tombstone(m.ConsumerGroupPartitionMetadataKey(group_id))
