"""Python functions as jobs of Spark: each task calls one, and its results come back to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from groupkeeper.pipeline.runtime.executors import described

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
