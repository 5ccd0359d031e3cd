"""tables.REJECTS: the records that could not be decoded, and when they were first seen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.relations import Rows, filled, loaded, numbers, runs, taken, time_of, times, together
from groupkeeper.pipeline.tables import GROUP_RECORDS, REJECTS

_COLUMNS = [name for name in GROUP_RECORDS.names if name in REJECTS.names]


def rejects_in(group_records: Rows, now_ms: int) -> pa.Table:
    """tables.REJECTS from new records, first seen now."""
    rows = loaded(group_records, [*_COLUMNS, "problem"])
    rows = rows.filter(rows["problem"].is_valid())
    now = time_of(pa.array(np.full(len(rows), now_ms)))
    return filled(REJECTS.arrow, {"reason": rows["problem"], "first_time": now}, rows)


def rejects(found: Rows, known: Rows) -> pa.Table:
    """Joins found and known rejects; a record in both keeps the time at which it was first seen."""
    whole = together(loaded(known, REJECTS.names), loaded(found, REJECTS.names))
    order, groups = runs(REJECTS.key, whole)
    rows = taken(whole, order[groups.ends])
    first = groups.least(numbers(whole["first_time"])[order])
    return rows.set_column(REJECTS.names.index("first_time"), REJECTS.arrow.field("first_time"), times(first))
