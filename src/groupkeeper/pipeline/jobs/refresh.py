"""One refresh: builds all tables except the history from the rows since the last refresh, for one instant."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from typing import TypeAlias

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.jobs.history import LITTLE
from groupkeeper.pipeline.jobs.shares import Built, Work, build
from groupkeeper.pipeline.jobs.steps import STEPS, Given, Job, Step
from groupkeeper.pipeline.jobs.watch import Problem, Run
from groupkeeper.pipeline.kafka.instants import Instant, Instants
from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.runtime.tasks import run_tasks
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.ledger import NextOffsets, Tables
from groupkeeper.pipeline.storage.output import Output, Staged
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, LAG_HISTORY, LOG_ENDS, QUALITY, REJECTS, Table
from groupkeeper.pipeline.tables.state import CARRIED, LAST_COMMITS
from groupkeeper.pipeline.transforms.history import is_before
from groupkeeper.pipeline.transforms.thinning import hourly_ends, hourly_lag
from groupkeeper.rules.words import counted

__all__ = ["make_tables", "update_lake"]

_FAILURES = (PySparkException, Py4JError, duckdb.Error, pa.ArrowException, SourceError)

_HISTORY = (COMMITS, GROUP_RECORDS)
_OFFSETS_PER_TASK = 250_000

_THEN = tuple(step.table for step in STEPS if step.is_published and step.table is not QUALITY)
_ADDED = tuple(step.table for step in STEPS if step.adds)
_KEPT = (*CARRIED, *(step.table for step in STEPS if step.table.is_carried))
"""Tables that the next refresh starts from."""

_OF_HISTORY = tuple(table for table in _ADDED if not table.is_measured)


_Built: TypeAlias = Mapping[str, "Staged | pa.Table | Exception"]
"""By the name of the table: what is staged, the rows of what was asked, or why there is nothing."""


class Frames:
    """The inputs of steps (steps.Sources). A step waits for the tables that it needs. The history is a view of one
    moment: rows that arrive meanwhile, or were written after the instant, belong to the next refresh.

    `from_start`: no carried rows are used; the tables are built from the whole history.
    """

    is_little = False

    def __init__(self, output: Output, instants: Instants, *, from_start: bool = False) -> None:
        with output.lock:  # no append between the reads of the ledger and of the two tables
            made_to = None if from_start else output.ledger.made_to
            self.from_start = made_to is None
            self.made_to = made_to or {}
            known = output.ledger.next_offsets
            near = {table.name: output.few_files(table, LITTLE, is_all=self.from_start) for table in _HISTORY}
            self.are_few = all(files is not None for files in near.values())
            """Whether tasks build all tables; otherwise Spark's SQL builds those of history."""
            tables = () if self.are_few else _HISTORY  # planning costs time, even if no job runs
            new = {table.name: output.read(table) if self.from_start else output.fresh(table) for table in tables}
            self._has_new = {
                table.name: self.from_start or bool(output.ledger.fresh_files(table.name)) for table in _HISTORY
            }
        self.read_to = {name: _cut(offsets, instants.get(name)) for name, offsets in known.items()}
        beyond = {name: own for name, own in self.read_to.items() if own != known[name]}
        self.near = {name: files for name, files in near.items() if files is not None and self._has_new[name]}
        """Files with the new rows, for tasks."""
        self._new = {name: frame.where(is_before(beyond)) if beyond else frame for name, frame in new.items()}
        self.spark = output.spark
        self._output = output
        self._built: dict[str, Future[_Built]] = {}
        self._asked: dict[str, Future[_Built]] = {}

    def add(self, steps: Iterable[Step], built: Future[_Built], *, is_asked: bool = False) -> None:
        """Tables that are being built. Where they are asked for, another job writes them."""
        for step in steps:
            (self._asked if is_asked else self._built)[step.table.name] = built

    def written(self, table: Table) -> Staged:
        """A staged table; raises the error that made it fail."""
        found = self._built[table.name].result()[table.name]
        if not isinstance(found, Staged):
            raise found if isinstance(found, Exception) else AssertionError(f"{table.name} is not written")
        return found

    def found(self, table: Table) -> Staged | pa.Table:
        """The same, of what was asked for the rows. Raises like `written`."""
        if table.name not in self._asked:
            return self.written(table)
        found = self._asked[table.name].result()[table.name]
        if isinstance(found, Exception):
            raise found
        return found

    def new(self, table: Table) -> DataFrame:
        return self._new[table.name]

    def rows_new(self, table: Table) -> Rows:
        raise AssertionError(f"{table.name}: only tasks read new rows themselves")

    def has_new(self, table: Table) -> bool:
        return self._has_new[table.name]

    def past(self, table: Table) -> DataFrame:
        return self._output.read(table)

    def then(self, table: Table) -> DataFrame:
        if self._is_rebuilt(table):
            return self.spark.createDataFrame([], table.ddl)
        return self._output.open_rows(table) if table in _ADDED else self._output.read(table)

    def before(self, table: Table) -> DataFrame:
        return self._output.read(table)

    def now(self, table: Table) -> DataFrame:
        return self._output.frame(self.written(table))

    def building(self, table: Table) -> Future[_Built]:
        """The job that builds it."""
        return self._built[table.name]

    def shares(self, offsets: Staged | pa.Table | Exception | None) -> int:
        """Over how many tasks the groups are spread. `offsets`: rows of LAST_COMMITS, where they are built already."""
        files = [file for files in self.near.values() for file in files] + [*self.then_files[LAST_COMMITS.name]]
        rows = self._output.count_files(offsets.files if isinstance(offsets, Staged) else files)
        return 1 + rows // _OFFSETS_PER_TASK

    @cached_property
    def then_files(self) -> Mapping[str, Sequence[str]]:
        """By table the files of `rows_then`, for all jobs of the refresh."""
        return {table.name: self._then_files(table) for table in _THEN}

    def _then_files(self, table: Table) -> list[str]:
        if self._is_rebuilt(table):
            return []
        return self._output.open_files_of(table) if table in _ADDED else self._output.files_of(table)

    def rows_then(self, table: Table) -> Rows:
        if self._is_rebuilt(table):
            return table.arrow.empty_table()
        return self._output.open_rows_of(table) if table in _ADDED else self._output.rows_of(table)

    def _is_rebuilt(self, table: Table) -> bool:
        return self.from_start and (table in _KEPT or table in _OF_HISTORY)

    def rows_before(self, table: Table) -> Rows:
        return self._output.rows_of(table)

    def rows_now(self, table: Table) -> Rows:
        found = self.found(table)
        return self._output.rows(found) if isinstance(found, Staged) else found

    def made(self, tables: Iterable[Table]) -> dict[Table, Rows]:
        found = {}
        for table in tables:
            with contextlib.suppress(*_FAILURES):  # the run reports the error for the table itself
                found[table] = self.rows_now(table)
        return found


