"""The source of the query of `follow`: a batch is what clusters have and the tables lack.

Its offsets are only a clock. How far each cluster is read is in the ledger of the tables, which is published together
with the rows, so a batch that is run again reads only the missing part. The job (job.py) writes Orders to a file before
each batch; the source's planner, which Spark runs in a process of its own beside the job, asks the clusters and writes
an Answer; tasks read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from groupkeeper.coroutines import run_coroutine
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following.outages import is_unanswered
from groupkeeper.pipeline.jobs.reading import Reading, readings, why_unread
from groupkeeper.pipeline.kafka import planning
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.kafka.options import ReadOptions
from groupkeeper.pipeline.kafka.retention import Replies, ask_retentions
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.pipeline.kafka.written import Written, write
from groupkeeper.pipeline.storage.contents import CONTENTS, rows_of
from groupkeeper.pipeline.storage.ledger import NextOffsets

NAME = "groupkeeper_follow"
PATIENCE_S = 5.0
"""A cluster that has not answered for this long is away: later batches do not wait for it."""

_RECORDS_PER_BATCH = 2_000_000
_ORDERS, _ANSWER, _SIZE = "orders", "answer", "size"

_LONGEST_S = 60.0


class Orders(NamedTuple):
    """The clusters to ask, and what to read, in the next batch (reading.Known)."""

    options: ReadOptions
    numbers: Sequence[int]
    """The clusters to ask, by their numbers in the options."""
    away: frozenset[int]
    """Clusters of `numbers` that did not answer before: they are not waited for."""
    slow: frozenset[int]
    """Clusters whose reading holds up batches: asked only when all logs are measured."""
    patience_s: float
    """A task stops reading a cluster after this time, once the current fetch has ended."""
    measure_at: float
    """The time (of time.time) from which on all logs are measured for the next tables."""
    alive: Mapping[int, Mapping[str, Sequence[int]]]
    """The readable partitions, by topic, of clusters that have others: only these are asked until all logs are
    measured.
    """
    next_offsets: NextOffsets
    identities: Mapping[str, ClusterIdentity]
    known: frozenset[str]
    """Names of clusters whose retention was already requested."""
    folder: Path | None
    """Where tasks write; None: they return rows."""


class Failed(NamedTuple):
    """Why a cluster cannot be read. `is_away`: all that is known is that it does not answer."""

    text: str
    is_away: bool


class Answer(NamedTuple):
    """The clusters' answers."""

    plan: planning.ReadPlan
    readings: Sequence[Reading]
    failed: Mapping[int, Failed]
    """By cluster number: also those that have not answered yet."""
    retentions: Replies
    is_measured: bool
    cut: frozenset[int]
    """Numbers of clusters with more records than a batch takes."""


class Part(NamedTuple):
    """The ranges of a cluster for one task; `is_shared`: other tasks read other ranges of the cluster."""

    reading: Reading
    is_shared: bool

    @property
    def size(self) -> int:
        return self.reading.size


class Receipt(NamedTuple):
    """The rows of a Part that a task has read."""

    part: Part
    written: Written
    reached: Mapping[int, int]
    """The next offset of each partition; empty: nothing counts."""
    is_whole: bool
    failed: Failed | None = None
    """Why reading ended early, or nothing counts; None: neither."""
    is_slow: bool = False
    """Whether `patience_s` was over before the end of the ranges."""


class _Tasks(NamedTuple):
    parts: Sequence[Part]
    options: ReadOptions
    folder: Path | None
    patience_s: float


def write_orders(folder: Path, orders: Orders) -> None:
    """Writes the orders for the next batch."""
    _replace(folder / _ORDERS, orders)


def read_answer(folder: Path) -> Answer:
    """Reads the answer for the batch that was planned last."""
    found: Answer = pickle.loads((folder / _ANSWER).read_bytes())
    return found


def forget_answer(folder: Path) -> None:
    """Removes the answer: its batch has been taken."""
    (folder / _ANSWER).unlink()


def unread_records(folder: Path) -> int:
    """The most records that the planned batch would have read, if it has not been taken; else 0."""
    return sum(each.size for each in read_answer(folder).readings) if (folder / _ANSWER).exists() else 0


def planned_records(folder: Path) -> int | None:
    """The most records that the batch under way reads; None: already returned by an earlier call."""
    try:
        text = (folder / _SIZE).read_text()
        (folder / _SIZE).unlink()
    except FileNotFoundError:
        return None
    return int(text or 0)


def pickled(found: object) -> bytes:
    """Pickles by cloudpickle: plain pickle refuses the read-only mappings in options."""
    return bytes(cloudpickle.dumps(found))  # type: ignore[no-untyped-call]


def _replace(path: Path, found: object) -> None:
    new = path.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # it may hold passwords
        file.write(pickled(found))
    new.replace(path)


