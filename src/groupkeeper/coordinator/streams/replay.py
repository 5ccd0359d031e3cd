"""Records of a streams group (key types 17, 19 to 23) become its state, and are removed with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks
from groupkeeper.coordinator.epochs.log import GroupLog, RecordClasses
from groupkeeper.coordinator.kernel.result import Record
from groupkeeper.coordinator.streams.group import StreamsGroup, StreamsMember, TaskEpochs, UserEndpoint
from groupkeeper.coordinator.streams.topology import TopologyRecord
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import streams_group_current_member_assignment_value as current_value
from groupkeeper.protocol.offsets_topic import Tombstone


class _TaskIds(Protocol):
    """Tasks of one subtopology in a message."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> Sequence[int]: ...


def tasks_of(*roles: Iterable[_TaskIds]) -> frozenset[Task]:
    """Tasks from the lists of a message: active, standby and warm-up ones."""
    return frozenset(
        Task(role, one.subtopology_id, partition)
        for role, some in zip(TaskRole, roles, strict=True)
        for one in some
        for partition in one.partitions
    )


def _read_tasks(member_epoch: int, *roles: Sequence[current_value.TaskIds]) -> TaskEpochs:
    """Reads tasks. If not all of them have an epoch, as in records of older versions, the member's epoch is used."""
    tasks = {}
    for role, some in zip(TaskRole, roles, strict=True):
        for one in some:
            epochs = one.assignment_epochs or ()
            if len(epochs) != len(one.partitions):
                epochs = [member_epoch] * len(one.partitions)
            for partition, epoch in zip(one.partitions, epochs, strict=True):
                tasks[Task(role, one.subtopology_id, partition)] = epoch
    return tasks


class StreamsLog(GroupLog[StreamsGroup, StreamsMember, Tasks]):
    classes = RecordClasses(
        m.StreamsGroupMetadataKey,
        m.StreamsGroupMemberMetadataKey,
        m.StreamsGroupTargetAssignmentMetadataKey,
        m.StreamsGroupTargetAssignmentMetadataValue,
        m.StreamsGroupTargetAssignmentMemberKey,
        m.StreamsGroupCurrentMemberAssignmentKey,
    )
    left: ClassVar = {"assigned": {}, "pending_revocation": {}}
    member_class = StreamsMember

    def take_epoch(self, group: StreamsGroup, value: m.StreamsGroupMetadataValue) -> None:
        super().take_epoch(group, value)
        group.validated_topology_epoch = value.validated_topology_epoch
        group.assignment_configs = {one.key: one.value for one in value.last_assignment_configs or ()}
        group.described_epoch = value.stored_description_topology_epoch
        group.refused_epoch = value.failed_description_topology_epoch

    def read_member(self, member: StreamsMember, value: m.StreamsGroupMemberMetadataValue) -> StreamsMember:
        endpoint = value.user_endpoint
        return replace(
            member,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags=tuple(sorted((tag.key, tag.value) for tag in value.client_tags)),
        )

    def read_target(self, value: m.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
        return tasks_of(value.active_tasks, value.standby_tasks, value.warmup_tasks)

    def read_assignment(
        self, member: StreamsMember, value: current_value.StreamsGroupCurrentMemberAssignmentValue
    ) -> StreamsMember:
        epoch = value.member_epoch
        return replace(
            member,
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

    def take_other(
        self, group: StreamsGroup, key: m.StreamsGroupTopologyKey, value: m.StreamsGroupTopologyValue | None
    ) -> None:
        group.topology = None if value is None else TopologyRecord(value)

    def other_tombstones(self, group: StreamsGroup) -> tuple[list[Record], list[Record]]:
        return [], [Tombstone(m.StreamsGroupTopologyKey(group.group_id))]


LOG = StreamsLog()
