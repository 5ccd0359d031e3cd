"""tables.REWINDS: commits that put a group elsewhere than reading would."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import REWINDS

__all__ = ["rewinds"]

_GROUP = ("cluster", "group_id")
_PLACE = ("log_partition", "log_offset")
_ALL = (Window.unboundedPreceding, Window.unboundedFollowing)


def rewinds(commits: DataFrame, group_events: DataFrame, log_ends: DataFrame | None = None) -> DataFrame:
    """Moves back, and jumps ahead that no reader made, of rows of tables.COMMITS.

    A jump ahead is seen when the group had no members, as tables.GROUP_EVENTS tell (a reset; a consumer that reads
    without joining looks the same), and where it ends beyond the log, when `log_ends` are given: tables.LOG_OFFSETS.
    An offset that was removed and comes back further back counts too; one of another topic of that name does not.
    """
    moves = _moves(commits)
    timeline = moves.unionByName(_memberships(group_events), allowMissingColumns=True)
    until_now = Window.partitionBy(*_GROUP).orderBy("log_offset")
    found = (
        timeline.withColumn("was_empty", F.last("is_empty", ignorenulls=True).over(until_now))
        .where("to_offset IS NOT NULL")
        .withColumn("is_beyond", F.lit(False))
    )
    if log_ends is not None:
        found = _measured(found.drop("is_beyond"), log_ends)
    is_back = F.col("to_offset") < F.col("from_offset")
    is_jump = (F.coalesce("was_empty", F.lit(False)) & ~F.col("was_removed")) | F.col("is_beyond")
    return (
        found.where(is_back | is_jump)
        .withColumn("records", F.try_subtract("from_offset", "to_offset"))
        .withColumn("direction", F.when(is_back, "back").otherwise("ahead"))
        .select(*REWINDS.names)
    )


def _measured(moves: DataFrame, log_ends: DataFrame) -> DataFrame:
    """Whether each ends beyond the log, if that is still the log of the time: an offset that was removed later may have
    gone with its topic.
    """
    ends = log_ends.select("cluster", "topic", "partition", "log_end_offset", F.col("topic_id").alias("topic_id_now"))
    is_same_topic = F.coalesce(F.col("topic_id") == F.col("topic_id_now"), F.lit(True))
    is_beyond = is_same_topic & ~F.col("is_removed_later") & (F.col("to_offset") > F.col("log_end_offset"))
    return moves.join(ends, ["cluster", "topic", "partition"], "left").withColumn(
        "is_beyond", F.coalesce(is_beyond, F.lit(False))
    )


def _moves(commits: DataFrame) -> DataFrame:
    """Commits of another offset than the one before."""
    by_key = Window.partitionBy(*_GROUP, "topic", "partition").orderBy("log_offset")
    earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
    last_tombstone = F.max(F.when(F.col("is_tombstone"), F.col("log_offset"))).over(by_key.rowsBetween(*_ALL))
    known = F.when(~F.col("is_tombstone"), F.struct("committed_offset", "topic_id"))
    steps = commits.select(
        *_GROUP, "topic", "partition", "topic_id", *_PLACE, "commit_time", "committed_offset", "is_tombstone",
        F.last(known, ignorenulls=True).over(earlier).alias("last"),
        F.coalesce(F.lag("is_tombstone").over(by_key), F.lit(False)).alias("was_removed"),
        F.coalesce(last_tombstone > F.col("log_offset"), F.lit(False)).alias("is_removed_later"),
    )  # fmt: skip
    is_same_topic = F.coalesce(F.col("topic_id") == F.col("last.topic_id"), F.lit(True))
    return steps.where(
        ~F.col("is_tombstone") & (F.col("committed_offset") != F.col("last.committed_offset")) & is_same_topic
    ).select(
        *_GROUP,
        "topic",
        "partition",
        F.col("commit_time").alias("rewind_time"),
        F.col("last.committed_offset").alias("from_offset"),
        F.col("committed_offset").alias("to_offset"),
        "topic_id",
        "was_removed",
        "is_removed_later",
        *_PLACE,
    )


def _memberships(group_events: DataFrame) -> DataFrame:
    """From where on a group had members, or none."""
    return (
        group_events.where("members IS NOT NULL")
        .groupBy(*_GROUP, "log_offset")
        .agg((F.min("members") == 0).alias("is_empty"))
    )
