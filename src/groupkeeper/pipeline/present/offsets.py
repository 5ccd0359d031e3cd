"""tables.CURRENT_OFFSETS from carried rows; equal to transforms.latest.current_offsets of the whole history."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.tables import CURRENT_OFFSETS
from groupkeeper.pipeline.tables.state import READERS

__all__ = ["readers", "standing_offsets"]

_OFFSETS = f"""
SELECT {", ".join(CURRENT_OFFSETS.names)}
FROM (
    SELECT * FROM last_commits
    QUALIFY row_number() OVER (PARTITION BY cluster, group_id, topic, partition ORDER BY log_offset DESC) = 1
)
WHERE NOT is_tombstone
UNION ALL
SELECT {", ".join(CURRENT_OFFSETS.names)} FROM queries
"""


def standing_offsets(last_commits: Rows, queries: Rows) -> pa.RecordBatchReader:
    """The offsets of rows of tables.state.LAST_COMMITS that are not removed, and those of queries of Spark."""
    return made(CURRENT_OFFSETS, _OFFSETS, {"last_commits": last_commits, "queries": queries})


_READERS = "SELECT cluster, topic, count(DISTINCT group_id) AS groups FROM current_offsets GROUP BY cluster, topic"


def readers(current_offsets: Rows) -> pa.RecordBatchReader:
    """How many of these groups have offsets of each topic: rows of tables.state.READERS."""
    return made(READERS, _READERS, {"current_offsets": current_offsets})
