"""Estimates when records without a known time were written, from earlier commits in the partition. This needs the whole
history, so Spark does it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.relations import Rows, keys, loaded, matches, numbers, taken, unnested
from groupkeeper.pipeline.tables import LOG_OFFSETS, Table
from groupkeeper.pipeline.tables.state import ESTIMATES, WANTED

_PARTITION = list(LOG_OFFSETS.key)
_END = ("log_end_offset", "measured_time")

UNTIMED = Table(
    "untimed", "committed offset before records of unknown time", WANTED.key,
    (*WANTED.columns, *(each for each in LOG_OFFSETS.columns if each.name in _END)),
)  # fmt: skip


def untimed(wanted: Rows, log_offsets: Rows) -> pa.Table:
    """Rows of tables.state.WANTED with records after them whose time is not in rows of tables.LOG_OFFSETS, as rows of
    UNTIMED. May have duplicates.
    """
    own = loaded(wanted, WANTED.names)
    own = own.filter(own["committed_offset"].is_valid())
    logs = loaded(log_offsets, [*_PARTITION, *_END, "records"])
    records = unnested(logs.select([*_PARTITION, "records"]), "records")
    offset, is_there, time = (pc.struct_field(records["records"], name) for name in ("offset", "is_there", "time"))
    told = records.drop_columns(["records"]).append_column("committed_offset", offset)
    told = told.filter(pc.or_(pc.is_valid(time), pc.fill_null(pc.invert(is_there), False)))
    is_told = matches(*keys(WANTED.names, own, told)) >= 0
    log = taken(logs.select(_END), matches(*keys(_PARTITION, own, logs)))
    waits = numbers(log["log_end_offset"], -1) > np.maximum(numbers(own["committed_offset"]), 0)
    for name in _END:
        own = own.append_column(name, log[name])
    return own.filter(pa.array(waits & ~is_told)).cast(UNTIMED.arrow)


def untimed_by_tasks(wanted: DataFrame, log_offsets: DataFrame) -> DataFrame:
    """As `untimed`, by tasks."""

    def found(own: pa.Table, logs: pa.Table) -> pa.Table:
        return untimed(own.cast(WANTED.arrow), logs.cast(LOG_OFFSETS.arrow))

    rows = wanted.groupBy(*_PARTITION).cogroup(log_offsets.groupBy(*_PARTITION))
    return rows.applyInArrow(found, UNTIMED.ddl)


def estimated(partitions: DataFrame, commits: DataFrame) -> DataFrame:
    """Rows of tables.state.ESTIMATES for rows of UNTIMED, interpolated between commits of any group for the partition
    (rows of tables.COMMITS): a commit of an offset of the log shows that the records before it existed.

    Commits and requests are sorted together: a join would make a row for each pair of them in a partition.
    """
    point = F.struct(F.col("at").alias("point"), "point_time").alias("point")
    points = (
        commits.where("NOT is_tombstone")
        .join(partitions.select(*_PARTITION).distinct(), _PARTITION, "left_semi")
        .groupBy(*_PARTITION, F.col("committed_offset").alias("at"))
        .agg(F.min("commit_time").alias("point_time"))
        .select(*_PARTITION, "at", point)
    )
    order = "PARTITION BY `cluster`, `topic`, `partition` ORDER BY `at`, `point` IS NULL"
    around = (
        partitions.distinct()
        .withColumnRenamed("committed_offset", "at")
        .unionByName(points, allowMissingColumns=True)
        .withColumn("low", F.expr(f"last(`point`) IGNORE NULLS OVER ({order} ROWS UNBOUNDED PRECEDING)"))
        .withColumn("high", F.expr(f"lead(`point`) IGNORE NULLS OVER ({order})"))
        .where("point IS NULL")
    )
    end = F.struct(F.col("log_end_offset").alias("point"), F.col("measured_time").alias("point_time"))
    at, low, high = (F.col(name).cast("double") for name in ("at", "low.point", "high.point"))
    share = (at - low) / (high - low)
    begin_ms, end_ms = F.unix_millis("low.point_time"), F.unix_millis("high.point_time")
    estimate = F.timestamp_millis(F.least((begin_ms + share * (end_ms - begin_ms)).cast("bigint"), end_ms))
    in_log = F.col("high.point") <= F.col("log_end_offset")
    found = around.withColumn("high", F.when(in_log, F.col("high")).otherwise(end))
    found = found.withColumn("estimated_time", estimate)
    return found.withColumnRenamed("at", "committed_offset").select(*ESTIMATES.names)
