"""tables.GROUPS: what the groups are."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import GROUPS
from groupkeeper.pipeline.transforms.latest import latest_records
from groupkeeper.pipeline.transforms.record_kinds import is_current_assignment, is_group, is_member, is_target

__all__ = ["groups"]

_KEY = ["cluster", "group_id"]
_OWN = ("group_type", "protocol_type", "protocol", "generation", "group_epoch")


def groups(
    group_records: DataFrame, facts: DataFrame, current_offsets: DataFrame, queries: DataFrame | None = None
) -> DataFrame:
    """The groups of rows of tables.GROUP_RECORDS and tables.CURRENT_OFFSETS; tables.state.GROUP_FACTS tells when they
    rebalanced. `queries`: which of them, by the key, are queries of Spark.
    """
    offsets = current_offsets.groupBy(*_KEY).agg(
        F.count_distinct("topic").cast("int").alias("topics"),
        F.count(F.lit(1)).cast("int").alias("partitions"),
        F.max("commit_time").alias("last_commit_time"),
    )
    rebalanced = facts.select(*_KEY, F.array_max("rebalanced").alias("last_rebalance_time"))
    joined = _described(group_records).join(offsets, _KEY, "full").join(rebalanced, _KEY, "left")
    joined = joined.withColumn("group_type", F.coalesce("group_type", F.lit("simple")))
    if queries is not None:
        joined = joined.join(F.broadcast(queries).withColumn("is_query", F.lit(True)), _KEY, "left")
        joined = joined.withColumn("group_type", F.when(F.col("is_query"), "spark").otherwise(F.col("group_type")))
    is_simple = F.col("group_type") == "simple"
    is_query = F.col("group_type") == "spark"
    no = F.lit(0)
    return joined.select(
        *_KEY,
        "group_type",
        F.when(is_simple, "Empty").when(is_query, "Unknown").otherwise(F.col("group_state")).alias("group_state"),
        F.when(is_simple, "").when(is_query, "spark").otherwise(F.col("protocol_type")).alias("protocol_type"),
        *(name for name in _OWN if name not in ("group_type", "protocol_type")),
        "assignment_epoch",
        *(F.coalesce(name, no).alias(name) for name in ("members", "topics", "partitions")),
        "last_commit_time",
        "last_rebalance_time",
    ).select(*GROUPS.names)


def _described(group_records: DataFrame) -> DataFrame:
    """Groups that have metadata, with their state."""
    is_current = is_current_assignment()
    last = F.max_by(F.when(is_group(), F.struct(*_OWN, "members")), F.when(is_group(), F.col("log_offset")))
    facts = (
        latest_records(group_records)
        .groupBy(*_KEY)
        .agg(
            last.alias("last"),
            F.max(F.when(is_target(), F.col("assignment_epoch"))).alias("assignment_epoch"),
            F.count_if(is_member()).cast("int").alias("joined"),
            # What makes a member reconciled is compared with the group's epoch below: all must have the same.
            F.count_if(is_current & (F.col("member_state") == "STABLE")).alias("stable"),
            F.min(F.when(is_current, F.col("member_epoch"))).alias("least_epoch"),
            F.max(F.when(is_current, F.col("member_epoch"))).alias("greatest_epoch"),
        )
        .where("last IS NOT NULL")
    )
    of_kafka = F.when(F.col("last.group_type") == "classic", F.col("last.protocol_type")).otherwise(
        F.col("last.group_type")
    )
    return facts.select(
        *_KEY,
        F.col("last.group_type").alias("group_type"),
        of_kafka.alias("protocol_type"),
        *(F.col(f"last.{each}").alias(each) for each in _OWN[2:]),
        F.when(F.col("last.group_type") != "classic", F.col("assignment_epoch")).alias("assignment_epoch"),
        F.coalesce(F.array_size("last.members"), "joined").alias("members"),
        _state().alias("group_state"),
    )


def _state() -> Column:
    """As the coordinator tells it, from what it has written: a classic group's rebalance that is under
    way cannot be seen.
    """
    group_type = F.col("last.group_type")
    is_empty = F.coalesce(F.array_size("last.members"), F.col("joined")) == 0
    epoch = F.coalesce("assignment_epoch", F.lit(-1))
    is_reconciled = (
        (F.col("stable") == F.col("joined")) & (F.col("least_epoch") == epoch) & (F.col("greatest_epoch") == epoch)
    )
    return (
        F.when(is_empty, "Empty")
        .when(group_type.isin("classic", "share"), "Stable")
        .when(group_type == "streams", "Unknown")
        .when(F.col("last.group_epoch") > epoch, "Assigning")
        .when(is_reconciled, "Stable")
        .otherwise("Reconciling")
    )
