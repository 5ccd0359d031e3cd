"""tables.EDGES: clients that read topics in groups."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import EDGES
from groupkeeper.pipeline.transforms.record_kinds import IS_CLASSIC_GROUP, IS_MEMBER

__all__ = ["edges"]

_KEY = ["cluster", "group_id", "topic"]


def edges(
    commits: DataFrame, group_records: DataFrame, members: DataFrame, topics: DataFrame, known: DataFrame
) -> DataFrame:
    """Of rows of tables.COMMITS and tables.GROUP_RECORDS, which come after those that are `known` (rows of
    tables.EDGES). Current members (tables.MEMBERS) are seen at the instant in tables.TOPICS, which also gives the names
    of topics by id.
    """
    committed = commits.where("NOT is_tombstone").select(
        *_KEY, F.lit(None).cast("string").alias("client_id"), F.coalesce("commit_time", "log_time").alias("time")
    )
    seen = [committed, _of_records(group_records), _of_members(members, topics)]
    new = seen[0]
    for each in seen[1:]:
        new = new.unionByName(each)
    new = new.where("group_id IS NOT NULL AND topic IS NOT NULL AND time IS NOT NULL")
    spans = new.select(*_KEY, "client_id", F.col("time").alias("first_time"), F.col("time").alias("last_time"))
    return (
        known.unionByName(spans)
        .groupBy(*EDGES.key)
        .agg(F.min("first_time").alias("first_time"), F.max("last_time").alias("last_time"))
        .select(*EDGES.names)
    )


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


def _of_members(members: DataFrame, topics: DataFrame) -> DataFrame:
    now = topics.groupBy("cluster").agg(F.max("measured_time").alias("time"))
    by_id = topics.where("topic_id IS NOT NULL").select("cluster", "topic_id", F.col("topic").alias("by_id"))
    said = members.select("cluster", "group_id", "client_id", F.explode(_names("subscribed_topics")).alias("topic"))
    has = (
        members.select("cluster", "group_id", "client_id", F.explode("assigned").alias("own"))
        .select("cluster", "group_id", "client_id", F.col("own.topic").alias("topic"), F.col("own.topic_id"))
        .join(F.broadcast(by_id), ["cluster", "topic_id"], "left")
        .select("cluster", "group_id", "client_id", F.coalesce("topic", "by_id").alias("topic"))
    )
    return said.unionByName(has).join(F.broadcast(now), "cluster").select(*_KEY, "client_id", "time")


def _names(subscribed: str, assigned: str | None = None) -> Column:
    """The topics by name."""
    nothing = F.array().cast("array<string>")
    found = F.coalesce(F.col(subscribed), nothing)
    if assigned is not None:
        found = F.array_union(found, F.coalesce(F.transform(assigned, lambda own: own["topic"]), nothing))
    return found.alias("topics")
