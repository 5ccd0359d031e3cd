"""The offsets of the log that the history has, counted where its rows are stored."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.relations import Rows, loaded, together
from groupkeeper.pipeline.tables import COMMITS

_PARTITION = ["cluster", "log_partition"]

READ = pa.schema(
    [
        *(COMMITS.arrow.field(name) for name in _PARTITION),
        *(pa.field(name, pa.int64()) for name in ("records", "offsets", "first")),
    ]
)
"""Of each cluster and partition of the offsets topic: rows, different offsets, and the first of them."""


def offsets_read(commits: Rows, group_records: Rows) -> pa.Table:
    """READ of some groups."""
    rows = together(*(loaded(each, (*_PARTITION, "log_offset")) for each in (commits, group_records)))
    counts = [("log_offset", how) for how in ("count", "count_distinct", "min")]
    found = rows.group_by(_PARTITION, use_threads=False).aggregate(counts)
    return pa.table([found[name] for name in (*_PARTITION, *(f"log_offset_{how}" for _, how in counts))], READ)


def all_read(parts: Rows) -> pa.Table:
    """READ of all groups, of that of shares of the groups: a log offset is a row of one of them."""
    sums = [("records", "sum"), ("offsets", "sum"), ("first", "min")]
    found = loaded(parts, READ.names).group_by(_PARTITION, use_threads=False).aggregate(sums)
    return pa.table([found[name] for name in (*_PARTITION, *("_".join(each) for each in sums))], READ)
