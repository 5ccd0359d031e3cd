"""tables.SCAN_TIME: the first offset at or after a time, by reading topics whose time index can't be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from groupkeeper.pipeline.jobs.watch import Run, Summary, Watch
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Range, by_cluster, pack, plan_or_raise
from groupkeeper.pipeline.kafka.scanning import scan
from groupkeeper.pipeline.runtime.coroutines import result_of
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import SCAN_TIME
from groupkeeper.pipeline.tables.schema import LAST_MS, ddl_of

_HITS = pa.list_(
    pa.struct(
        [
            ("cluster", pa.string()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp_ms", pa.int64()),
        ]
    )
)


def write_scan_time(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    time_ms: int,
    watch: Watch | None = None,
    *,
    is_remote: bool = False,
) -> Summary:
    """Replace the table in `directory` by `scan_time`. Raises SourceError."""
    run = Run(watch)
    with open_output(spark, directory, is_remote=is_remote) as output:
        run.write(SCAN_TIME.name, output.replace(scan_time(spark, options, time_ms), SCAN_TIME))
    return run.summary


def scan_time(spark: SparkSession, options: Mapping[str, str], time_ms: int) -> DataFrame:
    """A row for each partition that the source's options select (`subscribe` …), read from `startingOffsets` on.

    Raises SourceError when a cluster cannot be queried; what cannot be read fails the job (errors.cause_of).
    """
    parsed = parse_options({**options, "rows": "records"})
    ranges = result_of(plan_or_raise(parsed))
    planned = spark.createDataFrame([(each.name, each.topic, each.partition, each.end) for each in ranges],
        "cluster string, topic string, partition int, end_offset bigint",
    )  # fmt: skip
    tasks = [task for packed in pack(ranges, parsed) for task in by_cluster(packed)]
    scans = arrow_udf(_scanning(tasks, parsed, time_ms), ddl_of(_HITS))  # type: ignore[call-overload]
    # A row, and so a Spark task, for each of our tasks: they are distributed without a shuffle.
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    hits = (
        numbers.select(F.explode(scans("id")).alias("hit"))
        .groupBy(*(F.col(f"hit.{name}").alias(name) for name in SCAN_TIME.key))
        .agg(F.min(F.struct("hit.offset", "hit.timestamp_ms")).alias("first"))  # of a partition that was cut
        .select(*SCAN_TIME.key, "first.*")
    )
    found_ms = F.col("timestamp_ms")
    return (
        planned.join(hits, list(SCAN_TIME.key), "left")
        .withColumn("offset", F.coalesce("offset", F.lit(-1)))
        .withColumn("record_time", F.when(found_ms.between(0, LAST_MS), F.timestamp_millis(found_ms)))
        .select(*SCAN_TIME.names)
    )


def _scanning(tasks: Sequence[Sequence[Range]], options: ReadOptions, time_ms: int) -> Callable[[pa.Array], pa.Array]:
    def scan_tasks(numbers: pa.Array) -> pa.Array:
        """The hits of each of the tasks with these numbers."""
        rows = [
            [
                {
                    "cluster": hit.range.name,
                    "topic": hit.range.topic,
                    "partition": hit.range.partition,
                    "offset": hit.offset,
                    "timestamp_ms": hit.timestamp_ms,
                }
                for hit in scan(tasks[number], options, time_ms)
            ]
            for number in numbers.to_pylist()
        ]
        return pa.array(rows, _HITS)

    scan_tasks.__annotations__ = {"numbers": pa.Array, "return": pa.Array}  # Spark chooses the kind by them
    return scan_tasks
