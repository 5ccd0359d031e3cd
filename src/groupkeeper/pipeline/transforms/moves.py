"""Commits of another offset than the one before: present.moved reports them."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships

__all__ = ["IS_TOLD", "moves", "told_moves"]

_GROUP = ("cluster", "group_id")
_PLACE = ("log_partition", "log_offset")
_KEY = (*_GROUP, "topic", "partition")

IS_TOLD = "(to_offset < from_offset OR (coalesce(was_empty, false) AND NOT was_removed))"
"""Of rows of tables.state.MOVES: back, or a jump ahead of a group without members (present.moved.rewinds)."""


def moves(commits: DataFrame, group_events: DataFrame, facts: DataFrame | None = None) -> DataFrame:
    """Commits of another offset than the one before (tables.state.MOVES), of rows of tables.COMMITS. Whether the group
    had members tell tables.GROUP_EVENTS, and `facts` (tables.state.GROUP_FACTS) of before.
    """
    timeline = _steps(commits).unionByName(memberships(group_events), allowMissingColumns=True)
    until_now = Window.partitionBy(*_GROUP).orderBy("log_offset")
    found = timeline.withColumn("was_empty", F.last("is_empty", ignorenulls=True).over(until_now)).where(
        "to_offset IS NOT NULL"
    )
    if facts is not None:
        then = facts.select(*_GROUP, F.col("was_empty").alias("had_been_empty"))
        found = found.join(then, list(_GROUP), "left").withColumn(
            "was_empty", F.coalesce("was_empty", "had_been_empty")
        )
    return found.select(*MOVES.names)


def told_moves(found: DataFrame) -> DataFrame:
    """The rows of tables.state.MOVES that are reported: rewinds, and the last of each key."""
    last = F.max("log_offset").over(Window.partitionBy(*_KEY))
    return found.withColumn("last", last).where(f"{IS_TOLD} OR log_offset = last").select(*MOVES.names)


def _steps(commits: DataFrame) -> DataFrame:
    by_key = Window.partitionBy(*_KEY).orderBy("log_offset")
    earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
    known = F.when(~F.col("is_tombstone"), F.struct("committed_offset", "topic_id"))
    steps = commits.select(
        *_KEY, "topic_id", *_PLACE, "commit_time", "committed_offset", "is_tombstone",
        F.last(known, ignorenulls=True).over(earlier).alias("last"),
        F.coalesce(F.lag("is_tombstone").over(by_key), F.lit(False)).alias("was_removed"),
    )  # fmt: skip
    is_same_topic = F.coalesce(F.col("topic_id") == F.col("last.topic_id"), F.lit(True))
    return steps.where(
        ~F.col("is_tombstone") & (F.col("committed_offset") != F.col("last.committed_offset")) & is_same_topic
    ).select(
        *_KEY,
        F.col("commit_time").alias("rewind_time"),
        F.col("last.committed_offset").alias("from_offset"),
        F.col("committed_offset").alias("to_offset"),
        "topic_id",
        "was_removed",
        *_PLACE,
    )
