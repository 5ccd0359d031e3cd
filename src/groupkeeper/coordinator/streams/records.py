"""The records of a streams group, in Apache Kafka's format: types 17 and 19 to 23."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember, TaskEpochs
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_current_member_assignment_value as current_value
from groupkeeper.protocol.messages import streams_group_member_metadata_value as member_value
from groupkeeper.protocol.messages import streams_group_metadata_value as group_value
from groupkeeper.protocol.messages import streams_group_target_assignment_member_value as target_value
from groupkeeper.protocol.offsets_topic import Entry

T_co = TypeVar("T_co", covariant=True)


class _MakesTaskIds(Protocol[T_co]):
    """A message's class for the tasks of one subtopology: each message has its own."""

    def __call__(self, subtopology_id: str, partitions: list[int], /) -> T_co: ...


def task_ids(tasks: Iterable[Task], role: TaskRole, make: _MakesTaskIds[T_co]) -> list[T_co]:
    """The tasks of a role in the form of messages: by subtopology, sorted."""
    partitions: dict[str, list[int]] = {}
    for task in sorted(tasks):
        if task.role is role:
            partitions.setdefault(task.subtopology_id, []).append(task.partition)
    return [make(subtopology_id, some) for subtopology_id, some in partitions.items()]


def epoch_record(group: StreamsGroup) -> Entry:
    """The group's epoch, the state for which it was raised, and the topology epoch of the stored description."""
    configs = group.assignment_configs
    value = group_value.StreamsGroupMetadataValue(
        group.group_epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        [group_value.LastAssignmentConfig(name, configs[name]) for name in sorted(configs)],
        group.described_epoch,
        group.refused_epoch,
    )
    return Entry(m.StreamsGroupMetadataKey(group.group_id), value)


def topology_record(group_id: str, topology: m.StreamsGroupTopologyValue) -> Entry:
    """The topology of the group."""
    return Entry(m.StreamsGroupTopologyKey(group_id), topology)


def member_record(group_id: str, member: StreamsMember) -> Entry:
    """A member's description."""
    value = member_value.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if member.endpoint is None else member_value.Endpoint(*member.endpoint),
        client_tags=[member_value.KeyValue(*tag) for tag in member.client_tags],
    )
    return Entry(m.StreamsGroupMemberMetadataKey(group_id, member.member_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> Entry:
    """A member's target assignment."""
    value = target_value.StreamsGroupTargetAssignmentMemberValue(
        *(task_ids(target, role, target_value.TaskIds) for role in TaskRole)
    )
    return Entry(m.StreamsGroupTargetAssignmentMemberKey(group_id, member_id), value)


def assignment_record(group_id: str, member: StreamsMember) -> Entry:
    """A member's current assignment, with its state and epoch."""
    value = current_value.StreamsGroupCurrentMemberAssignmentValue(
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        *(_with_epochs(member.assigned, role) for role in TaskRole),
        *(_with_epochs(member.pending_revocation, role) for role in TaskRole),
    )
    return Entry(m.StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _with_epochs(tasks: TaskEpochs, role: TaskRole) -> list[current_value.TaskIds]:
    """Tasks of a role for the record; only active tasks get their assignment epochs."""

    def make(subtopology_id: str, partitions: list[int]) -> current_value.TaskIds:
        if role is not TaskRole.ACTIVE:
            return current_value.TaskIds(subtopology_id, partitions)
        epochs = [tasks[Task(role, subtopology_id, partition)] for partition in partitions]
        return current_value.TaskIds(subtopology_id, partitions, epochs)

    return task_ids(tasks, role, make)
