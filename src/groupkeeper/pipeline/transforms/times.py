"""Kafka's times as Spark's."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

__all__ = ["after", "before", "ms_between", "time_of"]

_LAST_MS = 253_402_300_799_999


def time_of(milliseconds: Column) -> Column:
    """Milliseconds since the epoch as a time; null for −1 and beyond the year 9999."""
    is_time = (milliseconds != -1) & milliseconds.between(-_LAST_MS, _LAST_MS)
    return F.when(is_time, F.timestamp_millis(milliseconds))


def after(time: Column, milliseconds: Column | int) -> Column:
    """A time that is later by so much."""
    return F.timestamp_millis(F.unix_millis(time) + milliseconds)


def before(time: Column, milliseconds: Column | int) -> Column:
    """A time that is earlier by so much."""
    return F.timestamp_millis(F.unix_millis(time) - milliseconds)


def ms_between(earlier: Column, later: Column) -> Column:
    """How much later, in milliseconds."""
    return F.unix_millis(later) - F.unix_millis(earlier)
