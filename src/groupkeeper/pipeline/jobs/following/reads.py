"""What is read from the clusters, and how far. Each cluster is read on its own, so that none waits for another."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import quote

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.jobs.following.measuring import Measuring
from groupkeeper.pipeline.jobs.following.outages import Outage, is_unanswered
from groupkeeper.pipeline.jobs.following.polling import Polling
from groupkeeper.pipeline.jobs.history import Aside, append, read_aside
from groupkeeper.pipeline.jobs.reading import Reading, readings, same_clusters, source_options, why_unread
from groupkeeper.pipeline.jobs.watch import Problem, Run
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, Instants
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Range, ReadPlan, named, plan
from groupkeeper.pipeline.kafka.retention import Replies, Retention, ask_retentions
from groupkeeper.pipeline.kafka.source import GroupkeeperSource
from groupkeeper.pipeline.runtime.executors import are_elsewhere
from groupkeeper.pipeline.storage.ledger import ROOT
from groupkeeper.pipeline.storage.output import Output
from groupkeeper.pipeline.tables import DECODED

_RECORDS_PER_BATCH = 2_000_000
_LEAST_PATIENCE_S = 5.0
"""A cluster that has not answered for so long is away: it is named, and nobody waits for it."""

CHECKPOINTS = f"{ROOT}/checkpoints"


class _Answer(NamedTuple):
    """The plans of clusters that answered; and, by number, why other clusters did not."""

    plan: ReadPlan
    failed: dict[int, SourceError]
    retentions: Replies


class Reads:
    """The reads of all clusters, by the clusters' numbers in the options."""

    def __init__(self, output: Output, options: ReadOptions, run: Run, interval_s: float) -> None:
        self.appended = 0
        self.retentions: dict[str, Retention] = {}
        self.failed: dict[str, str] = {}
        """Why clusters, by name, are not read at the moment."""
        self.options = options
        self.patience_s = _LEAST_PATIENCE_S + 2 * interval_s
        """For the queries to come to where the logs ended when they were measured."""
        self._output = output
        self._run = run
        self._interval_s = interval_s
        self._queries: dict[int, StreamingQuery | Polling] = {}
        self._readings: dict[int, Reading] = {}
        self._identities: dict[str, ClusterIdentity] = {}
        self._outages = tuple(Outage() for _ in options.clusters)
        self._same: list[str] = []
        self._unread: dict[int, str | None] = {}
        """What was told of partitions that cannot be read."""
        self._folders: dict[str, str] = {}
        """Where tasks of queries write, by cluster."""
        self._asking: dict[int, Future[_Answer]] = {}
        self._asked_at: dict[int, float] = {}
        self._new_reads: set[int] = set()
        """Clusters whose reads have begun since the last measurement: the tables do not show them yet, or no longer."""
        self._pool = ThreadPoolExecutor(2 * max(1, len(options.clusters)))
        self._measuring = Measuring(self._pool)
        self._late: dict[int, Mapping[int, int]] = {}
        """Clusters that were not read in time, and to where they should have been."""
        self._counting = threading.Lock()  # each query appends in a thread of its own
        self._begun = time.monotonic()

    @property
    def is_ready(self) -> bool:
        """Whether some cluster has been read up to its end at the start, or no cluster can be read. At the start,
        clusters that have not answered yet are waited for a while.
        """
        if self._asking and not self._queries:
            return False
        is_early = time.monotonic() < self._begun + _LEAST_PATIENCE_S
        if is_early and any(self._outages[number].told is None for number in self._asking):
            return False
        return not self._queries or any(self._is_caught_up(number) for number in self._queries)

    @property
    def has_more(self) -> bool:
        """Whether a cluster is being read that the tables do not show yet, or do not show any more."""
        return any(
            self._is_caught_up(number) and not self._is_silent(number)
            for number in self._new_reads & self._queries.keys()
        )

    def _is_caught_up(self, number: int) -> bool:
        reading = self._readings[number]
        return _has_read(self._queries[number], reading, {each.partition: each.end for each in reading.ranges})

    def measure(self) -> Instants:
        """Measures the clusters that are being read; the result has those that answered in time."""
        asked = {number: self._some([number]) for number in self._queries}
        found = self._measuring.measure(asked, self._is_silent)
        instants: dict[str, Instant] = {}
        for number in asked:
            name = self._name(number)
            if number in found:
                instants |= self._instant_of(number, found[number])
            elif self._is_silent(number):
                self.failed[name] = self._silence(number)
            else:
                self.failed[name] = f"cluster {name} was not measured within {self._measuring.limit_s(number):g} s"
        for number, query in self._queries.items():
            self._new_reads.discard(number)
            if isinstance(query, Polling):
                query.wake()  # so that it reads up to this instant
        self._note_unasked()
        return instants

    def _instant_of(self, number: int, found: ReadPlan) -> Instants:
        """The instant of a measured cluster, by its name; empty if the measurement failed."""
        name = self._name(number)
        for error in found.failed.values():
            self.failed[name] = str(error)
        if (instant := found.instants.get(name)) is None:
            return {}
        self._look_at_partitions(number, instant)
        return {name: instant}

    def _note_unasked(self) -> None:
        """Reports clusters that are not read and have not answered yet."""
        silent_since = time.monotonic() - _LEAST_PATIENCE_S
        for number in [number for number in self._asking if self._asked_at[number] <= silent_since]:
            self.failed.setdefault(self._name(number), self._silence(number))
            if self._outages[number].told is None:
                self._tell(number, self._silence(number), is_away=True)

    def _look_at_partitions(self, number: int, instant: Instant) -> None:
        """Reports once which partitions cannot be read, and restarts the reading when such partitions are back."""
        reading = self._readings[number]
        if instant.unread is not None and self._unread.get(number) != instant.unread:
            self._run.watch.problem(Problem(reading.name, f"{instant.unread}; trying again"))
        self._unread[number] = instant.unread
        there = {partition for partition, offset in instant.stable.items() if offset is not None}
        if not reading.is_whole and there - {each.partition for each in reading.ranges}:
            self._queries.pop(number).stop()
            self._outages[number].retry_at = 0.0

    def has_read(self, instants: Instants) -> bool:
        """Whether the history has reached the ends of the logs. Queries that are still catching up after the start do
        not count. A late cluster does not count either, until it has reached the offsets for which it was late and is
        read quickly enough again. Otherwise the tables of all clusters would be as old as those of the slowest one at
        each refresh.
        """
        self._late = {
            number: ends
            for number, ends in self._late.items()
            if not (self._has_read(number, ends) and self._is_quick(number))
        }
        wanted = self._wanted(instants)
        return all(
            self._has_read(number, wanted[number]) or self._is_silent(number)
            for number in wanted.keys() - self._late.keys()
        )

    def note_late(self, instants: Instants) -> None:
        """Notes the clusters that have not reached the ends of their logs although they were waited for."""
        for number, ends in self._wanted(instants).items():
            if number not in self._late and not self._has_read(number, ends):
                self._late[number] = ends
                if not self._is_silent(number):
                    name = self._name(number)
                    text = f"cluster {name} is read slowly: its tables are behind, others wait for it no longer"
                    self._run.watch.note(text)

    def _is_quick(self, number: int) -> bool:
        """Whether records written now would be read in time if the next read takes as long as the last one."""
        query = self._queries.get(number)
        progress = None if query is None else query.lastProgress
        return progress is not None and self._interval_s + progress["batchDuration"] / 1000 <= self.patience_s

    def _wanted(self, instants: Instants) -> dict[int, Mapping[int, int]]:
        """The ends by cluster and partition of the offsets topic."""
        return {
            number: {place: offset for place, offset in instants[name].stable.items() if offset is not None}
            for number in self._queries
            if self._is_caught_up(number) and (name := self._readings[number].name) in instants
        }

    def _has_read(self, number: int, ends: Mapping[int, int]) -> bool:
        query = self._queries.get(number)
        return query is not None and _has_read(query, self._readings[number], ends)

    def look_after(self) -> None:
        """Start reading clusters that are not being read; retry those whose reading ended, after a growing pause.
        Clusters are queried in the background, so that none waits for another.
        """
        for number, query in list(self._queries.items()):
            if not query.isActive:
                del self._queries[number]
                error = query.exception()
                text = (
                    f"cluster {self._name(number)}: its read ended"
                    if error is None
                    else cause_of(error) or first_line(error)
                )
                if not (is_away := is_unanswered(error)):
                    self._outages[number].ended = text
                self._failed(number, text, is_away=is_away, is_told=is_away)
            elif self._is_silent(number):
                self._tell(number, self._silence(number), is_away=True)
            elif self._is_read(number) and self._outages[number].end():
                self._run.watch.note(f"cluster {self._name(number)} is read again")
        for number, asking in list(self._asking.items()):
            if asking.done():
                del self._asking[number]
                self._start(asking.result())
        now = time.monotonic()
        busy = self._queries.keys() | self._asking.keys()
        self._ask([number for number, each in enumerate(self._outages) if number not in busy and each.retry_at <= now])

    def end(self) -> None:
        """Stop the queries; the next run repeats a running batch."""
        for query in self._queries.values():
            query.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _some(self, numbers: Sequence[int]) -> ReadOptions:
        return self.options._replace(clusters=tuple(self.options.clusters[number] for number in numbers))

    def _ask(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._asked_at[number] = time.monotonic()
            self._asking[number] = self._pool.submit(_plan, self._some([number]), number)

    def _start(self, answer: _Answer) -> None:
        found = answer.plan
        self.options = named(self.options, found.ranges)
        self.retentions |= answer.retentions.by_cluster
        for note in answer.retentions.notes:
            self._run.watch.note(note)
        left, strange = readings(found, self._output.ledger)
        for number, failure in answer.failed.items():
            self._outages[number].ended = None
            why = why_unread(self._name(number), failure, self._output.ledger)
            self._failed(number, str(why), is_away=is_unanswered(why))
        for name, error in strange.items():
            number = next(each.cluster for each in found.ranges if each.name == name)
            self._outages[number].ended = None
            self._failed(number, str(error))
        for reading in left:
            self._read(reading, found.instants[reading.name].identity)

    def _read(self, reading: Reading, identity: ClusterIdentity) -> None:
        outage = self._outages[reading.number]
        if outage.ended is not None:
            self._tell(reading.number, outage.ended)
            outage.ended = None
        self._readings[reading.number] = reading
        self._new_reads.add(reading.number)
        self._identities[reading.name] = identity
        self.failed.pop(reading.name, None)
        same = same_clusters({**self._output.ledger.identities, **self._identities})
        for note in [*reading.notes, *(each for each in same if each not in self._same)]:
            self._run.watch.note(note)
        self._same = same
        wanted = source_options(self.options, [reading], is_streaming=True)
        self._run.watch.reading(reading.size, _RECORDS_PER_BATCH, reading.name)
        self._queries[reading.number] = self._query(reading.name, wanted)

    def _query(self, name: str, options: Mapping[str, str]) -> StreamingQuery | Polling:
        """Starts to read a cluster. If this process can reach the directory, it reads by itself and leaves only large
        ranges, or all of them where there are executors, to tasks of Spark: each Spark query has a Python process of
        its own, and each of its batches costs more than a few thousand records.
        """
        options = {**options, "failOnDataLoss": "false", "maxOffsetsPerTrigger": str(_RECORDS_PER_BATCH)}
        if not self._output.is_here:
            return self._streaming(name, options)
        self._discard(name)
        directory, folder = self._output.folder_aside(DECODED)
        self._folders[name] = directory
        parsed = parse_options(options, is_streaming=True)

        def read(ranges: Sequence[Range]) -> Aside:
            return read_aside(self._output.spark, ranges, parsed, directory, folder)

        return Polling(
            name,
            parsed,
            directory,
            folder,
            interval_s=self._interval_s,
            read_much=read,
            append=self._append,
            has_executors=are_elsewhere(self._output.spark),
        )

    def _streaming(self, name: str, options: Mapping[str, str]) -> StreamingQuery:
        checkpoint = f"{CHECKPOINTS}/{self._output.ledger.id}/{quote(name, safe='')}"
        self._output.spark.dataSource.register(GroupkeeperSource)
        return (
            self._output.spark.readStream.format("groupkeeper")
            .options(**options)
            .load()
            .writeStream.foreachBatch(lambda batch, number: self._append(batch))
            .option("checkpointLocation", self._output.url(checkpoint))
            .trigger(processingTime=f"{self._interval_s} seconds")
            .queryName(f"groupkeeper {name}")
            .start()
        )

    def _discard(self, name: str) -> None:
        """Remove the files that tasks of the cluster's last query, which has ended, have left."""
        if (folder := self._folders.pop(name, None)) is not None:
            with self._output.lock:
                if self._output.ledger.is_settled:  # otherwise some files may still have to be moved
                    self._output.files.remove(folder)

    def _is_silent(self, number: int) -> bool:
        query = self._queries.get(number)
        return isinstance(query, Polling) and query.silence_s >= _LEAST_PATIENCE_S

    def _is_read(self, number: int) -> bool:
        return self._is_caught_up(number) and _answer_s(self._queries[number]) < _LEAST_PATIENCE_S

    def _append(self, batch: DataFrame | Aside) -> None:
        appended = append(self._output, batch, self.retentions, identities=self._identities)
        self._run.append(appended.rows)
        with self._counting:
            self.appended += sum(appended.rows.values())
        for table, rows in appended.rows.items():
            self._run.watch.table(table, rows, is_appended=True)
        if appended.note:
            self._run.watch.note(appended.note)

    def _failed(self, number: int, text: str, *, is_away: bool = False, is_told: bool = True) -> None:
        """Retry the cluster after a pause. `is_away`: all that is known is that it does not answer."""
        self._outages[number].pause(time.monotonic())
        self.failed[self._name(number)] = text
        if is_told:
            self._tell(number, text, is_away=is_away)

    def _tell(self, number: int, text: str, *, is_away: bool = False) -> None:
        if self._outages[number].is_news(text, is_away=is_away):
            self._run.watch.problem(Problem(self._name(number), f"{text}; trying again"))

    def _silence(self, number: int) -> str:
        servers = self.options.clusters[number].bootstrap_servers
        return f"cluster {self._name(number)} ({servers}) has not answered for {_LEAST_PATIENCE_S:g} s"

    def _name(self, number: int) -> str:
        reading = self._readings.get(number)
        return self.options.clusters[number].title if reading is None else reading.name


def _plan(options: ReadOptions, number: int) -> _Answer:
    """The plan of the only cluster in the options, which has this number among all clusters."""
    found = asyncio.run(plan(options))
    retentions = ask_retentions(named(options, found.ranges), found.ranges)
    ranges = [each._replace(cluster=number) for each in found.ranges]
    error = next(iter(found.failed.values()), None)
    return _Answer(found._replace(ranges=ranges), {} if error is None else {number: error}, retentions)


def _answer_s(query: StreamingQuery | Polling) -> float:
    return query.answer_s if isinstance(query, Polling) else 0.0


def _has_read(query: StreamingQuery | Polling, reading: Reading, ends: Mapping[int, int]) -> bool:
    """Whether a query has reached these ends, by partition. The number of rows would not show this: a compacted log, or
    a log with aborted transactions, has fewer rows than offsets.
    """
    progress = query.lastProgress
    reached = json.loads(progress["sources"][0]["endOffset"] or "{}") if progress else {}
    own = reached.get(reading.name, {}).get(reading.ranges[0].topic, {})
    start = {each.partition: each.start for each in reading.ranges}
    return all(own.get(str(number), start.get(number, 0)) >= end for number, end in ends.items())
