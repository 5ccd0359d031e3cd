"""Records of a streams group (key types 17, 19 to 23) become its state: only this changes a `StreamsGroup`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.streams.group import (
    LEFT_EPOCH,
    Endpoint,
    Role,
    StreamsGroup,
    StreamsMember,
    Task,
    TaskEpochs,
)
from groupkeeper.coordinator.streams.topology import TopologyRecord
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.messages import streams_group_current_member_assignment_value as current_value
from groupkeeper.protocol.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from groupkeeper.protocol.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from groupkeeper.protocol.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from groupkeeper.protocol.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from groupkeeper.protocol.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from groupkeeper.protocol.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from groupkeeper.protocol.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from groupkeeper.protocol.messages.streams_group_topology_key import StreamsGroupTopologyKey
from groupkeeper.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue
from groupkeeper.protocol.offsets_topic import Entry


class _TaskIds(Protocol):
    """Tasks of one subtopology in a message."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def replay(group: StreamsGroup, record: Record) -> None:
    """Makes a record part of the group; what removes the group itself is up to its owner.

    Raises `MalformedMessage` for tombstones in another order than members and groups are removed in.
    """
    value = record.value if isinstance(record, Entry) else None
    match record.key:
        case StreamsGroupMetadataKey():
            _replay_epoch(group, value)
        case StreamsGroupTopologyKey():
            assert value is None or isinstance(value, StreamsGroupTopologyValue)
            group.topology = None if value is None else TopologyRecord(value)
        case StreamsGroupMemberMetadataKey(member_id=member_id):
            _replay_member(group, member_id, value)
        case StreamsGroupTargetAssignmentMetadataKey():
            _replay_target_epoch(group, value)
        case StreamsGroupTargetAssignmentMemberKey(member_id=member_id):
            _replay_target(group, member_id, value)
        case StreamsGroupCurrentMemberAssignmentKey(member_id=member_id):
            _replay_assignment(group, member_id, value)


def tasks_of(*roles: Iterable[_TaskIds]) -> frozenset[Task]:
    """Tasks from the lists of a message: active, standby and warm-up ones."""
    return frozenset(
        Task(role, one.subtopology_id, partition)
        for role, some in zip(Role, roles, strict=True)
        for one in some
        for partition in one.partitions
    )


def _replay_epoch(group: StreamsGroup, value: object) -> None:
    if value is None:
        _require(not group.members, f"group {group.group_id} is deleted with members")
        _require(not group.targets, f"group {group.group_id} is deleted with targets")
        return
    assert isinstance(value, StreamsGroupMetadataValue)
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {one.key: one.value for one in value.last_assignment_configs or ()}


def _replay_member(group: StreamsGroup, member_id: str, value: object) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            _require(old.member_epoch == LEFT_EPOCH, f"member {member_id} is deleted before its assignment")
            _require(member_id not in group.targets, f"member {member_id} is deleted before its target")
            del group.members[member_id]
        return
    assert isinstance(value, StreamsGroupMemberMetadataValue)
    endpoint = value.user_endpoint
    group.members[member_id] = replace(
        old or StreamsMember(member_id),
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple((tag.key, tag.value) for tag in value.client_tags),
    )


def _replay_target_epoch(group: StreamsGroup, value: object) -> None:
    if value is None:
        _require(not group.targets, f"the target of group {group.group_id} is deleted with members")
        group.assignment_epoch = -1
        return
    assert isinstance(value, StreamsGroupTargetAssignmentMetadataValue)
    group.assignment_epoch, group.assignment_time_ms = value.assignment_epoch, value.assignment_timestamp


def _replay_target(group: StreamsGroup, member_id: str, value: object) -> None:
    if value is None:
        group.targets.pop(member_id, None)
        return
    assert isinstance(value, StreamsGroupTargetAssignmentMemberValue)
    group.targets[member_id] = tasks_of(value.active_tasks, value.standby_tasks, value.warmup_tasks)


def _replay_assignment(group: StreamsGroup, member_id: str, value: object) -> None:
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            group.members[member_id] = replace(
                old, member_epoch=LEFT_EPOCH, previous_member_epoch=LEFT_EPOCH, assigned={}, pending_revocation={}
            )
        return
    assert isinstance(value, current_value.StreamsGroupCurrentMemberAssignmentValue)
    epoch = value.member_epoch
    group.members[member_id] = replace(
        old or StreamsMember(member_id),
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=_read_tasks(epoch, value.active_tasks, value.standby_tasks, value.warmup_tasks),
        pending_revocation=_read_tasks(
            epoch,
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
        ),
    )


def _read_tasks(member_epoch: int, *roles: Sequence[current_value.TaskIds]) -> TaskEpochs:
    """Where they don't all have an epoch, as in what older versions wrote, tasks count from the member's."""
    tasks = {}
    for role, some in zip(Role, roles, strict=True):
        for one in some:
            epochs = one.assignment_epochs or ()
            if len(epochs) != len(one.partitions):
                epochs = [member_epoch] * len(one.partitions)
            for partition, epoch in zip(one.partitions, epochs, strict=True):
                tasks[Task(role, one.subtopology_id, partition)] = epoch
    return tasks


def _require(is_in_order: bool, trouble: str) -> None:
    if not is_in_order:
        raise MalformedMessage(trouble)
