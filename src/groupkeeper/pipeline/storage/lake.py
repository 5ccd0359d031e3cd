"""Tables of Delta Lake or Apache Iceberg: the files in which tasks have written them, and a log of the format.

The ledger names the files that belong together. After each ledger entry that changes tables, one commit per table
brings the format's log to the same files; no row is written twice. Commits only name files, so they may be repeated: if
a run is killed between two of them, the next run catches up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.storage.ledger import number_of
from groupkeeper.pipeline.tables import Table

OPEN = "is_open"
"""A column of rows that tasks make: true for open rows, which the next refresh replaces. No file has it."""

HISTORY = "groupkeeper.history"
"""A property of a table: Ledger.id of the directory that has its files."""


class LakePlace(NamedTuple):
    """The place of a format's tables: `catalog`.`namespace`.<table> of Spark's catalogs; `catalog` None: the output
    directory.
    """

    format: str
    catalog: str | None = None
    namespace: str = "groupkeeper"

    def __str__(self) -> str:
        return self.format if self.catalog is None else f"{self.format} tables {self.catalog}.{self.namespace}"


class Mark(NamedTuple):
    """The mark in each commit: the ledger entry whose files the table then has, and a digest of their names."""

    entry: int
    files: str

    @property
    def text(self) -> str:
        return json.dumps({"groupkeeper": self._asdict()})

    @staticmethod
    def of(text: str | None) -> Mark | None:
        """The mark in a text; None: it has none by groupkeeper."""
        try:
            found = json.loads(text or "")["groupkeeper"]
            return Mark(int(found["entry"]), str(found["files"]))
        except (ValueError, KeyError, TypeError):
            return None


class Listed(NamedTuple):
    """A table in a ledger entry: the names of its files, and (`before`) those at the last known agreement of the
    format's log with the ledger.
    """

    table: Table
    history: str
    entry: int
    files: Sequence[str]
    before: Sequence[str]

    @property
    def mark(self) -> Mark:
        return Mark(self.entry, _digest(self.files))


class FileFacts(NamedTuple):
    """A file: its size in bytes, the time of its last change, its number of rows, and the first and last time in
    Table.day_of (UTC; None: unknown).
    """

    name: str
    size: int
    modified_ms: int
    rows: int
    times: tuple[datetime, datetime] | None = None


class Difference(NamedTuple):
    """The files that a commit adds and removes. `moved`: names of added files that only have rows of removed ones."""

    added: list[FileFacts]
    removed: list[FileFacts]
    moved: frozenset[str]


Look = Callable[[Table, str], FileFacts]
"""Reads the facts about a file of a table; they are 0 for a missing file."""


class Lake(Protocol):
    """Tables of one format. Exceptions of Spark are not caught."""

    def update(self, wanted: Listed) -> None:
        """Brings the table to these files in one commit, or in two if files were merged; no commit if it has them. Adds
        missing columns. Raises SourceError if the table belongs to another directory or program.
        """

    def expire(self, table: Table, keep_hours: float) -> None:
        """Remove versions older than `keep_hours`, and the files that only they have; with 0 the caller removes these
        files.
        """

    def read(self, table: Table) -> DataFrame:
        """All rows, as readers of the format see them."""


def changed(wanted: Listed, seen: Mark | None, there: Callable[[], Iterable[str]], look: Look) -> Difference | None:
    """The change from the table's last version to the wanted files; None: there is none. `seen`: the mark of that
    version (None: it has none, as by another program); `there` lists its files.
    """
    if seen is not None and seen.files == wanted.mark.files:
        return None
    known = set(wanted.before if seen is not None and seen.files == _digest(wanted.before) else there())
    added = [look(wanted.table, name) for name in sorted(set(wanted.files) - known)]
    removed = [look(wanted.table, name) for name in sorted(known - set(wanted.files))]
    old = [each for each in added if seen is not None and 0 < number_of(each.name) <= seen.entry]
    is_moved = bool(old) and sum(each.rows for each in old) == sum(each.rows for each in removed)
    return Difference(added, removed, frozenset(each.name for each in old if is_moved))


def check_owner(place: str, found: str | None, history: str) -> None:
    """Raises SourceError unless the table is of this directory. `found`: its property HISTORY."""
    if found is None:
        raise SourceError(
            f"{place} is there, but groupkeeper has not written it: choose another --namespace or --tables"
        )
    if found != history:
        raise SourceError(
            f"{place} is of another directory, or of this one before it was emptied: choose another --namespace, or "
            "remove the table"
        )


def _digest(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
