"""Records of a consumer group (key types 3 to 8 and 16) become its state, and are removed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.consumer.group import (
    STABLE,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    OwnedPartitions,
    ResolvedRegex,
)
from groupkeeper.coordinator.consumer.records import partition_metadata_tombstone, regex_tombstone
from groupkeeper.coordinator.epochs.log import GroupLog, RecordClasses, count_subscriptions
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_value import TopicPartitions


class ConsumerLog(GroupLog[ConsumerGroup, ConsumerMember, TargetAssignment]):
    classes = RecordClasses(
        m.ConsumerGroupMetadataKey,
        m.ConsumerGroupMemberMetadataKey,
        m.ConsumerGroupTargetAssignmentMetadataKey,
        m.ConsumerGroupTargetAssignmentMetadataValue,
        m.ConsumerGroupTargetAssignmentMemberKey,
        m.ConsumerGroupCurrentMemberAssignmentKey,
    )
    left: ClassVar = {"state": STABLE, "assigned": {}, "pending_revocation": {}}
    member_class = ConsumerMember

    def read_member(self, member: ConsumerMember, value: m.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        stored = value.classic_member_metadata
        classic = None
        if stored is not None:
            protocols = tuple((protocol.name, protocol.metadata) for protocol in stored.supported_protocols)
            classic = ClassicMetadata(stored.session_timeout_ms, protocols)
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=classic,
        )

    def read_target(self, value: m.ConsumerGroupTargetAssignmentMemberValue) -> TargetAssignment:
        return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}

    def read_assignment(
        self, member: ConsumerMember, value: m.ConsumerGroupCurrentMemberAssignmentValue
    ) -> ConsumerMember:
        return replace(
            member,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=_read_partitions(value.assigned_partitions, value.member_epoch),
            pending_revocation=_read_partitions(value.partitions_pending_revocation, value.member_epoch),
        )

    def take_other(self, group: ConsumerGroup, key: object, value: object) -> None:
        match key, value:
            case m.ConsumerGroupPartitionMetadataKey(), _:
                group.has_partition_metadata = value is not None
            case m.ConsumerGroupRegularExpressionKey(regular_expression=regex), None:
                group.resolved.pop(regex, None)
            case (
                m.ConsumerGroupRegularExpressionKey(regular_expression=regex),
                m.ConsumerGroupRegularExpressionValue() as found,
            ):
                group.resolved[regex] = ResolvedRegex(frozenset(found.topics), found.version, found.timestamp)

    def other_tombstones(self, group: ConsumerGroup) -> tuple[list[Record], list[Record]]:
        """Includes a tombstone of type 4 (partition metadata) even if the log has no such record."""
        regexes = [regex_tombstone(group.group_id, one) for one in group.resolved]
        return [*regexes, partition_metadata_tombstone(group.group_id)], []

    def count_member(self, group: ConsumerGroup, member: ConsumerMember, by: int) -> None:
        count_subscriptions(group.subscriber_counts, member.subscribed_topic_names, by)
        if member.subscribed_topic_regex:
            count_subscriptions(group.regex_counts, (member.subscribed_topic_regex,), by)
        instance_id = member.instance_id
        if instance_id is not None and by > 0:
            group.member_id_by_instance[instance_id] = member.member_id
        elif instance_id is not None and group.member_id_by_instance.get(instance_id) == member.member_id:
            del group.member_id_by_instance[instance_id]

    def move_assignment(self, group: ConsumerGroup, old: ConsumerMember | None, new: ConsumerMember) -> None:
        group.unshare_owners()
        if old is not None:
            _release(group, old)
        for partitions in (new.assigned, new.pending_revocation):
            for topic_id, some in partitions.items():
                group.owner_by_partition.setdefault(topic_id, {}).update(dict.fromkeys(some, new.member_id))


LOG = ConsumerLog()


def _read_partitions(topics: Sequence[TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Reads assigned partitions. Records before 4.3 have no assignment epochs; the member's epoch is used then."""
    read: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        read[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=False))
    return read


def _release(group: ConsumerGroup, member: ConsumerMember) -> None:
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, some in partitions.items():
            owners = group.owner_by_partition.get(topic_id, {})
            for partition in some:
                if owners.get(partition) == member.member_id:
                    del owners[partition]
            if not owners:
                group.owner_by_partition.pop(topic_id, None)
