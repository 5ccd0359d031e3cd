"""State that is not in the log and does not survive a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groupkeeper.coordinator.kernel.group import GroupType


class SoftChange:
    """A change of that state, applied only by `Coordinator.apply`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class GroupChange(SoftChange):
    """Replaces the soft part of a group. If the group does not exist, or has another type, nothing changes."""

    group_type: GroupType
    group_id: str
    soft: Any
