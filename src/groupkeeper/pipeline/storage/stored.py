"""A directory of tables as it is now, read without Spark and without a lock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from groupkeeper.pipeline.checkpoints.folders import arrow_path
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.kafka.instants import ClusterIdentity
from groupkeeper.pipeline.storage.ledger import ENTRIES, NextOffsets, check_schema, entry_path, newest_entry, numbered
from groupkeeper.pipeline.tables import Table

_TRIES = 10
_PAUSE_S = 0.2
_Read = TypeVar("_Read")
_FORMAT = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def steady(directory: str, read: Callable[[], _Read]) -> _Read:
    """Calls `read`, and again if listed files are gone: a run has replaced them, and the listed ones no longer belong
    together.

    Raises SourceError when that does not end, or the directory cannot be read.
    """
    for left in reversed(range(_TRIES)):
        try:
            return read()
        except FileNotFoundError:
            if not left:
                raise SourceError(
                    f"{directory}: its tables are of different times, as after a run that was killed while it replaced "
                    "them: run 'groupkeeper pipeline snapshot' again"
                ) from None
            time.sleep(_PAUSE_S)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{directory} cannot be read: {error}") from None
    raise AssertionError


class Stored:
    """The tables of one entry of the ledger. `directory` is a path or a URI that pyarrow reads.

    Raises SourceError when a later version of groupkeeper has written them. OSError is not caught.
    """

    def __init__(self, directory: str) -> None:
        self.system, path = arrow_path(directory)
        self._path = path.rstrip("/") or "/"
        entries = fs.FileSelector(f"{self._path}/{ENTRIES}", allow_not_found=True)
        names = [each.base_name for each in self.system.get_file_info(entries)]
        self.number, self.entry = newest_entry(names, self._read, directory)
        """The last readable entry of the ledger, with its number; 0 and empty: it has none."""
        if self.entry:
            check_schema(self.entry, directory)
        self.files: dict[str, list[str]] = self.entry.get("files", {})
        """The names of the files of each table that belong together; tables that no run has listed are missing."""
        listed = self.system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        self._directories = {each.base_name for each in listed if each.type == fs.FileType.Directory}

    def _read(self, path: str) -> bytes:
        with self.system.open_input_stream(f"{self._path}/{path}") as file:
            return bytes(file.read())

    @property
    def written_time(self) -> datetime | None:
        """When the entry was written; None: unknown."""
        if not self.number:
            return None
        found = self.system.get_file_info(f"{self._path}/{entry_path(self.number)}").mtime
        return found.astimezone(UTC) if isinstance(found, datetime) else None

    @property
    def schema(self) -> int:
        """The version of the tables' schemas; there must be an entry."""
        return int(self.entry["schema"])

    @property
    def identities(self) -> dict[str, ClusterIdentity]:
        """The clusters whose history this is, by name; clusters whose identity is not known are missing."""
        return {name: ClusterIdentity(*found) for name, found in self.entry.get("identities", {}).items()}

    @property
    def privacy(self) -> dict[str, str]:
        """How personal data is kept, by kind of data; {}: as it is in the records."""
        return dict(self.entry.get("privacy", {}))

    @property
    def next_offsets(self) -> NextOffsets:
        """The next offset to read, by cluster and partition of the offsets topic."""
        return numbered(self.entry.get("next_offsets", {}))

    @property
    def made_to(self) -> NextOffsets:
        """By cluster and partition, the end of the history in the derived tables."""
        return numbered(self.entry.get("made_to", {}))

    @property
    def forgotten(self) -> dict[str, dict[int, tuple[int, int]]]:
        """By cluster and partition, how many rows of the history were removed, and before which offset."""
        found: dict[str, dict[str, list[int]]] = self.entry.get("forgotten", {})
        return {
            name: {int(number): (count, end) for number, (count, end) in own.items()} for name, own in found.items()
        }

    def has(self, table: Table) -> bool:
        """Whether a run has written the table."""
        return table.name in self.files or table.name in self._directories

    def dataset(self, table: Table) -> Any:
        """The table as a dataset; a missing one has no rows, and columns that an older one lacks are null."""
        if not self.has(table) or self.files.get(table.name) == []:
            return ds.dataset(table.arrow.empty_table())
        at = f"{self._path}/{table.name}"
        where = [f"{at}/{name}" for name in self.files[table.name]] if table.name in self.files else at
        return ds.dataset(where, schema=table.arrow, format=_FORMAT, filesystem=self.system)

    def missing_files(self) -> list[str]:
        """The files that the ledger lists and the directory lacks, as TABLE/FILE."""
        found: list[str] = []
        for name, files in self.files.items():
            listed = self.system.get_file_info(fs.FileSelector(f"{self._path}/{name}", allow_not_found=True))
            found += sorted(f"{name}/{each}" for each in set(files) - {each.base_name for each in listed})
        return found