def _cut(known: Mapping[int, int], instant: Instant | None) -> dict[int, int]:
    """The offsets up to which the history of a cluster belongs to the instant. For a partition that could not be
    queried, these are the offsets that were read.
    """
    if instant is None:
        return dict(known)
    ends = {number: instant.stable.get(number, 0) for number in known}
    return {number: offset if (end := ends[number]) is None else min(offset, end) for number, offset in known.items()}


def make_tables(output: Output, given: Given, run: Run, *, from_start: bool = False) -> None:
    """Build the tables of all steps in parallel, and publish them together. If a step fails, the tables that depend on
    it stay unchanged. `from_start`: build them from the whole history.
    """
    run.watch.making(len(STEPS))
    _make_fewer(output, run)
    frames = _frames(output, given, run, from_start=from_start)
    if frames is None:
        return
    given = given._replace(made_to=frames.made_to, read_to=frames.read_to, note=run.note).with_changes()
    _build(output, given, frames)
    written: dict[str, Staged] = {}
    for step in STEPS:
        try:
            written[step.table.name] = frames.written(step.table)
        except _FAILURES as error:
            run.fail(Problem(None, f"table {step.table.name}: {_reason(error)}"))
    output.keep_only(written.values())
    if QUALITY.name in written:
        _tell_quality(output.rows(written[QUALITY.name]), run)
    _publish(output, written, frames.read_to, from_start=frames.from_start)
    for step in STEPS:
        if step.table.name in written and step.is_published and step.table not in CARRIED:
            run.write(step.table.name, output.count(step.table))
    output.discard(written.values())
    update_lake(output, run)


def _tell_quality(quality: Rows, run: Run) -> None:
    """Reports checks that failed because of a defect; rejects and freshness are already reported, or are in their
    tables.
    """
    query = "SELECT * FROM quality WHERE result = 'failed' AND check_name IN ('keys', 'counts')"
    for row in made(QUALITY, query, {QUALITY.name: quality}).read_all().to_pylist():
        run.fail(Problem(row["cluster"], f"quality: table {row['table_name'] or 'commits'}: {row['detail']}"))


def _make_fewer(output: Output, run: Run) -> None:
    """Merges small files, and thins old measurements."""
    for table in (*_HISTORY, *_ADDED):
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


def _frames(output: Output, given: Given, run: Run, *, from_start: bool) -> Frames | None:
    """None: the history is in a lake whose tables belong to another directory or lack rows; the run reports it."""
    try:
        return Frames(output, given.clusters.instants, from_start=from_start)
    except SourceError as error:
        if str(error) not in {each.message for each in run.summary.problems}:
            run.fail(Problem(None, str(error)))
        return None


