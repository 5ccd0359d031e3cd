"""A classic group as a value: its part in the log (`stored`), and its part in memory only (`soft`).

Only the replay of a group record changes the stored part. The soft part is a running rebalance and the members that
wait for it. A `GroupChange` replaces it as a whole; a restart drops it, like a failover of the coordinator. Every
type here is immutable, so reading a group can't change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from groupkeeper.coordinator.kernel.group import GroupState, GroupType
from groupkeeper.coordinator.kernel.value_map import ValueMap
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.consumer_protocol import PROTOCOL_TYPE, decode_subscribed_topics

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""A member's assignment protocols by preference: (name, metadata)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a classic group."""

    member_id: str
    instance_id: str | None
    """None: a dynamic member."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for a protocol; empty when it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")


@dataclass(frozen=True, slots=True)
class Roster:
    """The members of the group, with generation, protocol and leader: the content of a group record."""

    protocol_type: str | None = None
    """None: no member has joined the group yet."""
    generation: int = 0
    protocol_name: str | None = None
    """The protocol of the latest generation; None: there is none yet, or it has no members."""
    leader_id: str | None = None
    """None: there are no members."""
    members: ValueMap[str, Member] = field(default_factory=ValueMap)
    subscribed_topics: frozenset[str] | None = None
    """The topics of the latest generation, even if members joined or left since; None: they can't be known."""
    state_since_ms: int | None = None
    """When the latest generation began, or the group was made; None: unknown, as in records of old versions."""
    member_id_by_instance: ValueMap[str, str] = field(default_factory=ValueMap)
    offers: ValueMap[str, int] = field(default_factory=ValueMap)
    """How many members offer a protocol, by its name."""

    def with_member(self, member: Member) -> Roster:
        """Adds or replaces a member. The first one leads the group."""
        by_instance = self.member_id_by_instance
        if member.instance_id is not None:
            by_instance = by_instance.having({member.instance_id: member.member_id})
        return replace(
            self,
            members=self.members.having({member.member_id: member}),
            member_id_by_instance=by_instance,
            leader_id=member.member_id if self.leader_id is None else self.leader_id,
            offers=self._offers_with(member, instead_of=self.members.get(member.member_id)),
        )

    def without_member(self, member_id: str) -> Roster:
        """Removes a member if it is there; when it led the group, any remaining member leads."""
        member = self.members.get(member_id)
        if member is None:
            return self
        members = self.members.without(member_id)
        by_instance = self.member_id_by_instance
        if member.instance_id is not None and by_instance.get(member.instance_id) == member_id:
            by_instance = by_instance.without(member.instance_id)
        leader_id = next(iter(members), None) if self.leader_id == member_id else self.leader_id
        offers = self._offers_with(None, instead_of=member)
        return replace(self, members=members, member_id_by_instance=by_instance, leader_id=leader_id, offers=offers)

    def with_members(self, members: Iterable[Member]) -> Roster:
        """Replaces all members."""
        kept = {member.member_id: member for member in members}
        offers = Counter([name for member in kept.values() for name in {name for name, _ in member.protocols}])
        by_instance = {one.instance_id: one.member_id for one in kept.values() if one.instance_id is not None}
        return replace(
            self, members=ValueMap(kept), member_id_by_instance=ValueMap(by_instance), offers=ValueMap(offers)
        )

    def _offers_with(self, member: Member | None, *, instead_of: Member | None) -> ValueMap[str, int]:
        offers = self.offers
        for one, by in ((member, 1), (instead_of, -1)):
            names = () if one is None else {name for name, _ in one.protocols}
            counts = {name: offers.get(name, 0) + by for name in names}
            offers = offers.having(counts).without(*[name for name, count in counts.items() if not count])
        return offers

    def is_common(self, protocol_name: str) -> bool:
        """Whether every member offers the protocol."""
        return self.offers.get(protocol_name, 0) == len(self.members)

    def select_protocol(self) -> str:
        """The common protocol that most members prefer; in a tie, the first one that the oldest member offers."""
        candidates = {name for name in self.offers if self.is_common(name)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next((name for name, _ in member.protocols if name in candidates), None)
            if choice is not None:
                votes[choice] = votes.get(choice, 0) + 1
        assert votes, "members were accepted without a common protocol"
        return max(votes, key=lambda name: votes[name])

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def uses_consumer_protocol(self) -> bool:
        """Whether members are Kafka consumers, whose metadata may contain subscriptions."""
        return self.protocol_type == PROTOCOL_TYPE

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The union of members' subscriptions, or None when they are not known."""
        if not self.uses_consumer_protocol():
            return None
        if self.members and self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(decode_subscribed_topics(member.metadata(self.protocol_name)))
            except MalformedMessage:
                return None
        return frozenset(topics)


@dataclass(frozen=True, slots=True)
class InitialDelay:
    """The first rebalance of an empty group waits for more members."""

    delay_ms: int
    """How long the running wait lasts."""
    remaining_ms: int
    """Limit in ms for all further extensions of the wait."""
    has_newcomer: bool = False
    """Whether a member joined during the running wait, which starts another one."""


@dataclass(frozen=True, slots=True)
class Joining:
    """PreparingRebalance: members rejoin, their calls wait for the others."""

    waiting: ValueMap[str, tuple[int, ...]] = field(default_factory=ValueMap)
    """Parked calls by member id; several when a member repeated its JoinGroup."""
    newcomers: ValueMap[str, None] = field(default_factory=ValueMap)
    """Members that have not received a generation yet: only their parked call shows that they are alive."""
    initial: InitialDelay | None = None
    """None when the group had members before."""


@dataclass(frozen=True, slots=True)
class Syncing:
    """CompletingRebalance: members have their generation and wait for the leader's assignment."""

    waiting: ValueMap[str, tuple[int, ...]] = field(default_factory=ValueMap)


Rebalance: TypeAlias = Joining | Syncing


@dataclass(frozen=True, slots=True)
class Soft:
    """The state of a classic group that is not in the log.

    Attributes:
        roster: the members in memory; None when they equal the stored members. Outside a rebalance it differs from the
            stored roster only by offered protocols that were not selected.
        rebalance: None when the group is Stable or Empty.
        pending: member ids that were assigned (KIP-394) and not used yet.
        unsynced: members of the generation that haven't sent SyncGroup; a Stable group may have some too.
    """

    # No defaults: whoever adds a field must choose its value at each place that makes a `Soft`.
    roster: Roster | None
    rebalance: Rebalance | None
    pending: ValueMap[str, None]
    unsynced: ValueMap[str, None]


NOTHING_SOFT = Soft(roster=None, rebalance=None, pending=ValueMap(), unsynced=ValueMap())


class _Classic:
    __slots__ = ()
    group_type: ClassVar = GroupType.CLASSIC


@dataclass(frozen=True, slots=True)
class ClassicGroup(_Classic):
    """A classic group. A simple group, which only has offsets, is a classic group without protocol type."""

    group_id: str
    stored: Roster = field(default_factory=Roster)
    soft: Soft = NOTHING_SOFT

    @property
    def roster(self) -> Roster:
        """The members as they are now, including a running rebalance."""
        return self.stored if self.soft.roster is None else self.soft.roster

    @property
    def protocol_type(self) -> str:
        """As ListGroups shows it; empty for a simple group."""
        return self.roster.protocol_type or ""

    def with_soft(self, soft: Soft) -> ClassicGroup:
        """The group with another soft part."""
        return replace(self, soft=soft)

    @property
    def state(self) -> GroupState:
        return state_of(self.roster, self.soft.rebalance)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of the topic are in use. Without the consumer protocol this is unknown; then no topic counts
        as used.
        """
        topics = self.roster.subscribed_topics
        return self.roster.uses_consumer_protocol() if topics is None else topic in topics


def state_of(roster: Roster, rebalance: Rebalance | None) -> GroupState:
    """The state in responses; a group that is DEAD no longer exists here."""
    if isinstance(rebalance, Joining):
        return GroupState.PREPARING_REBALANCE
    if isinstance(rebalance, Syncing):
        return GroupState.COMPLETING_REBALANCE
    return GroupState.STABLE if roster.members else GroupState.EMPTY
