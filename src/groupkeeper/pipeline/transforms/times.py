"""Kafka's times as Spark's."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables.schema import LAST_MS


def time_of(milliseconds: Column) -> Column:
    """Milliseconds since the epoch as tables.schema.TIME."""
    return F.when(milliseconds.between(0, LAST_MS), F.timestamp_millis(milliseconds))


def ms_between(earlier: Column, later: Column) -> Column:
    """The difference between two times, in milliseconds."""
    return F.unix_millis(later) - F.unix_millis(earlier)
