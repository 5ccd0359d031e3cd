"""A query of Structured Streaming: appends the clusters' new records to the history, and builds the tables."""

from __future__ import annotations

import pickle
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.pipeline.checkpoints.queries import Checkpoint
from groupkeeper.pipeline.errors import cause_of, first_line
from groupkeeper.pipeline.governance.privacy import with_privacy
from groupkeeper.pipeline.jobs.following import source
from groupkeeper.pipeline.jobs.following.outages import Outage
from groupkeeper.pipeline.jobs.history import StagedRows, append
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.queries import Queries, find_queries
from groupkeeper.pipeline.jobs.reading import Reading, same_clusters
from groupkeeper.pipeline.jobs.refresh import make_tables
from groupkeeper.pipeline.jobs.steps import RefreshContext
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instants
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import RECORDS_WORTH_A_TASK, named
from groupkeeper.pipeline.kafka.retention import Retention
from groupkeeper.pipeline.kafka.written import Written
from groupkeeper.pipeline.owners import OwnerRule
from groupkeeper.pipeline.runtime.executors import described, stage_of
from groupkeeper.pipeline.storage.ledger import ROOT
from groupkeeper.pipeline.storage.output import LakeChoice, Output, open_output
from groupkeeper.pipeline.tables import DECODED, HISTORY
from groupkeeper.rules.words import counted

CHECKPOINT = f"{ROOT}/checkpoint"

_LOOK_S = 0.2
_LONGEST_S = 300.0
"""Refresh after this time even without news: a group that stands still becomes worse."""

_IDLE_S = 3.0
"""At the end, don't wait for a batch that no task has run for this long."""

_TRIES = 3
"""Give up after this many failures in a row without a batch: processes of Spark may be slow to start."""


def follow(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    stop: threading.Event,
    watch: Watch | None = None,
    *,
    interval_s: float = 5,
    refresh_s: float = 30,
    lake: LakeChoice | None = None,
    keep_days: int | None = None,
    checkpoints: Sequence[Checkpoint] = (),
    owners: Sequence[OwnerRule] = (),
    journals: Sequence[str | ChangeJournal] = (),
) -> Summary:
    """Every `interval_s`, append new records of the clusters to the history; every `refresh_s`, rebuild all other
    tables if there is something new; until `stop` is set. Failing clusters are reported and retried. `lake`,
    `keep_days`, `checkpoints`, `owners` and `journals` as for `snapshot`.

    Raises SourceError when the directory can't be written; exceptions of Spark are not caught.
    """
    parsed = parse_options({**options, "rows": "decoded"})
    with (
        open_output(spark, directory, lake=lake, keep_days=keep_days) as output,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own,
    ):
        run = Run(watch)
        if output.ledger.loss is not None:
            run.note(output.ledger.loss)
        run.append({table.name: 0 for table in HISTORY})
        parsed = with_privacy(parsed, output.ledger)._replace(
            fails_on_data_loss=False, poll_timeout_ms=min(parsed.poll_timeout_ms, round(1000 * source.PATIENCE_S))
        )
        refreshing = Refreshing(output, run, checkpoints, owners, journals)
        batches = BatchTaker(output, parsed, run, refreshing, Path(own), stop, (interval_s, refresh_s))
        again(partial(_followed, output, batches, run, Path(own), interval_s), batches, run)
        if left := source.unread_records(Path(own)):
            run.note(f"up to {counted(left, 'new record')} are left for the next run")
        return run.summary


def again(followed: Callable[[], Exception | None], batches: BatchTaker, run: Run) -> None:
    """Runs the query again, after a pause, if it or a batch has failed: a full disk may have space later. Raises the
    error of a query that keeps failing before any batch.
    """
    outage, failures = Outage(), 0
    while (failure := followed()) is not None:
        if batches.taken:
            outage.end()
        failures = 0 if batches.taken or failure is batches.error else failures + 1
        if failures == _TRIES:
            raise failure
        if outage.is_news(text := f"{cause_of(failure) or first_line(failure)}"):
            run.watch.problem(Problem(None, f"{text}; trying again"))
        outage.pause(time.monotonic())
        batches.stop.wait(outage.retry_at - time.monotonic())


