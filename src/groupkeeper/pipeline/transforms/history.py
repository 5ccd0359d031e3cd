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
from groupkeeper.pipeline.transforms.times import time_of

__all__ = ["GROUP_RECORDS_OF", "IS_COMMIT", "commits", "group_records", "is_before", "is_from"]

_Offsets = Mapping[str, Mapping[int, int]]
"""By cluster and partition of the offsets topic."""

IS_COMMIT = f"coalesce(record_type IN {COMMIT_TYPES}, false) AND problem IS NULL"
"""Of decoded records: whether a row is an offset commit or its deletion; never null."""


def commits(decoded: DataFrame) -> DataFrame:
    """Every offset commit and tombstone. `removed_by` is unknown here: telling it needs the group's history."""
    return (
        decoded.where(IS_COMMIT)
        .withColumn("log_time", time_of(F.col("log_timestamp_ms")))
        .withColumn("commit_time", time_of(F.col("commit_timestamp_ms")))
        .withColumn("expire_time", time_of(F.col("expire_timestamp_ms")))
        .withColumn("removed_by", F.when(F.col("is_tombstone"), F.lit("unknown")))
        .withColumn("is_transactional", F.col("producer_id").isNotNull())
        .select(*COMMITS.names)
    )


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
