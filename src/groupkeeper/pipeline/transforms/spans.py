"""Since when and until when history shows clients that read topics in groups, for tables.EDGES."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import EDGES
from groupkeeper.pipeline.transforms.record_kinds import IS_CLASSIC_GROUP, IS_MEMBER

__all__ = ["spans"]


def spans(commits: DataFrame, group_records: DataFrame | None = None) -> DataFrame:
    """Of rows of tables.COMMITS and tables.GROUP_RECORDS; the result is as small as tables.EDGES."""
    seen = commits.where("NOT is_tombstone").select(
        "cluster", "group_id", "topic", F.lit(None).cast("string").alias("client_id"),
        F.coalesce("commit_time", "log_time").alias("time"),
    )  # fmt: skip
    if group_records is not None:
        seen = seen.unionByName(_of_records(group_records))
    return seen.groupBy(*EDGES.key).agg(F.min("time").alias("first_time"), F.max("time").alias("last_time"))


def _of_records(group_records: DataFrame) -> DataFrame:
    """The topics that members subscribed to when they joined, or were assigned."""
    of_classic = (
        group_records.where(IS_CLASSIC_GROUP)
        .select("cluster", "group_id", F.col("log_time").alias("time"), F.explode("members").alias("member"))
        .select(
            "cluster", "group_id", "time", "member.client_id", _names("member.subscribed_topics", "member.assigned")
        )
    )
    others = group_records.where(IS_MEMBER).select(
        "cluster", "group_id", F.col("log_time").alias("time"), "client_id", _names("subscribed_topics")
    )
    return of_classic.unionByName(others).select(
        "cluster", "group_id", F.explode("topics").alias("topic"), "client_id", "time"
    )


def _names(subscribed: str, assigned: str | None = None) -> Column:
    """The topics by name."""
    nothing = F.array().cast("array<string>")
    found = F.coalesce(F.col(subscribed), nothing)
    if assigned is not None:
        found = F.array_union(found, F.coalesce(F.transform(assigned, lambda own: own["topic"]), nothing))
    return found.alias("topics")
