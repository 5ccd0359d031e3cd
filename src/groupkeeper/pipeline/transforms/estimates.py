"""Estimates when records without a known time were written, from earlier commits in the partition. This needs the whole
history, so Spark does it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import LAG, LOG_OFFSETS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.transforms.times import ms_between

_PARTITION = list(LOG_OFFSETS.key)
_KEY = list(LAG.key)
_OWN = [pa.field(name, LAG.arrow.field(name).type) for name in _KEY]

ASKED = pa.schema(
    [*_OWN, pa.field("at", pa.int64()), pa.field("log_end_offset", pa.int64()), pa.field("measured_time", TIME)]
)
"""Committed offsets (`at`), and where their logs ended, when."""


def estimated(partitions: DataFrame, commits: DataFrame) -> DataFrame:
    """Rows of tables.state.ESTIMATES for rows of ASKED, interpolated between commits of any group for the partition
    (rows of tables.COMMITS): a commit of an offset shows that the records before it existed.

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
        partitions.unionByName(points, allowMissingColumns=True)
        .withColumn("low", F.expr(f"last(`point`) IGNORE NULLS OVER ({order} ROWS UNBOUNDED PRECEDING)"))
        .withColumn("high", F.expr(f"lead(`point`) IGNORE NULLS OVER ({order})"))
        .where("point IS NULL")
    )
    end = F.struct(F.col("log_end_offset").alias("point"), F.col("measured_time").alias("point_time"))
    at, low, high = (F.col(name).cast("double") for name in ("at", "low.point", "high.point"))
    share = (at - low) / (high - low)
    between = F.unix_millis("low.point_time") + (share * ms_between(F.col("low.point_time"), F.col("high.point_time")))
    estimate = F.timestamp_millis(F.least(between.cast("bigint"), F.unix_millis("high.point_time")))
    return around.withColumn("high", F.coalesce("high", end)).select(*_KEY, estimate.alias("estimated_time"))
