"""Files of a table's rows in a folder of this machine."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq


class PartFiles(NamedTuple):
    """Their names, below the folder; `open_files` have open rows."""

    files: list[str]
    open_files: list[str] = []  # noqa: RUF012 - never changed


def write(folder: Path, rows: pa.Table) -> PartFiles:
    """Writes one file, also without rows."""
    return PartFiles([_write(folder, "", rows)])


def write_parts(folder: Path, rows: pa.Table, column: str) -> PartFiles:
    """Rows for which `column`, of booleans, is true are open. The files lack it; no file is without rows."""
    names: list[list[str]] = []
    for value in (False, True):
        own = rows.filter(pyarrow.compute.equal(rows[column], value)).drop_columns([column])
        part = f"{column}={str(value).lower()}"  # as Spark names it
        names.append([_write(folder, f"{part}/", own)] if own.num_rows else [])
    return PartFiles(*names)


def _write(folder: Path, part: str, rows: pa.Table) -> str:
    """A file with a new unique name, by which the ledger distinguishes it from older ones."""
    name = f"{part}{uuid.uuid4().hex}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    return name
