"""Records and answers of streams groups as text. A task is `0_2`, partition 2 of subtopology 0; `s0_2` is a standby."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.protocol.messages import streams_group_current_member_assignment_value as current_value
from groupkeeper.protocol.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from groupkeeper.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from groupkeeper.protocol.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from groupkeeper.protocol.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from groupkeeper.protocol.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue
from groupkeeper.protocol.offsets_topic import Tombstone
from groupkeeper.protocol.primitives import Message

_STATES = {1: "stable", 2: "unrevoked", 3: "unreleased"}
_KEYS = {
    "StreamsGroupMetadataKey": "streams-epoch",
    "StreamsGroupTopologyKey": "streams-topology",
    "StreamsGroupMemberMetadataKey": "streams-member",
    "StreamsGroupTargetAssignmentMetadataKey": "streams-target-epoch",
    "StreamsGroupTargetAssignmentMemberKey": "streams-target",
    "StreamsGroupCurrentMemberAssignmentKey": "streams-current",
}


class TaskIds(Protocol):
    """Tasks of a subtopology in any message."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def record_text(record: Record) -> str | None:
    """One line for one record of a streams group; None for others."""
    name = _KEYS.get(type(record.key).__name__)
    if name is None:
        return None
    where = " ".join(str(getattr(record.key, slot)) for slot in record.key.__slots__)
    return f"- {name} {where}" if isinstance(record, Tombstone) else f"+ {name} {where}: {_value_text(record.value)}"


def _value_text(value: object) -> str:
    match value:
        case StreamsGroupMetadataValue():
            configs = " ".join(f"{one.key}={one.value}" for one in value.last_assignment_configs or ())
            return f"{value.epoch} validated={value.validated_topology_epoch} {configs}"
        case StreamsGroupTopologyValue():
            return f"{value.epoch} {' '.join(one.subtopology_id for one in value.subtopologies)}"
        case StreamsGroupMemberMetadataValue():
            return f"{value.process_id} topology-epoch={value.topology_epoch}"
        case StreamsGroupTargetAssignmentMetadataValue():
            return str(value.assignment_epoch)
        case StreamsGroupTargetAssignmentMemberValue():
            return tasks_text(value.active_tasks, value.standby_tasks)
        case current_value.StreamsGroupCurrentMemberAssignmentValue():
            epochs = f"{value.previous_member_epoch}->{value.member_epoch}"
            has = tasks_text(value.active_tasks, value.standby_tasks)
            gives_back = tasks_text(value.active_tasks_pending_revocation, value.standby_tasks_pending_revocation)
            return f"{epochs} {_STATES[value.state]} {has}; gives back {gives_back}"
    raise AssertionError(value)


def tasks_text(active: Iterable[TaskIds], standby: Iterable[TaskIds]) -> str:
    """`0_1,s1_0`, or nothing."""
    found = [f"{one.subtopology_id}_{index}" for one in active for index in one.partitions]
    found += [f"s{one.subtopology_id}_{index}" for one in standby for index in one.partitions]
    return ",".join(found) or "nothing"


def answer_lines(who: str, response: Message, error_name: Any) -> list[str] | None:
    """The lines of an answer about streams groups; None for others."""
    match response:
        case StreamsGroupHeartbeatResponse():
            return [f"streams {who}: {_heartbeat_text(response, error_name)}"]
        case StreamsGroupDescribeResponse():
            return [line for group in response.groups for line in _group_lines(group, error_name)]
    return None


def _heartbeat_text(response: StreamsGroupHeartbeatResponse, error_name: Any) -> str:
    if response.error_code:
        return f"{error_name(response.error_code)} {response.error_message}"
    text = f"epoch={response.member_epoch}"
    if response.active_tasks is not None:
        text += f" {tasks_text(response.active_tasks, response.standby_tasks or ())}"
    for endpoint in response.partitions_by_user_endpoint or ():
        reads = [f"{one.topic}/{index}" for one in endpoint.active_partitions for index in one.partitions]
        text += f" {endpoint.user_endpoint.host}:{endpoint.user_endpoint.port}={','.join(reads) or 'nothing'}"
    return text + "".join(f" [{one.status_detail}]" for one in response.status or ())


def _group_lines(group: DescribedGroup, error_name: Any) -> list[str]:
    if group.error_code:
        return [f"group {group.group_id}: {error_name(group.error_code)} {group.error_message}"]
    epochs = f"epoch={group.group_epoch} assignment-epoch={group.assignment_epoch}"
    lines = [f"group {group.group_id}: {group.group_state} {epochs}"]
    for one in () if group.topology is None else group.topology.subtopologies or ():
        internal = (*one.repartition_source_topics, *one.state_changelog_topics)
        topics = [*one.source_topics, *(f"{topic.name}={topic.partitions}" for topic in internal)]
        lines.append(f"  subtopology {one.subtopology_id}: {' '.join(topics)}")
    for member in sorted(group.members, key=lambda one: one.member_id):
        has, shall = _assignment_text(member.assignment), _assignment_text(member.target_assignment)
        lines.append(f"  {member.member_id} epoch={member.member_epoch} {has}; target {shall}")
    return lines


def _assignment_text(assignment: Assignment) -> str:
    return tasks_text(assignment.active_tasks, assignment.standby_tasks)
