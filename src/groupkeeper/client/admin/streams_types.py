"""Types that describe streams groups, in a module of their own because few programs need them."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupState, GroupType
from groupkeeper.client.topology import Node


class StreamsTask(NamedTuple):
    """A task of a Kafka Streams application: a subtopology and a partition number."""

    subtopology_id: str
    partition: int


class StreamsTasks(NamedTuple):
    """The tasks of a member of a streams group, by role: active, standby or warm-up."""

    active: tuple[StreamsTask, ...] = ()
    standby: tuple[StreamsTask, ...] = ()
    warmup: tuple[StreamsTask, ...] = ()


class StreamsTopic(NamedTuple):
    """An internal topic of a streams group. `partitions` is 0 when other topics determine their number."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class StreamsSubtopology(NamedTuple):
    """A subtopology. Its tasks read the source topics and the internal repartition topics."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: tuple[StreamsTopic, ...] = ()
    repartition_source_topics: tuple[StreamsTopic, ...] = ()


class StreamsNode(NamedTuple):
    """A node of a topology: a `source` with the topics that it reads, a `processor`, or a `sink` with the topic
    that it writes, none if the application computes the topic.
    """

    name: str
    kind: str
    topics: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class StreamsTopology(NamedTuple):
    """An application's description of its topology (KIP-1331): the nodes by subtopology id, and those of each global
    store.
    """

    subtopologies: tuple[tuple[str, tuple[StreamsNode, ...]], ...] = ()
    global_stores: tuple[tuple[StreamsNode, ...], ...] = ()


class TopologyStatus(Enum):
    """Whether a description has the application's topology; FAILED: the broker could not fetch it."""

    NOT_ASKED = 0
    NOT_STORED = 1
    FAILED = 2
    THERE = 3


class StreamsMemberDescription(NamedTuple):
    """A member of a streams group (KIP-1071)."""

    member_id: str
    client_id: str
    host: str
    member_epoch: int
    process_id: str
    """The member's process, which holds its state stores."""
    topology_epoch: int
    assignment: StreamsTasks = StreamsTasks()
    target_assignment: StreamsTasks = StreamsTasks()
    instance_id: str | None = None
    """None: a dynamic member."""
    rack_id: str | None = None
    """None: the member named none."""
    endpoint: tuple[str, int] | None = None
    """The (host, port) where the process answers interactive queries; None: it names none."""
    client_tags: tuple[tuple[str, str], ...] = ()
    task_offsets: tuple[tuple[StreamsTask, int], ...] = ()
    """The cumulative changelog offsets of its tasks."""
    task_end_offsets: tuple[tuple[StreamsTask, int], ...] = ()
    """The cumulative changelog end offsets of its tasks."""
    is_classic: bool = False


class StreamsGroupDescription(NamedTuple):
    """A group of Kafka Streams instances (KIP-1071): NotReady while topics are missing, else as a consumer group."""

    group_id: str
    group_state: GroupState
    members: tuple[StreamsMemberDescription, ...]
    coordinator: Node
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int | None = None
    """None before a member has sent the group's topology."""
    subtopologies: tuple[StreamsSubtopology, ...] = ()
    """() before a member has sent the group's topology."""
    authorized_operations: frozenset[str] | None = None
    """None unless requested."""
    assignor: str | None = None
    """None: the broker is older than 4.4."""
    topology_status: TopologyStatus = TopologyStatus.NOT_ASKED
    topology: StreamsTopology | None = None
    """None unless `topology_status` is THERE."""

    @property
    def group_type(self) -> GroupType:
        """Always Streams; descriptions of all types of groups have this property."""
        return GroupType.STREAMS
