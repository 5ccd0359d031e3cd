"""Why offsets were removed: `removed_by` of tables.COMMITS, derived from ages and the group's state at the time."""

from __future__ import annotations

from types import MappingProxyType

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.tables import COMMITS
from groupkeeper.pipeline.transforms.settings import by_cluster
from groupkeeper.pipeline.transforms.times import after, time_of

__all__ = ["with_causes"]

_SLACK_MS = 60_000
"""What a check itself may take, and what the clocks of two coordinators may differ by."""
_GROUP = ("cluster", "group_id")


def with_causes(
    commits: DataFrame, group_records: DataFrame, retentions: Retentions = MappingProxyType({})
) -> DataFrame:
    """tables.COMMITS with `removed_by` of its tombstones.

    An offset can't have expired before its time, nor while members of a classic group may read it: it was deleted. When
    it went within two checks after it could expire (its age, or that of the group's emptiness, is reached, and
    the group has changed for the last time), it expired. Later, and where the log no longer has the commit, it is
    unknown.
    """
    gone = _with_commit(commits).where("is_tombstone")
    timeline = gone.unionByName(_changes(group_records), allowMissingColumns=True)
    before = Window.partitionBy(*_GROUP).orderBy("log_offset").rowsBetween(Window.unboundedPreceding, -1)
    judged = (
        timeline.withColumn("roster", F.last("roster", ignorenulls=True).over(before))
        .withColumn("changed", F.last("changed", ignorenulls=True).over(before))
        .where("is_tombstone")
        .withColumn("removed_by", _cause(retentions))
    )
    return commits.where("NOT is_tombstone").select(*COMMITS.names).unionByName(judged.select(*COMMITS.names))


def _with_commit(commits: DataFrame) -> DataFrame:
    """The offsets of groups that lost any, with what had been committed before as `last`."""
    touched = commits.where("is_tombstone").select(*_GROUP).distinct()
    by_key = Window.partitionBy(*_GROUP, "topic", "partition").orderBy("log_offset")
    last = F.lag(F.struct("is_tombstone", "commit_time", "expire_time")).over(by_key)
    return commits.join(touched, list(_GROUP), "left_semi").select(*COMMITS.names, last.alias("last"))


def _changes(group_records: DataFrame) -> DataFrame:
    """When groups changed, and what classic ones were then."""
    roster = F.struct(
        (F.array_size("members") == 0).alias("is_empty"),
        (F.col("protocol_type") != "").alias("has_protocol"),
        time_of(F.col("state_timestamp_ms")).alias("since"),
        F.flatten(F.transform("members", lambda member: F.coalesce(member["subscribed_topics"], F.array()))).alias(
            "topics"
        ),
        F.exists("members", lambda member: member["subscribed_topics"].isNull()).alias("may_read_all"),
    )
    return group_records.where("group_id IS NOT NULL").select(
        *_GROUP,
        "log_offset",
        F.lit(False).alias("is_tombstone"),
        F.col("log_time").alias("changed"),
        F.when(F.col("record_name") == "GroupMetadata", roster).alias("roster"),
    )


def _cause(retentions: Retentions) -> Column:
    retention_ms = by_cluster(retentions, lambda own: own.retention_ms)
    patience_ms = by_cluster(retentions, lambda own: 2 * own.check_interval_ms + _SLACK_MS)
    is_empty = F.col("roster.is_empty") & F.col("roster.has_protocol")
    base = F.when(is_empty, F.coalesce("roster.since", "last.commit_time")).otherwise(F.col("last.commit_time"))
    due = F.coalesce(F.col("last.expire_time"), after(base, retention_ms))
    # Nothing expires that is read, or of which the members don't say that they do not read it.
    is_read = F.array_contains("roster.topics", F.col("topic")) | F.col("roster.may_read_all")
    is_kept = is_read & F.col("roster.has_protocol")
    ready = F.greatest(due, F.col("changed"))
    return (
        F.when(F.col("last").isNull() | F.col("last.is_tombstone"), "unknown")
        .when((F.col("log_time") < due) | is_kept, "deleted")
        .when(F.col("log_time") <= after(ready, patience_ms), "expired")
        .otherwise("unknown")
    )
