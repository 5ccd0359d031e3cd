"""What measurements tell together: where lag goes (columns of tables.LAG), and what was (tables.LAG_HISTORY and
tables.LOG_ENDS).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import LAG, LAG_HISTORY, LOG_ENDS, Table
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.times import ms_between

__all__ = ["MEASURES", "hourly_ends", "hourly_lag", "lag_history", "log_ends", "measured_logs", "with_trend"]

MEASURES = 11
"""Of so many minutes, when there is a refresh in each."""

_LEAST_S = 30
_NOISE_S = 10
"""A group that commits every few seconds has a lag that goes up and down by what comes in between."""

_NOISE_SHARE = 0.05
_MEASURES_TYPE = ddl_of(next(column.type for column in LAG.columns if column.name == "measures"))
_LOG = ["cluster", "topic", "partition"]
_ENDS = ("log_start_offset", "last_stable_offset", "log_end_offset")


def with_trend(found: DataFrame, then: DataFrame | None = None, jumps: DataFrame | None = None) -> DataFrame:
    """Rows of tables.LAG without the columns that need more than one measurement, with them. `then`: rows of the
    refresh before; `jumps`: groups and partitions (LAG.key) that were put ahead since.
    """
    key = list(LAG.key)
    if then is None:
        found = found.withColumn("before", F.lit(None).cast(_MEASURES_TYPE))
    else:
        found = found.join(then.select(*key, F.col("measures").alias("before")), key, "left")
    if jumps is not None:
        found = found.join(F.broadcast(jumps.select(*key).distinct().withColumn("jumped", F.lit(True))), key, "left")
        found = found.withColumn("before", F.when(F.col("jumped").isNull(), F.col("before")))
    known = found.withColumn("known", _known("before")).withColumn("last", F.try_element_at("known", F.lit(-1)))
    is_elsewhere = (F.col("committed_offset") < F.col("last.committed_offset")) | (
        F.col("log_end_offset") < F.col("last.log_end_offset")
    )
    kept = F.when(~F.coalesce(is_elsewhere, F.lit(False)), F.col("before"))
    measures = known.withColumn("measures", _with_now(F.coalesce(kept, F.array().cast(_MEASURES_TYPE))))
    first = F.get(_known("measures"), F.lit(0))
    return _judged(measures.withColumn("first", F.when(F.col("lag").isNotNull(), first))).select(*LAG.names)


def lag_history(lag: DataFrame) -> DataFrame:
    """Rows of tables.LAG_HISTORY that rows of tables.LAG add: what is new, and of each hour one."""
    last, before = (F.try_element_at("measures", F.lit(index)) for index in (-1, -2))
    rows = lag.withColumn("last", last).withColumn("before", before)
    is_same = (
        F.col("last.committed_offset").eqNullSafe(F.col("before.committed_offset"))
        & F.col("last.log_end_offset").eqNullSafe(F.col("before.log_end_offset"))
        & (F.date_trunc("hour", "last.time") == F.date_trunc("hour", "before.time"))
    )
    is_new = F.col("last.time") == F.col("measured_time")
    return rows.where(is_new & ~F.coalesce(is_same, F.lit(False))).select(*LAG_HISTORY.names)


def measured_logs(log_offsets: DataFrame, freshness: DataFrame, topic: str) -> DataFrame:
    """What was measured of logs, of rows of tables.LOG_OFFSETS, and of tables.FRESHNESS, whose topic has that name."""
    read = log_offsets.select(*LOG_ENDS.names)
    of_offsets = freshness.select(
        "cluster",
        F.lit(topic).alias("topic"),
        F.col("log_partition").alias("partition"),
        "measured_time",
        F.lit(None).cast("bigint").alias("log_start_offset"),
        *_ENDS[1:],
    )
    return read.where(F.col("topic") != topic).unionByName(of_offsets).where("log_end_offset IS NOT NULL")


def log_ends(measured: DataFrame, last: DataFrame, column: str) -> DataFrame:
    """Rows of tables.LOG_ENDS; `column` tells the last row of each partition, which later ones are held against: `last`
    are those of before.
    """
    values = F.struct(*(name for name in LOG_ENDS.names if name not in _LOG))
    both = measured.select(*_LOG, values.alias("now")).join(last.select(*_LOG, values.alias("then")), _LOG, "full")
    is_same = F.lit(True)
    for name in _ENDS:
        is_same &= F.col(f"now.{name}").eqNullSafe(F.col(f"then.{name}"))
    times = [F.col(f"{each}.measured_time") for each in ("then", "now")]
    in_minute, in_hour = (F.date_trunc(unit, times[0]) >= F.date_trunc(unit, times[1]) for unit in ("minute", "hour"))
    stays = F.coalesce(in_minute | (is_same & in_hour), F.lit(False))
    keeps = stays | F.col("now").isNull()
    old = F.struct(F.col("then").alias("value"), keeps.alias("is_last"))
    new = F.struct(F.col("now").alias("value"), F.lit(True).alias("is_last"))
    rows = F.when(keeps, F.array(old)).when(F.col("then").isNull(), F.array(new)).otherwise(F.array(old, new))
    return (
        both.select(*_LOG, F.explode(rows).alias("row"))
        .select(*_LOG, "row.value.*", F.col("row.is_last").alias(column))
        .select(*LOG_ENDS.names, column)
    )


def hourly_lag(rows: DataFrame) -> DataFrame:
    """Of rows of tables.LAG_HISTORY, of each hour the one with the most lag."""
    return _hourly(rows, LAG_HISTORY, F.struct(F.coalesce("lag", F.lit(-1)), "measured_time"))


def hourly_ends(rows: DataFrame) -> DataFrame:
    """Of rows of tables.LOG_ENDS, of each hour the last."""
    return _hourly(rows, LOG_ENDS, F.col("measured_time"))


def _hourly(rows: DataFrame, table: Table, order: Column) -> DataFrame:
    key = [name for name in table.key if name != "measured_time"]
    kept = F.max_by(F.struct(*table.names), order).alias("kept")
    return rows.groupBy(*key, F.date_trunc("hour", "measured_time")).agg(kept).select("kept.*")


def _known(measures: str) -> Column:
    return F.filter(measures, lambda each: each["log_end_offset"].isNotNull())


def _with_now(before: Column) -> Column:
    """A cluster that was not measured has no measurement. One that was asked, but of which lag is not known, has one
    that says so.
    """
    offsets = (
        F.when(F.col("lag").isNotNull(), F.col(name)).alias(name) for name in ("committed_offset", "log_end_offset")
    )
    now = F.array(F.struct(F.col("measured_time").alias("time"), *offsets)).cast(_MEASURES_TYPE)
    last = F.try_element_at(before, F.lit(-1))["time"]
    is_due = F.col("measured_time").isNotNull() & F.coalesce(
        F.date_trunc("minute", "measured_time") > F.date_trunc("minute", last), F.lit(True)
    )
    longer = F.concat(before, now)
    return F.when(
        is_due, F.slice(longer, F.greatest(F.array_size(longer) - MEASURES + 1, F.lit(1)), MEASURES)
    ).otherwise(before)


def _judged(rows: DataFrame) -> DataFrame:
    """By the `first` measurement and the row's own."""
    seconds = ms_between(F.col("first.time"), F.col("measured_time")) / 1000
    read = F.greatest("committed_offset", F.lit(0)) - F.greatest("first.committed_offset", F.lit(0))
    first_lag = F.greatest(F.col("first.log_end_offset") - F.greatest("first.committed_offset", F.lit(0)), F.lit(0))
    change = F.col("lag") - first_lag
    noise = F.greatest(_NOISE_SHARE * F.greatest("lag", first_lag), _NOISE_S * F.col("produced_per_s"))
    gain = F.col("consumed_per_s") - F.col("produced_per_s")
    retention = F.col("retention_ms")
    return (
        rows.withColumn("seconds", F.when(seconds >= _LEAST_S, seconds))
        .withColumn("produced_per_s", (F.col("log_end_offset") - F.col("first.log_end_offset")) / F.col("seconds"))
        .withColumn("consumed_per_s", read / F.col("seconds"))
        .withColumn(
            "trend",
            F.when(F.col("seconds").isNull(), None)
            .when(F.abs(change) <= noise, "steady")
            .otherwise(F.when(change > 0, "growing").otherwise("shrinking")),
        )
        .withColumn(
            "catch_up_ms",
            F.when(F.col("lag") == 0, F.lit(0)).when(gain > 0, (F.col("lag") / gain * 1000).cast("bigint")),
        )
        .withColumn(
            "retention_margin_ms",
            F.when((F.col("lag") > 0) & (retention >= 0) & (F.col("lag_ms") > 0), retention - F.col("lag_ms")),
        )
    )
