"""The schemas of the tables: columns, types and meanings. They are contracts; docs/pipeline-tables.md is written
from them.

Rows are computed in `transforms` and `present`, and kept in `storage`.
"""

from __future__ import annotations

from groupkeeper.pipeline.tables.context import EDGES, OWNERS, SHARE_OFFSETS, TOPICS, TRANSACTIONS
from groupkeeper.pipeline.tables.derived import (
    CURRENT_OFFSETS,
    FRESHNESS,
    GROUP_EVENTS,
    GROUPS,
    LAG,
    LAG_HISTORY,
    LOG_ENDS,
    LOG_OFFSETS,
    MEMBERS,
    OFFSETS_AS_OF,
    QUALITY,
    RATES,
    REWINDS,
    SCAN_TIME,
    STALE,
    STATUS,
)
from groupkeeper.pipeline.tables.log import COMMITS, DECODED, GROUP_RECORDS, REJECTS
from groupkeeper.pipeline.tables.schema import Column, Table

__all__ = [
    "COMMITS", "CURRENT_OFFSETS", "DECODED", "EDGES", "FRESHNESS", "GROUPS", "GROUP_EVENTS", "GROUP_RECORDS", "HISTORY",
    "LAG", "LAG_HISTORY", "LOG_ENDS", "LOG_OFFSETS", "MEMBERS", "OFFSETS_AS_OF", "OWNERS", "QUALITY", "RATES",
    "REJECTS", "REWINDS", "SCAN_TIME", "SHARE_OFFSETS", "STALE", "STATUS", "TABLES", "TOPICS", "TRANSACTIONS", "Column",
    "Table",
]  # fmt: skip

HISTORY = (COMMITS, GROUP_RECORDS)
"""The records of the log: rows are only appended."""

TABLES = (
    *HISTORY, CURRENT_OFFSETS, GROUPS, MEMBERS, GROUP_EVENTS, RATES, FRESHNESS, LOG_OFFSETS, LAG, LAG_HISTORY, LOG_ENDS,
    REWINDS, STALE, STATUS, TOPICS, EDGES, OWNERS, TRANSACTIONS, SHARE_OFFSETS, REJECTS, QUALITY, OFFSETS_AS_OF,
    SCAN_TIME,
)  # fmt: skip
"""Every table that a job writes, in the order of the documentation."""
