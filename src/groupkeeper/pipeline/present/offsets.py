"""tables.CURRENT_OFFSETS from carried rows; equal to transforms.latest.current_offsets of the whole history."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.relations import Rows, loaded, numbers, runs, taken, together
from groupkeeper.pipeline.tables import CURRENT_OFFSETS
from groupkeeper.pipeline.tables.state import READERS


def standing_offsets(last_commits: Rows, queries: Rows) -> pa.Table:
    """The offsets of rows of tables.state.LAST_COMMITS that are not removed, and those of queries of Spark."""
    names = CURRENT_OFFSETS.names
    rows = loaded(last_commits, [*names, "is_tombstone"])
    order, groups = runs(CURRENT_OFFSETS.key, rows)
    last = np.sort(order[groups.ends])
    last = last[~numbers(rows["is_tombstone"])[last]]
    return together(taken(rows.select(names), last).cast(CURRENT_OFFSETS.arrow), loaded(queries, names))


def readers(current_offsets: Rows) -> pa.Table:
    """How many of these groups have offsets of each topic: rows of tables.state.READERS."""
    rows = loaded(current_offsets, ["cluster", "topic", "group_id"])
    found = rows.group_by(["cluster", "topic"]).aggregate([("group_id", "count_distinct")])
    return found.select(["cluster", "topic", "group_id_count_distinct"]).rename_columns(READERS.names)