def update_lake(output: Output, run: Run) -> None:
    """Updates the tables of a lake with the new rows."""
    if output.mirror is None:
        return
    run.watch.following()
    try:
        output.mirror.update()
    except _FAILURES as error:
        run.fail(Problem(None, f"the lake's tables stay as they were: {_reason(error)}"))


def _build(output: Output, given: Given, frames: Frames) -> None:
    """Builds all tables: step by step what the driver asks and what Spark's SQL makes, the rest by jobs of tasks."""
    pool = ThreadPoolExecutor(max(4, os.cpu_count() or 1))
    done: list[Step] = []
    try:  # a part waits only for earlier parts, which have a thread already: no part waits for ever
        for (is_here, job), some in itertools.groupby(STEPS, lambda step: (_is_here(step, output, frames), step.job)):
            steps = list(some)
            if is_here:
                for step in steps:
                    is_asked = job is Job.ASKED and output.is_here
                    frames.add([step], pool.submit(_make, output, step, frames, given), is_asked=is_asked)
            else:
                frames.add(steps, pool.submit(_run, output, steps, list(done), frames, given))
                if job is Job.CLUSTERS:  # which writes what was asked as well
                    asked = [step for step in done if step.job is Job.ASKED]
                    frames.add(asked, frames.building(steps[0].table))
            done += steps
        pool.shutdown()
    finally:
        pool.shutdown(cancel_futures=True)


def _is_here(step: Step, output: Output, frames: Frames) -> bool:
    """Whether a step is no part of a job of tasks."""
    return step.job is Job.ASKED or not output.is_here or (step.is_of_history and not frames.are_few)


def _make(output: Output, step: Step, frames: Frames, given: Given) -> _Built:
    name = step.table.name
    try:
        with described(output.spark, f"{name}: refresh"):
            made = step.make(frames, given)
            made = made.to_reader() if isinstance(made, pa.Table) else made
            if step.job is Job.ASKED and output.is_here and not isinstance(made, DataFrame):
                return {name: made.read_all()}
            if step.adds:
                return {name: output.stage_parts(made, step.table, OPEN, is_needed=_is_first(output, step, frames))}
            return {name: output.stage(made, step.table)}
    except _FAILURES as error:
        return {name: error}


def _is_first(output: Output, step: Step, frames: Frames) -> bool:
    """Whether the table has no files but open ones."""
    name = step.table.name
    is_rebuilt = frames.from_start and not step.table.is_measured
    return is_rebuilt or output.ledger.files(name) == output.ledger.open_files(name)


def _run(output: Output, steps: Sequence[Step], done: Sequence[Step], frames: Frames, given: Given) -> _Built:
    """Builds the tables of these steps by a job of tasks, after others are done."""
    found: dict[str, Staged | pa.Table | Exception] = {}
    for step in done:
        try:
            found[step.table.name] = frames.found(step.table)
        except _FAILURES as error:
            found[step.table.name] = error
    job = steps[0].job
    asked = {name: rows for name, rows in found.items() if isinstance(rows, pa.Table)}
    writes = [step for step in done if step.table.name in asked and job is Job.CLUSTERS] + [*steps]
    places = {step.table.name: output.folder_aside(step.table) for step in writes}
    work = Work(
        output.folder,
        [*places],
        given.for_tasks(),
        1 if job is Job.CLUSTERS else frames.shares(found.get(LAST_COMMITS.name)),
        new=frames.near,
        then=frames.then_files,
        before={REJECTS.name: output.files_of(REJECTS)},
        now={name: [*each.files, *each.open_files] for name, each in found.items() if isinstance(each, Staged)},
        asked=asked,
        failed={name: SourceError(_reason(each)) for name, each in found.items() if isinstance(each, Exception)},
        folders={name: folder for name, (_, folder) in places.items()},
    )
    try:
        built = run_tasks(output.spark, job.value, work.shares, partial(build, work))
    except _FAILURES as error:
        built = [Built(name, None, error) for name in places]
    for step in writes:
        name, path = step.table.name, places[step.table.name][0]
        found[name] = _staged(output, step, path, built, frames)
        if not isinstance(found[name], Staged):
            output.files.remove(path)
    return found


def _staged(output: Output, step: Step, path: str, done: Iterable[Built], frames: Frames) -> Staged | Exception:
    """What the tasks have written of a table, or why one of them has not."""
    own = [each for each in done if each.table == step.table.name]
    for each in own:
        if each.error is not None:
            return each.error
    staged = output.of_tasks(step.table, path, [each.files for each in own if each.files is not None])
    if step.adds and not staged.files and not staged.open_files and _is_first(output, step, frames):
        return output.stage(step.table.arrow.empty_table().to_reader(), step.table)
    return staged


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
            output.aged(),
        ),
        read_to,
    )


def _reason(error: Exception) -> str:
    return cause_of(error) or first_line(error)
