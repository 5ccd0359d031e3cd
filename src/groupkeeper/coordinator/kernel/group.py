"""The coordinator's view of a group of any type, and the names of states and types."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Protocol, TypeVar


class GroupState(Enum):
    """State of a group of any type, as Kafka spells it. ASSIGNING and RECONCILING belong to consumer and streams groups
    only, NOT_READY to streams groups.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupType(Enum):
    """Type of a group, as ListGroups spells it."""

    __hash__ = object.__hash__  # Enum's is slower, and each commit needs this hash

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    """A group of any type. `with_soft` takes the soft part of its own type."""

    group_type: ClassVar[GroupType]

    @property
    def group_id(self) -> str: ...

    @property
    def protocol_type(self) -> str:
        """As ListGroups shows it; empty for a group that only holds offsets."""

    @property
    def state(self) -> GroupState: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of the topic are in use: they are not deleted, nor do they expire."""

    def with_soft(self, soft: Any) -> Group:
        """The group with another soft part."""


AnyGroup = TypeVar("AnyGroup", bound=Group)
