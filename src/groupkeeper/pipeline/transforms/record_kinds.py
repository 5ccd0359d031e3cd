"""What a row of tables.GROUP_RECORDS is about, by the names of its records: those of all group types but for the first
word (ConsumerGroup…, ShareGroup…, StreamsGroup…). A classic group has one record, with its members in it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["is_classic_group", "is_current_assignment", "is_group", "is_member", "is_target", "is_target_of_member"]

_GROUPS = ("GroupMetadata", "ConsumerGroupMetadata", "ShareGroupMetadata", "StreamsGroupMetadata")


def is_group() -> Column:
    """The group itself, of any type."""
    return F.col("record_name").isin(*_GROUPS)


def is_classic_group() -> Column:
    return F.col("record_name") == "GroupMetadata"


def is_member() -> Column:
    """A member, with what it says of itself."""
    return F.col("record_name").endswith("GroupMemberMetadata")


def is_current_assignment() -> Column:
    """What a member has."""
    return F.col("record_name").endswith("GroupCurrentMemberAssignment")


def is_target() -> Column:
    """The epoch of the group's target assignment."""
    return F.col("record_name").endswith("GroupTargetAssignmentMetadata")


def is_target_of_member() -> Column:
    """A member's target assignment."""
    return F.col("record_name").endswith("GroupTargetAssignmentMember")
