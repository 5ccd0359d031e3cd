"""A streams group (KIP-1071): members run tasks of a topology. Its state is in the log, except for `StreamsSoft`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple, TypeAlias

from groupkeeper.coordinator.epochs.group import EpochGroup, reconciled_state
from groupkeeper.coordinator.kernel.group_state import GroupState, GroupType
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


class TaskRole(IntEnum):
    """The role of a member in a task: processing it, or keeping a copy of its state. Kafka 4.4.0 assigns no warm-up
    tasks.
    """

    ACTIVE = 0
    STANDBY = 1
    WARMUP = 2


class Task(NamedTuple):
    """A partition of a subtopology, in a role."""

    role: TaskRole
    subtopology_id: str
    partition: int


Tasks: TypeAlias = frozenset[Task]
TaskEpochs: TypeAlias = Mapping[Task, int]
"""Tasks with the assignment epoch in which the member got them, which is meaningful for active tasks only."""


class UserEndpoint(NamedTuple):
    """The address at which a member answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member. `client_tags` is sorted by key. `state` is STABLE, UNREVOKED_TASKS or UNRELEASED_TASKS, or a number
    that a later version wrote.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
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
    """State that is not in the log, and lost by a restart.

    Attributes:
        checked_version: version of the `TopicsImage` in which the topology's topics were last checked for changes.
        metadata_hash: fingerprint of the topology's topics in that version.
        configured: the topology with the numbers of partitions that the topics have; None until a heartbeat needs it.
        is_delayed: whether the first assignment waits for more members.
        shutdown_member_id: the member that requested the shutdown of the whole application; None for none.
        endpoint_epoch: incremented when the known endpoints change.
        description: the description of the topology, with the topology's epoch; None until a member has sent one.
        asked: the last request for a description; None: never.
    """

    checked_version: int = -2
    metadata_hash: int = 0
    configured: ConfiguredTopology | None = None
    is_delayed: bool = False
    shutdown_member_id: str | None = None
    endpoint_epoch: int = 0
    description: tuple[int, TopologyDescription] | None = None
    asked: Asked | None = None


@dataclass(slots=True)
class StreamsGroup(EpochGroup[StreamsMember, Tasks]):
    """A streams group.

    Attributes:
        topology: None only while the group's log is being read.
        validated_topology_epoch: epoch of the topology that had all its topics when the group epoch was bumped.
        assignment_configs: the settings at the last bump of the group epoch, as texts by name.
        described_epoch: epoch of the topology whose description is kept; NOT_DESCRIBED, or IN_DOUBT.
        refused_epoch: epoch of the topology whose description a plug-in of Kafka has refused for good; -1 for none.
    """

    group_type: ClassVar = GroupType.STREAMS

    validated_topology_epoch: int = NOT_VALIDATED
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    described_epoch: int = NOT_DESCRIBED
    refused_epoch: int = NOT_DESCRIBED
    topology: TopologyRecord | None = None
    soft: StreamsSoft = StreamsSoft()

    def static_member(self, instance_id: str) -> StreamsMember | None:
        """The member of that instance id, or None."""
        return next((one for one in self.members.values() if one.instance_id == instance_id), None)

    @property
    def state(self) -> GroupState:
        has_no_topics = self.topology is None or self.topology.epoch != self.validated_topology_epoch
        return GroupState.NOT_READY if self.members and has_no_topics else reconciled_state(self)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of the topic are in use."""
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
