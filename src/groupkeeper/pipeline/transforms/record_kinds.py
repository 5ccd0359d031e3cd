"""The kinds of rows in tables.GROUP_RECORDS, by record name. The names of all group types are equal except for the
first word (ConsumerGroup…, ShareGroup…, StreamsGroup…). A classic group has one record, which includes its members.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.pipeline.relations import Array

CLASSIC = "GroupMetadata"
"""The record of a classic group, which includes its members."""


class RecordKind(enum.Enum):
    """The subject of a record; its value is the end of the record's name."""

    GROUP = "GroupMetadata"
    """The group itself, of any type."""
    MEMBER = "GroupMemberMetadata"
    """A member with its own metadata."""
    CURRENT_ASSIGNMENT = "GroupCurrentMemberAssignment"
    """The current assignment of a member."""
    TARGET = "GroupTargetAssignmentMetadata"
    """The epoch of the group's target assignment."""
    TARGET_OF_MEMBER = "GroupTargetAssignmentMember"
    """A member's target assignment."""


KIND_OF: Mapping[str, RecordKind] = {
    CLASSIC: RecordKind.GROUP,
    **{f"{of}{kind.value}": kind for of in ("Consumer", "Share", "Streams") for kind in RecordKind},
}
"""Kinds by record name; other records have none."""


def rows_of(names: pa.Array | pa.ChunkedArray, *kinds: RecordKind) -> Array:
    """Whether each record name is of one of these kinds; false for null."""
    wanted = pa.array([name for name, kind in KIND_OF.items() if kind in kinds], pa.string())
    return np.asarray(pc.is_in(names, wanted))
