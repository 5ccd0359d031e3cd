"""The kinds of rows in tables.GROUP_RECORDS, by record name. The names of all group types are equal except for the
first word (ConsumerGroup…, ShareGroup…, StreamsGroup…). A classic group has one record, which includes its members.

The conditions are SQL that both Spark and DuckDB understand.
"""

from __future__ import annotations

__all__ = ["IS_CLASSIC_GROUP", "IS_CURRENT_ASSIGNMENT", "IS_GROUP", "IS_MEMBER", "IS_TARGET", "IS_TARGET_OF_MEMBER"]

IS_GROUP = "(record_name IN ('GroupMetadata', 'ConsumerGroupMetadata', 'ShareGroupMetadata', 'StreamsGroupMetadata'))"
"""The group itself, of any type."""

IS_CLASSIC_GROUP = "(record_name = 'GroupMetadata')"

IS_MEMBER = "(record_name LIKE '%GroupMemberMetadata')"
"""A member with its own metadata."""

IS_CURRENT_ASSIGNMENT = "(record_name LIKE '%GroupCurrentMemberAssignment')"
"""What a member has."""

IS_TARGET = "(record_name LIKE '%GroupTargetAssignmentMetadata')"
"""The epoch of the group's target assignment."""

IS_TARGET_OF_MEMBER = "(record_name LIKE '%GroupTargetAssignmentMember')"
"""A member's target assignment."""
