"""Spark's current stage, descriptions of jobs in its UI and event log, and rows in transit between tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


class Stage(NamedTuple):
    """A stage of a Spark job: its number, and the numbers of its tasks that are done, of all, and that are running."""

    number: int
    done: int
    tasks: int
    running: int


def context_of(spark: SparkSession) -> SparkContext | None:
    """The SparkContext, by which to call Spark's Java; None with Spark Connect."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def stage_of(spark: SparkSession) -> Stage | None:
    """The earliest running stage; None: there is none, or Spark Connect does not tell."""
    if (context := context_of(spark)) is None:
        return None
    tracker = context.statusTracker()
    running = sorted(tracker.getActiveStageIds())
    found = tracker.getStageInfo(running[0]) if running else None
    return None if found is None else Stage(running[0], found.numCompletedTasks, found.numTasks, found.numActiveTasks)


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Gives this description to the jobs that this thread starts in the block."""
    context = context_of(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]  # None removes it


def ipc(batch: pa.RecordBatch) -> bytes:
    """A batch in Arrow's form for streams; compressed, as Java copies it several times."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def of_ipc(rows: bytes) -> pa.Table:
    """The rows in bytes that `ipc` has made."""
    return pa.ipc.open_stream(rows).read_all()
