"""tables.SCAN_TIME: the first offset at or after a time, by reading topics whose time index can't be used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from groupkeeper.pipeline.options import Options, parse_options
from groupkeeper.pipeline.planning import Range, pack, plan_or_raise
from groupkeeper.pipeline.scanning import scan
from groupkeeper.pipeline.tables import SCAN_TIME
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.times import time_of

__all__ = ["scan_time"]

_TASK = "array<struct<cluster:int,name:string,topic:string,partition:int,start:bigint,end:bigint>>"
_FOUND = pa.list_(pa.struct([("number", pa.int32()), ("offset", pa.int64()), ("timestamp_ms", pa.int64())]))
_PARTITION = ["cluster", "topic", "partition"]


def scan_time(spark: SparkSession, options: Mapping[str, str], time_ms: int) -> DataFrame:
    """A row for each partition that the options of the source choose (`subscribe` …), read from `startingOffsets` on.

    Raises SourceError when a cluster cannot be asked; what cannot be read fails the job (errors.cause_of).
    """
    parsed = parse_options({**options, "rows": "records"})
    ranges = asyncio.run(plan_or_raise(parsed))
    planned = spark.createDataFrame([(each.name, each.topic, each.partition, each.end) for each in ranges],
        "cluster string, topic string, partition int, end_offset bigint",
    )  # fmt: skip
    tasks = [(task,) for packed in pack(ranges, parsed) for task in _by_cluster(packed)]
    if not tasks:
        hits = planned.select(
            *_PARTITION, F.lit(-1).cast("bigint").alias("offset"), F.lit(-1).cast("bigint").alias("timestamp_ms")
        ).limit(0)
    else:
        scans = arrow_udf(_scanning(parsed, time_ms), ddl_of(_FOUND))  # type: ignore[call-overload]
        shared = spark.createDataFrame(tasks, f"pieces {_TASK}").repartition(len(tasks))
        hits = (
            shared.select("pieces", F.explode(scans(F.col("pieces"))).alias("hit"))
            .select(F.element_at("pieces", F.col("hit.number")).alias("piece"), "hit.*")
            .groupBy(F.col("piece.name").alias("cluster"), "piece.topic", "piece.partition")
            .agg(F.min(F.struct("offset", "timestamp_ms")).alias("first"))
            .select(*_PARTITION, "first.*")
        )
    joined = planned.join(hits, _PARTITION, "left")
    return joined.select(
        *_PARTITION,
        F.coalesce("offset", F.lit(-1)).alias("offset"),
        time_of(F.col("timestamp_ms")).alias("record_time"),
        "end_offset",
    ).select(*SCAN_TIME.names)


def _by_cluster(ranges: list[Range]) -> list[list[Range]]:
    numbers = dict.fromkeys(each.cluster for each in ranges)
    return [[each for each in ranges if each.cluster == number] for number in numbers]


def _scanning(options: Options, time_ms: int) -> Callable[[pa.Array], pa.Array]:
    def scan_tasks(tasks: pa.Array) -> pa.Array:
        """Of each task, its pieces (numbered from 1) that have a record."""
        rows = []
        for pieces in tasks.to_pylist():
            ranges = [Range(**piece) for piece in pieces]
            number_by_piece = {(each.topic, each.partition, each.end): at for at, each in enumerate(ranges, 1)}
            rows.append(
                [
                    {
                        "number": number_by_piece[hit.range.topic, hit.range.partition, hit.range.end],
                        "offset": hit.offset,
                        "timestamp_ms": hit.timestamp_ms,
                    }
                    for hit in scan(ranges, options, time_ms)
                ]
            )
        return pa.array(rows, _FOUND)

    scan_tasks.__annotations__ = {"tasks": pa.Array, "return": pa.Array}  # Spark chooses the kind by them
    return scan_tasks
