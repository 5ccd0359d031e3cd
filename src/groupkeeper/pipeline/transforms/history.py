"""tables.COMMITS and tables.GROUP_RECORDS: the history, from decoded records."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.decode.commits import COMMIT_TYPES
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS
from groupkeeper.pipeline.tables.log import GROUP_RECORD, REJECTED
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames

__all__ = ["COMMITS_OF", "GROUP_RECORDS_OF", "IS_COMMIT", "commits", "group_records", "is_before", "is_from"]

_Offsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

IS_COMMIT = f"coalesce(record_type IN {COMMIT_TYPES}, false) AND problem IS NULL"
"""Of decoded records: whether a row is an offset commit or its deletion; never null."""

_COMMITTED_MS = ("commit_timestamp_ms", "log_timestamp_ms")
"""A commit without a valid time (some brokers write -1) was made when its record was written."""


def _commits(words: Words) -> str:
    made = {
        "log_time": words.time_of("log_timestamp_ms"),
        "commit_time": f"CASE WHEN NOT is_tombstone THEN coalesce({', '.join(map(words.time_of, _COMMITTED_MS))}) END",
        "expire_time": words.time_of("expire_timestamp_ms"),
        "removed_by": "CASE WHEN is_tombstone THEN 'unknown' END",
        "is_transactional": "producer_id IS NOT NULL",
    }
    columns = ", ".join(f"{made.get(name, name)} AS {name}" for name in COMMITS.names)
    return f"SELECT {columns} FROM {words.of('decoded')} WHERE {IS_COMMIT}"


COMMITS_OF = Query(COMMITS, _commits, {"decoded": DECODED})
"""Every offset commit and tombstone. `removed_by` is unknown here: telling it needs the group's history."""


def commits(decoded: DataFrame) -> DataFrame:
    """The same by Spark."""
    return of_frames(COMMITS_OF, decoded.sparkSession, {"decoded": decoded})


def _group_records(words: Words) -> str:
    packed = (*GROUP_RECORD, *REJECTED)
    made = {each.name: f"packed.{each.name}" for each in packed} | {"log_time": words.time_of("log_timestamp_ms")}
    columns = ", ".join(f"{made.get(name, name)} AS {name}" for name in GROUP_RECORDS.names)
    parsed = words.parsed("group_record", packed)
    return f"""
SELECT {columns}
FROM (SELECT *, {parsed} AS packed FROM {words.of("decoded")} WHERE NOT ({IS_COMMIT})) AS records
"""


GROUP_RECORDS_OF = Query(GROUP_RECORDS, _group_records, {"decoded": DECODED})
"""Every other record; what could not be decoded has its bytes and its `problem`."""


def group_records(decoded: DataFrame) -> DataFrame:
    """The same by Spark."""
    return of_frames(GROUP_RECORDS_OF, decoded.sparkSession, {"decoded": decoded})


def is_from(known: _Offsets) -> Column:
    """Whether a row is from these offsets on, by cluster and partition; true of those that are not named."""
    if not known:
        return F.lit(True)
    return F.col("log_offset") >= F.coalesce(_own(known)[F.col("log_partition").cast("string")], F.lit(0))


def is_before(cut: _Offsets) -> Column:
    """Whether a row is from before these offsets; true of clusters that are not named."""
    if not cut:
        return F.lit(True)
    own = _own(cut)
    end = F.coalesce(own[F.col("log_partition").cast("string")], F.lit(0))
    return own.isNull() | (F.col("log_offset") < end)


def _own(offsets: _Offsets) -> Column:
    """Those of a row's cluster. As one literal: a fleet has thousands, and each would be a call of Java's."""
    text = json.dumps({name: {str(number): offset for number, offset in own.items()} for name, own in offsets.items()})
    return F.from_json(F.lit(text), "map<string,map<string,bigint>>")[F.col("cluster")]
