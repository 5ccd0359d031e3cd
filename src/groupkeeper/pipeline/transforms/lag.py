"""tables.LAG: how far behind groups are, in records and in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import LAG, LOG_OFFSETS
from groupkeeper.pipeline.transforms.times import ms_between
from groupkeeper.pipeline.transforms.trends import with_trend

__all__ = ["lag", "topics_to_estimate"]

_PARTITION = list(LOG_OFFSETS.key)
_IS_ESTIMATED = "NOT is_exact AND lag > 0"


def lag(
    current_offsets: DataFrame,
    log_offsets: DataFrame,
    commits: DataFrame,
    freshness: DataFrame | None = None,
    *,
    then: DataFrame | None = None,
    jumps: DataFrame | None = None,
) -> DataFrame:
    """Of rows of tables.CURRENT_OFFSETS and tables.LOG_OFFSETS. Where `freshness` (rows of tables.FRESHNESS) says that
    the latest commits are not known, lag is not either: what was committed before belongs to another instant.

    The time is exact where the record at the committed offset tells it. Where it could not be read it is interpolated
    between commits of that partition, of any group (rows of tables.COMMITS): a commit of an offset shows that the
    records before it were there. Of `then` and `jumps` trends.with_trend tells.
    """
    judged = _judged(current_offsets, log_offsets, freshness)
    estimated = _estimated(judged.where(_IS_ESTIMATED), commits)
    joined = judged.join(estimated, list(LAG.key), "left")
    time = F.coalesce("first.time", "estimated_time")
    lag_ms = F.when(F.col("is_nothing"), F.lit(0)).otherwise(_age(time))
    no_committed = (F.col("committed_lag") == 0) | ~F.col("first.is_committed_there")
    committed_ms = F.coalesce(_age(F.col("first.committed_time")), F.col("lag_ms"))
    basis = F.when(F.col("is_exact"), "exact").when(F.col("estimated_time").isNotNull(), "interpolated")
    found = (
        joined.withColumn("lag_ms", lag_ms)
        .withColumn("committed_lag_ms", F.when(no_committed, F.lit(0)).otherwise(committed_ms))
        .withColumn("lag_basis", F.coalesce(basis, F.lit("unknown")))
        .withColumn("problem", F.when(F.col("lag_ms").isNull(), F.col("problem")))
    )
    return with_trend(found, then, jumps)


def topics_to_estimate(
    current_offsets: DataFrame, log_offsets: DataFrame, freshness: DataFrame | None = None
) -> DataFrame:
    """The topics, by name, of which `lag` looks at earlier commits."""
    judged = _judged(current_offsets, log_offsets, freshness)
    return judged.where(_IS_ESTIMATED).select("topic").distinct()


def _judged(current_offsets: DataFrame, log_offsets: DataFrame, freshness: DataFrame | None) -> DataFrame:
    """With lag in records, and whether its time is told (`is_exact`): by a record, or as there is none."""
    asked = (
        _with_not_read(current_offsets, freshness)
        .select(*LAG.key, "committed_offset", "commit_time", "not_read")
        .join(log_offsets, _PARTITION, "left")
    )
    first = F.filter("records", lambda record: record["offset"] == F.col("committed_offset"))
    measured = (
        asked.withColumn("first", F.when(F.col("not_read").isNull(), F.get(first, F.lit(0))))
        .withColumn("problem", F.coalesce("not_read", "problem"))
        .withColumn("lag", _records_to(F.col("log_end_offset")))
        .withColumn("committed_lag", _records_to(F.col("last_stable_offset")))
    )
    nothing = (F.col("lag") == 0) | ~F.col("first.is_there")
    is_exact = nothing | F.col("first.time").isNotNull()
    return measured.withColumn("is_nothing", nothing).withColumn("is_exact", F.coalesce(is_exact, F.lit(False)))


def _age(time: Column) -> Column:
    return F.when(time.isNotNull(), F.greatest(ms_between(time, F.col("measured_time")), F.lit(0)))


def _with_not_read(current_offsets: DataFrame, freshness: DataFrame | None) -> DataFrame:
    """Why the latest commits of an offset's group are not known, as `not_read`; null: they are."""
    if freshness is None:
        return current_offsets.withColumn("not_read", F.lit(None).cast("string"))
    problems = freshness.where("problem IS NOT NULL").select(
        "cluster", "log_partition", F.col("problem").alias("not_read")
    )
    return current_offsets.join(F.broadcast(problems), ["cluster", "log_partition"], "left")


def _records_to(end: Column) -> Column:
    first = F.greatest("committed_offset", F.lit(0))  # of an offset below 0 reading begins where the log does
    return F.when(end.isNotNull() & F.col("not_read").isNull(), F.greatest(end - first, F.lit(0)))


def _estimated(asked: DataFrame, commits: DataFrame) -> DataFrame:
    """When the records at committed offsets were there, by the nearest commits of the partition.

    Commits and those who ask are sorted together: pairing them would take a row for each two of a partition.
    """
    point = F.struct(F.col("at").alias("point"), "point_time").alias("point")
    points = (
        commits.where("NOT is_tombstone")
        .join(asked.select(*_PARTITION).distinct(), _PARTITION, "left_semi")
        .groupBy(*_PARTITION, F.col("committed_offset").alias("at"))
        .agg(F.min("commit_time").alias("point_time"))
        .select(*_PARTITION, "at", point)
    )
    own = asked.select(*LAG.key, F.col("committed_offset").alias("at"), "log_end_offset", "measured_time")
    order = "PARTITION BY `cluster`, `topic`, `partition` ORDER BY `at`, `point` IS NULL"
    around = (
        own.unionByName(points, allowMissingColumns=True)
        .withColumn("low", F.expr(f"last(`point`) IGNORE NULLS OVER ({order} ROWS UNBOUNDED PRECEDING)"))
        .withColumn("high", F.expr(f"lead(`point`) IGNORE NULLS OVER ({order})"))
        .where("point IS NULL")
    )
    end = F.struct(F.col("log_end_offset").alias("point"), F.col("measured_time").alias("point_time"))
    at, low, high = (F.col(name).cast("double") for name in ("at", "low.point", "high.point"))
    share = (at - low) / (high - low)
    between = F.unix_millis("low.point_time") + (share * ms_between(F.col("low.point_time"), F.col("high.point_time")))
    estimate = F.timestamp_millis(F.least(between.cast("bigint"), F.unix_millis("high.point_time")))
    return around.withColumn("high", F.coalesce("high", end)).select(*LAG.key, estimate.alias("estimated_time"))