def _followed(output: Output, batches: BatchTaker, run: Run, folder: Path, interval_s: float) -> Exception | None:
    """Runs the query until it is stopped (None) or fails (the reason)."""
    batches.taken, batches.error = 0, None
    batches.order()
    query = _started(output, batches, folder, interval_s)
    try:
        while query.isActive and batches.error is None and not batches.stop.wait(_LOOK_S):
            if (records := source.planned_records(folder) or 0) >= RECORDS_WORTH_A_TASK:
                run.watch.reading(records)
        failure = (batches.error or query.exception()) if batches.wait() else None
    except KeyboardInterrupt:
        # Stopping the query would wait for the batch. Until Java has ended, the batch publishes nothing.
        output.ledger.is_left = True
        run.watch = Watch()
        raise
    except BaseException:
        query.stop()
        raise
    query.stop()
    return failure


def _started(output: Output, batches: BatchTaker, folder: Path, interval_s: float) -> StreamingQuery:
    output.spark.dataSource.register(source.FollowSource)
    return (
        output.spark.readStream.format(source.NAME)
        .option("folder", str(folder))
        .load()
        .writeStream.foreachBatch(batches.take)
        .option("checkpointLocation", output.url(f"{CHECKPOINT}/{output.ledger.id}"))
        .trigger(processingTime=f"{max(1, round(1000 * interval_s))} milliseconds")
        .queryName("groupkeeper follow")
        .start()
    )


