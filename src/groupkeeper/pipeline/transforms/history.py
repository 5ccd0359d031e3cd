"""tables.COMMITS and tables.GROUP_RECORDS: the history, from decoded records."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.decode.commits import COMMIT_TYPES
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS
from groupkeeper.pipeline.tables.log import GROUP_RECORD
from groupkeeper.pipeline.tables.schema import ddl_of
from groupkeeper.pipeline.transforms.times import time_of

__all__ = ["IS_COMMIT", "commits", "group_records"]

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


def group_records(decoded: DataFrame) -> DataFrame:
    """Every other record; what could not be decoded has its bytes and its `problem`."""
    own = {column.name for column in GROUP_RECORD}
    schema = ", ".join(f"`{column.name}` {ddl_of(column.type)}" for column in GROUP_RECORD)
    columns = [
        F.col(f"group_record.{name}").alias(name) if name in own else F.col(name) for name in GROUP_RECORDS.names
    ]
    return (
        decoded.where(f"NOT ({IS_COMMIT})")
        .withColumn("log_time", time_of(F.col("log_timestamp_ms")))
        .withColumn("group_record", F.from_json("group_record", schema))
        .select(*columns)
    )