class FollowSource(DataSource):
    """The option `folder` names the place of orders and answers. Rows are those of storage.contents.CONTENTS."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return CONTENTS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(Path(self.options["folder"]))


class _Reader(DataSourceStreamReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._planner: Planner | None = None  # only in the planner's process

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"tick": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        return {"tick": time.time_ns()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if self._planner is None:
            self._planner = Planner()
        orders: Orders = pickle.loads((self._folder / _ORDERS).read_bytes())
        answer = self._planner.answer(orders)
        _replace(self._folder / _ANSWER, answer)
        (self._folder / _SIZE).write_text(str(sum(each.size for each in answer.readings)))
        options = planning.named(orders.options, answer.plan.ranges)
        tasks = tasks_of(answer.readings, options) or [[]]
        return [InputPartition(pickled(_Tasks(parts, options, orders.folder, orders.patience_s))) for parts in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        tasks: _Tasks = pickle.loads(partition.value)
        if not tasks.parts:
            return
        with ThreadPoolExecutor(len(tasks.parts)) as pool:  # a cluster that hangs holds up no other
            work = partial(read_part, options=tasks.options, folder=tasks.folder, patience_s=tasks.patience_s)
            for receipt, files in pool.map(work, tasks.parts):
                yield rows_of(files, pickled(receipt))


class Planner:
    """Asks clusters, each on its own. A cluster that does not answer in time is not asked a second time, nor read
    before it answers, so that its answer is no older than the records read of it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._asked: dict[int, _Asked] = {}
        self._took_s: dict[int, float] = {}
        """For each cluster, how long the last measurement of all logs took."""
        threading.Thread(target=self._loop.run_forever, daemon=True, name="groupkeeper planner").start()

    def answer(self, orders: Orders) -> Answer:
        """Asks the clusters, and plans the records that the tables lack."""
        is_measured = time.time() >= orders.measure_at
        if not is_measured:
            orders = orders._replace(numbers=[number for number in orders.numbers if number not in orders.slow])
        self._ask(orders, is_measured)
        planned: dict[int, planning.Planned] = {}
        errors: dict[int, SourceError] = {}
        for number in [number for number in orders.numbers if self._asked[number].future.done()]:
            asked = self._asked.pop(number)
            if is_measured and not asked.is_measured:  # it came late, and has not all logs: others would look deleted
                self._ask_one(orders, number, is_measured)
                continue
            try:
                planned[number] = asked.future.result()
            except SourceError as error:
                errors[number] = error
                continue
            if asked.is_measured:
                self._took_s[number] = asked.took_s
        plan = planning.joined(orders.options, planned, errors)
        options = planning.named(orders.options, plan.ranges)
        numbers = {each.title: number for number, each in enumerate(orders.options.clusters)}
        failed = {}
        for title, failure in plan.failed.items():
            why = why_unread(title, failure, orders)
            failed[numbers[title]] = Failed(str(why), is_unanswered(why))
        left, strange = readings(plan, orders)
        failed |= {next(each.cluster for each in plan.ranges if each.name == name): Failed(str(error), False)
                   for name, error in strange.items()}  # fmt: skip
        some = [each for each in plan.ranges if each.name not in strange and each.name not in orders.known]
        retentions = ask_retentions(options, some) if some else Replies({}, [])
        capped = [_capped(each) for each in left]
        cut = frozenset(each.number for each, whole in zip(capped, left, strict=True) if each is not whole)
        return Answer(plan, capped, failed | self._silent(orders), retentions, is_measured, cut)

    def _silent(self, orders: Orders) -> dict[int, Failed]:
        clusters = {number: orders.options.clusters[number] for number in orders.numbers if number in self._asked}
        return {number: Failed(f"cluster {each.title} ({each.bootstrap_servers}) has not answered for "
                               f"{round(self._asked[number].limit_s, 1):g} s", True)
                for number, each in clusters.items()}  # fmt: skip

    def _ask(self, orders: Orders, is_measured: bool) -> None:
        """Asks the clusters, and waits for those not in `away`. Answers to earlier requests may arrive meanwhile."""
        began = time.monotonic()
        for number in orders.numbers:
            late = self._asked.get(number)
            if late is not None and not (late.future.done() and is_measured and not late.is_measured):
                continue
            self._ask_one(orders, number, is_measured)
        for number in orders.numbers:
            if number not in orders.away:
                asked, limit_s = self._asked[number], self._limit_s(number) if is_measured else PATIENCE_S
                asked.limit_s = max(asked.limit_s, limit_s)
                wait([asked.future], max(0.0, began + limit_s - time.monotonic()))

    def _ask_one(self, orders: Orders, number: int, is_measured: bool) -> None:
        options = orders.options if is_measured else _alive(orders.options, number, orders.alive)
        asking = planning.plan_cluster(options, number, measures=True, of_all=is_measured)
        self._asked[number] = _Asked(asyncio.run_coroutine_threadsafe(asking, self._loop), is_measured)

    def _limit_s(self, number: int) -> float:
        """How long to wait for a measurement: twice the time of the last one, but at most a minute."""
        return min(max(PATIENCE_S, 2 * self._took_s.get(number, 0.0)), _LONGEST_S)


