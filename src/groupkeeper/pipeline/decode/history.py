"""Rows of tables.DECODED → rows of tables.COMMITS and tables.GROUP_RECORDS, the history."""

from __future__ import annotations

import functools
import io
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from groupkeeper.pipeline.decode.commits import COMMIT_TYPES
from groupkeeper.pipeline.relations import time_of
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS
from groupkeeper.pipeline.tables.log import GROUP_RECORD, REJECTED

_Decoded = TypeVar("_Decoded", pa.Table, pa.RecordBatch)

_PACKED = pa.schema([(column.name, column.type) for column in (*GROUP_RECORD, *REJECTED)])


@functools.cache
def _types() -> pa.Array:
    return pa.array(COMMIT_TYPES, pa.int16())  # imports pandas: see relations


def is_commit(decoded: _Decoded) -> pa.Array:
    """Whether each decoded record is an offset commit or its deletion; never null."""
    return pc.and_(pc.is_in(decoded["record_type"], _types()), pc.is_null(decoded["problem"]))


def commits(decoded: _Decoded) -> _Decoded:
    """Every offset commit and tombstone. `removed_by` is unknown here: telling it needs the group's history. A commit
    without a valid time (some brokers write -1) was made when its record was written.
    """
    is_one = is_commit(decoded)
    rows = decoded if pc.all(is_one).as_py() else decoded.filter(is_one)
    log_time, is_gone = time_of(rows["log_timestamp_ms"]), rows["is_tombstone"]
    commit_time = pc.coalesce(time_of(rows["commit_timestamp_ms"]), log_time)
    made = {
        "log_time": log_time,
        "commit_time": pc.if_else(is_gone, None, commit_time),
        "expire_time": time_of(rows["expire_timestamp_ms"]),
        "removed_by": pc.if_else(is_gone, "unknown", None),
        "is_transactional": pc.is_valid(rows["producer_id"]),
    }
    return type(rows).from_arrays(
        [made[name] if name in made else rows[name] for name in COMMITS.names], schema=COMMITS.arrow
    )


def group_records(decoded: _Decoded) -> _Decoded:
    """All decoded records except offset commits; an undecoded one has its bytes and its `problem`."""
    rows = decoded.filter(pc.invert(is_commit(decoded)))
    packed = _unpacked(rows["group_record"])
    made = {name: packed[name].combine_chunks() for name in packed.column_names}
    made["log_time"] = time_of(rows["log_timestamp_ms"])
    return type(rows).from_arrays(
        [made[name] if name in made else rows[name] for name in GROUP_RECORDS.names], schema=GROUP_RECORDS.arrow
    )


def _unpacked(texts: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Columns from JSON objects, none of which contains an end of line."""
    if not len(texts):
        return _PACKED.empty_table()
    lines = "\n".join(text or "{}" for text in texts.to_pylist()).encode()
    return pyarrow.json.read_json(
        io.BytesIO(lines),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pyarrow.json.ParseOptions(explicit_schema=_PACKED, unexpected_field_behavior="ignore"),
    )
