"""Typed results and arguments of the Admin calls. Plain immutable values, in Kafka's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import NamedTuple

from groupkeeper.client.batch import Batch as Batch
from groupkeeper.client.batch import Failure as Failure
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.client.topology import Node as Node
from groupkeeper.client.topology import TopicPartition as TopicPartition
from groupkeeper.protocol.errors import KafkaError


class GroupState(StrEnum):
    """State of a group, spelled as Kafka sends it. A state that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"

    @classmethod
    def parse(cls, text: str) -> GroupState:
        """The state named so, whatever the case; UNKNOWN for any other text."""
        return _STATE_BY_TEXT.get(text) or _STATE_BY_TEXT.get(text.lower(), cls.UNKNOWN)


class GroupType(StrEnum):
    """Protocol of a group. A type that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "Unknown"
    CONSUMER = "Consumer"
    CLASSIC = "Classic"
    SHARE = "Share"
    STREAMS = "Streams"

    @classmethod
    def parse(cls, text: str) -> GroupType:
        """The type named so, whatever the case; UNKNOWN for any other text."""
        return _TYPE_BY_TEXT.get(text) or _TYPE_BY_TEXT.get(text.lower(), cls.UNKNOWN)


_STATE_BY_TEXT = {text: state for state in GroupState for text in (state.value, state.value.lower())}
_TYPE_BY_TEXT = {text: kind for kind in GroupType for text in (kind.value, kind.value.lower())}


class OffsetAndMetadata(NamedTuple):
    """A committed offset. `leader_epoch` None: not known. `metadata`: the committer's text, "" for none."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


class CommittedOffsets(NamedTuple):
    """The committed offsets of a group, by column. `failed`: failures of partitions, which are in no column.

    `offsets` are −1 where nothing is committed, `leader_epochs` −1 where none is known. Groups with offsets in the
    same partitions mostly have the same object as `partitions`.
    """

    partitions: tuple[TopicPartition, ...]
    offsets: Sequence[int]
    leader_epochs: Sequence[int]
    metadata: Sequence[str | None]
    failed: dict[TopicPartition, Failure]


class GroupListing(NamedTuple):
    """One group of list_groups. State and type are None when the broker is too old to tell."""

    group_id: str
    protocol_type: str
    group_state: GroupState | None
    group_type: GroupType | None

    @property
    def is_simple(self) -> bool:
        """A classic group without a protocol: offsets were committed, no member joined."""
        return self.group_type is GroupType.CLASSIC and self.protocol_type == ""


class GroupListings(NamedTuple):
    """The groups of all brokers merged by group id, and the brokers that could not be listed.

    `groups` may be used when some brokers failed: it then lacks the groups that the failed brokers coordinate.
    """

    groups: dict[str, GroupListing]
    failed: dict[Node, Failure]

    def all(self) -> dict[str, GroupListing]:
        """All groups; raises the first failure when a broker failed, with Apache's text that names the broker."""
        for node, failure in self.failed.items():
            raise type(failure)(f"Error listing groups on {node}: {failure}") from failure
        return self.groups


class MemberDescription(NamedTuple):
    """A member of a classic or consumer group (KIP-1099)."""

    member_id: str
    instance_id: str | None
    """None: a dynamic member."""
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...] = ()
    """The partitions that the member owns now, in the order sent."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """None in a classic group."""
    member_epoch: int | None = None
    """None in a classic group."""
    upgraded: bool | None = None
    """False: still uses the classic protocol; None: in a classic group, or the broker did not report it."""
    rack_id: str | None = None
    """None: the member named none, or the group is classic."""
    subscribed_topics: tuple[str, ...] | None = None
    """None when not known: a classic group that isn't Stable, or whose metadata isn't a consumer's."""
    subscribed_topic_regex: str | None = None
    """None: there is none, or the group is classic."""
    metadata: bytes = b""
    """Raw bytes of a classic group's member, like `assignment_blob`; b"" in a consumer group."""
    assignment_blob: bytes = b""
    is_assignment_readable: bool = True
    """False: `assignment_blob` has an unknown form, so `assignment` is empty."""


class ConsumerGroupDescription(NamedTuple):
    """A group of consumers, of type Classic or Consumer."""

    group_id: str
    group_type: GroupType
    group_state: GroupState
    is_simple: bool
    partition_assignor: str
    """Empty when no assignor was agreed on."""
    members: tuple[MemberDescription, ...]
    coordinator: Node
    group_epoch: int | None = None
    """None for a classic group."""
    target_assignment_epoch: int | None = None
    """None for a classic group."""
    authorized_operations: frozenset[str] | None = None
    """None unless requested."""


class ClassicGroupDescription(NamedTuple):
    """A group of the classic protocol, of any protocol type: consumers, Connect workers …."""

    group_id: str
    protocol_type: str
    protocol: str
    """The protocol that the group chose (for consumers: the assignor); empty when it isn't Stable."""
    group_state: GroupState
    members: tuple[MemberDescription, ...]
    coordinator: Node
    authorized_operations: frozenset[str] | None = None
    """None unless requested."""

    @property
    def is_simple(self) -> bool:
        """True when no member ever joined: the group only holds offsets."""
        return self.protocol_type == ""


class ShareMemberDescription(NamedTuple):
    """A member of a share group. A partition may be assigned to several members."""

    member_id: str
    client_id: str
    host: str
    member_epoch: int
    assignment: tuple[TopicPartition, ...] = ()
    """Partitions that it fetches from, in the order sent."""
    rack_id: str | None = None
    """None: the member named none."""
    subscribed_topics: tuple[str, ...] = ()


