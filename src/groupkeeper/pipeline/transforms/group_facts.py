"""What of the past of a group later records are judged by (tables.state.GROUP_FACTS)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables.state import GROUP_FACTS
from groupkeeper.pipeline.transforms.record_kinds import IS_GROUP, IS_MEMBER, IS_TARGET
from groupkeeper.pipeline.transforms.times import before

__all__ = ["REBALANCES_MS", "group_facts", "memberships"]

REBALANCES_MS = 10 * 60 * 1000
"""So far back from a group's last rebalance the others are known."""

_GROUP = ("cluster", "group_id")


def group_facts(group_records: DataFrame, group_events: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Of rows of tables.GROUP_RECORDS and tables.GROUP_EVENTS, which come after those that are `known`."""
    shows = F.expr(f"problem IS NULL AND ({IS_GROUP} OR {IS_MEMBER} OR {IS_TARGET})")
    of_records = (
        group_records.where("group_id IS NOT NULL")
        .groupBy(*_GROUP)
        .agg(F.min(F.when(shows, F.col("log_time"))).alias("began"), F.max("log_time").alias("changed"))
    )
    last = memberships(group_events).groupBy(*_GROUP).agg(F.max_by("is_empty", "log_offset").alias("was_empty"))
    rebalances = (
        group_events.where("event = 'rebalanced'")
        .groupBy(*_GROUP)
        .agg(F.collect_list("event_time").alias("rebalanced"))
    )
    new = of_records.join(last, list(_GROUP), "full").join(rebalances, list(_GROUP), "full")
    if known is None:
        return new.withColumn("rebalanced", _recent(F.col("rebalanced"))).select(*GROUP_FACTS.names)
    then, now = known.alias("then"), new.alias("now")
    nothing = F.array().cast("array<timestamp>")
    rebalanced = F.concat(F.coalesce("then.rebalanced", nothing), F.coalesce("now.rebalanced", nothing))
    return then.join(now, list(_GROUP), "full").select(
        *_GROUP,
        F.least("then.began", "now.began").alias("began"),
        F.greatest("then.changed", "now.changed").alias("changed"),
        F.coalesce("now.was_empty", "then.was_empty").alias("was_empty"),
        _recent(rebalanced).alias("rebalanced"),
    )


def _recent(times: Column) -> Column:
    in_order = F.array_sort(F.coalesce(times, F.array().cast("array<timestamp>")))
    return F.filter(in_order, lambda time: time >= before(F.array_max(in_order), REBALANCES_MS))


def memberships(group_events: DataFrame) -> DataFrame:
    """From where on a group had members, or none (`is_empty`), of rows of tables.GROUP_EVENTS."""
    return (
        group_events.where("members IS NOT NULL")
        .groupBy(*_GROUP, "log_offset")
        .agg((F.min("members") == 0).alias("is_empty"))
    )
