"""A share group (KIP-932): its whole state except `ShareSoft` is in the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.epochs.group import EpochGroup, EpochMember
from groupkeeper.coordinator.kernel.group import GroupState, GroupType


@dataclass(frozen=True, slots=True)
class ShareMember(EpochMember):
    """A member of a share group. It needs no state: it gets its assignment at once."""

    subscribed_topic_names: tuple[str, ...] = ()
    """Sorted."""
    assigned: TargetAssignment = field(default_factory=dict)


class TopicPartitions(NamedTuple):
    """Partitions of a topic, with the topic's name."""

    name: str
    partitions: frozenset[int]


PartitionsByTopic: TypeAlias = Mapping[bytes, TopicPartitions]
"""By topic id; topics without partitions are absent."""


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The life cycle of a group's share-partitions.

    Attributes:
        initializing: the share coordinator must initialize them.
        initialized: the share coordinator has initialized them; they can be assigned.
        deleting: topics (id → name) whose share-partitions it must delete.
    """

    initializing: PartitionsByTopic = field(default_factory=dict)
    initialized: PartitionsByTopic = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)

    @property
    def topic_ids(self) -> frozenset[bytes]:
        """All topics with share-partitions of the group, in any phase."""
        return frozenset((*self.initializing, *self.initialized, *self.deleting))

    def without(self, topic_ids: Collection[bytes]) -> PartitionStates:
        """The share-partitions of other topics."""
        return PartitionStates(
            {topic_id: some for topic_id, some in self.initializing.items() if topic_id not in topic_ids},
            {topic_id: some for topic_id, some in self.initialized.items() if topic_id not in topic_ids},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topic_ids},
        )


def partitions_in(known: PartitionsByTopic, topic_id: bytes) -> frozenset[int]:
    """The partitions of a topic; empty if it is absent."""
    return known[topic_id].partitions if topic_id in known else frozenset()


def add_partitions(known: PartitionsByTopic, added: PartitionsByTopic) -> dict[bytes, TopicPartitions]:
    """The partitions of both; a topic in both has the name in `added`."""
    combined = dict(known)
    for topic_id, (name, partitions) in added.items():
        combined[topic_id] = TopicPartitions(name, partitions_in(combined, topic_id) | partitions)
    return combined


def remove_partitions(known: PartitionsByTopic, removed: Mapping[bytes, Iterable[int]]) -> dict[bytes, TopicPartitions]:
    """`known` without `removed`; a topic without partitions left is absent."""
    left = {}
    for topic_id, (name, partitions) in known.items():
        rest = partitions.difference(removed.get(topic_id, ()))
        if rest:
            left[topic_id] = TopicPartitions(name, rest)
    return left


@dataclass(frozen=True, slots=True)
class ShareSoft:
    """State that is not in the log, and lost by a restart."""

    checked_version: int = -2
    """Version of the `TopicsImage` in which the subscribed topics were last checked for changes."""
    initializing_since: Mapping[bytes, int] = field(default_factory=dict)
    """By topic id: when the initialization of its share-partitions was last requested, in milliseconds."""
    settled: tuple[int, int, PartitionStates | None] | None = None
    """Version of the topics, group epoch, and share-partitions with which a heartbeat found nothing to do."""


@dataclass(slots=True)
class ShareGroup(EpochGroup[ShareMember, TargetAssignment]):
    """A share group."""

    group_type: ClassVar = GroupType.SHARE
    TABLES: ClassVar = ("members", "targets", "subscriber_counts")

    subscriber_counts: dict[str, int] = field(default_factory=dict)
    """How many members name a topic."""
    partitions: PartitionStates | None = None
    """None: the group never had any; then the log has no record of them either."""
    partition_changes: int = field(default=0, compare=False)
    """How many records of `partitions` were replayed."""
    soft: ShareSoft = ShareSoft()

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    def subscribed_topics(self) -> Collection[str]:
        return self.subscriber_counts

    @property
    def has(self) -> PartitionStates:
        """The group's share-partitions; empty if it never had any."""
        return self.partitions or PartitionStates()

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return all(count == len(self.members) for count in self.subscriber_counts.values())
