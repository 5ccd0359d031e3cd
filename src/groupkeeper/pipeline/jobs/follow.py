"""History as it is written, by Structured Streaming: one query for each cluster, so that none stops for another."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from groupkeeper.pipeline.errors import cause_of, first_line
from groupkeeper.pipeline.jobs.history import append
from groupkeeper.pipeline.jobs.ledger import ROOT
from groupkeeper.pipeline.jobs.output import Output, open_output
from groupkeeper.pipeline.jobs.reading import Reading, readings, source_options
from groupkeeper.pipeline.jobs.snapshot import make_tables
from groupkeeper.pipeline.jobs.steps import Given
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.options import Options, parse_options
from groupkeeper.pipeline.planning import Plan, named, plan
from groupkeeper.pipeline.retention import Retention, ask_retentions
from groupkeeper.pipeline.source import GroupkeeperSource

__all__ = ["follow"]

_LOOK_S = 0.2
_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 60.0
_RECORDS_PER_BATCH = 2_000_000


def follow(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    stop: threading.Event,
    watch: Watch | None = None,
    *,
    interval_s: float = 5,
    refresh_s: float = 30,
    found: Plan | None = None,
) -> Summary:
    """Append to the history what the clusters write, every `interval_s`, and make all other tables anew every
    `refresh_s` when there is something new, until `stop` is set. A cluster that fails is told, and tried again.

    Raises SourceError when the directory can't be written.
    """
    parsed = parse_options({**options, "rows": "decoded"})
    with open_output(spark, directory) as output:
        following = _Following(output, parsed, Run(watch), interval_s)
        try:
            following.begin(found)
            refreshed_at, seen = 0.0, -1
            while not stop.is_set():
                following.look_after()
                is_due = time.monotonic() - refreshed_at >= refresh_s or not refreshed_at
                if is_due and following.appended != seen and following.is_caught_up:
                    seen = following.appended
                    _refresh(output, following)
                    following.run.watch.waiting()
                    refreshed_at = time.monotonic()
                stop.wait(_LOOK_S)
        finally:
            following.end()
        return following.run.summary


def _refresh(output: Output, following: _Following) -> None:
    problems = following.run.summary.problems
    before = len(problems)
    make_tables(output, Given(following.options, following.retentions), following.run)
    del problems[before:]  # told; the next refresh tries again


class _Following:
    """The queries of all clusters, by the clusters' numbers in the options."""

    def __init__(self, output: Output, options: Options, run: Run, interval_s: float) -> None:
        self.run = run
        self.appended = 0
        self.retentions: dict[str, Retention] = {}
        self._output = output
        self.options = options
        self._interval_s = interval_s
        self._queries: dict[int, StreamingQuery] = {}
        self._readings: dict[int, Reading] = {}
        self._retry_at = dict.fromkeys(range(len(options.clusters)), 0.0)
        self._pauses = dict.fromkeys(self._retry_at, _FIRST_PAUSE_S)
        self._told: dict[int, str] = {}
        self._counting = threading.Lock()  # each query appends in a thread of its own

    @property
    def is_caught_up(self) -> bool:
        """Whether what there was when the queries began has been read."""
        return all(_has_read(query, self._readings[number]) for number, query in self._queries.items())

    def begin(self, found: Plan | None) -> None:
        self._start(range(len(self.options.clusters)), found)

    def look_after(self) -> None:
        """Start again what has ended, after a pause that grows."""
        for number, query in list(self._queries.items()):
            if not query.isActive:
                del self._queries[number]
                error = query.exception()
                self._failed(number, "it has ended" if error is None else cause_of(error) or first_line(error))
        now = time.monotonic()
        due = [number for number, at in self._retry_at.items() if number not in self._queries and at <= now]
        if due:
            self._start(due, None)

    def end(self) -> None:
        """Stop the queries; a batch that is under way is done again by the next run."""
        for query in self._queries.values():
            query.stop()

    def _start(self, numbers: range | list[int], found: Plan | None) -> None:
        if found is None:
            some = self.options._replace(clusters=tuple(self.options.clusters[number] for number in numbers))
            found = asyncio.run(plan(some))
            ranges = [each._replace(cluster=numbers[each.cluster]) for each in found.ranges]
        else:
            ranges = found.ranges
        titles = [each.title for each in self.options.clusters]
        self.options = named(self.options, ranges)
        asked = ask_retentions(self.options, ranges)
        self.retentions |= asked.by_cluster
        for note in asked.notes:
            self.run.watch.note(note)
        left, strange = readings(ranges, self._output.ledger.next_offsets)
        for title, error in found.failed.items():
            self._failed(titles.index(title), str(error))
        for name, error in strange.items():
            self._failed(next(each.cluster for each in ranges if each.name == name), str(error))
        for reading in left:
            for note in reading.notes:
                self.run.watch.note(note)
            self._readings[reading.number] = reading
            wanted = source_options(self.options, [reading], is_streaming=True)
            self._queries[reading.number] = self._query(reading.name, wanted)
        if left:
            self.run.watch.reading(sum(each.size for each in left), _RECORDS_PER_BATCH)

    def _query(self, name: str, options: Mapping[str, str]) -> StreamingQuery:
        checkpoint = f"{ROOT}/checkpoints/{self._output.ledger.id}/{quote(name, safe='')}"
        self._output.spark.dataSource.register(GroupkeeperSource)
        reader = self._output.spark.readStream.format("groupkeeper").options(**options)
        reader = reader.option("failOnDataLoss", "false").option("maxOffsetsPerTrigger", str(_RECORDS_PER_BATCH))
        return (
            reader.load()
            .writeStream.foreachBatch(self._append)
            .option("checkpointLocation", self._output.url(checkpoint))
            .trigger(processingTime=f"{self._interval_s} seconds")
            .queryName(f"groupkeeper {name}")
            .start()
        )

    def _append(self, batch: DataFrame, number: int) -> None:
        appended = append(self._output, batch, self.retentions)
        self.run.append(appended.rows)
        with self._counting:
            self.appended += sum(appended.rows.values())
        for table, rows in appended.rows.items():
            self.run.watch.table(table, rows, is_appended=True)
        if appended.note:
            self.run.watch.note(appended.note)

    def _failed(self, number: int, text: str) -> None:
        pause_s = self._pauses[number]
        self._retry_at[number] = time.monotonic() + pause_s
        self._pauses[number] = min(2 * pause_s, _LONGEST_PAUSE_S)
        if self._told.get(number) != text:
            self._told[number] = text
            reading = self._readings.get(number)
            name = self.options.clusters[number].title if reading is None else reading.name
            self.run.watch.problem(Problem(name, f"{text}; trying again"))


def _has_read(query: StreamingQuery, reading: Reading) -> bool:
    """Whether a query has come to the end of what there was. Rows would not tell: a log that was compacted, or has
    aborted transactions, gives fewer of them than it has offsets.
    """
    progress = query.lastProgress
    reached = json.loads(progress["sources"][0]["endOffset"] or "{}") if progress else {}
    own = reached.get(reading.name, {})
    return all(own.get(each.topic, {}).get(str(each.partition), 0) >= each.end for each in reading.ranges if each.size)
