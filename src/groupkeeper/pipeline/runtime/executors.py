"""A session's tasks, what they return, and the names of its jobs in Spark's UI and event log."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


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


T = TypeVar("T")


def run_tasks(spark: SparkSession, description: str, count: int, work: Callable[[int], Sequence[T]]) -> list[T]:
    """A job of `count` tasks: the results of work(0), work(1) and so on. `work` and its results must be picklable. What
    it raises comes back as Spark's exception.
    """

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [pickle.dumps(work(number)) for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"found": pa.array(found, pa.binary())})

    if not count:
        return []
    with described(spark, description):
        rows = spark.range(0, count, 1, count).mapInArrow(each, "found binary").collect()
    return [one for row in rows for one in pickle.loads(row.found)]


def ipc(batch: pa.RecordBatch) -> bytes:
    """A batch in Arrow's form for streams; compressed, as Java copies it several times."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def of_ipc(rows: bytes) -> pa.Table:
    """The rows of `ipc`."""
    return pa.ipc.open_stream(rows).read_all()
