"""One operation on a streams group while it is being computed: its records, and the group after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from groupkeeper.coordinator.assignors.spec import Tasks
from groupkeeper.coordinator.assignors.tasks import TaskMember, assign
from groupkeeper.coordinator.epochs.step import EpochStep
from groupkeeper.coordinator.kernel.result import Arm, Meter
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import StreamsDelay, StreamsRevocation, StreamsSession
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.streams import records
from groupkeeper.coordinator.streams.group import (
    NOT_VALIDATED,
    UNREVOKED_TASKS,
    StreamsGroup,
    StreamsMember,
    StreamsSoft,
)
from groupkeeper.coordinator.streams.reconcile import TaskGoal, reconcile_tasks
from groupkeeper.coordinator.streams.replay import LOG
from groupkeeper.coordinator.streams.topology import ConfiguredTopology, StatusCode, TopologyProblem, configure


class StreamsStep(EpochStep[StreamsGroup]):
    """Attributes:
    statuses: the statuses of the response, with their texts.
    """

    log = LOG
    session = StreamsSession
    records: ClassVar = records
    revocation = StreamsRevocation
    revoking = UNREVOKED_TASKS
    rebalance = Meter.STREAMS_GROUP_REBALANCE
    soft: StreamsSoft

    def __init__(self, group: StreamsGroup, settings: Settings, topics: TopicsImage, now_ms: int) -> None:
        super().__init__(group, settings, topics, now_ms)
        self.statuses: list[TopologyProblem] = []

    @property
    def interval_ms(self) -> int:
        return self.settings.group_streams_assignment_interval_ms

    @classmethod
    def session_ms(cls, member: StreamsMember, settings: Settings) -> int:
        return settings.group_streams_session_timeout_ms

    # --- topology and epochs

    def configure(self) -> ConfiguredTopology:
        """The topology, checked against the present topics."""
        topology = self.group.topology
        assert topology is not None
        soft = self.soft
        configured = soft.configured
        if configured is not None and soft.checked_version == self.topics.version:
            return configured
        metadata_hash = self.topics.metadata_hash(topology.topics)
        if configured is None or metadata_hash != soft.metadata_hash:
            configured = configure(topology, self.topics)
        self.soft = replace(
            soft, checked_version=self.topics.version, metadata_hash=metadata_hash, configured=configured
        )
        return configured

    def refresh(self, configured: ConfiguredTopology, *, must_bump: bool) -> None:
        """Raises the group epoch if members, topics, topology or settings changed; that is a rebalance."""
        group = self.group
        assert group.topology is not None
        validated = group.topology.epoch if configured.problem is None else NOT_VALIDATED
        configs = assignment_configs(self.settings)
        known = (group.metadata_hash, group.validated_topology_epoch, group.assignment_configs)
        metadata_hash = self.soft.metadata_hash
        if not must_bump and known == (metadata_hash, validated, configs):
            return
        self.bump(metadata_hash=metadata_hash, validated_topology_epoch=validated, assignment_configs=configs)
        self.count_rebalance()

    def bump(self, **changes: Any) -> None:
        group = self.group
        self.write(records.epoch_record(replace(group, group_epoch=group.group_epoch + 1, **changes)))

    # --- target

    def delay_first_assignment(self) -> None:
        """Lets the first member of an empty group wait a while for others."""
        delay_ms = self.settings.group_streams_initial_rebalance_delay_ms
        if self.logged.members or delay_ms <= 0 or self.soft.is_delayed:
            return
        self.soft = replace(self.soft, is_delayed=True)
        self.arm(Arm(StreamsDelay(self.group.group_id), delay_ms))

    def update_target(self, configured: ConfiguredTopology) -> None:
        """Computes a new target assignment when one is due."""
        if not self.soft.is_delayed and not self.is_behind:
            return
        if self.soft.is_delayed or self.is_too_early:
            what = "initial rebalance delay" if self.soft.is_delayed else "assignment interval"
            detail = f"Assignment delayed due to the configured {what}."
            self.statuses.append(TopologyProblem(StatusCode.ASSIGNMENT_DELAYED, detail))
        else:
            self.write_targets(compute_targets(self.group, configured))

    # --- members

    def reconcile(self, member_id: str, reported: Tasks | None) -> StreamsMember:
        """Moves a member towards its target as far as other owners allow now, and returns it."""
        group = self.group
        member = group.members[member_id]
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        target = frozenset() if self.soft.is_delayed else group.targets.get(member_id, frozenset())
        updated = reconcile_tasks(member, TaskGoal(group.assignment_epoch, target, group.members.values(), reported))
        if updated == member:
            return member
        self.write(records.assignment_record(group.group_id, updated))
        self.follow_revocation(updated)
        return updated

    def remove_members(self, member_ids: Iterable[str]) -> None:
        super().remove_members(member_ids)
        if not self.group.members:
            self.soft = replace(self.soft, shutdown_member_id=None)


def assignment_configs(settings: Settings) -> dict[str, str]:
    """The settings that assignments depend on, in the form of the log."""
    configs = {"num.standby.replicas": str(settings.group_streams_num_standby_replicas)}
    if settings.group_streams_rack_aware_assignment_tags:
        configs["rack.aware.assignment.tags"] = ",".join(settings.group_streams_rack_aware_assignment_tags)
    return configs


def compute_targets(group: StreamsGroup, configured: ConfiguredTopology) -> dict[str, Tasks]:
    """Every member's target tasks: none while topics are missing."""
    assert group.topology is not None
    if configured.problem is not None:
        return dict.fromkeys(group.members, frozenset())
    members = {
        member_id: TaskMember(member.process_id, group.targets.get(member_id, frozenset()))
        for member_id, member in group.members.items()
    }
    stateful = {one.subtopology_id for one in group.topology.value.subtopologies if one.state_changelog_topics}
    standby_count = int(group.assignment_configs.get("num.standby.replicas", "0"))
    return assign(members, configured.task_counts, stateful, standby_count)
