"""Records of a share group (key types 10 to 15) become its state: the only place that changes a `ShareGroup`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.share.group import (
    LEFT_EPOCH,
    PartitionsByTopic,
    ShareGroup,
    ShareMember,
    SharePartitions,
    TopicPartitions,
)
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from groupkeeper.protocol.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from groupkeeper.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from groupkeeper.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue
from groupkeeper.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from groupkeeper.protocol.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from groupkeeper.protocol.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from groupkeeper.protocol.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.offsets_topic import Entry


def replay(group: ShareGroup, record: Record) -> None:
    """Makes a record part of the group; what removes the group itself is up to its owner.

    Raises `MalformedMessage` for tombstones in another order than members and groups are removed in.
    """
    value = record.value if isinstance(record, Entry) else None
    match record.key:
        case ShareGroupMetadataKey():
            _replay_epoch(group, value)
        case ShareGroupMemberMetadataKey(member_id=member_id):
            _replay_member(group, member_id, value)
        case ShareGroupTargetAssignmentMetadataKey():
            _replay_target_epoch(group, value)
        case ShareGroupTargetAssignmentMemberKey(member_id=member_id):
            _replay_target(group, member_id, value)
        case ShareGroupCurrentMemberAssignmentKey(member_id=member_id):
            _replay_assignment(group, member_id, value)
        case ShareGroupStatePartitionMetadataKey():
            _replay_partitions(group, value)


def _replay_epoch(group: ShareGroup, value: object) -> None:
    if value is None:
        _require(not group.members, f"group {group.group_id} is deleted with members")
        _require(not group.targets, f"group {group.group_id} is deleted with targets")
        return
    assert isinstance(value, ShareGroupMetadataValue)
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_target_epoch(group: ShareGroup, value: object) -> None:
    if value is None:
        _require(not group.targets, f"the target of group {group.group_id} is deleted with members")
        group.assignment_epoch = -1
        return
    assert isinstance(value, ShareGroupTargetAssignmentMetadataValue)
    group.assignment_epoch, group.assignment_time_ms = value.assignment_epoch, value.assignment_timestamp


def _replay_target(group: ShareGroup, member_id: str, value: object) -> None:
    if value is None:
        group.targets.pop(member_id, None)
        return
    assert isinstance(value, ShareGroupTargetAssignmentMemberValue)
    group.targets[member_id] = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _replay_member(group: ShareGroup, member_id: str, value: object) -> None:
    old = group.members.get(member_id)
    if old is not None:
        _count(group, old, -1)
    if value is None:
        if old is not None:
            _require(old.member_epoch == LEFT_EPOCH, f"member {member_id} is deleted before its assignment")
            _require(member_id not in group.targets, f"member {member_id} is deleted before its target")
            del group.members[member_id]
        return
    assert isinstance(value, ShareGroupMemberMetadataValue)
    member = replace(
        old or ShareMember(member_id),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
    )
    group.members[member_id] = member
    _count(group, member, 1)


def _count(group: ShareGroup, member: ShareMember, by: int) -> None:
    counts = group.subscriber_counts
    for name in member.subscribed_topic_names:
        counts[name] = counts.get(name, 0) + by
        if not counts[name]:
            del counts[name]


def _replay_assignment(group: ShareGroup, member_id: str, value: object) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            left = replace(old, member_epoch=LEFT_EPOCH, previous_member_epoch=LEFT_EPOCH, assigned={})
            group.members[member_id] = left
        return
    assert isinstance(value, ShareGroupCurrentMemberAssignmentValue)
    group.members[member_id] = replace(
        old or ShareMember(member_id),
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        assigned={topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions},
    )


def _replay_partitions(group: ShareGroup, value: object) -> None:
    if value is None:
        group.partitions = None
        return
    assert isinstance(value, ShareGroupStatePartitionMetadataValue)
    group.partitions = SharePartitions(
        _read_partitions(value.initializing_topics),
        _read_partitions(value.initialized_topics),
        {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _read_partitions(topics: Sequence[TopicPartitionsInfo]) -> PartitionsByTopic:
    return {topic.topic_id: TopicPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics}


def _require(is_in_order: bool, trouble: str) -> None:
    if not is_in_order:
        raise MalformedMessage(trouble)
