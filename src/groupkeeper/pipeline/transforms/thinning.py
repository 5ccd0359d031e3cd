"""The old rows of measured tables (tables.LAG_HISTORY, tables.LOG_ENDS) that are kept: one per hour."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import LAG_HISTORY, LOG_ENDS, Table


def hourly_lag(rows: DataFrame) -> DataFrame:
    """The row with the most lag of each hour, from rows of tables.LAG_HISTORY."""
    return _hourly(rows, LAG_HISTORY, F.struct(F.coalesce("lag", F.lit(-1)), "measured_time"))


def hourly_ends(rows: DataFrame) -> DataFrame:
    """The last row of each hour, from rows of tables.LOG_ENDS."""
    return _hourly(rows, LOG_ENDS, F.col("measured_time"))


def _hourly(rows: DataFrame, table: Table, order: Column) -> DataFrame:
    key = [name for name in table.key if name != "measured_time"]
    kept = F.max_by(F.struct(*table.names), order).alias("kept")
    return rows.groupBy(*key, F.date_trunc("hour", "measured_time")).agg(kept).select("kept.*")
