"""Files of a table's rows, in a folder of this machine or as bytes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
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
    names: tuple[list[str], list[str]] = ([], [])
    for is_open, own in _parts(rows, column):
        part = f"{column}={str(is_open).lower()}"  # as Spark names it
        names[is_open].append(_write(folder, f"{part}/", own))
    return PartFiles(*names)


def in_bytes(rows: pa.Table, column: str | None) -> Iterator[tuple[bool, bytes]]:
    """The files that `write` (without `column`) or `write_parts` would write, each with whether its rows are open."""
    for is_open, own in [(False, rows)] if column is None else _parts(rows, column):
        sink = pa.BufferOutputStream()
        pq.write_table(own, sink)
        yield is_open, sink.getvalue().to_pybytes()


def _parts(rows: pa.Table, column: str) -> Iterator[tuple[bool, pa.Table]]:
    for value in (False, True):
        own = rows.filter(pyarrow.compute.equal(rows[column], value)).drop_columns([column])
        if own.num_rows:
            yield value, own


def _write(folder: Path, part: str, rows: pa.Table) -> str:
    """A file with a new unique name, by which the ledger distinguishes it from older ones."""
    name = f"{part}{uuid.uuid4().hex}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    return name
