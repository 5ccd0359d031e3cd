"""Records of a consumer group (key types 3 to 8 and 16) become its state: the only place that changes a
`ConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from groupkeeper.coordinator.consumer.group import (
    LEFT_EPOCH,
    STABLE,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    OwnedPartitions,
    ResolvedRegex,
)
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from groupkeeper.protocol.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from groupkeeper.protocol.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from groupkeeper.protocol.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from groupkeeper.protocol.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from groupkeeper.protocol.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from groupkeeper.protocol.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from groupkeeper.protocol.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from groupkeeper.protocol.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.offsets_topic import Entry

ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
CONSUMER_GROUP_KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)


def replay(group: ConsumerGroup, record: Record) -> None:
    """Makes a record part of the group; what removes the group itself is up to its owner.

    Raises `MalformedMessage` for tombstones out of order.
    """
    value = record.value if isinstance(record, Entry) else None
    match record.key:
        case ConsumerGroupMetadataKey():
            _replay_epoch(group, value)
        case ConsumerGroupPartitionMetadataKey():
            group.has_partition_metadata = value is not None
        case ConsumerGroupMemberMetadataKey(member_id=member_id):
            _replay_member(group, member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            _replay_target_epoch(group, value)
        case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
            _replay_target(group, member_id, value)
        case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
            _replay_assignment(group, member_id, value)
        case ConsumerGroupRegularExpressionKey(regular_expression=regex):
            _replay_regex(group, regex, value)


def _replay_epoch(group: ConsumerGroup, value: object) -> None:
    if value is None:
        _require(not group.members, f"group {group.group_id} is deleted with members")
        _require(not group.targets, f"group {group.group_id} is deleted with targets")
        return
    assert isinstance(value, ConsumerGroupMetadataValue)
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_target_epoch(group: ConsumerGroup, value: object) -> None:
    if value is None:
        _require(not group.targets, f"the target of group {group.group_id} is deleted with members")
        group.assignment_epoch = -1
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
    group.assignment_epoch, group.assignment_time_ms = value.assignment_epoch, value.assignment_timestamp


def _replay_target(group: ConsumerGroup, member_id: str, value: object) -> None:
    if value is None:
        group.targets.pop(member_id, None)
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
    group.targets[member_id] = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _replay_regex(group: ConsumerGroup, regex: str, value: object) -> None:
    if value is None:
        group.resolved.pop(regex, None)
        return
    assert isinstance(value, ConsumerGroupRegularExpressionValue)
    group.resolved[regex] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)


def _replay_member(group: ConsumerGroup, member_id: str, value: object) -> None:
    old = group.members.get(member_id)
    if old is not None:
        _uncount(group, old)
    if value is None:
        if old is not None:
            _require(old.member_epoch == LEFT_EPOCH, f"member {member_id} is deleted before its assignment")
            _require(member_id not in group.targets, f"member {member_id} is deleted before its target")
            del group.members[member_id]
        return
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    stored = value.classic_member_metadata
    classic = None
    if stored is not None:
        protocols = tuple((protocol.name, protocol.metadata) for protocol in stored.supported_protocols)
        classic = ClassicMetadata(stored.session_timeout_ms, protocols)
    member = replace(
        old or ConsumerMember(member_id),
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
    group.members[member_id] = member
    _count(group, member)


def _count(group: ConsumerGroup, member: ConsumerMember) -> None:
    for name in member.subscribed_topic_names:
        group.subscriber_counts[name] = group.subscriber_counts.get(name, 0) + 1
    if member.subscribed_topic_regex:
        counts = group.regex_counts
        counts[member.subscribed_topic_regex] = counts.get(member.subscribed_topic_regex, 0) + 1
    if member.instance_id is not None:
        group.member_id_by_instance[member.instance_id] = member.member_id


def _uncount(group: ConsumerGroup, member: ConsumerMember) -> None:
    for name in member.subscribed_topic_names:
        _subtract(group.subscriber_counts, name)
    if member.subscribed_topic_regex:
        _subtract(group.regex_counts, member.subscribed_topic_regex)
    if member.instance_id is not None and group.member_id_by_instance.get(member.instance_id) == member.member_id:
        del group.member_id_by_instance[member.instance_id]


def _subtract(counts: dict[str, int], key: str) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


def _replay_assignment(group: ConsumerGroup, member_id: str, value: object) -> None:
    group.unshare_owners()
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            _release(group, old)
            group.members[member_id] = replace(
                old,
                member_epoch=LEFT_EPOCH,
                previous_member_epoch=LEFT_EPOCH,
                state=STABLE,
                assigned={},
                pending_revocation={},
            )
        return
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
    member = replace(
        old or ConsumerMember(member_id),
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=_read_partitions(value.assigned_partitions, value.member_epoch),
        pending_revocation=_read_partitions(value.partitions_pending_revocation, value.member_epoch),
    )
    if old is not None:
        _release(group, old)
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, some in partitions.items():
            group.owner_by_partition.setdefault(topic_id, {}).update(dict.fromkeys(some, member_id))
    group.members[member_id] = member


def _read_partitions(topics: Sequence[TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Assignment epochs are missing in records of versions before 4.3; the member's epoch stands for them then."""
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


def _require(is_in_order: bool, trouble: str) -> None:
    if not is_in_order:
        raise MalformedMessage(trouble)