class BatchTaker:
    """Takes the batches that the query has read. Clusters are known by their numbers in the options."""

    def __init__(
        self, output: Output, options: ReadOptions, run: Run, refreshing: Refreshing, folder: Path,
        stop: threading.Event, every_s: tuple[float, float],
    ) -> None:  # fmt: skip
        self.error: Exception | None = None
        self.taken = 0
        self.appended = 0
        self.retentions: dict[str, Retention] = {}
        self.failed: dict[str, str] = {}
        """By name, why clusters are not read at the moment."""
        self.options = options
        self._output = output
        self._run = run
        self._folder = folder
        self.stop = stop
        self._refreshing = refreshing
        self._interval_s, self._refresh_s = every_s
        self._often_s = min(every_s)
        self._measure_at = 0.0
        """When (of time.time) all logs are next measured, and the tables refreshed."""
        self._aside = ""
        """The directory to which tasks of the next batch write."""
        self._outages = tuple(Outage() for _ in options.clusters)
        self._read: set[int] = set()
        """Clusters that have been read up to their end at least once."""
        self._slow: set[int] = set()
        """Clusters of `_read` whose reading holds up batches: they are only read for a refresh."""
        self._identities: dict[str, ClusterIdentity] = {}
        self._same: list[str] = []
        self._unread: dict[str, str] = {}
        """By cluster, the last reported problem with partitions that cannot be read."""
        self._alive: dict[int, dict[str, list[int]]] = {}
        """The readable partitions of these clusters."""
        self._state = threading.Condition()
        self._is_taking = False
        self._is_reading = False

    def order(self) -> None:
        """Writes the orders for the next batch."""
        now = time.monotonic()
        numbers = [number for number, each in enumerate(self._outages) if each.retry_at <= now]
        if self._aside and self._output.folder is not None:
            self._output.files.remove(self._aside)
        self._aside = self._output.aside(DECODED)
        ledger = self._output.ledger
        orders = source.Orders(
            options=self.options,
            numbers=numbers,
            away=frozenset(number for number in numbers if self._outages[number].is_away),
            slow=frozenset(self._slow),
            patience_s=min(source.PATIENCE_S, max(1.0, self._interval_s / 2)),
            measure_at=self._measure_at,
            alive=self._alive,
            next_offsets=ledger.next_offsets,
            identities=ledger.identities,
            known=frozenset(self._identities),
            folder=self._output.here(self._aside),
        )
        source.write_orders(self._folder, orders)

    def take(self, batch: DataFrame, _: int) -> None:
        """Takes one batch. Ignores it after a failure, and after `stop`: the next run reads its records again."""
        with self._state:
            if self.stop.is_set() or self.error is not None:
                return
            self._is_taking = True
        try:
            self._take(batch)
            self.taken += 1
        except Exception as error:
            self.error = error  # Spark wraps it in a trace of Java's
            raise
        finally:
            with self._state:
                self._is_taking = False
                self._state.notify_all()

    def wait(self) -> bool:
        """Waits until the batch under way is taken; False: no executor begins to read it, so it is abandoned. After
        `stop`, no further batch is taken.
        """
        idle_at = time.monotonic()
        while not self._has_ended():
            if not (self._is_reading and _is_idle(self._output.spark)):
                idle_at = time.monotonic()
            elif time.monotonic() - idle_at > _IDLE_S:
                return False
        return True

    def _has_ended(self) -> bool:
        with self._state:
            return self._state.wait_for(lambda: not self._is_taking, _LOOK_S)

    def _take(self, batch: DataFrame) -> None:
        answer = source.read_answer(self._folder)
        aside, receipts = self._read_batch(batch) if any(each.size for each in answer.readings) else (None, [])
        self.options = named(self.options, answer.plan.ranges)
        self.retentions |= answer.retentions.by_cluster
        self._note_clusters(answer)
        read = _read(answer, receipts)
        self._append(read, aside)
        source.forget_answer(self._folder)
        self._note_outages(answer, read)
        if answer.is_measured and (self._read or not any(each.told is None for each in self._outages)):
            is_made = self._refreshing.refresh(
                self, {each.name: answer.plan.instants[each.name] for each in answer.readings}
            )
            self._measure_at = time.time() + (self._refresh_s if is_made else self._often_s)
        self.order()

    def _read_batch(self, batch: DataFrame) -> tuple[StagedRows, list[source.Receipt]]:
        """Has the tasks read the batch; returns the directory with their rows, and their receipts."""
        with described(self._output.spark, "reading the offsets topics"):
            self._is_reading = True
            try:
                receipts = list(map(pickle.loads, self._output.made_aside(batch, self._aside)))
            finally:
                self._is_reading = False
            return StagedRows(self._aside, Written()), receipts

    def _note_clusters(self, answer: source.Answer) -> None:
        for each in answer.readings:
            instant = answer.plan.instants[each.name]
            self._identities[each.name] = instant.identity
            if instant.unread is not None:
                if self._unread.get(each.name) != instant.unread:
                    self._run.watch.problem(Problem(each.name, f"{instant.unread}; trying again"))
                self._unread[each.name] = instant.unread
                self._alive[each.number] = {instant.topic: [one.partition for one in each.ranges]}
            elif answer.is_measured:
                self._unread.pop(each.name, None)
                self._alive.pop(each.number, None)
        same = same_clusters({**self._output.ledger.identities, **self._identities})
        gone = [note for each in answer.readings for note in each.notes]
        for note in [*answer.retentions.notes, *gone, *(each for each in same if each not in self._same)]:
            self._run.watch.note(note)
        self._same = same

    def _append(self, read: Sequence[_Read], aside: StagedRows | None) -> None:
        reached = {each.reading.name: each.reached for each in read if each.reached}
        if not reached:
            if aside is not None:
                self._output.files.remove(aside.directory)
            return
        aside = aside or StagedRows(f"{self._output.staging}/nothing", Written())
        aside = aside._replace(written=Written.together(one for each in read for one in each.written))
        appended = append(self._output, aside, self.retentions, reached, self._identities)
        self._run.append(appended.rows)
        self.appended += sum(appended.rows.values())
        for table, count in appended.rows.items():
            self._run.watch.table(table, count, is_appended=True)
        if appended.note:
            self._run.watch.note(appended.note)

    def _note_outages(self, answer: source.Answer, read: Sequence[_Read]) -> None:
        """Reports outages, once each, and clusters that are read again."""
        unread = {each.reading.number: each.failed for each in read if each.failed is not None}
        for number, why in (dict(answer.failed) | unread).items():
            self._fail(number, why)
        for each in read:
            if each.failed is None:
                self._note_read(each, each.is_whole and each.reading.number not in answer.cut)

    def _note_read(self, read: _Read, is_to_end: bool) -> None:
        name, number = read.reading.name, read.reading.number
        if self._outages[number].end():
            self._run.watch.note(f"cluster {name} is read again")
        if self.failed.pop(name, None) is not None or (is_to_end and number not in self._read):
            self._measure_at = 0.0  # the tables do not show it yet
        if number in self._read and read.is_slow and number not in self._slow:
            self._run.watch.note(f"cluster {name} is slow: it is read only for each refresh of the tables")
            self._slow.add(number)
        elif is_to_end and not read.is_slow:
            self._slow.discard(number)
        if is_to_end:
            self._read.add(number)

    def _fail(self, number: int, why: source.Failed) -> None:
        """Notes a failure of the cluster, which is retried after a pause."""
        outage, name = self._outages[number], self.options.clusters[number].title
        outage.pause(time.monotonic())
        self.failed[name] = why.text
        if outage.is_news(why.text, is_away=why.is_away):
            self._run.watch.problem(Problem(name, f"{why.text}; trying again"))


