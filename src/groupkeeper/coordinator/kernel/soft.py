"""State that is not in the log and does not survive a restart."""

from __future__ import annotations

from typing import Any, ClassVar

from groupkeeper.coordinator.kernel.group_state import GroupType


class SoftChange:
    """A change of that state, applied only by `Coordinator.apply`. Each group type has its own kind."""

    __slots__ = ()


class GroupChange(SoftChange):
    """Replaces the soft part of a group. If the group does not exist, or has another type, nothing changes."""

    __slots__ = ()

    group_type: ClassVar[GroupType]
    group_id: str
    soft: Any
