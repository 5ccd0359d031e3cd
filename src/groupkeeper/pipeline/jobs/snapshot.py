"""The tables as they are now: what is new in the offsets topics is appended to the history, everything else is made of
that.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.errors import SourceError, cause_of, first_line
from groupkeeper.pipeline.jobs.history import append
from groupkeeper.pipeline.jobs.output import Output, open_output
from groupkeeper.pipeline.jobs.reading import Reading, readings, source_options
from groupkeeper.pipeline.jobs.steps import STEPS, Given, Step
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.options import parse_options
from groupkeeper.pipeline.planning import RECORDS_WORTH_A_TASK, Plan, named, plan
from groupkeeper.pipeline.retention import ask_retentions
from groupkeeper.pipeline.source import GroupkeeperSource, read_ranges
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, Table

__all__ = ["make_tables", "snapshot", "update_history"]


class Made(Mapping[str, DataFrame]):
    """Tables by their names; one that is not done yet is waited for."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._history = {table.name: output.read(table) for table in (COMMITS, GROUP_RECORDS)}
        self._written: dict[str, tuple[Table, Future[int]]] = {}

    def add(self, table: Table, rows: Future[int]) -> None:
        """A table that is being written."""
        self._written[table.name] = (table, rows)

    def __getitem__(self, name: str) -> DataFrame:
        if name in self._history:
            return self._history[name]
        table, rows = self._written[name]
        rows.result()
        return self._output.read(table)

    def __iter__(self) -> Iterator[str]:
        yield from (*self._history, *self._written)

    def __len__(self) -> int:
        return len(self._history) + len(self._written)


def snapshot(
    spark: SparkSession,
    options: Mapping[str, str],
    directory: str,
    watch: Watch | None = None,
    *,
    found: Plan | None = None,
    is_remote: bool = False,
) -> Summary:
    """Bring all tables in `directory` up to date; `options` are those of the source, `found` is what the clusters have,
    None: they are asked. What one cluster fails of does not keep the others from being read.

    Raises SourceError when the directory can't be written.
    """
    run = Run(watch)
    with open_output(spark, directory, is_remote=is_remote) as output:
        make_tables(output, update_history(output, options, run, found), run)
    return run.summary


def update_history(output: Output, options: Mapping[str, str], run: Run, found: Plan | None = None) -> Given:
    """Append what the clusters have and the tables have not; `found` as for `snapshot`. The result is what the clusters
    said.
    """
    parsed = parse_options({**options, "rows": "decoded"})
    found = found or asyncio.run(plan(parsed))
    parsed = named(parsed, found.ranges)
    left, strange = readings(found.ranges, output.ledger.next_offsets)
    for name, error in [*found.failed.items(), *strange.items()]:
        run.fail(Problem(name, str(error)))
    asked = ask_retentions(parsed, found.ranges)
    for note in [*asked.notes, *(note for each in left for note in each.notes)]:
        run.note(note)
    run.watch.reading(sum(each.size for each in left))
    given = Given(parsed, asked.by_cluster)
    _read(output, given, left, run)
    return given


def _read(output: Output, given: Given, left: list[Reading], run: Run) -> None:
    """All clusters at once; one by one when that fails."""
    if not left:
        return
    try:
        _append(output, given, left, run)
    except (PySparkException, Py4JError, SourceError) as error:
        if (cause := cause_of(error)) is None:
            raise
        if len(left) == 1:
            run.fail(Problem(left[0].name, cause))
        else:
            for each in left:
                _read(output, given, [each], run)


def _append(output: Output, given: Given, left: list[Reading], run: Run) -> None:
    if not any(each.size for each in left) and output.ledger.files(COMMITS.name):
        return
    decoded: DataFrame | Iterator[pa.RecordBatch]
    if output.is_here and sum(each.size for each in left) < RECORDS_WORTH_A_TASK:
        # Done before a worker of Spark's would have started.
        decoded = read_ranges([one for each in left for one in each.ranges if one.size], given.options)
    else:
        output.spark.dataSource.register(GroupkeeperSource)
        decoded = output.spark.read.format("groupkeeper").options(**source_options(given.options, left)).load()
    read_to = {name: offsets for each in left for name, offsets in each.read_to.items()}
    appended = append(output, decoded, given.retentions, read_to)
    run.append(appended.rows)
    if appended.note:
        run.note(appended.note)


def make_tables(output: Output, given: Given, run: Run) -> None:
    """Every step's table anew, side by side; one that fails keeps those that need it as they were."""
    run.watch.making(len(STEPS))
    for table in (COMMITS, GROUP_RECORDS):
        try:
            output.merge(table)
        except (PySparkException, Py4JError) as error:
            run.fail(Problem(None, f"table {table.name}: its small files stay as they are: {_said(error)}"))
        run.watch.table(table.name, run.summary.new_rows.setdefault(table.name, 0), is_appended=True)
    made = Made(output)
    done: list[tuple[Table, Future[int]]] = []
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
    try:
        for step in STEPS:  # a step waits only for those before it, which have a thread already: none waits for ever
            rows = pool.submit(_made, output, step, made, given, run.watch)
            made.add(step.table, rows)
            done.append((step.table, rows))
        pool.shutdown()
    finally:
        pool.shutdown(cancel_futures=True)
    for table, rows in done:
        try:
            run.summary.rows[table.name] = rows.result()
        except (PySparkException, Py4JError) as error:
            run.fail(Problem(None, f"table {table.name}: {_said(error)}"))


def _made(output: Output, step: Step, made: Made, given: Given, watch: Watch) -> int:
    rows = output.replace(step.make(made, given), step.table)
    watch.table(step.table.name, rows)
    return rows


def _said(error: Exception) -> str:
    return cause_of(error) or first_line(error)
