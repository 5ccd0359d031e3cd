"""Timers are values: the driver keeps one deadline per key and returns the key when the deadline has passed.

Keys are typed, so that two different timers never collide however groups and members are named. Tuples of different
classes can be equal, so only one type of key may be a tuple: that of the timer which every commit and heartbeat of a
classic member renews, because a tuple is found in a table several times faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from groupkeeper.coordinator.kernel.group import GroupType


class MemberSession(NamedTuple):
    """A classic member, or the owner of a member id that is not used yet, sent nothing for its session timeout."""

    group_id: str
    member_id: str

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC


@dataclass(frozen=True, slots=True)
class JoinPhase:
    """The time to rejoin during PreparingRebalance is over."""

    group_type: ClassVar = GroupType.CLASSIC
    group_id: str


@dataclass(frozen=True, slots=True)
class SyncPhase:
    """The time to send SyncGroup in a generation is over."""

    group_type: ClassVar = GroupType.CLASSIC
    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetExpiration:
    """The next pass over all groups that removes expired offsets, and groups without offsets."""


@dataclass(frozen=True, slots=True)
class ConsumerSession:
    """A member of a consumer group sent nothing for the session timeout."""

    group_type: ClassVar = GroupType.CONSUMER
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Revocation:
    """A member of a consumer group did not give back partitions within its rebalance timeout."""

    group_type: ClassVar = GroupType.CONSUMER
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicRejoin:
    """A member of a consumer group that uses the classic protocol had to rejoin and did not."""

    group_type: ClassVar = GroupType.CONSUMER
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicResync:
    """A member of a consumer group that uses the classic protocol joined and did not sync."""

    group_type: ClassVar = GroupType.CONSUMER
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ShareSession:
    """A member of a share group sent nothing for the session timeout."""

    group_type: ClassVar = GroupType.SHARE
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsSession:
    """A member of a streams group sent nothing for the session timeout."""

    group_type: ClassVar = GroupType.STREAMS
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsRevocation:
    """A member of a streams group did not give back tasks within its rebalance timeout."""

    group_type: ClassVar = GroupType.STREAMS
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class StreamsDelay:
    """The initial rebalance delay of a streams group is over."""

    group_type: ClassVar = GroupType.STREAMS
    group_id: str


ConsumerTimer: TypeAlias = ConsumerSession | Revocation | ClassicRejoin | ClassicResync
StreamsTimer: TypeAlias = StreamsSession | StreamsRevocation | StreamsDelay
TimerKey: TypeAlias = (
    MemberSession | JoinPhase | SyncPhase | OffsetExpiration | ConsumerTimer | ShareSession | StreamsTimer
)
