"""tables.REWINDS: commits that put a group elsewhere than reading would."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import REWINDS
from groupkeeper.pipeline.tables.state import MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships

__all__ = ["beyond", "last_moves", "moves", "rewinds"]

_GROUP = ("cluster", "group_id")
_PLACE = ("log_partition", "log_offset")
_KEY = (*_GROUP, "topic", "partition")

_IS_BACK = "to_offset < from_offset"
_IS_JUMP = "coalesce(was_empty, false) AND NOT was_removed"


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


def rewinds(found: DataFrame) -> DataFrame:
    """Of rows of tables.state.MOVES those back, and the jumps ahead of groups without members, which no reader made: a
    reset; a consumer that reads without joining looks the same.

    An offset that was removed and comes back further back counts too; one of another topic of that name does not.
    """
    return _told(found.where(f"{_IS_BACK} OR ({_IS_JUMP})"))


def beyond(last: DataFrame, current_offsets: DataFrame, log_ends: DataFrame) -> DataFrame:
    """Jumps ahead, beyond the end of the log, of offsets that stand there (tables.CURRENT_OFFSETS, tables.LOG_OFFSETS):
    the `last` moves, of rows of tables.state.MOVES. An earlier topic's offsets tell nothing of this log.
    """
    ends = log_ends.select("cluster", "topic", "partition", "log_end_offset", F.col("topic_id").alias("topic_id_now"))
    standing = current_offsets.select(*_KEY, F.col("committed_offset").alias("to_offset"))
    is_same_topic = F.coalesce(F.col("topic_id") == F.col("topic_id_now"), F.lit(True))
    return _told(
        last.where(f"NOT ({_IS_BACK} OR ({_IS_JUMP}))")
        .join(standing, [*_KEY, "to_offset"])
        .join(ends, ["cluster", "topic", "partition"])
        .where(is_same_topic & (F.col("to_offset") > F.col("log_end_offset")))
    )


def last_moves(found: DataFrame) -> DataFrame:
    """The last of each key, of rows of tables.state.MOVES."""
    last = F.max_by(F.struct(*MOVES.names), F.col("log_offset")).alias("last")
    return found.groupBy(*_KEY).agg(last).select("last.*")


def _told(found: DataFrame) -> DataFrame:
    return (
        found.withColumn("records", F.try_subtract("from_offset", "to_offset"))
        .withColumn("direction", F.when(F.expr(_IS_BACK), "back").otherwise("ahead"))
        .select(*REWINDS.names)
    )


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
