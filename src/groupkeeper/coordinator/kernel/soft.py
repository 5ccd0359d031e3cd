"""State that is not in the log and does not survive a restart."""

from __future__ import annotations

from typing import Any, ClassVar

from groupkeeper.coordinator.kernel.group_state import GroupType


class SoftChange:
    """A change of it, applied by `Coordinator.apply` only. Each room has its own."""

    __slots__ = ()


class GroupChange(SoftChange):
    """Replaces the soft part of a group of a type; where there is none, or one of another type, it changes nothing."""

    __slots__ = ()

    group_type: ClassVar[GroupType]
    group_id: str
    soft: Any
