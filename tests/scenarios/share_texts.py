"""Records and answers of share groups, and what they ask of the share coordinator, as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.scenarios.consumer_texts import partitions_text, topic_name

from groupkeeper.coordinator.kernel.result import Record, Work
from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from groupkeeper.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from groupkeeper.protocol.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from groupkeeper.protocol.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from groupkeeper.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from groupkeeper.protocol.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from groupkeeper.protocol.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from groupkeeper.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey
from groupkeeper.protocol.messages.share_group_metadata_value import ShareGroupMetadataValue
from groupkeeper.protocol.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from groupkeeper.protocol.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
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
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import Message


def record_text(record: Record) -> str | None:
    """One line for one record of a share group; None for others."""
    name = _key_text(record.key)
    if name is None:
        return None
    return f"- {name}" if isinstance(record, Tombstone) else f"+ {name}: {_value_text(record.value)}"


def _key_text(key: object) -> str | None:
    match key:
        case ShareGroupMetadataKey():
            return f"share-epoch {key.group_id}"
        case ShareGroupMemberMetadataKey():
            return f"share-member {key.group_id} {key.member_id}"
        case ShareGroupTargetAssignmentMetadataKey():
            return f"share-target-epoch {key.group_id}"
        case ShareGroupTargetAssignmentMemberKey():
            return f"share-target {key.group_id} {key.member_id}"
        case ShareGroupCurrentMemberAssignmentKey():
            return f"share-current {key.group_id} {key.member_id}"
        case ShareGroupStatePartitionMetadataKey():
            return f"share-partitions {key.group_id}"
    return None


def _value_text(value: object) -> str:
    match value:
        case ShareGroupMetadataValue():
            return str(value.epoch)
        case ShareGroupMemberMetadataValue():
            return ",".join(value.subscribed_topic_names)
        case ShareGroupTargetAssignmentMetadataValue():
            return str(value.assignment_epoch)
        case ShareGroupTargetAssignmentMemberValue():
            return partitions_text(value.topic_partitions)
        case ShareGroupCurrentMemberAssignmentValue():
            epochs = f"{value.previous_member_epoch}->{value.member_epoch}"
            return f"{epochs} {partitions_text(value.assigned_partitions)}"
        case ShareGroupStatePartitionMetadataValue():
            deleting = ",".join(topic.topic_name for topic in value.deleting_topics) or "nothing"
            return (
                f"initializing {partitions_text(value.initializing_topics)} "
                f"initialized {partitions_text(value.initialized_topics)} deleting {deleting}"
            )
    raise AssertionError(value)


def answer_lines(who: str, response: Message, error_name: Any) -> list[str] | None:
    """The lines of an answer about share groups; None for others."""
    match response:
        case ShareGroupHeartbeatResponse():
            return [f"share {who}: {_heartbeat_text(response, error_name)}"]
        case ShareGroupDescribeResponse():
            return [line for group in response.groups for line in _group_lines(group, error_name)]
        case AlterShareGroupOffsetsResponse() | DeleteShareGroupOffsetsResponse():
            name = "share-alter" if isinstance(response, AlterShareGroupOffsetsResponse) else "share-delete"
            if response.error_code:
                return [f"{name} {who}: {error_name(response.error_code)} {response.error_message}"]
            return [f"{name} {who}: {', '.join(_outcomes(response, error_name)) or 'nothing'}"]
    return None


def _heartbeat_text(response: ShareGroupHeartbeatResponse, error_name: Any) -> str:
    if response.error_code:
        return f"{error_name(response.error_code)} {response.error_message}"
    text = f"epoch={response.member_epoch}"
    if response.assignment is None:
        return text
    return f"{text} {partitions_text(response.assignment.topic_partitions)}"


def _group_lines(group: DescribedGroup, error_name: Any) -> list[str]:
    if group.error_code:
        return [f"group {group.group_id}: {error_name(group.error_code)} {group.error_message}"]
    epochs = f"epoch={group.group_epoch} assignment-epoch={group.assignment_epoch}"
    lines = [f"group {group.group_id}: {group.group_state} {epochs} {group.assignor_name}"]
    for member in sorted(group.members, key=lambda one: one.member_id):
        has = partitions_text(member.assignment.topic_partitions)
        lines.append(f"  {member.member_id} epoch={member.member_epoch} {has}")
    return lines


def _outcomes(
    response: AlterShareGroupOffsetsResponse | DeleteShareGroupOffsetsResponse, error_name: Any
) -> Iterable[str]:
    if isinstance(response, DeleteShareGroupOffsetsResponse):
        yield from (f"{topic.topic_name} {error_name(topic.error_code)}" for topic in response.responses)
        return
    for altered in response.responses:
        for one in altered.partitions:
            yield f"{altered.topic_name}/{one.partition_index} {error_name(one.error_code)}"


def work_text(work: Work) -> str:
    """What is asked of the share coordinator."""
    if isinstance(work, InitializeShares):
        offsets = (
            f"{topic_name(topic_id)}/{partition}={offset}"
            for topic_id, partitions in work.start_offsets.items()
            for partition, offset in partitions.items()
        )
        return f"initialize {work.group_id} state-epoch={work.state_epoch} {' '.join(offsets)}"
    assert isinstance(work, DeleteShares)
    return f"forget {' '.join(map(_share_partition_text, work.share_partitions()))}".rstrip()


def _share_partition_text(key: SharePartitionKey) -> str:
    return f"{key.group_id}:{topic_name(key.topic_id)}/{key.partition}"
