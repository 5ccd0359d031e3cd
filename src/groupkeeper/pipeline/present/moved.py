"""What of new rows of tables.REWINDS later steps are told by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, made
from groupkeeper.pipeline.tables import REWINDS

__all__ = ["jumps_ahead", "recent_rewinds"]

_Offsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

_NEW = """
SELECT rewinds.*
FROM rewinds LEFT JOIN made_to USING (cluster, log_partition)
WHERE log_offset >= coalesce(next_offset, 0)
"""


def recent_rewinds(then: Rows, rewinds: Rows, made_to: _Offsets, since_ms: int) -> pa.RecordBatchReader:
    """The moves back since a time, of those of before and of `rewinds`, of which those from `made_to` on are new."""
    query = f"""
    SELECT * FROM (SELECT * FROM earlier UNION ALL BY NAME ({_NEW}))
    WHERE direction = 'back' AND rewind_time >= $since
    """
    given = {"earlier": then, "rewinds": rewinds, "made_to": _places(made_to)}
    return made(REWINDS, query, given, {"since": datetime(1970, 1, 1) + timedelta(milliseconds=since_ms)})


def jumps_ahead(rewinds: Rows, made_to: _Offsets) -> pa.RecordBatchReader:
    """The new moves ahead."""
    query = f"SELECT * FROM ({_NEW}) WHERE direction = 'ahead'"
    return made(REWINDS, query, {"rewinds": rewinds, "made_to": _places(made_to)})


def _places(offsets: _Offsets) -> pa.Table:
    rows = [(name, number, offset) for name, own in offsets.items() for number, offset in own.items()]
    names, numbers, nexts = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({
        "cluster": pa.array(names, pa.string()), "log_partition": pa.array(numbers, pa.int32()),
        "next_offset": pa.array(nexts, pa.int64()),
    })  # fmt: skip
