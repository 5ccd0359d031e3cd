"""tables.RATES: KIP-496's meters for the past, by minute."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import RATES

__all__ = ["rates"]

_NUMBERS = tuple(name for name in RATES.names if name not in RATES.key)


def rates(commits: DataFrame, group_events: DataFrame) -> DataFrame:
    """Per group, and per cluster (`group_id` null), of rows of tables.COMMITS and tables.GROUP_EVENTS.

    Minutes are those of the records in the log. Tombstones of unknown cause are counted by themselves.
    """
    cause = F.col("removed_by")
    offsets = commits.groupBy(*_keys(F.coalesce("log_time", "commit_time"))).agg(
        F.count_if(~F.col("is_tombstone")).alias("offset_commits"),
        F.count_if(cause == "expired").alias("offset_expirations"),
        F.count_if(cause == "deleted").alias("offset_deletions"),
        F.count_if(cause == "unknown").alias("unexplained_removals"),
    )
    rebalances = (
        group_events.where("event = 'rebalanced'")
        .groupBy(*_keys(F.col("event_time")))
        .agg(F.count(F.lit(1)).alias("completed_rebalances"))
    )
    by_group = _sums(offsets.unionByName(rebalances, allowMissingColumns=True), *RATES.key)
    of_cluster = _sums(by_group, "cluster", "minute").withColumn("group_id", F.lit(None).cast("string"))
    return by_group.unionByName(of_cluster).select(*RATES.names)


def _keys(time: Column) -> list[Column]:
    return [F.col("cluster"), F.col("group_id"), F.date_trunc("minute", time).alias("minute")]


def _sums(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(*keys).agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _NUMBERS))
