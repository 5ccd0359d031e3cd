"""One refresh: builds all tables except the history from the rows since the last refresh, for one instant."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.jobs.history import LITTLE
from groupkeeper.pipeline.jobs.steps import STEPS, Given, Step
from groupkeeper.pipeline.jobs.watch import Problem, Run
from groupkeeper.pipeline.kafka.instants import Instant, Instants
from groupkeeper.pipeline.present.moved import places
from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.ledger import NextOffsets, Tables
from groupkeeper.pipeline.storage.output import Output, Staged
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, LAG_HISTORY, LOG_ENDS, QUALITY, Table
from groupkeeper.pipeline.tables.state import CARRIED
from groupkeeper.pipeline.transforms.history import is_before
from groupkeeper.pipeline.transforms.thinning import hourly_ends, hourly_lag
from groupkeeper.rules.words import counted

__all__ = ["make_tables", "update_lake"]

_FAILURES = (PySparkException, Py4JError, duckdb.Error, pa.ArrowException, SourceError)

_HISTORY = (COMMITS, GROUP_RECORDS)
_ADDED = tuple(step.table for step in STEPS if step.adds)
_KEPT = (*CARRIED, *(step.table for step in STEPS if step.table.is_carried))
"""Tables that the next refresh starts from."""

_BETWEEN = """
SELECT history.* FROM history
    LEFT JOIN made_to ON made_to.cluster = history.cluster AND made_to.log_partition = history.log_partition
    LEFT JOIN read_to ON read_to.cluster = history.cluster AND read_to.log_partition = history.log_partition
WHERE log_offset >= coalesce(made_to.next_offset, 0) AND coalesce(log_offset < read_to.next_offset, true)
"""

_OF_HISTORY = tuple(table for table in _ADDED if not table.is_measured)


class Frames:
    """The inputs of steps (steps.Sources). A step waits for the tables that it needs. The history is a view of one
    moment: rows that arrive meanwhile, or were written after the instant, belong to the next refresh.

    `from_start`: no carried rows are used; the tables are built from the whole history.
    """

    def __init__(self, output: Output, instants: Instants, *, from_start: bool = False) -> None:
        with output.lock:  # no append between the reads of the ledger and of the two tables
            made_to = None if from_start else output.ledger.made_to
            self.from_start = made_to is None
            self.made_to = made_to or {}
            known = output.ledger.next_offsets
            new = {table.name: output.read(table) if self.from_start else output.fresh(table) for table in _HISTORY}
            near = {table: output.few_rows(table, LITTLE, is_all=self.from_start) for table in _HISTORY}
            self._has_new = {
                table.name: self.from_start or bool(output.ledger.fresh_files(table.name)) for table in _HISTORY
            }
        self.read_to = {name: _cut(offsets, instants.get(name)) for name, offsets in known.items()}
        beyond = {name: own for name, own in self.read_to.items() if own != known[name]}
        self.is_little = all(rows is not None for rows in near.values())
        self._near = {table.name: self._between(table, rows) for table, rows in near.items() if rows is not None}
        self._new = {name: frame.where(is_before(beyond)) if beyond else frame for name, frame in new.items()}
        self.spark = output.spark
        self._output = output
        self._written: dict[str, Future[Staged]] = {}

    def add(self, table: Table, written: Future[Staged]) -> None:
        """A table that is being written."""
        self._written[table.name] = written

    def written(self, table: Table) -> Staged:
        """A staged table; raises the error that made it fail."""
        return self._written[table.name].result()

    def new(self, table: Table) -> DataFrame:
        return self._new[table.name]

    def rows_new(self, table: Table) -> Rows:
        return self._near[table.name]

    def _between(self, table: Table, rows: Rows) -> pa.Table:
        """The rows up to the instant that no refresh has seen."""
        given = {"history": rows, "made_to": places(self.made_to), "read_to": places(self.read_to)}
        return made(table, _BETWEEN, given).read_all()

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

    def rows_then(self, table: Table) -> Rows:
        if self._is_rebuilt(table):
            return table.arrow.empty_table()
        return self._output.open_rows_of(table) if table in _ADDED else self._output.rows_of(table)

    def _is_rebuilt(self, table: Table) -> bool:
        return self.from_start and (table in _KEPT or table in _OF_HISTORY)

    def rows_before(self, table: Table) -> Rows:
        return self._output.rows_of(table)

    def rows_now(self, table: Table) -> Rows:
        return self._output.rows(self.written(table))

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
    given = given._replace(made_to=frames.made_to, read_to=frames.read_to, note=run.note)
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
    try:
        for step in STEPS:  # a step waits only for earlier steps, which have a thread already: no step waits for ever
            frames.add(step.table, pool.submit(_write, output, step, frames, given))
        pool.shutdown()
    finally:
        pool.shutdown(cancel_futures=True)
    written: dict[str, Staged] = {}
    for step in STEPS:
        try:
            written[step.table.name] = frames.written(step.table)
        except _FAILURES as error:
            run.fail(Problem(None, f"table {step.table.name}: {_reason(error)}"))
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


def _write(output: Output, step: Step, frames: Frames, given: Given) -> Staged:
    name = step.table.name
    with described(output.spark, f"{name}: refresh"):
        made = step.make(frames, given)
        if step.adds:
            is_rebuilt = frames.from_start and not step.table.is_measured
            is_first = is_rebuilt or output.ledger.files(name) == output.ledger.open_files(name)
            return output.stage_parts(made, step.table, OPEN, is_needed=is_first)
        return output.stage(made, step.table)


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
