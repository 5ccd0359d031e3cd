"""tables.RATES: KIP-496's meters for the past, by minute."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import RATES
from groupkeeper.pipeline.transforms.times import before

__all__ = ["open_minutes", "rates"]

_OPEN_MS = 10 * 60 * 1000

_NUMBERS = tuple(name for name in RATES.names if name not in RATES.key)


def rates(commits: DataFrame, group_events: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Per group, and per cluster (`group_id` null), of rows of tables.COMMITS and tables.GROUP_EVENTS; to `known` rows
    of tables.RATES they are added.

    Minutes are those of the records in the log. Tombstones of unknown cause are counted by themselves, and so are those
    that went with their group: the deletion of a group is in none of the four meters.
    """
    committed = (
        commits.where("NOT is_tombstone")
        .groupBy(*_keys(F.coalesce("log_time", "commit_time")))
        .agg(F.count(F.lit(1)).alias("offset_commits"))
    )
    removed = _removals(commits, group_events)
    rebalances = (
        group_events.where("event = 'rebalanced'")
        .groupBy(*_keys(F.col("event_time")))
        .agg(F.count(F.lit(1)).alias("completed_rebalances"))
    )
    counts = committed
    for other in (removed, rebalances):
        counts = counts.unionByName(other, allowMissingColumns=True)
    by_group = _sums(counts, *RATES.key)
    of_cluster = _sums(by_group, "cluster", "minute").withColumn("group_id", F.lit(None).cast("string"))
    new = by_group.unionByName(of_cluster).select(*RATES.names)
    return new if known is None else _sums(new.unionByName(known), *RATES.key).select(*RATES.names)


def open_minutes(rates: DataFrame, column: str) -> DataFrame:
    """Whether the counts of a minute may still grow, as a column: those of a cluster's last ten minutes may."""
    last = F.max("minute").over(Window.partitionBy("cluster"))
    return rates.withColumn(column, F.coalesce(F.col("minute") >= before(last, _OPEN_MS), F.lit(True)))


def _removals(commits: DataFrame, group_events: DataFrame) -> DataFrame:
    """A group that is deleted takes its offsets with it: tombstones of the same time before its own."""
    place = ["cluster", "group_id", "log_time"]
    deleted = (
        group_events.where("event = 'deleted'")
        .withColumnRenamed("event_time", "log_time")
        .groupBy(*place)
        .agg(F.max("log_offset").alias("deleted_at"))
    )
    cause = F.col("removed_by")
    is_with_group = F.coalesce(F.col("log_offset") < F.col("deleted_at"), F.lit(False))
    return (
        commits.where("is_tombstone")
        .join(deleted, place, "left")
        .groupBy(*_keys(F.col("log_time")))
        .agg(
            F.count_if(cause == "expired").alias("offset_expirations"),
            F.count_if((cause == "deleted") & ~is_with_group).alias("offset_deletions"),
            F.count_if(cause == "unknown").alias("unexplained_removals"),
            F.count_if((cause == "deleted") & is_with_group).alias("removed_with_group"),
        )
    )


def _keys(time: Column) -> list[Column]:
    return [F.col("cluster"), F.col("group_id"), F.date_trunc("minute", time).alias("minute")]


def _sums(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(*keys).agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _NUMBERS))
