"""tables.SCAN_TIME: the first offset at or after a time, by reading topics whose time index can't be used. Batches
before that time are skipped by their headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from groupkeeper.coroutines import result_of
from groupkeeper.pipeline.decode.batches import Batches
from groupkeeper.pipeline.decode.records import records_of
from groupkeeper.pipeline.decode.views import choose
from groupkeeper.pipeline.jobs.watch import Run, Summary, Watch
from groupkeeper.pipeline.kafka.fetching import fetch
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Range, by_cluster, pack, plan_or_raise
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import SCAN_TIME
from groupkeeper.pipeline.tables.schema import LAST_MS, ddl_of

_HIT = pa.schema(
    [
        ("cluster", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
    ]
)  # fmt: skip


def write_scan_time(
    spark: SparkSession, options: Mapping[str, str], directory: str, time_ms: int, watch: Watch | None = None
) -> Summary:
    """Replace the table in `directory` by `scan_time`. Raises SourceError."""
    run = Run(watch)
    with open_output(spark, directory) as output:
        run.write(SCAN_TIME.name, output.replace(scan_time(spark, options, time_ms, run.watch), SCAN_TIME))
    return run.summary


def scan_time(spark: SparkSession, options: Mapping[str, str], time_ms: int, watch: Watch | None = None) -> pa.Table:
    """A row for each partition that the source's options select (`subscribe` …), read from `startingOffsets` on.

    Raises SourceError when a cluster cannot be queried; what cannot be read fails the job (errors.cause_of).
    """
    parsed = parse_options({**options, "rows": "records"})
    ranges = result_of(plan_or_raise(parsed))
    if watch is not None:
        watch.reading(sum(each.size for each in ranges))
    tasks = [task for packed in pack(ranges, parsed) for task in by_cluster(packed)]
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    ddl = ", ".join(f"{field.name} {ddl_of(field.type)}" for field in _HIT)
    first: dict[tuple[object, ...], tuple[int, int]] = {}
    for *tp, offset, timestamp_ms in numbers.mapInArrow(partial(_scanned, tasks, parsed, time_ms), ddl).collect():
        hit = (offset, timestamp_ms)
        first[tuple(tp)] = min(first.get(tuple(tp), hit), hit)  # of a partition that was cut
    rows = []
    for each in ranges:
        offset, timestamp_ms = first.get((each.name, each.topic, each.partition), (-1, -1))
        time_us = timestamp_ms * 1000 if 0 <= timestamp_ms <= LAST_MS else None
        key = {"cluster": each.name, "topic": each.topic, "partition": each.partition}
        rows.append({**key, "offset": offset, "record_time": time_us, "end_offset": each.end})
    return pa.Table.from_pylist(rows, SCAN_TIME.arrow)


def _scanned(
    tasks: Sequence[Sequence[Range]], options: ReadOptions, time_ms: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist(scan(tasks[number], options, time_ms), _HIT)


def scan(ranges: Sequence[Range], options: ReadOptions, time_ms: int) -> list[dict[str, Any]]:
    """The first record of each partition at or after `time_ms`, as rows of _HIT. As in ListOffsets, markers and aborted
    records count. A partition without such a record is left out; others are read only up to it. The ranges are of one
    cluster. Raises SourceError.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for fetched in fetch(ranges, options, is_done=lambda piece: (piece.topic, piece.partition) in found):
        batches = fetched.batches
        for row in np.flatnonzero(batches.max_timestamp >= time_ms).tolist():
            piece = fetched.ranges[int(batches.set_index[row])]
            key = (piece.topic, piece.partition)
            if key not in found:
                with fetched.naming():
                    first = _first(batches, row, piece, time_ms)
                if first is not None:
                    found[key] = first
    return list(found.values())


def _first(batches: Batches, row: int, piece: Range, time_ms: int) -> dict[str, Any] | None:
    """The first record of a batch that is late enough and in the range."""
    records = records_of(choose(batches, np.array([row])))
    is_late = (records.timestamp >= time_ms) & (records.offset >= piece.start) & (records.offset < piece.end)
    hits = np.flatnonzero(is_late)
    if not len(hits):
        return None
    hit = {"offset": int(records.offset[hits[0]]), "timestamp_ms": int(records.timestamp[hits[0]])}
    return {"cluster": piece.name, "topic": piece.topic, "partition": piece.partition, **hit}
