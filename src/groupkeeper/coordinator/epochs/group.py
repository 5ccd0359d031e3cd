"""A group with member epochs. Its state is in the log, except for its soft part.

Members are values; the group is changed by replaying records and by nothing else. A handler that needs to see what its
own records will do works on a `fork`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from groupkeeper.coordinator.kernel.group import GroupState, GroupType

LEFT_EPOCH: Final = -1
"""The epoch in the heartbeat of a member that leaves."""

LEFT_STATICALLY_EPOCH: Final = -2
"""The epoch in the heartbeat of a static member that leaves temporarily; the group keeps its assignment."""


@dataclass(frozen=True, slots=True)
class EpochMember:
    """A member."""

    member_id: str
    rack_id: str | None = None
    """None: not sent."""
    client_id: str = ""
    client_host: str = ""
    member_epoch: int = 0
    previous_member_epoch: int = -1


M = TypeVar("M", bound=EpochMember)
"""The class of a group type's members."""
T = TypeVar("T")
"""The class of a type's target assignments."""


@dataclass(slots=True)
class EpochGroup(Generic[M, T]):
    """A group. Epochs start at 1."""

    group_type: ClassVar[GroupType]
    TABLES: ClassVar[tuple[str, ...]] = ("members", "targets")
    """Attributes that a fork copies."""
    FORKED: ClassVar[Mapping[str, Any]] = {}
    """Attributes that a fork sets to other values."""

    group_id: str
    group_epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assignment_time_ms: int = 0
    members: dict[str, M] = field(default_factory=dict)
    targets: dict[str, T] = field(default_factory=dict)
    """Each member's target assignment at `assignment_epoch`; a member without an entry has an empty target."""
    soft: Any = None
    """State that is not in the log; each group type has its own class."""

    @property
    def state(self) -> GroupState:
        """The state in responses."""
        raise NotImplementedError

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups."""
        return self.group_type.value

    def subscribed_topics(self) -> Collection[str]:
        """The topic names that any member subscribes to."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of the topic are in use; False if groups of the type have none."""
        return False

    def static_member(self, instance_id: str | None) -> M | None:
        """The member of that instance id; None: there is none, as in all groups of a type without static members."""
        return None

    def with_soft(self, soft: Any) -> Self:
        """Sets another soft part and returns the same object."""
        self.soft = soft
        return self

    def fork(self) -> Self:
        """A copy that records can be replayed into without changing this one."""
        tables: dict[str, Any] = {name: dict(getattr(self, name)) for name in self.TABLES}
        return replace(self, **tables, **self.FORKED)


G = TypeVar("G", bound=EpochGroup[Any, Any])


def reconciled_state(group: EpochGroup[Any, Any]) -> GroupState:
    """The state of a group with members that reconcile one by one."""
    if not group.members:
        return GroupState.EMPTY
    if group.group_epoch > group.assignment_epoch:
        return GroupState.ASSIGNING
    if all(member.is_reconciled_to(group.assignment_epoch) for member in group.members.values()):
        return GroupState.STABLE
    return GroupState.RECONCILING
