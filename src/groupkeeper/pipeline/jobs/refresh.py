"""One refresh: builds all tables except the history from the rows since the last refresh, for one instant."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.jobs.shares import ROWS_PER_SHARE, TableToBuild, build
from groupkeeper.pipeline.jobs.steps import STEPS, Job, RefreshContext, Step, inputs_of, rows_of
from groupkeeper.pipeline.jobs.task import TaskWork, built, name_of
from groupkeeper.pipeline.jobs.watch import Problem, Run
from groupkeeper.pipeline.kafka.instants import Instant, Instants
from groupkeeper.pipeline.present.quality import FAILED
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.storage.ledger import NextOffsets, Tables
from groupkeeper.pipeline.storage.output import Input, Output, Staged
from groupkeeper.pipeline.tables import HISTORY, LAG_HISTORY, LOG_ENDS, QUALITY, Table
from groupkeeper.pipeline.tables.state import CARRIED, LAST_COMMITS
from groupkeeper.pipeline.transforms.latest import hourly_ends, hourly_lag
from groupkeeper.rules.words import counted

_FAILURES = (PySparkException, Py4JError, pa.ArrowException, SourceError)

_FULL = "No space left on device"
_OFFSETS_PER_TASK = 250_000

_ADDED = tuple(step.table for step in STEPS if step.adds)
_KEPT = (*CARRIED, *(step.table for step in STEPS if step.table.is_carried))
"""Tables whose rows the next refresh needs."""

_OF_HISTORY = tuple(table for table in _ADDED if not table.is_measured)


_TableState: TypeAlias = "Staged | pa.Table | Exception"
"""The state of a table: staged files, rows that clusters answered, or the error that stopped it."""


class RefreshTables:
    """The inputs of a refresh, and the tables that it has built (steps.Driver). Reading a table waits until its step
    has ended. The history is fixed: rows that arrive later, or were written after the instant, belong to the next
    refresh.

    `from_start`: no carried rows are used; the tables are built from the whole history.
    """

    def __init__(self, output: Output, instants: Instants, *, from_start: bool = False) -> None:
        with output.lock:  # no append between the reads of the ledger and of the two tables
            made_to = None if from_start else output.ledger.made_to
            self.from_start = made_to is None
            self.made_to = made_to or {}
            known = output.ledger.next_offsets
            self._new = {table: output.history(table, is_all=self.from_start) for table in HISTORY}
        self.read_to = {name: _cut(offsets, instants.get(name)) for name, offsets in known.items()}
        self.spark = output.spark
        self._output = output
        self._built: dict[str, Future[Mapping[str, _TableState]]] = {}
        self._asked: dict[str, Future[Mapping[str, _TableState]]] = {}

    def add(self, steps: Iterable[Step], built: Future[Mapping[str, _TableState]], *, is_asked: bool = False) -> None:
        """Registers tables that are being built. `is_asked`: another job writes the rows that clusters answer."""
        for step in steps:
            (self._asked if is_asked else self._built)[step.table.name] = built

    def written(self, table: Table) -> Staged:
        """The staged table, once its step has ended. Raises the error of that step."""
        found = self._built[table.name].result()[table.name]
        if not isinstance(found, Staged):
            raise found if isinstance(found, Exception) else AssertionError(f"{table.name} is not written")
        return found

    def found(self, table: Table) -> Staged | pa.Table:
        """As `written`; for tables with answers of clusters, the rows, which may not be written yet."""
        if table.name not in self._asked:
            return self.written(table)
        found = self._asked[table.name].result()[table.name]
        if isinstance(found, Exception):
            raise found
        return found

    def past(self, table: Table) -> DataFrame:
        return self._output.read(table)

    def then(self, table: Table) -> Rows:
        return self._output.rows(table, self._then(table))

    def now(self, table: Table) -> Rows:
        found = self.found(table)
        return self._output.rows(table, found.all_files) if isinstance(found, Staged) else found

    def count(self, table: Table) -> int:
        return self._output.count_of(self.written(table))

    def frame(self, table: Table) -> DataFrame:
        found = self.found(table)
        return self._output.frame(found) if isinstance(found, Staged) else self._output.sent(found, table)

    def inputs(self, job: Job, found: Mapping[str, _TableState]) -> dict[str, Input]:
        """The inputs of a job's tasks, by task.name_of. `found`: the tables of earlier jobs."""
        inputs: dict[str, Input] = {}
        for read in inputs_of(job):
            name, table = name_of(read.how, read.table), read.table
            if read.how == "new":
                inputs[name] = self._new[table]
            elif read.how == "then":
                inputs[name] = Input(table, self._then(table))
            elif read.how == "before":
                inputs[name] = Input(table, self._output.files_of(table))
            elif isinstance(staged := found.get(table.name), Staged):
                inputs[name] = Input(table, staged.all_files)
        return inputs

    def spread(self, offsets: _TableState | None) -> tuple[int, bool]:
        """The number of tasks among which to share out the groups, and whether Spark exchanges their rows. `offsets`:
        LAST_COMMITS if it is already built.
        """
        count = self._output.count_of
        if isinstance(offsets, Staged):
            live, new = count(offsets), 0
        else:
            live, new = count(Input(LAST_COMMITS, self._then(LAST_COMMITS))), sum(map(count, self._new.values()))
        return 1 + max(live // _OFFSETS_PER_TASK, new // ROWS_PER_SHARE), new > ROWS_PER_SHARE

    def _then(self, table: Table) -> list[str]:
        if self.from_start and (table in _KEPT or table in _OF_HISTORY):
            return []
        return self._output.open_files_of(table) if table in _ADDED else self._output.files_of(table)


def _cut(known: Mapping[int, int], instant: Instant | None) -> dict[int, int]:
    """By partition, the end of the history that belongs to the instant. Where the instant has no offset, the end of the
    history.
    """
    if instant is None:
        return dict(known)
    ends = {number: instant.stable.get(number, 0) for number in known}
    return {number: offset if (end := ends[number]) is None else min(offset, end) for number, offset in known.items()}


def make_tables(output: Output, given: RefreshContext, run: Run, *, from_start: bool = False) -> None:
    """Build the tables of all steps in parallel, and publish them together. If a step fails, the tables that depend on
    it stay unchanged. `from_start`: build them from the whole history.
    """
    run.watch.making(len(STEPS))
    _make_fewer(output, run)
    tables = RefreshTables(output, given.clusters.instants, from_start=from_start)
    given = given._replace(made_to=tables.made_to, read_to=tables.read_to, note=run.note).with_changes()
    _build(output, given, tables)
    written: dict[str, Staged] = {}
    reasons: dict[str, str] = {}
    for step in STEPS:
        try:
            written[step.table.name] = tables.written(step.table)
        except _FAILURES as error:
            reasons[step.table.name] = _reason(error)
    for text in failures_told(reasons):
        run.fail(Problem(None, text))
    output.keep_only(written.values())
    if QUALITY.name in written:
        _tell_quality(output.rows(QUALITY, written[QUALITY.name].files), run)
    _publish(output, written, tables.read_to, from_start=tables.from_start)
    for step in STEPS:
        if step.table.name in written and step.is_published and step.table not in CARRIED:
            run.write(step.table.name, output.count(step.table))
    output.discard(written.values())
    update_lake(output, run)


def _tell_quality(quality: Rows, run: Run) -> None:
    """Reports checks that failed because of a defect; rejects and freshness are already reported, or are in their
    tables.
    """
    for row in loaded(quality).to_pylist():
        if row["result"] != FAILED or row["check_name"] not in ("keys", "counts"):
            continue
        run.fail(Problem(row["cluster"], f"quality: table {row['table_name'] or 'commits'}: {row['detail']}"))


def _make_fewer(output: Output, run: Run) -> None:
    """Merges small files, and thins out old measurements."""
    for table in (*HISTORY, *_ADDED):
        try:
            output.merge(table)
        except _FAILURES as error:
            run.fail(Problem(None, f"table {table.name}: its small files stay as they are: {_reason(error)}"))
    for table, hourly in ((LAG_HISTORY, hourly_lag), (LOG_ENDS, hourly_ends)):
        try:
            output.thin(table, hourly, time.time_ns() // 1_000_000)
        except _FAILURES as error:
            run.fail(Problem(None, f"table {table.name}: its old rows stay as they are: {_reason(error)}"))
    try:
        for name, rows in output.remove_old(time.time_ns() // 1_000_000).items():
            run.note(f"table {name}: {counted(rows, 'old row')} removed")
    except _FAILURES as error:
        run.fail(Problem(None, f"old rows stay where they are: {_reason(error)}"))


def update_lake(output: Output, run: Run) -> None:
    """Brings the log of Delta Lake or Iceberg to the new files."""
    if output.format_log is None:
        return
    run.watch.following()
    try:
        output.format_log.update()
    except _FAILURES as error:
        run.fail(Problem(None, f"{output.format_log.name}: the tables stay as they were there: {_reason(error)}"))


def _build(output: Output, given: RefreshContext, tables: RefreshTables) -> None:
    """Builds all tables: the driver asks the clusters, table by table; the rest by jobs of tasks."""
    pool = ThreadPoolExecutor(max(4, os.cpu_count() or 1))
    done: list[Step] = []
    try:  # a part waits only for earlier parts, which have a thread already: no part waits for ever
        for job, some in itertools.groupby(STEPS, lambda step: step.job):
            steps = list(some)
            if job is Job.ASKED:
                for step in steps:
                    tables.add([step], pool.submit(_ask, output, step, tables, given), is_asked=True)
            else:
                writes = steps
                if job is Job.CLUSTERS:  # which writes the answers as well
                    writes = [*steps, *(step for step in done if step.job is Job.ASKED)]
                tables.add(writes, pool.submit(_run, output, steps, list(done), tables, given))
            done += steps
        pool.shutdown()
    finally:
        pool.shutdown(cancel_futures=True)


def _ask(output: Output, step: Step, tables: RefreshTables, given: RefreshContext) -> dict[str, _TableState]:
    name = step.table.name
    try:
        with described(output.spark, f"{name}: refresh"):
            made = step.made(tables, given)
            return {name: output.stage(made, step.table) if isinstance(made, DataFrame) else rows_of(made)}
    except _FAILURES as error:
        return {name: error}


def _run(
    output: Output, steps: Sequence[Step], done: Sequence[Step], tables: RefreshTables, given: RefreshContext
) -> Mapping[str, _TableState]:
    """Builds the tables of these steps in one Spark job, after the steps of `done`."""
    found: dict[str, _TableState] = {}
    for step in done:
        try:
            found[step.table.name] = tables.found(step.table)
        except _FAILURES as error:
            found[step.table.name] = error
    job = steps[0].job
    asked = {name: rows for name, rows in found.items() if isinstance(rows, pa.Table)}
    writes = [step for step in done if step.table.name in asked and job is Job.CLUSTERS] + [*steps]
    shares, is_exchanged = (1, False) if job is Job.CLUSTERS else tables.spread(found.get(LAST_COMMITS.name))
    failed = {name: SourceError(_reason(each)) for name, each in found.items() if isinstance(each, Exception)}
    work = TaskWork([step.table.name for step in writes], given.for_tasks(), shares, asked, failed)
    wanted = [TableToBuild(step.table, step.adds) for step in writes]
    try:
        inputs = tables.inputs(job, found)
        built_now = build(output, job.value, partial(built, work), inputs, wanted, shares, is_exchanged=is_exchanged)
    except _FAILURES as error:
        built_now = {each.table.name: error for each in wanted}
    return found | {name: _with_file(output, each, tables) for name, each in built_now.items()}


def _with_file(output: Output, built: Staged | Exception, tables: RefreshTables) -> Staged | Exception:
    """Stages an empty file for a table to which rows are added, if it would have none except those of open rows."""
    if isinstance(built, Exception) or built.all_files:
        return built
    name = built.table.name
    is_rebuilt = tables.from_start and not built.table.is_measured
    if is_rebuilt or output.ledger.files(name) == output.ledger.open_files(name):
        return output.stage(built.table.arrow.empty_table(), built.table)
    return built


def _publish(output: Output, written: Mapping[str, Staged], read_to: NextOffsets, *, from_start: bool) -> None:
    """Publishes the tables. If one of the tables from which the next refresh starts is missing, the next refresh starts
    from the same offsets as this one.
    """
    added = [table.name for table in _ADDED if table.name in written]
    needed = {table.name for table in (*_OF_HISTORY, *_KEPT)}
    for_this_refresh = {step.table.name for step in STEPS if not step.is_published}
    others = needed | for_this_refresh | {*added}
    replaced = {name: each for name, each in written.items() if name not in others}
    if not needed <= written.keys():
        output.publish(replaced)
        return
    replaced |= {table.name: written[table.name] for table in _KEPT}
    output.refresh(
        Tables(
            {name: each.directory for name, each in replaced.items()},
            {name: written[name].files for name in added},
            {name: written[name].open_files for name in added},
            [table.name for table in _OF_HISTORY] if from_start else (),
        ),
        read_to,
    )


def failures_told(reasons: Mapping[str, str]) -> list[str]:
    """The texts of failures; `reasons` are by table. Tables with the same reason, such as a full disk, share a text."""
    names: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for name, text in reasons.items():
        kind = _FULL if _FULL in text else text
        names.setdefault(kind, []).append(name)
        texts.setdefault(kind, text)
    return [f"table{'s' * (len(own) > 1)} {', '.join(own)}: {texts[kind]}" for kind, own in names.items()]


def _reason(error: Exception) -> str:
    return cause_of(error) or first_line(error)
