"""How often groups commit, and move on (tables.state.PACES): what is usual for one decides when it has stopped."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables.state import PACES
from groupkeeper.pipeline.transforms.times import ms_between

__all__ = ["GAPS", "paces", "usual"]

GAPS = 15
"""So many of the last gaps are looked at."""

_KEY = ("cluster", "group_id", "topic", "partition")


def paces(commits: DataFrame, last: DataFrame | None = None, known: DataFrame | None = None) -> DataFrame:
    """Of rows of tables.COMMITS, which come after those that are `known`; `last` are the carried ones before them
    (transforms.latest.last_commits). A tombstone ends what was before it.
    """
    rows = commits.withColumn("is_new", F.lit(True))
    if last is not None:
        rows = rows.unionByName(last.withColumn("is_new", F.lit(False)))
    whole = Window.partitionBy(*_KEY)
    in_order = whole.orderBy("log_offset")
    ended = F.max(F.when(F.col("is_tombstone"), F.col("log_offset"))).over(whole)
    of_old = F.max(F.when(F.col("is_tombstone") & F.col("is_new"), F.lit(True))).over(whole)
    alive = (
        rows.select(*_KEY, "log_offset", "committed_offset", "commit_time", "is_tombstone", "is_new")
        .withColumn("ended", ended)
        .withColumn("is_over", F.coalesce(of_old, F.lit(False)))
        .where("NOT is_tombstone AND (ended IS NULL OR log_offset > ended)")
    )
    before = F.lag(F.struct("commit_time", "committed_offset")).over(in_order)
    steps = alive.withColumn("before", before)
    has_moved = F.col("before").isNotNull() & (F.col("committed_offset") != F.col("before.committed_offset"))
    steps = steps.withColumn("move_time", F.when(F.col("is_new") & has_moved, F.col("commit_time")))
    if known is None:
        steps = steps.withColumn("then", F.lit(None).cast(_THEN))
    else:
        then = known.select(*_KEY, F.struct("first_time", "moved_time", "commit_gaps", "move_gaps").alias("then"))
        steps = steps.join(then, list(_KEY), "left").withColumn("then", F.when(~F.col("is_over"), F.col("then")))
    earlier = F.last("move_time", ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    commit_gap = F.when(F.col("is_new"), ms_between(F.col("before.commit_time"), F.col("commit_time")))
    steps = steps.withColumn("commit_gap", commit_gap).withColumn(
        "move_gap", ms_between(F.coalesce(earlier, "then.moved_time"), F.col("move_time"))
    )
    return (
        steps.groupBy(*_KEY)
        .agg(
            F.any_value("then").alias("then"),
            F.min("commit_time").alias("first_time"),
            F.max_by(F.col("move_time"), F.when(F.col("move_time").isNotNull(), F.col("log_offset"))).alias(
                "moved_time"
            ),
            _in_order("commit_gap").alias("commit_gaps"),
            _in_order("move_gap").alias("move_gaps"),
        )
        .select(
            *_KEY,
            F.least("then.first_time", "first_time").alias("first_time"),
            F.coalesce("moved_time", "then.moved_time").alias("moved_time"),
            _last_of("commit_gaps").alias("commit_gaps"),
            _last_of("move_gaps").alias("move_gaps"),
        )
        .select(*PACES.names)
    )


_THEN = "struct<first_time:timestamp,moved_time:timestamp,commit_gaps:array<bigint>,move_gaps:array<bigint>>"


def usual(gaps: str) -> Column:
    """The median of a column of gaps, the lower of two; null: none."""
    in_order = F.array_sort(F.col(gaps))
    return F.get(in_order, F.floor((F.array_size(in_order) - 1) / 2).cast("int"))


def _in_order(gap: str) -> Column:
    pairs = F.collect_list(F.when(F.col(gap).isNotNull(), F.struct("log_offset", gap)))
    return F.transform(F.array_sort(pairs), lambda pair: pair[gap])


def _last_of(gaps: str) -> Column:
    whole = F.concat(F.coalesce(F.col(f"then.{gaps}"), F.array().cast("array<bigint>")), F.col(gaps))
    return F.slice(whole, F.greatest(F.array_size(whole) - GAPS + 1, F.lit(1)), GAPS)
