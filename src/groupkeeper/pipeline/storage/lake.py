"""Tables of Delta Lake or Apache Iceberg that follow those of a directory.

The directory with its ledger stays what jobs work on. After a refresh each table of the lake is brought up to the
ledger's last entry in one commit of its format, which keeps the entry's number: what was killed in between is made up
for by the next run, and nothing is written twice.
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

__all__ = [
    "DAY",
    "FORMATS",
    "OPEN",
    "Lake",
    "Mark",
    "Place",
    "Replaced",
    "keep_mark",
    "kept_mark",
    "own_rows",
    "partitions",
    "shaped",
]

FORMATS = ("parquet", "delta", "iceberg")
DAY = "day"
"""A column that tables of a lake have where they grow: the day (UTC) of Table.day_of."""

OPEN = "is_open"
"""Of tables that rows are added to: rows that the next refresh replaces have it true."""


class Place(NamedTuple):
    """Where a lake's tables are: `catalog`.`namespace`.<table> of Spark's catalogs; `catalog` None: below the output
    directory, at <format>/<table>.
    """

    format: str
    catalog: str | None = None
    namespace: str = "groupkeeper"

    def __str__(self) -> str:
        return self.format if self.catalog is None else f"{self.format} tables {self.catalog}.{self.namespace}"

    def name_of(self, table: Table) -> str:
        """What a person calls a table there."""
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
        """None: not written by groupkeeper."""
        try:
            found = json.loads(text or "")["groupkeeper"]
            return Mark(str(found["history"]), int(found["entry"]), str(found["files"]))
        except (ValueError, KeyError, TypeError):
            return None


class Lake(Protocol):
    """Tables of one format at one place. What Spark raises passes."""

    def mark(self, table: Table) -> Mark | None:
        """Of the table's last commit by a run, or the one that `tidy` was given; None: there is no such table. Raises
        SourceError when there is one that no run has written.
        """

    def write(self, frame: DataFrame, table: Table, mark: Mark, replaced: Replaced) -> None:
        """One commit of rows with the columns of `shaped`; doing it again with the same mark is the caller's to avoid.
        Columns that the table lacks come to it.
        """

    def read(self, table: Table, condition: str | None = None) -> DataFrame:
        """All rows, with the table's own columns. `condition` (SQL): only those of which it is true, with DAY."""

    def tidy(self, table: Table, mark: Mark, keep_hours: float) -> None:
        """Make few files of small ones, and remove those of versions that are older than that. The table's `mark` is
        kept, as the version that has it may be removed, too.
        """

    def remove(self, table: Table, condition: str) -> None:
        """Remove the rows of which the condition (SQL) is true, in one commit. Earlier versions keep them."""

    def replace_days(self, table: Table, days: Sequence[date], frame: DataFrame) -> None:
        """Rows with the columns of `shaped` take the place of all rows of these days, in one commit."""


def own_rows(whole: DataFrame, table: Table, condition: str | None) -> DataFrame:
    """`Lake.read` of the whole table."""
    return whole.select(*table.names) if condition is None else whole.where(condition).select(*table.names, DAY)


def partitions(table: Table, *, has_open: bool) -> list[str]:
    """The columns that the files of a table are parted by."""
    if table.day_of is None:
        return []
    return ["cluster", DAY, *([OPEN] if has_open else [])]


def shaped(frame: DataFrame, table: Table, *, has_open: bool) -> DataFrame:
    """Rows as a lake has them. Those of `has_open` have OPEN already. Each of a table's files is of one group of rows
    that are read together.
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
"""A property of tables: the mark of a commit that may go with the version that has it."""


def keep_mark(spark: SparkSession, name: str, mark: Mark) -> None:
    """As a property of the table called `name`."""
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{_MARK}' = '{mark.text}')")


def kept_mark(spark: SparkSession, name: str) -> Mark:
    """That of `keep_mark`. Raises SourceError: no run has written the table."""
    kept = spark.sql(f"SHOW TBLPROPERTIES {name} ('{_MARK}')").collect()
    if (found := Mark.of(kept[0].value)) is None:
        raise SourceError(
            f"{name} is there, but groupkeeper has not written it: choose another --namespace or --tables"
        )
    return found
