"""A consumer group of the new protocol (KIP-848): its whole state is in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from groupkeeper.coordinator.assignors.spec import TargetAssignment
from groupkeeper.coordinator.classic.group import Protocols
from groupkeeper.coordinator.epochs.group import EpochGroup, EpochMember, reconciled_state
from groupkeeper.coordinator.kernel.group import GroupState, GroupType
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.primitives import ZERO_UUID

STABLE: Final = 0
UNREVOKED_PARTITIONS: Final = 1
UNRELEASED_PARTITIONS: Final = 2

OwnedPartitions: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id: partition → the epoch in which the member got it. Topics without partitions are absent."""


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The fields of JoinGroup that a member of the classic protocol sent."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember(EpochMember):
    """A member of a consumer group."""

    instance_id: str | None = None
    """None: a dynamic member."""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    """Sorted."""
    subscribed_topic_regex: str = ""
    """Empty: no regular expression."""
    server_assignor: str | None = None
    """The assignor that it prefers; None: any."""
    classic: ClassicMetadata | None = None
    """None: it uses the consumer protocol."""
    state: int = STABLE
    """STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, or a number that a later version wrote."""
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        """Whether the member uses the classic protocol."""
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has its target assignment of that epoch."""
        return self.state == STABLE and self.member_epoch == assignment_epoch


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched at `time_ms`, in version `version` of the topics."""

    topics: frozenset[str]
    version: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class ConsumerSoft:
    """State that is not in the log, and lost by a restart."""

    checked_version: int = -2
    """Version of the `TopicsImage` in which the subscribed topics were last checked for changes."""
    is_resolving: bool = False
    """Whether regular expressions are being resolved."""


@dataclass(slots=True)
class ConsumerGroup(EpochGroup[ConsumerMember, TargetAssignment]):
    """A consumer group."""

    group_type: ClassVar = GroupType.CONSUMER
    TABLES: ClassVar = ("members", "targets", "member_id_by_instance", "subscriber_counts", "regex_counts", "resolved")
    FORKED: ClassVar = {"shares_owners": True}

    member_id_by_instance: dict[str, str] = field(default_factory=dict)
    owner_by_partition: dict[bytes, dict[int, str]] = field(default_factory=dict)
    """By topic id and partition: the member that has it, or must still revoke it."""
    subscriber_counts: dict[str, int] = field(default_factory=dict)
    """How many members name a topic."""
    regex_counts: dict[str, int] = field(default_factory=dict)
    """How many members subscribe to a regular expression."""
    resolved: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_partition_metadata: bool = False
    """Whether the log has a record of type 4 of this group, as older versions wrote."""
    soft: ConsumerSoft = ConsumerSoft()
    shares_owners: bool = False
    """Whether `owner_by_partition` belongs to another copy of the group, and must be copied before a change."""

    def since(
        self, member: ConsumerMember, topics: TopicsImage, topic: str, topic_id: bytes, partition: int
    ) -> int | None:
        """The epoch in which a member got a partition; None when it does not have it. `topic_id` is zero
        when unknown.
        """
        if topic_id == ZERO_UUID:
            topic_id = topics.topics[topic].topic_id if topic in topics.topics else ZERO_UUID
        since = member.assigned.get(topic_id, {}).get(partition)
        return member.pending_revocation.get(topic_id, {}).get(partition) if since is None else since

    @property
    def state(self) -> GroupState:
        return reconciled_state(self)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.member_id_by_instance.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics to which a member subscribes, by name and by a resolved regular expression."""
        names = frozenset(member.subscribed_topic_names)
        resolved = self.resolved.get(member.subscribed_topic_regex)
        return names if resolved is None else names | resolved.topics

    def subscribed_topics(self) -> set[str]:
        topics = set(self.subscriber_counts)
        for regex in self.regex_counts:
            if regex in self.resolved:
                topics |= self.resolved[regex].topics
        return topics

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriber_counts or any(
            regex in self.resolved and topic in self.resolved[regex].topics for regex in self.regex_counts
        )

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        if not self.regex_counts:
            return all(count == len(self.members) for count in self.subscriber_counts.values())
        return not self.subscriber_counts and list(self.regex_counts.values()) == [len(self.members)]

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members prefer (in a tie, the first by name), else `default`."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.server_assignor is not None:
                votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
        return min(votes, key=lambda name: (-votes[name], name)) if votes else default

    def unshare_owners(self) -> None:
        """Makes `owner_by_partition` this group's own."""
        if self.shares_owners:
            self.owner_by_partition = {topic_id: dict(owners) for topic_id, owners in self.owner_by_partition.items()}
            self.shares_owners = False
