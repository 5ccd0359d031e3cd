"""tables.REJECTS: the records that could not be decoded, and when they were first seen."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import REJECTS
from groupkeeper.pipeline.transforms.times import time_of

__all__ = ["rejects"]


def rejects(group_records: DataFrame, known: DataFrame, now_ms: int) -> DataFrame:
    """Of rows of tables.GROUP_RECORDS, and of what the table was: a record that is in both was seen before."""
    new = (
        group_records.where("problem IS NOT NULL")
        .withColumnRenamed("problem", "reason")
        .withColumn("first_time", time_of(F.lit(now_ms)))
        .select(*REJECTS.names)
    )
    others = [name for name in REJECTS.names if name not in (*REJECTS.key, "first_time")]
    return (
        known.unionByName(new)
        .groupBy(*REJECTS.key)
        .agg(*(F.first(name, ignorenulls=True).alias(name) for name in others), F.min("first_time").alias("first_time"))
        .select(*REJECTS.names)
    )
