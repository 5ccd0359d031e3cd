"""A streams group (KIP-1071): members run tasks of a topology. Its state is in the log, except for `StreamsSoft`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, TypeAlias

from groupkeeper.coordinator.assignors.spec import Task, TaskRole, Tasks
from groupkeeper.coordinator.epochs.group import EpochGroup, EpochMember, reconciled_state
from groupkeeper.coordinator.kernel.group import GroupState, GroupType
from groupkeeper.coordinator.kernel.topics_image import TopicsImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.coordinator.streams.topology import ConfiguredTopology, TopologyRecord
    from groupkeeper.protocol.messages.streams_group_describe_response import TopologyDescription

NOT_DESCRIBED: Final = -1
IN_DOUBT: Final = -2
"""NOT_DESCRIBED: no description is stored. IN_DOUBT: nor is it known, as a coordinator was just storing one."""
NOT_VALIDATED: Final = -1
"""The validated topology epoch of a group with missing or incorrectly partitioned topics."""

STABLE: Final = 1
UNREVOKED_TASKS: Final = 2
UNRELEASED_TASKS: Final = 3


TaskEpochs: TypeAlias = Mapping[Task, int]
"""Tasks with the assignment epoch in which the member got them, which is meaningful for active tasks only."""


class UserEndpoint(NamedTuple):
    """The address at which a member answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember(EpochMember):
    """A member of a streams group."""

    instance_id: str | None = None
    """None: a dynamic member."""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    """None: it answers no interactive queries."""
    client_tags: tuple[tuple[str, str], ...] = ()
    """(key, value), sorted by key."""
    state: int = STABLE
    """STABLE, UNREVOKED_TASKS or UNRELEASED_TASKS, or a number that a later version wrote."""
    assigned: TaskEpochs = field(default_factory=dict)
    pending_revocation: TaskEpochs = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol, which no member of a streams group does."""
        return False

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has its target assignment of that epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


class Asked(NamedTuple):
    """The last request for a topology's description: `before` counts earlier ones; no request before `until_ms`."""

    topology_epoch: int
    before: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class StreamsSoft:
    """State that is not in the log, and lost by a restart."""

    checked_version: int = -2
    """Version of the `TopicsImage` in which the topology's topics were last checked for changes."""
    metadata_hash: int = 0
    """Fingerprint of the topology's topics in that version."""
    configured: ConfiguredTopology | None = None
    """The topology with the numbers of partitions that the topics have; None until a heartbeat needs it."""
    is_delayed: bool = False
    """Whether the first assignment waits for more members."""
    shutdown_member_id: str | None = None
    """The member that requested the shutdown of the whole application; None: none."""
    endpoint_epoch: int = 0
    """Incremented when a heartbeat changes a member's endpoint, or the tasks of a member that has one."""
    description: tuple[int, TopologyDescription] | None = None
    """The topology's epoch and description; None: no member has sent one."""
    asked: Asked | None = None
    """The last request for a description; None: none, or a description came."""


@dataclass(slots=True)
class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    """A streams group."""

    group_type: ClassVar = GroupType.STREAMS

    validated_topology_epoch: int = NOT_VALIDATED
    """Epoch of the topology whose topics were all there at the last rebalance; else NOT_VALIDATED."""
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    """The settings that assignments depend on, at the last rebalance, as texts by name."""
    described_epoch: int = NOT_DESCRIBED
    """Epoch of the topology whose description was stored; NOT_DESCRIBED, or IN_DOUBT."""
    refused_epoch: int = NOT_DESCRIBED
    """Epoch of the topology whose description a plug-in of Kafka has refused for good; −1: none."""
    topology: TopologyRecord | None = None
    """None: the log has none (yet); the next member that joins sends it."""
    soft: StreamsSoft = StreamsSoft()

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        members = () if instance_id is None else self.members.values()
        return next((one for one in members if one.instance_id == instance_id), None)

    @property
    def state(self) -> GroupState:
        has_no_topics = self.topology is None or self.topology.epoch != self.validated_topology_epoch
        return GroupState.NOT_READY if self.members and has_no_topics else reconciled_state(self)

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_by_source

    def since(
        self, member: StreamsMember, topics: TopicsImage, topic: str, topic_id: bytes, partition: int
    ) -> int | None:
        """The epoch in which a member got the task that reads a partition; None when it does not have it. Topics are
        compared by name.
        """
        if self.topology is None or topic not in self.topology.subtopology_by_source:
            return None
        task = Task(TaskRole.ACTIVE, self.topology.subtopology_by_source[topic], partition)
        return member.assigned.get(task, member.pending_revocation.get(task))
