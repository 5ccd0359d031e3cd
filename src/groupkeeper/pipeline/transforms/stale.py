"""tables.STALE: groups and committed offsets that seem unused."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.kafka.retention import Retentions
from groupkeeper.pipeline.tables import CURRENT_OFFSETS, STALE
from groupkeeper.pipeline.transforms.latest import latest_records
from groupkeeper.pipeline.transforms.record_kinds import is_classic_group, is_member
from groupkeeper.pipeline.transforms.settings import by_cluster
from groupkeeper.pipeline.transforms.times import after, ms_between, time_of

__all__ = ["StaleLimits", "stale"]

_GROUP = ["cluster", "group_id"]
_DAY_MS = 24 * 3600 * 1000


class StaleLimits(NamedTuple):
    """`now_ms`: the time of the answer. Offsets that expire within `expiring_ms` are reported."""

    now_ms: int
    idle_days: float = 30
    expiring_ms: int = _DAY_MS
    retentions: Retentions = MappingProxyType({})


def stale(
    current_offsets: DataFrame,
    log_offsets: DataFrame,
    group_records: DataFrame,
    groups: DataFrame,
    facts: DataFrame,
    limits: StaleLimits,
) -> DataFrame:
    """Of rows of the tables of those names (tables.state.GROUP_FACTS). An offset can be there for several reasons.

    A quiet topic whose group is there and has read everything is not idle, however old the commit.
    """
    now = time_of(F.lit(limits.now_ms))
    offsets = _offsets(current_offsets, log_offsets, groups, group_records, limits)
    idle_days = ms_between(F.col("commit_time"), now) / _DAY_MS
    next_offset = F.greatest("committed_offset", F.lit(0))
    is_unread = F.coalesce(F.col("log_end_offset") > F.col("committed_offset"), F.lit(False))
    is_of_another = F.coalesce(F.col("topic_id") != F.col("topic_id_now"), F.lit(False))
    reasons = {
        "idle": (idle_days >= limits.idle_days) & ((F.col("members") == 0) | is_unread),
        "topic_deleted": F.coalesce("is_deleted", F.lit(False)) | is_of_another,
        "expiring": F.col("expires_time") <= after(now, limits.expiring_ms),
        "below_log_start": next_offset < F.col("log_start_offset"),
    }
    found = F.filter(F.array(*(F.when(when, reason) for reason, when in reasons.items())), lambda one: one.isNotNull())
    lost = F.when(F.col("reason") == "below_log_start", F.col("log_start_offset") - next_offset)
    by_offset = (
        offsets.withColumn("idle_days", idle_days)
        .withColumn("reason", F.explode(found))
        .withColumn("lost_records", lost)
        .select(*STALE.names)
    )
    return by_offset.unionByName(_idle_groups(groups, facts, now, limits.idle_days)).select(*STALE.names)


def _idle_groups(groups: DataFrame, facts: DataFrame, now: Column, idle_days: float) -> DataFrame:
    """Groups without members of which nothing has been heard: no commit, no change of the group itself."""
    last = F.greatest("last_commit_time", "changed")
    return (
        groups.where("members = 0")
        .join(facts.select(*_GROUP, "changed"), _GROUP, "left")
        .withColumn("idle_days", ms_between(last, now) / _DAY_MS)
        .where(F.col("idle_days") >= idle_days)
        .select(
            *_GROUP,
            F.lit(None).cast("string").alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            F.lit("idle").alias("reason"),
            "idle_days",
            F.lit(None).cast("timestamp").alias("expires_time"),
            F.lit(None).cast("bigint").alias("lost_records"),
        )
    )


def _offsets(
    current_offsets: DataFrame, log_offsets: DataFrame, groups: DataFrame, group_records: DataFrame, limits: StaleLimits
) -> DataFrame:
    """Committed offsets with their logs, and when they expire."""
    logs = log_offsets.select(
        "cluster", "topic", "partition", F.col("topic_id").alias("topic_id_now"), "log_start_offset", "log_end_offset",
        "is_deleted",
    )  # fmt: skip
    joined = (
        current_offsets.join(logs, ["cluster", "topic", "partition"], "left")
        .join(groups.select(*_GROUP, "group_type", "members", "protocol_type"), _GROUP, "left")
        .join(_readers(group_records), _GROUP, "left")
    )
    is_simple = F.col("group_type") == "simple"
    is_classic = F.col("group_type") == "classic"
    is_known = F.coalesce("topics_known", F.col("members") == 0)
    is_read = F.coalesce(F.array_contains("topics", F.col("topic")), F.lit(False))
    by_emptiness = is_classic & (F.col("members") == 0) & (F.col("protocol_type") != "")
    base = F.when(by_emptiness, F.coalesce("state_time", "commit_time")).otherwise(F.col("commit_time"))
    retention_ms = by_cluster(limits.retentions, lambda own: own.retention_ms)
    is_query = F.col("group_type") == "spark"  # whose offsets are in a checkpoint
    may_expire = is_simple | (is_known & ~is_read & ~is_query)
    expires = F.when(may_expire, F.coalesce("expire_time", after(base, retention_ms)))
    kept = [name for name in CURRENT_OFFSETS.names if name != "expire_time"]
    return joined.select(
        *kept, "topic_id_now", "log_start_offset", "log_end_offset", "is_deleted",
        F.coalesce("members", F.lit(0)).alias("members"), expires.alias("expires_time"),
    )  # fmt: skip


def _readers(group_records: DataFrame) -> DataFrame:
    """Which topics the members of a group subscribe to, whether that is known, and since when a classic group is in its
    state.
    """
    latest = latest_records(group_records).where(is_classic_group() | is_member())
    of_roster = F.flatten(
        F.transform("members", lambda member: F.coalesce(member["subscribed_topics"], F.array().cast("array<string>")))
    )
    is_roster_known = F.forall("members", lambda member: member["subscribed_topics"].isNotNull())
    is_member_known = F.col("subscribed_topics").isNotNull() & (F.coalesce("subscribed_regex", F.lit("")) == "")
    return (
        latest.withColumn("topics", F.coalesce(of_roster, "subscribed_topics"))
        .withColumn("is_known", F.coalesce(is_roster_known, is_member_known))
        .groupBy(*_GROUP)
        .agg(
            F.array_distinct(F.flatten(F.collect_list("topics"))).alias("topics"),
            F.bool_and("is_known").alias("topics_known"),
            F.max(time_of(F.col("state_timestamp_ms"))).alias("state_time"),
        )
    )
