"""Where a session's tasks run, and the names of its jobs in Spark's UI and event log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def are_elsewhere(spark: SparkSession) -> bool:
    """Whether tasks run outside the driver: on a cluster, or behind a Spark Connect server."""
    try:
        return not str(spark.sparkContext.master).startswith("local")
    except PySparkException:  # of Spark Connect, which has no context
        return True


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Jobs that this thread starts have this description."""
    try:
        context = spark.sparkContext
    except PySparkException:
        yield
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]  # None removes it
