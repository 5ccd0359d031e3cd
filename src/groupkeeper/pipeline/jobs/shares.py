"""Steps of a refresh in tasks of Spark: a task builds the tables for a share of the groups, from files into files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.queries import QUERIES
from groupkeeper.pipeline.jobs.steps import STEPS, Given
from groupkeeper.pipeline.present.moved import places
from groupkeeper.pipeline.present.sql import Rows, made, use_one_thread
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.storage.output import rows_in
from groupkeeper.pipeline.storage.part_files import PartFiles, write, write_parts
from groupkeeper.pipeline.tables import Table

__all__ = ["Built", "Work", "build"]

_BETWEEN = """
SELECT history.* FROM history
    LEFT JOIN made_to ON made_to.cluster = history.cluster AND made_to.log_partition = history.log_partition
    LEFT JOIN read_to ON read_to.cluster = history.cluster AND read_to.log_partition = history.log_partition
WHERE log_offset >= coalesce(made_to.next_offset, 0) AND coalesce(log_offset < read_to.next_offset, true)
"""

_SHARE = "SELECT * FROM rows WHERE md5_number_lower(coalesce(group_id, '')) % $shares = $share"
"""The same by all versions of DuckDB. An id has one share in all clusters: a change of which a journal doesn't know the
cluster is looked for in all of them.
"""


class Work(NamedTuple):
    """What the tasks of a job build, of what. Names are those of tables; files are below `folder`, and tasks must see
    them there.
    """

    folder: Path
    steps: Sequence[str]
    given: Given
    shares: int
    new: Mapping[str, Sequence[str]]
    """Files with rows that no refresh has processed, of tables that have such."""
    then: Mapping[str, Sequence[str]]
    before: Mapping[str, Sequence[str]]
    now: Mapping[str, Sequence[str]]
    """What earlier jobs of the refresh have written."""
    asked: Mapping[str, pa.Table]
    """What the clusters answered. Tasks write those that are in `folders`."""
    failed: Mapping[str, Exception]
    folders: Mapping[str, Path]
    """Where to write each table."""


class Built(NamedTuple):
    """The files of a table that a task has written, or why it has not."""

    table: str
    files: PartFiles | None
    error: Exception | None = None


def build(work: Work, share: int) -> list[Built]:
    """The task with this number."""
    if work.shares > 1:  # a task of Spark's has one core
        use_one_thread()
    rows = _Rows(work, share)
    given = rows.given()
    own = {step.table.name: step for step in STEPS if step.table.name in work.steps}
    found = []
    for name in work.steps:
        step = own[name]
        try:
            if name in work.asked:
                made = work.asked[name].to_reader()
            else:
                built = step.make(rows, given)
                assert not isinstance(built, DataFrame)
                made = rows.keep(step.table, built)
            folder = work.folders[name]
            files = write_parts(folder, made, OPEN) if step.adds else write(folder, made)
            found.append(Built(name, files))
        except OSError as error:  # another machine may see the files
            raise SourceError(f"{work.folder}: {error.strerror or error}") from error
        except (duckdb.Error, pa.ArrowException, SourceError) as error:  # the driver raises it again
            rows.failed[name] = error
            found.append(Built(name, None, error))
    return found


class _Rows:
    """The inputs of steps (steps.Sources) in a task."""

    is_little = True

    def __init__(self, work: Work, share: int) -> None:
        self._work = work
        self._share = share
        self._new: dict[str, Rows] = {}
        self._then: dict[str, Rows] = {}
        self._now: dict[str, Rows] = {}
        self.failed = dict(work.failed)

    def given(self) -> Given:
        """With the queries of this share."""
        given = self._work.given
        own = self._shared(QUERIES, given.queries.names()) if given.queries else None
        return given if own is None else given._replace(queries=given.queries.only(own["group_id"].to_pylist()))

    def keep(self, table: Table, built: pa.Table | pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same rows, which later steps get as well."""
        whole = built if isinstance(built, pa.Table) else built.read_all()
        self._now[table.name] = whole.select(table.names)
        return whole.to_reader()

    def rows_new(self, table: Table) -> Rows:
        if table.name not in self._new:
            given = self._work.given
            rows = self._shared(table, rows_in(self._work.folder, table, self._work.new[table.name]))
            bounds = {"made_to": places(given.made_to), "read_to": places(given.read_to)}
            self._new[table.name] = made(table, _BETWEEN, {"history": rows, **bounds}).read_all()
        return self._new[table.name]

    def has_new(self, table: Table) -> bool:
        return table.name in self._work.new

    def rows_then(self, table: Table) -> Rows:
        if table.name not in self._then:
            rows = rows_in(self._work.folder, table, self._work.then[table.name])
            self._then[table.name] = self._shared(table, rows)
        return self._then[table.name]

    def rows_before(self, table: Table) -> Rows:
        return self._shared(table, rows_in(self._work.folder, table, self._work.before[table.name]))

    def rows_now(self, table: Table) -> Rows:
        name = table.name
        if name in self.failed:
            raise self.failed[name]
        if name not in self._now:
            asked = self._work.asked.get(name)
            rows = rows_in(self._work.folder, table, self._work.now[name]) if asked is None else asked
            self._now[name] = self._shared(table, rows)
        return self._now[name]

    def made(self, tables: Iterable[Table]) -> dict[Table, Rows]:
        return {table: self.rows_now(table) for table in tables if table.name not in self.failed}

    def _shared(self, table: Table, rows: Rows) -> Rows:
        """The rows of this task's groups; of tables that are not of groups all rows."""
        if self._work.shares == 1 or "group_id" not in table.names:
            return rows
        values = {"shares": self._work.shares, "share": self._share}
        return made(table, _SHARE, {"rows": rows}, values).read_all()

    @property
    def spark(self) -> SparkSession:
        self._not_here()

    def new(self, table: Table) -> DataFrame:
        self._not_here()

    def past(self, table: Table) -> DataFrame:
        self._not_here()

    def then(self, table: Table) -> DataFrame:
        self._not_here()

    def before(self, table: Table) -> DataFrame:
        self._not_here()

    def now(self, table: Table) -> DataFrame:
        self._not_here()

    def _not_here(self) -> NoReturn:
        raise AssertionError("a task has no session")
