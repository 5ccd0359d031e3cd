"""Records of a share group (key types 10 to 15) become its state, and are removed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.epochs.log import GroupLog, RecordClasses, count_subscriptions
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.share.group import (
    PartitionsByTopic,
    PartitionStates,
    ShareGroup,
    ShareMember,
    TopicPartitions,
)
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Tombstone


class ShareLog(GroupLog[ShareGroup, ShareMember, TargetAssignment]):
    classes = RecordClasses(
        m.ShareGroupMetadataKey,
        m.ShareGroupMemberMetadataKey,
        m.ShareGroupTargetAssignmentMetadataKey,
        m.ShareGroupTargetAssignmentMetadataValue,
        m.ShareGroupTargetAssignmentMemberKey,
        m.ShareGroupCurrentMemberAssignmentKey,
    )
    left: ClassVar = {"assigned": {}}
    member_class = ShareMember

    def read_member(self, member: ShareMember, value: m.ShareGroupMemberMetadataValue) -> ShareMember:
        return replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
        )

    def read_target(self, value: m.ShareGroupTargetAssignmentMemberValue) -> TargetAssignment:
        return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}

    def read_assignment(self, member: ShareMember, value: m.ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
        return replace(
            member,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
        )

    def take_other(
        self,
        group: ShareGroup,
        key: m.ShareGroupStatePartitionMetadataKey,
        value: m.ShareGroupStatePartitionMetadataValue | None,
    ) -> None:
        group.partitions = None
        group.partition_changes += 1
        if value is not None:
            group.partitions = PartitionStates(
                _read_partitions(value.initializing_topics),
                _read_partitions(value.initialized_topics),
                {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
            )

    def other_tombstones(self, group: ShareGroup) -> tuple[list[Record], list[Record]]:
        return [Tombstone(m.ShareGroupStatePartitionMetadataKey(group.group_id))], []

    def count_member(self, group: ShareGroup, member: ShareMember, by: int) -> None:
        count_subscriptions(group.subscriber_counts, member.subscribed_topic_names, by)


LOG = ShareLog()


def _read_partitions(topics: Sequence[m.TopicPartitionsInfo]) -> PartitionsByTopic:
    return {topic.topic_id: TopicPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics}
