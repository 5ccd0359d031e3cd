"""Records and answers of consumer groups as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from groupkeeper.protocol.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup, Member
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
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
from groupkeeper.protocol.offsets_topic import Tombstone

_STATES = {0: "stable", 1: "unrevoked", 2: "unreleased"}


def topic_id(name: str) -> bytes:
    """Topics of scenarios have their names for ids."""
    return name.encode().ljust(16, b"\0")


def topic_name(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\0").decode()


def partitions_text(topics: Iterable[Any]) -> str:
    """`t1/0,t1/1`, or `nothing`"""
    return ",".join(f"{topic_name(one.topic_id)}/{p}" for one in topics for p in one.partitions) or "nothing"


def record_text(record: Record) -> str | None:
    """One line for one record of a consumer group; None for others."""
    name = _key_text(record.key)
    if name is None:
        return None
    return f"- {name}" if isinstance(record, Tombstone) else f"+ {name}: {_value_text(record.value)}"


def _key_text(key: object) -> str | None:
    match key:
        case ConsumerGroupMetadataKey():
            return f"epoch {key.group_id}"
        case ConsumerGroupMemberMetadataKey():
            return f"member {key.group_id} {key.member_id}"
        case ConsumerGroupPartitionMetadataKey():
            return f"partitions {key.group_id}"
        case ConsumerGroupTargetAssignmentMetadataKey():
            return f"target-epoch {key.group_id}"
        case ConsumerGroupTargetAssignmentMemberKey():
            return f"target {key.group_id} {key.member_id}"
        case ConsumerGroupCurrentMemberAssignmentKey():
            return f"current {key.group_id} {key.member_id}"
        case ConsumerGroupRegularExpressionKey():
            return f"pattern {key.group_id} {key.regular_expression}"
    return None


def _value_text(value: object) -> str:
    match value:
        case ConsumerGroupMetadataValue():
            return str(value.epoch)
        case ConsumerGroupMemberMetadataValue():
            return _member_text(value)
        case ConsumerGroupTargetAssignmentMetadataValue():
            return str(value.assignment_epoch)
        case ConsumerGroupTargetAssignmentMemberValue():
            return partitions_text(value.topic_partitions)
        case ConsumerGroupCurrentMemberAssignmentValue():
            text = f"{value.previous_member_epoch}->{value.member_epoch} {_STATES[value.state]}"
            text += f" {partitions_text(value.assigned_partitions)}"
            revoked = partitions_text(value.partitions_pending_revocation)
            return text if revoked == "nothing" else f"{text} revokes {revoked}"
        case ConsumerGroupRegularExpressionValue():
            return ",".join(value.topics) or "nothing"
    raise AssertionError(value)


def _member_text(value: ConsumerGroupMemberMetadataValue) -> str:
    text = ",".join(value.subscribed_topic_names) or "no topics"
    if value.subscribed_topic_regex:
        text += f" pattern={value.subscribed_topic_regex}"
    if value.instance_id is not None:
        text += f" instance={value.instance_id}"
    if value.server_assignor is not None:
        text += f" assignor={value.server_assignor}"
    return text if value.classic_member_metadata is None else f"{text} classic"


def heartbeat_text(response: ConsumerGroupHeartbeatResponse, error: str) -> str:
    """What a member is told: its epoch, and its partitions if they come with it."""
    if response.error_code:
        return f"{error} {response.error_message}"
    text = f"epoch={response.member_epoch}"
    if response.assignment is None:
        return text
    return f"{text} {partitions_text(response.assignment.topic_partitions)}"


def group_lines(group: DescribedGroup, error: str) -> list[str]:
    """A described group and its members, by id."""
    if group.error_code:
        return [f"group {group.group_id}: {error} {group.error_message}"]
    epochs = f"epoch={group.group_epoch} assignment-epoch={group.assignment_epoch}"
    head = f"group {group.group_id}: {group.group_state} {epochs} {group.assignor_name}"
    return [head, *_described(group.members)]


def _described(members: Sequence[Member]) -> list[str]:
    lines = []
    for member in sorted(members, key=lambda one: one.member_id):
        has = partitions_text(member.assignment.topic_partitions)
        target = partitions_text(member.target_assignment.topic_partitions)
        static = "" if member.instance_id is None else f"({member.instance_id})"
        kind = " classic" if member.member_type == 0 else ""
        lines.append(f"  {member.member_id}{static} epoch={member.member_epoch} {has} -> {target}{kind}")
    return lines
