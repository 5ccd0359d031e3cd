"""The offsets of the log that the history has, counted where its rows are stored."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.relations import Rows, loaded, together
from groupkeeper.pipeline.tables.state import OFFSETS_READ

_PARTITION = list(OFFSETS_READ.key)


def offsets_read(commits: Rows, group_records: Rows) -> pa.Table:
    """tables.state.OFFSETS_READ of some groups."""
    rows = together(*(loaded(each, (*_PARTITION, "log_offset")) for each in (commits, group_records)))
    counts = [("log_offset", how) for how in ("count", "count_distinct", "min")]
    found = rows.group_by(_PARTITION, use_threads=False).aggregate(counts)
    return found.select([*_PARTITION, *("_".join(each) for each in counts)]).rename_columns(OFFSETS_READ.names)


def all_read(parts: Rows) -> pa.Table:
    """OFFSETS_READ of all groups, of that of shares of the groups: a log offset is a row of one of them."""
    sums = [("records", "sum"), ("offsets", "sum"), ("first", "min")]
    found = loaded(parts, OFFSETS_READ.names).group_by(_PARTITION, use_threads=False).aggregate(sums)
    return found.select([*_PARTITION, *("_".join(each) for each in sums)]).rename_columns(OFFSETS_READ.names)
