"""One operation on a streams group in the making: its records, and the group as it will be."""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.assignors.tasks import TaskMember, assign
from groupkeeper.coordinator.kernel.result import Meter, Record, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import Arm, Disarm, StreamsDelay, StreamsRevocation, StreamsSession
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.streams import records
from groupkeeper.coordinator.streams.group import (
    NOT_VALIDATED,
    UNREVOKED_TASKS,
    StreamsChange,
    StreamsGroup,
    StreamsMember,
    StreamsSoft,
    Tasks,
)
from groupkeeper.coordinator.streams.reconcile import TaskGoal, reconcile_tasks
from groupkeeper.coordinator.streams.replay import replay
from groupkeeper.coordinator.streams.topology import ConfiguredTopology, StatusCode, Trouble, configure
from groupkeeper.protocol.primitives import Message


class StreamsStep:
    """Starts from a group as the log has it; `write` moves a copy of it along with the records.

    Attributes:
        group: the group after what was written so far.
        soft: what it will know beyond the log.
        topics: the topics of the cluster.
        told: the statuses of the reply beside the tasks.
    """

    def __init__(self, group: StreamsGroup, settings: Settings, topics: TopicsImage, now_ms: int) -> None:
        self.group = group
        self.soft = group.soft
        self.topics = topics
        self.told: list[Trouble] = []
        self._settings = settings
        self._now_ms = now_ms
        self._first = group
        self._records: list[Record] = []
        self._timers: list[Arm | Disarm] = []
        self._marks: list[tuple[Meter, int]] = []

    def start_with(self, *written: Record) -> None:
        """Records that make room for the group: nothing of it is changed by them."""
        self._records.extend(written)

    def write(self, *written: Record) -> None:
        """Adds records, and lets the group be what they make of it."""
        if self.group is self._first:
            self.group = self.group.fork()
        for record in written:
            self._records.append(record)
            replay(self.group, record)

    # --- topology and epochs

    def configure(self) -> ConfiguredTopology:
        """The topology over the topics as they are now."""
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
        validated = group.topology.epoch if configured.trouble is None else NOT_VALIDATED
        configs = assignment_configs(self._settings)
        known = (group.metadata_hash, group.validated_topology_epoch, group.assignment_configs)
        metadata_hash = self.soft.metadata_hash
        if not must_bump and known == (metadata_hash, validated, configs):
            return
        self.write(records.epoch_record(group.group_id, group.group_epoch + 1, metadata_hash, validated, configs))
        self._marks.append((Meter.STREAMS_GROUP_REBALANCE, 1))

    # --- target

    def delay_first_assignment(self) -> None:
        """The first member of an empty group waits a while for others."""
        delay_ms = self._settings.group_streams_initial_rebalance_delay_ms
        if self._first.members or delay_ms <= 0 or self.soft.is_delayed:
            return
        self.soft = replace(self.soft, is_delayed=True)
        self._timers.append(Arm(StreamsDelay(self.group.group_id), delay_ms))

    def end_delay(self) -> None:
        """The first members have waited long enough."""
        self.soft = replace(self.soft, is_delayed=False)

    def update_target(self, configured: ConfiguredTopology) -> None:
        """Computes a new target assignment when one is due."""
        group = self.group
        if self.soft.is_delayed:
            detail = "Assignment delayed due to the configured initial rebalance delay."
            self.told.append(Trouble(StatusCode.ASSIGNMENT_DELAYED, detail))
            return
        if group.assignment_epoch >= group.group_epoch:
            return
        interval_ms = self._settings.group_streams_assignment_interval_ms
        if group.assignment_time_ms <= self._now_ms < group.assignment_time_ms + interval_ms:
            detail = "Assignment delayed due to the configured assignment interval."
            self.told.append(Trouble(StatusCode.ASSIGNMENT_DELAYED, detail))
            return
        targets = compute_targets(group, configured)
        changed = [
            records.target_record(group.group_id, member_id, target)
            for member_id, target in targets.items()
            if group.targets.get(member_id) != target
        ]
        self.write(*changed, records.target_epoch_record(group.group_id, group.group_epoch, self._now_ms))

    # --- members

    def reconcile(self, member_id: str, reported: Tasks | None) -> StreamsMember:
        """Brings a member as near to its target as it goes now, and returns it."""
        group = self.group
        member = group.members[member_id]
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        target = frozenset() if self.soft.is_delayed else group.targets.get(member_id, frozenset())
        updated = reconcile_tasks(member, TaskGoal(group.assignment_epoch, target, group.members.values(), reported))
        if updated == member:
            return member
        self.write(records.assignment_record(group.group_id, updated))
        timer = StreamsRevocation(group.group_id, member_id)
        is_revoking = updated.state == UNREVOKED_TASKS
        self._timers.append(Arm(timer, updated.rebalance_timeout_ms) if is_revoking else Disarm(timer))
        return updated

    def arm_session(self, member_id: str) -> None:
        """The member was heard of."""
        self._timers.append(session_timer(self.group.group_id, member_id, self._settings))

    def remove_member(self, member_id: str) -> None:
        """Removes a member; raises the group epoch."""
        group = self.group
        group_id = group.group_id
        self.write(
            *records.member_tombstones(group_id, member_id),
            records.epoch_record(
                group_id,
                group.group_epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            ),
        )
        self._timers.append(Disarm(StreamsSession(group_id, member_id)))
        self._timers.append(Disarm(StreamsRevocation(group_id, member_id)))
        if not self.group.members:
            self.soft = replace(self.soft, shutdown_member_id=None)

    def result(self, response: Message | None) -> Result:
        """Everything that was decided."""
        soft: StreamsSoft = self.soft
        return Result(
            response,
            records=tuple(self._records),
            timers=tuple(self._timers),
            soft=() if soft == self._first.soft else (StreamsChange(self.group.group_id, soft),),
            marks=tuple(self._marks),
        )


def session_timer(group_id: str, member_id: str, settings: Settings) -> Arm:
    """The time within which a member must be heard of."""
    return Arm(StreamsSession(group_id, member_id), settings.group_streams_session_timeout_ms)


def assignment_configs(settings: Settings) -> dict[str, str]:
    """The settings that assignments depend on, as the log has them."""
    return {"num.standby.replicas": str(settings.group_streams_num_standby_replicas)}


def compute_targets(group: StreamsGroup, configured: ConfiguredTopology) -> dict[str, Tasks]:
    """What every member is to have: nothing while topics are missing."""
    assert group.topology is not None
    if configured.trouble is not None:
        return dict.fromkeys(group.members, frozenset())
    members = {
        member_id: TaskMember(member.process_id, group.targets.get(member_id, frozenset()))
        for member_id, member in group.members.items()
    }
    stateful = {one.subtopology_id for one in group.topology.value.subtopologies if one.state_changelog_topics}
    standby_count = int(group.assignment_configs.get("num.standby.replicas", "0"))
    return assign(members, configured.task_counts, stateful, standby_count)