class ShareGroupDescription(NamedTuple):
    """A share group (KIP-932): its states are Stable, Empty and Dead."""

    group_id: str
    group_state: GroupState
    members: tuple[ShareMemberDescription, ...]
    coordinator: Node
    group_epoch: int
    """Grows with every change of the members, their subscriptions, or the topics that they read."""
    target_assignment_epoch: int
    """The group epoch of the target assignment; lower while a new one is computed."""
    partition_assignor: str = ""
    authorized_operations: frozenset[str] | None = None
    """None unless requested."""

    @property
    def group_type(self) -> GroupType:
        """Always Share; descriptions of all types of groups have this property."""
        return GroupType.SHARE


class SharePartitionOffset(NamedTuple):
    """A share group's progress in a partition. All records below `start_offset` are done: acknowledged or archived.
    `lag`: records from there to the end that are not done, including those in flight; None: not known, as no member
    has read the partition yet or the broker is older than 4.2. `leader_epoch` None: not known.
    """

    start_offset: int
    leader_epoch: int | None = None
    lag: int | None = None


class OffsetSpec(NamedTuple):
    """Which offset list_offsets looks for: a ListOffsets timestamp, negative for the special ones."""

    timestamp: int

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset after the last record (read committed: the last stable offset)."""
        return cls(-1)

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The log start offset."""
        return cls(-2)

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The offset and timestamp of the record with the largest timestamp; −1 when there is no record (KIP-734)."""
        return cls(-3)

    @classmethod
    def earliest_local(cls) -> OffsetSpec:
        """The first offset on the leader's disk, with tiered storage (KIP-405)."""
        return cls(-4)

    @classmethod
    def latest_tiered(cls) -> OffsetSpec:
        """The last offset in tiered storage, −1 when there is none (KIP-1005)."""
        return cls(-5)

    @classmethod
    def earliest_pending_upload(cls) -> OffsetSpec:
        """The first offset that isn't in tiered storage yet (KIP-1023)."""
        return cls(-6)

    @classmethod
    def for_timestamp(cls, timestamp_ms: int) -> OffsetSpec:
        """The first record with a timestamp ≥ `timestamp_ms`; the response's offset is −1 when there is none."""
        if timestamp_ms < 0:
            raise IllegalArgument(f"a timestamp must not be negative: {timestamp_ms}")
        return cls(timestamp_ms)


class ListedOffset(NamedTuple):
    """A response of list_offsets. `offset` −1: no such record. `timestamp` in ms, −1 when not known."""

    offset: int
    timestamp: int = -1
    leader_epoch: int | None = None


class Position(NamedTuple):
    """An offset in a partition's log."""

    topic: str
    partition: int
    offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


class FirstRecord(NamedTuple):
    """The first record at or after an offset. `timestamp` in ms, −1: it has none. `is_append_time`: it is the
    broker's append time (LogAppendTime), not the producer's time. `is_transactional`: it belongs to a transaction,
    which may be open or aborted.
    """

    offset: int
    timestamp: int
    is_append_time: bool = False
    is_transactional: bool = False


class MemberToRemove(NamedTuple):
    """The member that remove_members removes: a static one by `instance_id`, or a dynamic one by `member_id`."""

    instance_id: str | None = None
    member_id: str = ""


class All(Enum):
    """Selects all items, for calls where an omitted argument must not mean all."""

    ALL = "ALL"


ALL = All.ALL


class PartitionDescription(NamedTuple):
    """A partition of a TopicDescription."""

    partition: int
    leader: Node | None
    """None: the partition has no leader."""
    leader_epoch: int | None = None
    """None: not known, as with brokers before 2.1."""
    replicas: tuple[int, ...] = ()
    """Broker ids, as in the next two."""
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: KafkaError | None = None
    """The broker's error for this partition, mostly LeaderNotAvailable; None when there is none."""


class TopicDescription(NamedTuple):
    """`topic_id` None: the broker is too old to have ids. `partitions` are in order of their index."""

    name: str
    topic_id: bytes | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[str] | None = None

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, one.partition) for one in self.partitions]


class TopicListing(NamedTuple):
    """A topic of list_topics. `topic_id` is None when the broker is too old to have ids."""

    name: str
    topic_id: bytes | None
    is_internal: bool


class NewTopic(NamedTuple):
    """A topic to create. −1 partitions or replicas: the broker's default. `assignments`: replicas by partition."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str | None] = {}


class CreatedTopic(NamedTuple):
    """A topic from create_topics. None or −1: the broker is too old to tell the value, or the caller may not see it."""

    name: str
    topic_id: bytes | None = None
    """None: not told."""
    num_partitions: int = -1
    replication_factor: int = -1
    configs: dict[str, str | None] | None = None
    """The configs of the new topic, by name; None: not reported."""
    is_new: bool = True
    """False: the topic existed, and was left unchanged (`if_missing`); the other fields are then unknown."""


class ClusterDescription(NamedTuple):
    """`cluster_id` and `controller` are None when not known. `authorized_operations` None unless requested."""

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    authorized_operations: frozenset[str] | None = None


_NOT_ASKED_FOR = -(2**31)

_OPERATION_BY_CODE = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}


def operation_names(bits: int) -> frozenset[str] | None:
    """The operations of the bit field; None when they were not requested, or the broker is too old to return them."""
    if bits == _NOT_ASKED_FOR:
        return None
    return frozenset(name for code, name in _OPERATION_BY_CODE.items() if bits >> code & 1)