class _Asked:
    """A request to a cluster that is under way; `is_measured`: it asks for the ends of all logs."""

    def __init__(self, future: Future[planning.Planned], is_measured: bool) -> None:
        self.future = future
        self.is_measured = is_measured
        self.took_s = 0.0
        self.limit_s = PATIENCE_S
        """How long it was waited for at most."""
        self._began = time.monotonic()
        future.add_done_callback(self._end)

    def _end(self, _: object) -> None:
        self.took_s = time.monotonic() - self._began


def _alive(options: ReadOptions, number: int, alive: Mapping[int, Mapping[str, Sequence[int]]]) -> ReadOptions:
    """The options with only the `alive` partitions of the cluster: requests would wait for the others."""
    if number not in alive:
        return options
    clusters = list(options.clusters)
    partitions = {topic: tuple(own) for topic, own in alive[number].items()}
    clusters[number] = clusters[number]._replace(topics=None, partitions=partitions)
    return options._replace(clusters=tuple(clusters))


def _capped(reading: Reading) -> Reading:
    """The reading, cut to the records of a batch: by the same share in each partition."""
    total = reading.size
    if total <= _RECORDS_PER_BATCH:
        return reading
    ranges = (each._replace(end=each.start + each.size * _RECORDS_PER_BATCH // total) for each in reading.ranges)
    return reading._replace(ranges=tuple(ranges))


def tasks_of(left: Sequence[Reading], options: ReadOptions) -> list[list[Part]]:
    """Distributes readings over tasks: one for each core, of whole clusters, and some for pieces of large clusters."""
    large = [each for each in left if each.size >= planning.RECORDS_WORTH_A_TASK]
    small = [Part(each, False) for each in left if 0 < each.size < planning.RECORDS_WORTH_A_TASK]
    tasks = planning.share(small, min(len(small), os.cpu_count() or 1)) if small else []
    limited = options._replace(max_records_per_task=options.max_records_per_task or planning.RECORDS_PER_TASK)
    for each in large:
        pieces = planning.pack(each.ranges, limited)
        tasks += [[Part(each._replace(ranges=tuple(some)), len(pieces) > 1)] for some in pieces]
    return tasks


def read_part(
    part: Part, *, options: ReadOptions, folder: Path | None, patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Receipt, dict[str, bytes]]:  # fmt: skip
    """Reads a cluster's ranges until `patience_s` is over; the next batch goes on there. A shared part is read to its
    end. Without a folder, returns the contents of the files by their names.
    """
    reading = part.reading
    rows = _Rows(reading.ranges, options, None if part.is_shared else clock() + patience_s, clock)
    written, files = write(rows, folder)
    if written.spans and (other := _made_again(reading, options)) is not None:
        return Receipt(part, Written(), {}, False, other), {}
    reached = reading.read_to
    if not rows.is_whole:
        reached = {each.partition: each.start for each in reading.ranges} | written.ends.get(reading.name, {})
    return Receipt(part, written, reached, reached == reading.read_to, rows.failed, rows.is_slow), files


class _Rows:
    """The rows of ranges, until the end, a failure or the deadline. Rows before a failure count."""

    def __init__(
        self, ranges: Sequence[planning.Range], options: ReadOptions, deadline: float | None, clock: Callable[[], float]
    ) -> None:
        self._ranges, self._options, self._deadline, self._clock = ranges, options, deadline, clock
        self.is_whole = False
        self.is_slow = False
        self.failed: Failed | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            with contextlib.closing(read_ranges(self._ranges, self._options)) as rows:  # type: ignore[type-var]
                for batch in rows:
                    yield batch
                    self.is_slow = self._deadline is not None and self._clock() >= self._deadline
                    if self.is_slow:
                        return
            self.is_whole = True
        except SourceError as error:
            self.failed = Failed(str(error), is_unanswered(error))


def _made_again(reading: Reading, options: ReadOptions) -> Failed | None:
    """Why what was read does not count; None: it does. Fetches use a topic's name, so it may have been deleted and
    created again after its offsets were listed.
    """
    try:
        run_coroutine(planning.check_ids(options.clusters[reading.number]._replace(topic_ids=reading.topic_ids)))
    except SourceError as error:
        return Failed(str(error), is_unanswered(error))
    return None
