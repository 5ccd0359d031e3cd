"""Tables of Delta Lake or Apache Iceberg that mirror those of a directory.

Jobs work on the directory with its ledger. After a refresh, each table of the lake is brought up to the ledger's last
entry in one commit, which records the number of the entry. If a run is killed in between, the next run catches up, and
nothing is written twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from enum import Enum
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.tables import Table

DAY = "day"
"""A column of those tables of a lake that grow: the day (UTC) of Table.day_of."""

OPEN = "is_open"
"""A column of tables that rows are added to: true for open rows, which the next refresh replaces."""


class LakePlace(NamedTuple):
    """Where a lake's tables are: `catalog`.`namespace`.<table> of Spark's catalogs; `catalog` None: below the output
    directory, at <format>/<table>.
    """

    format: str
    catalog: str | None = None
    namespace: str = "groupkeeper"

    def __str__(self) -> str:
        return self.format if self.catalog is None else f"{self.format} tables {self.catalog}.{self.namespace}"

    def name_of(self, table: Table) -> str:
        """The name of a table in messages."""
        return (
            f"{self.format}/{table.name}" if self.catalog is None else f"{self.catalog}.{self.namespace}.{table.name}"
        )


class Replaced(Enum):
    """The rows that a write replaces."""

    NONE = "none"
    OPEN = "open"
    ALL = "all"


class Mark(NamedTuple):
    """The mark in each commit: the id of the directory's ledger (Ledger.id), the last entry that the table includes,
    and a digest of the names of its source files.
    """

    history: str
    entry: int
    files: str

    @property
    def text(self) -> str:
        return json.dumps({"groupkeeper": self._asdict()})

    @staticmethod
    def of(text: str | None) -> Mark | None:
        """The mark in a text; None: groupkeeper has not written it."""
        try:
            found = json.loads(text or "")["groupkeeper"]
            return Mark(str(found["history"]), int(found["entry"]), str(found["files"]))
        except (ValueError, KeyError, TypeError):
            return None


class Lake(Protocol):
    """Tables of one format at one place. Exceptions of Spark are not caught."""

    def mark(self, table: Table) -> Mark | None:
        """The mark of the table's last commit by a run, or the one that `tidy` has kept; None: there is no such table.
        Raises SourceError if no run has written the table.
        """

    def write(self, frame: DataFrame, table: Table, mark: Mark, replaced: Replaced) -> None:
        """Write rows with the columns of `shaped` in one commit. The caller must not write again with the same mark.
        Columns that the table lacks are added.
        """

    def read(self, table: Table, condition: str | None = None) -> DataFrame:
        """All rows, with the table's own columns. `condition` (SQL): only rows for which it is true, with the column
        DAY.
        """

    def tidy(self, table: Table, mark: Mark, keep_hours: float) -> None:
        """Merge small files, and remove files of versions older than `keep_hours`. The table keeps its mark, although
        the version that has it may be removed.
        """

    def remove(self, table: Table, condition: str) -> None:
        """Remove the rows for which the condition (SQL) is true, in one commit. Earlier versions keep them."""

    def replace_days(self, table: Table, days: Sequence[date], frame: DataFrame) -> None:
        """Replace all rows of these days by rows with the columns of `shaped`, in one commit."""


def own_rows(whole: DataFrame, table: Table, condition: str | None) -> DataFrame:
    """The result of `Lake.read`, from the whole table."""
    return whole.select(*table.names) if condition is None else whole.where(condition).select(*table.names, DAY)


def partitions(table: Table, *, has_open: bool) -> list[str]:
    """The columns by which a table is partitioned."""
    if table.day_of is None:
        return []
    return ["cluster", DAY, *([OPEN] if has_open else [])]


def shaped(frame: DataFrame, table: Table, *, has_open: bool) -> DataFrame:
    """Rows in the form of a lake's table. With `has_open` they have the column OPEN already. Each file has the rows of
    one partition of the table.
    """
    if table.day_of is None:
        return frame.select(*table.names)
    more = [OPEN] if has_open else []
    rows = frame.select(*table.names, F.to_date(table.day_of).alias(DAY), *more)
    order = [name for name in ("group_id", "topic", "partition", "log_partition", "log_offset") if name in table.names]
    return rows.repartition(*partitions(table, has_open=has_open)).sortWithinPartitions(
        *partitions(table, has_open=has_open), *order
    )


_MARK = "groupkeeper.mark"
"""A table property: the mark of the last commit of a run, whose version may be removed."""


def keep_mark(spark: SparkSession, name: str, mark: Mark) -> None:
    """Store the mark as a property of the table `name`."""
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{_MARK}' = '{mark.text}')")


def kept_mark(spark: SparkSession, name: str) -> Mark:
    """The mark that `keep_mark` has stored. Raises SourceError if no run has written the table."""
    kept = spark.sql(f"SHOW TBLPROPERTIES {name} ('{_MARK}')").collect()
    if (found := Mark.of(kept[0].value)) is None:
        raise SourceError(
            f"{name} is there, but groupkeeper has not written it: choose another --namespace or --tables"
        )
    return found