def _is_idle(spark: SparkSession) -> bool:
    """Whether Spark has a stage that no task has run or runs."""
    stage = stage_of(spark)
    return stage is not None and not stage.running and not stage.done


class _Read(NamedTuple):
    """The result of a batch for one cluster."""

    reading: Reading
    written: Sequence[Written]
    reached: Mapping[int, int]
    """By partition, the next offset to read; empty: nothing counts."""
    is_whole: bool
    failed: source.Failed | None
    is_slow: bool


def _read(answer: source.Answer, receipts: Sequence[source.Receipt]) -> list[_Read]:
    """The results by cluster. Of a cluster read by several tasks, all rows count or none: no offset is left out."""
    found = []
    for reading in answer.readings:
        own = [each for each in receipts if each.part.reading.number == reading.number]
        failed = next((each.failed for each in own if each.failed is not None), None)
        is_whole = all(each.is_whole for each in own) and sum(each.part.size for each in own) == reading.size
        reached: dict[int, int] = {}
        if is_whole:
            reached = reading.read_to
        elif len(own) == 1 and not own[0].part.is_shared:
            reached = dict(own[0].reached)
        found.append(_Read(reading, [each.written for each in own if reached], reached, is_whole, failed,
                           any(each.is_slow for each in own)))  # fmt: skip
    return found


class _Basis(NamedTuple):
    """The inputs of a refresh: the number of appended rows, the log ends, the state of Spark's queries, the time."""

    appended: int
    logs: Mapping[str, Mapping[TopicPartition, object]]
    queries: object
    at: float


@dataclass
class Refreshing:
    """Builds the tables again and again, each time for one instant."""

    output: Output
    run: Run
    checkpoints: Sequence[Checkpoint] = ()
    owners: Sequence[OwnerRule] = ()
    journals: Sequence[str | ChangeJournal] = ()
    made: _Basis | None = None
    """The inputs of the last refresh without problems; None: there was none."""

    def refresh(self, of: BatchTaker, instants: Instants) -> bool:
        """Builds the tables for these instants; False: not necessary, nothing has changed."""
        queries, strange = Queries(), list[Problem]()
        if self.checkpoints:
            queries, strange = find_queries(self.output.spark, self.checkpoints, of.options, instants)
        logs = {name: each.logs for name, each in instants.items()}
        basis = _Basis(of.appended, logs, queries.state(), time.monotonic())
        if not self._is_due(basis):
            return False
        run = self.run
        for problem in strange:
            run.fail(problem)
        clusters = Clusters(of.options, instants, of.failed)
        given = RefreshContext(clusters, of.retentions, queries=queries, owners=self.owners, journals=self.journals)
        make_tables(self.output, given, run)
        if not run.summary.problems:
            self.made = basis
        run.start_over()
        run.watch.waiting()
        return True

    def _is_due(self, basis: _Basis) -> bool:
        """Whether the inputs have changed since the last refresh, or it was `_LONGEST_S` ago."""
        made = self.made
        return made is None or made[:3] != basis[:3] or basis.at - made.at >= _LONGEST_S
