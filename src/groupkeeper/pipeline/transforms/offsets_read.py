"""The offsets of the log that the history has, counted where its rows are stored."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS
from groupkeeper.pipeline.transforms.query import Query, Words

__all__ = ["OFFSETS_READ_OF"]

_PLACE = "cluster, log_partition, log_offset"


def _offsets_read(words: Words) -> str:
    return f"""
SELECT cluster, log_partition, count(*) AS records, count(DISTINCT log_offset) AS offsets, min(log_offset) AS first
FROM (
    SELECT {_PLACE} FROM {words.of("commits")}
    UNION ALL
    SELECT {_PLACE} FROM {words.of("group_records")}
)
GROUP BY cluster, log_partition
"""


OFFSETS_READ_OF = Query(
    pa.schema(
        [
            *(COMMITS.arrow.field(name) for name in ("cluster", "log_partition")),
            *(pa.field(name, pa.int64()) for name in ("records", "offsets", "first")),
        ]
    ),
    _offsets_read,
    {"commits": COMMITS, "group_records": GROUP_RECORDS},
)
"""Of each cluster and partition of the offsets topic: rows, different offsets, and the first of them."""
