"""Brings a lake's tables up to date with those of the directory."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.runtime.executors import described
from groupkeeper.pipeline.storage.lake import DAY, OPEN, Lake, LakePlace, Mark, Replaced, shaped
from groupkeeper.pipeline.storage.ledger import Ledger, number_of
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, TABLES, Table
from groupkeeper.pipeline.transforms.latest import what_stays

_HERE_HOURS = 48
"""How long rows that the lake has stay in the directory, too: the report reads them there."""

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_TIDY_MS = _DAY_MS


class Keeping(NamedTuple):
    """How long old versions of a lake's tables are kept."""

    version_hours: float = 168


class _MirroredHere(NamedTuple):
    """The files of a table as of an entry of the ledger; `opened`: the files with open rows; None: the table has no
    open rows.
    """

    table: Table
    number: int
    names: list[str]
    opened: list[str] | None


class Mirror:
    """Finds what the lake lacks by the marks of its tables and the names of the directory's files, which have the
    numbers of the ledger's entries. So a run may be killed at any time.
    """

    def __init__(
        self, lake: Lake, place: LakePlace, keeping: Keeping, ledger: Ledger,
        lock: threading.Lock, read_files: Callable[[Table, Sequence[str]], DataFrame],
    ) -> None:  # fmt: skip
        self._lake = lake
        self._place = place
        self._keeping = keeping
        self._ledger = ledger
        self._lock = lock
        self._read_files = read_files
        self._marks: dict[str, Mark | None] = {}

    def update(self) -> None:
        """Updates every table that a run has made. Raises SourceError; exceptions of Spark are not caught."""
        with self._lock:  # so that all files are of one entry
            here = self._all_here()
        with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            list(pool.map(self._update, here))
        self._tidy()

    def behind(self) -> list[Table]:
        """Tables that are not up to date, as after a run that was killed. Raises SourceError as `reached`."""
        return [here.table for here in self._all_here() if self._due(here) is not None]

    def rows(self, table: Table) -> DataFrame:
        """All rows of a history table: those in the lake, and those that it lacks so far."""
        reached = self.reached(table)
        if reached is None:
            return self._read_files(table, self._ledger.files(table.name))
        new = [name for name in self._ledger.files(table.name) if number_of(name) > reached]
        return self._lake.read(table).unionByName(self._read_files(table, new)) if new else self._lake.read(table)

    def reached(self, table: Table) -> int | None:
        """The ledger's entry up to which the lake has a table; None: it has none.

        Raises SourceError when the lake's table is of another directory, or lacks rows that are no longer here.
        """
        mark = self._mark(table)
        aged_to = self._ledger.aged_to(table.name)
        if mark is not None and mark.history != self._ledger.id:
            raise SourceError(
                f"{self._place}: {table.name} is of another directory, or of this one before it was emptied: choose "
                "another --namespace, or remove the table"
            )
        if aged_to > (0 if mark is None else mark.entry):
            raise SourceError(
                f"{self._place}: {table.name} lacks rows that are nowhere else any more: bring the table back, or "
                "start again in an empty directory"
            )
        return None if mark is None else mark.entry

    def has_to(self, table: Table) -> int:
        """Like `reached`; 0: nothing, or nothing reliable. `update` raises the reason."""
        try:
            return self.reached(table) or 0
        except SourceError:
            return 0

    def tables(self) -> list[Table]:
        """The tables that the lake has. Raises SourceError as `reached`."""
        return [table for table in TABLES if self.reached(table) is not None]

    def name_of(self, table: Table) -> str:
        """The name of the lake's table in messages."""
        return self._place.name_of(table)

    def read(self, table: Table) -> DataFrame:
        """The rows of a table that the lake has."""
        return self._lake.read(table)

    def remove(self, table: Table, condition: str) -> None:
        """Removes from the lake's table the rows for which the condition (SQL) is true."""
        self._ledger.check_lock()
        self._lake.remove(table, condition)

    def tidy(self, table: Table, keep_hours: float) -> None:
        """Merges small files of the lake's table, and removes its versions older than `keep_hours`."""
        mark = self._mark(table)
        assert mark is not None
        self._ledger.check_lock()
        self._lake.tidy(table, mark, keep_hours)

    @property
    def version_hours(self) -> float:
        """How long old versions of the lake's tables are kept, in hours."""
        return self._keeping.version_hours

    def aged(self) -> dict[str, list[str]]:
        """By table, the files that are no longer needed here, as the lake has their rows."""
        cut = self._ledger.number_at(time.time_ns() // 1_000_000 - _HERE_HOURS * _HOUR_MS)
        found: dict[str, list[str]] = {}
        for table in TABLES if cut else ():
            if table.day_of is None or not self._ledger.has(table.name):
                continue
            last = min(cut, self.has_to(table))
            busy = {*self._ledger.fresh_files(table.name), *self._ledger.open_files(table.name)}
            names = [name for name in self._ledger.files(table.name) if 0 < number_of(name) <= last]
            if names := [name for name in names if name not in busy]:
                found[table.name] = names
        return found

    def _mark(self, table: Table) -> Mark | None:
        if table.name not in self._marks:
            self._marks[table.name] = self._lake.mark(table)
        return self._marks[table.name]

    def _all_here(self) -> list[_MirroredHere]:
        """Every table that a run has made."""
        return [self._here(table) for table in TABLES if self._ledger.has(table.name)]

    def _here(self, table: Table) -> _MirroredHere:
        opened = self._ledger.open_files(table.name) if self._ledger.has_open(table.name) else None
        return _MirroredHere(table, self._ledger.number, self._ledger.files(table.name), opened)

    def _update(self, here: _MirroredHere) -> None:
        due = self._due(here)
        if due is not None:
            self._write(here, *due)

    def _due(self, here: _MirroredHere) -> tuple[Sequence[str], Replaced] | None:
        """The files that the lake's table lacks, and what they replace; None: it is up to date."""
        table = here.table
        reached = self.reached(table)
        if table.day_of is None:
            known = self._mark(table)
            return None if known is not None and known.files == _digest(here.names) else (here.names, Replaced.ALL)
        if reached is None or (here.opened is not None and not table.is_measured and reached < self._ledger.rebuilt):
            return here.names, Replaced.ALL
        if reached >= here.number:
            return None
        new = [name for name in here.names if number_of(name) > reached]
        if here.opened is not None:
            return [*{*new, *here.opened}], Replaced.OPEN
        return (new, Replaced.NONE) if new else None

    def _write(self, here: _MirroredHere, names: Sequence[str], replaced: Replaced) -> None:
        table = here.table
        frame = self._read_files(table, [name for name in names if name not in (here.opened or ())])
        if here.opened is not None:
            opened = self._read_files(table, here.opened)
            frame = frame.withColumn(OPEN, F.lit(False)).unionByName(opened.withColumn(OPEN, F.lit(True)))
        mark = Mark(self._ledger.id, here.number, _digest(here.names))
        self._ledger.check_lock()
        with described(frame.sparkSession, f"{table.name}: to {self._place}"):
            self._lake.write(shaped(frame, table, has_open=here.opened is not None), table, mark, replaced)
        self._marks[table.name] = mark

    def _tidy(self) -> None:
        """Tidies the lake's tables once a day."""
        now_ms = time.time_ns() // 1_000_000
        if now_ms - self._ledger.tidied_ms < _TIDY_MS:
            return
        if self._ledger.tidied_ms:
            cut_ms = cut_of(now_ms, self._ledger.keep_days)
            with self._lock:
                self._ledger.note_kept_from(cut_ms)
            for table in self.tables():
                if table.day_of is not None and cut_ms:
                    self._remove_old(table, cut_ms)
                self.tidy(table, self._keeping.version_hours)
        with self._lock:
            self._ledger.note_tidied(now_ms)

    def _remove_old(self, table: Table, cut_ms: int) -> None:
        """Removes rows of days before the cut, except what the history must keep."""
        is_old = f"{DAY} < DATE '{datetime.fromtimestamp(cut_ms / 1000, UTC):%Y-%m-%d}'"
        self._ledger.check_lock()
        if table not in (COMMITS, GROUP_RECORDS):
            self._lake.remove(table, is_old)
            return
        old = self._lake.read(table, is_old)
        kept = what_stays(table, old, cut_ms)
        key = list(table.key)
        gone = old.join(kept, key, "left_anti").select(DAY).distinct().collect()
        if days := sorted(row[DAY] for row in gone):
            rows = old.where(F.col(DAY).isin(days)).join(kept, key, "left_semi")
            self._lake.replace_days(table, days, shaped(rows, table, has_open=False))


def cut_of(now_ms: int, days: int) -> int:
    """The time in ms from which on rows are kept, if they are kept for `days` days: the start of a day (UTC). 0, for 0
    days: all rows are kept.
    """
    return (now_ms // _DAY_MS - days) * _DAY_MS if days else 0


def _digest(names: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
