"""Server-side assignors decide which member of a group reads which partition, or runs which task.

They are pure functions from members and topics to a target assignment. The reconciliation of members with their targets
is in `epochs` and in the folder of each group type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupkeeper.coordinator.assignors import range as range_assignor
from groupkeeper.coordinator.assignors import uniform as uniform_assignor
from groupkeeper.coordinator.assignors.spec import GroupSpec, TargetAssignment

ASSIGNORS: Mapping[str, Callable[[GroupSpec], dict[str, TargetAssignment]]] = {
    "uniform": uniform_assignor.assign,
    "range": range_assignor.assign,
}
"""Assignors by the name that members request."""
