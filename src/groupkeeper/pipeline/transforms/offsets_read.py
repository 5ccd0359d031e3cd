"""Which offsets of the log the history has, counted where its rows are."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["offsets_read"]


def offsets_read(*history: DataFrame) -> list[tuple[str, int, int, int, int]]:
    """Of each cluster and partition of the offsets topic: rows, different offsets, and the first of them."""
    places = [frame.select("cluster", "log_partition", "log_offset") for frame in history]
    counted = (
        reduce(DataFrame.unionByName, places)
        .groupBy("cluster", "log_partition")
        .agg(F.count(F.lit(1)), F.count_distinct("log_offset"), F.min("log_offset"))
    )
    return [tuple(row) for row in counted.collect()]
