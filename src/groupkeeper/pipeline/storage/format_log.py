"""The formats of tables: brings a format's log to the ledger's files."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.runtime.executors import context_of
from groupkeeper.pipeline.storage.delta import DeltaLake
from groupkeeper.pipeline.storage.files import Files
from groupkeeper.pipeline.storage.iceberg import IcebergLake
from groupkeeper.pipeline.storage.lake import Lake, LakePlace, Listed, Look
from groupkeeper.pipeline.storage.ledger import Ledger
from groupkeeper.pipeline.tables import TABLES, Table

_TIDY_MS = 24 * 3_600_000


def open_lake(spark: SparkSession, place: LakePlace, directory: str, look: Look) -> Lake:
    """The tables of a format; `directory` is the URL of the output. Raises SourceError with Spark Connect."""
    kinds: dict[str, type[DeltaLake | IcebergLake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
    if context_of(spark) is None:
        raise SourceError(f"{directory}: its tables are of {place}: use --master, not --remote")
    return kinds[place.format](spark, place, directory, look)


class FormatLog:
    """Brings the tables of a format to the files that the ledger names."""

    def __init__(
        self, lake: Lake, name: str, version_hours: float, ledger: Ledger, files: Files, lock: threading.Lock
    ) -> None:  # fmt: skip
        self._lake = lake
        self.name = name
        """The name of the format, for messages."""
        self.version_hours = version_hours
        """How long old versions are kept, in hours."""
        self._ledger = ledger
        self._files = files
        self._lock = lock
        self._known = {table.name: ledger.files(table.name) for table in TABLES if ledger.has(table.name)}
        """By table, the files of its last commit, unless the mark of that commit says otherwise."""

    def update(self) -> None:
        """Updates every table that a run has made, and removes old versions once a day. Raises SourceError; exceptions
        of Spark are not caught.
        """
        with self._lock:  # so that all files are of one entry
            made = [self._wanted(table) for table in TABLES if self._ledger.has(table.name)]
        with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            list(pool.map(self._update, made))
        now_ms = time.time_ns() // 1_000_000
        if now_ms - self._ledger.expired_ms >= _TIDY_MS:
            if self._ledger.expired_ms:
                self._expire([each.table for each in made], self.version_hours)
            with self._lock:
                self._ledger.note(expired=now_ms)

    def purge(self) -> None:
        """Removes all earlier versions, after `update`."""
        self._expire([table for table in TABLES if self._ledger.has(table.name)], 0)

    def _wanted(self, table: Table) -> Listed:
        names = self._ledger.files(table.name)
        return Listed(table, self._ledger.id, self._ledger.number, names, self._known.get(table.name, names))

    def _update(self, wanted: Listed) -> None:
        self._ledger.check_lock()
        self._lake.update(wanted)
        self._known[wanted.table.name] = list(wanted.files)

    def _expire(self, tables: list[Table], keep_hours: float) -> None:
        for table in tables:
            self._ledger.check_lock()
            self._lake.expire(table, keep_hours)
            if not keep_hours:
                for name in set(self._ledger.parquet(table.name)) - set(self._ledger.files(table.name)):
                    self._files.remove(f"{table.name}/{name}")
