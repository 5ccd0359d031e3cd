"""A task of a refresh: runs the steps of its job, one after the other, for its share of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.queries import Queries
from groupkeeper.pipeline.jobs.shares import Built, rows_of_share
from groupkeeper.pipeline.jobs.steps import STEPS, RefreshContext, rows_of
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.tables import Table
from groupkeeper.pipeline.transforms.history import between

_FAILURES = (ArithmeticError, LookupError, TypeError, ValueError, pa.ArrowException, SourceError)


class TaskWork(NamedTuple):
    """The tables that the tasks of a job build, by name, and their inputs besides rows."""

    steps: Sequence[str]
    given: RefreshContext
    shares: int
    asked: Mapping[str, pa.Table]
    """Rows that clusters have answered; tasks write the tables that are among `steps`."""
    failed: Mapping[str, Exception]


def name_of(kind: str, table: Table) -> str:
    """The name of a job's input; `kind` is the method of steps.Sources that returns it."""
    return f"{kind} {table.name}"


def built(work: TaskWork, share: int, rows: Mapping[str, Rows]) -> Built:
    """Builds the tables of a share (shares.Build)."""
    tables = _Tables(work, share, rows)
    given = work.given._replace(queries=tables.queries()) if work.given.queries else work.given
    own = {step.table.name: step for step in STEPS if step.table.name in work.steps}
    for name in work.steps:
        if name in work.asked:
            yield name, work.asked[name]
            continue
        try:
            whole = rows_of(own[name].made(tables, given))
        except _FAILURES as error:  # the driver raises it again
            tables.failed[name] = error
            yield name, error
        else:
            tables.kept[name] = whole.select(own[name].table.names)
            yield name, whole


class _Tables:
    """The inputs of steps (steps.Sources) in a task."""

    def __init__(self, work: TaskWork, share: int, rows: Mapping[str, Rows]) -> None:
        self._work = work
        self._share = share
        self._rows = rows
        self.kept: dict[str, Rows] = {}
        self.failed = dict(work.failed)

    def new(self, table: Table) -> Rows:
        name = name_of("new", table)
        if name not in self.kept:
            given = self._work.given
            self.kept[name] = between(loaded(self._rows[name]), given.made_to, given.read_to)
        return self.kept[name]

    def then(self, table: Table) -> Rows:
        return self._rows[name_of("then", table)]

    def before(self, table: Table) -> Rows:
        return self._rows[name_of("before", table)]

    def now(self, table: Table) -> Rows:
        name = table.name
        if name in self.failed:
            raise self.failed[name]
        if name not in self.kept:
            asked = self._work.asked.get(name)
            if asked is None and name_of("now", table) not in self._rows:
                raise AssertionError(f"{name} is made after the steps that read it (jobs/steps.py)")
            self.kept[name] = self._rows[name_of("now", table)] if asked is None else self._own(asked)
        return self.kept[name]

    def queries(self) -> Queries:
        """The queries of this share."""
        queries = self._work.given.queries
        return queries.only(self._own(queries.names())["group_id"].to_pylist())

    def _own(self, rows: pa.Table) -> pa.Table:
        return rows_of_share(rows, self._share, self._work.shares)
