"""The first and the last time at which the history shows a client reading a topic in a group, for tables.EDGES."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from groupkeeper.pipeline.tables import COMMITS, EDGES, GROUP_RECORDS
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames
from groupkeeper.pipeline.transforms.record_kinds import IS_CLASSIC_GROUP, IS_MEMBER

__all__ = ["SPANS_OF", "spans"]

_KEY = ", ".join(EDGES.key)


def _spans(words: Words) -> str:
    return f"""
WITH classic AS (
    SELECT cluster, group_id, log_time AS time, {words.each_of("members")} AS member
    FROM {words.of("group_records")} WHERE {IS_CLASSIC_GROUP}
),
assigned AS (
    SELECT cluster, group_id, time, member.client_id AS client_id, {words.each_of("member.assigned")} AS own
    FROM classic
),
seen AS (
    SELECT cluster, group_id, topic, CAST(NULL AS STRING) AS client_id, coalesce(commit_time, log_time) AS time
    FROM {words.of("commits")} WHERE NOT is_tombstone
    UNION ALL
    SELECT cluster, group_id, own.topic, client_id, time FROM assigned
    UNION ALL
    SELECT cluster, group_id, {words.each_of("member.subscribed_topics")}, member.client_id, time FROM classic
    UNION ALL
    SELECT cluster, group_id, {words.each_of("subscribed_topics")}, client_id, log_time
    FROM {words.of("group_records")} WHERE {IS_MEMBER}
)
SELECT {_KEY}, min(time) AS first_time, max(time) AS last_time FROM seen GROUP BY {_KEY}
"""


SPANS_OF = Query(
    pa.schema([EDGES.arrow.field(name) for name in (*EDGES.key, "first_time", "last_time")]),
    _spans,
    {"commits": COMMITS, "group_records": GROUP_RECORDS},
)
"""As small as tables.EDGES: topics of which offsets were committed, and those that members subscribed to when they
joined, or were assigned.
"""


def spans(commits: DataFrame, group_records: DataFrame | None = None) -> DataFrame:
    """The spans from the whole history, computed by Spark."""
    given = {"commits": commits} | ({} if group_records is None else {"group_records": group_records})
    return of_frames(SPANS_OF, commits.sparkSession, given)
