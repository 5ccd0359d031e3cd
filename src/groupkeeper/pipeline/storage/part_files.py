"""Files of a table's rows, as tasks make them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq


def parts(rows: pa.Table, column: str | None) -> Iterator[tuple[bool, pa.Table]]:
    """The rows of each file, with whether they are open: those for which `column`, of booleans, is true. The files lack
    it, and none is without rows. `column` None: all rows are of one file, also if there are none.
    """
    if column is None:
        yield False, rows
        return
    for value in (False, True):
        own = rows.filter(pyarrow.compute.equal(rows[column], value)).drop_columns([column])
        if own.num_rows:
            yield value, own


def in_bytes(rows: pa.Table) -> bytes:
    """A file with these rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())
