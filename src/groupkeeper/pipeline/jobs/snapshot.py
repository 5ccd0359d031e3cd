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
from groupkeeper.pipeline.jobs.history import append, is_before
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.output import Output, Staged, open_output
from groupkeeper.pipeline.jobs.reading import Reading, readings, source_options
from groupkeeper.pipeline.jobs.steps import STEPS, Given, Step
from groupkeeper.pipeline.jobs.watch import Problem, Run, Summary, Watch
from groupkeeper.pipeline.kafka.instants import Instant, Instants
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import RECORDS_WORTH_A_TASK, Plan, named, plan
from groupkeeper.pipeline.kafka.retention import ask_retentions
from groupkeeper.pipeline.kafka.source import GroupkeeperSource, read_ranges
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, Table

__all__ = ["make_tables", "snapshot", "update_history"]


class Made(Mapping[str, DataFrame]):
    """Tables by their names; one that is not written yet is waited for. History is that of one moment: rows that come
    meanwhile, or were written since the instant, are for the next time.
    """

    def __init__(self, output: Output, instants: Instants) -> None:
        with output.lock:  # nothing is appended between the ledger and the two tables
            known = output.ledger.next_offsets
            history = {table.name: output.read(table) for table in (COMMITS, GROUP_RECORDS)}
        self.read_to = {name: _cut(offsets, instants.get(name)) for name, offsets in known.items()}
        beyond = {name: own for name, own in self.read_to.items() if own != known[name]}
        self._history = {name: frame.where(is_before(beyond)) if beyond else frame for name, frame in history.items()}
        self._staged: dict[str, Future[Staged]] = {}

    def add(self, table: Table, staged: Future[Staged]) -> None:
        """A table that is being written."""
        self._staged[table.name] = staged

    def staged(self, table: Table) -> Staged:
        """A table as it was written aside; what made it fail is raised."""
        return self._staged[table.name].result()

    def __getitem__(self, name: str) -> DataFrame:
        return self._history[name] if name in self._history else self._staged[name].result().frame

    def __iter__(self) -> Iterator[str]:
        yield from (*self._history, *self._staged)

    def __len__(self) -> int:
        return len(self._history) + len(self._staged)


def _cut(known: Mapping[int, int], instant: Instant | None) -> dict[int, int]:
    """Up to where the history of a cluster is that of the instant."""
    if instant is None:
        return dict(known)
    return {number: min(offset, instant.stable.get(number, 0)) for number, offset in known.items()}


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
    left, strange = readings(found, output.ledger)
    failed = {name: str(error) for name, error in [*found.failed.items(), *strange.items()]}
    for name, text in failed.items():
        run.fail(Problem(name, text))
    instants = {name: each for name, each in found.instants.items() if name not in strange}
    asked = ask_retentions(parsed, found.ranges)
    for note in [*asked.notes, *(note for each in left for note in each.notes)]:
        run.note(note)
    run.watch.reading(sum(each.size for each in left))
    given = Given(Clusters(parsed, instants, failed), asked.by_cluster)
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
        decoded = read_ranges([one for each in left for one in each.ranges if one.size], given.clusters.options)
    else:
        output.spark.dataSource.register(GroupkeeperSource)
        decoded = output.spark.read.format("groupkeeper").options(**source_options(given.clusters.options, left)).load()
    read_to = {name: offsets for each in left for name, offsets in each.read_to.items()}
    identities = {each.name: given.clusters.instants[each.name].identity for each in left}
    appended = append(output, decoded, given.retentions, read_to, identities)
    run.append(appended.rows)
    if appended.note:
        run.note(appended.note)


def make_tables(output: Output, given: Given, run: Run) -> None:
    """Every step's table again, side by side, and all of them in their places together; one that fails keeps those that
    need it as they were.
    """
    run.watch.making(len(STEPS))
    for table in (COMMITS, GROUP_RECORDS):
        try:
            output.merge(table)
        except (PySparkException, Py4JError) as error:
            run.fail(Problem(None, f"table {table.name}: its small files stay as they are: {_said(error)}"))
        run.watch.table(table.name, run.summary.new_rows.setdefault(table.name, 0), is_appended=True)
    made = Made(output, given.clusters.instants)
    given = given._replace(read_to=made.read_to)
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1))
    try:
        for step in STEPS:  # a step waits only for those before it, which have a thread already: none waits for ever
            made.add(step.table, pool.submit(_stage, output, step, made, given))
        pool.shutdown()
    finally:
        pool.shutdown(cancel_futures=True)
    staged: dict[str, Staged] = {}
    for step in STEPS:
        try:
            staged[step.table.name] = made.staged(step.table)
        except (PySparkException, Py4JError) as error:
            run.fail(Problem(None, f"table {step.table.name}: {_said(error)}"))
    rows = {name: output.rows(each) for name, each in staged.items()}
    output.publish(staged)
    for name, number in rows.items():
        run.write(name, number)
    output.discard(staged.values())


def _stage(output: Output, step: Step, made: Made, given: Given) -> Staged:
    return output.stage(step.make(made, given), step.table)


def _said(error: Exception) -> str:
    return cause_of(error) or first_line(error)
