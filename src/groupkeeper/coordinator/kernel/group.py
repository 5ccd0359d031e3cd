"""The coordinator's view of a group of any type."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar

from groupkeeper.coordinator.kernel.group_state import GroupState, GroupType


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

    def with_soft(self, soft: Any) -> Group:
        """The group with another soft part."""


AnyGroup = TypeVar("AnyGroup", bound=Group)
