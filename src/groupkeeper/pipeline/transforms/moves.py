"""Commits that differ from the offset committed before: present.moved reports them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from groupkeeper.pipeline.relations import Array, numbers
from groupkeeper.pipeline.tables import COMMITS, GROUP_EVENTS
from groupkeeper.pipeline.tables.state import GROUP_FACTS, LAST_COMMITS, MOVES, NEW_MOVES
from groupkeeper.pipeline.transforms.group_facts import memberships
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames

__all__ = ["IS_TOLD", "MOVES_OF", "is_told", "moves"]

_KEY = "cluster, group_id, topic, partition"
_COLUMNS = f"{_KEY}, topic_id, log_partition, log_offset, commit_time, committed_offset, is_tombstone"
_NAMES = ", ".join(MOVES.names)

IS_TOLD = "(to_offset < from_offset OR (coalesce(was_empty, false) AND NOT was_removed))"
"""Of rows of tables.state.MOVES: back, or a jump ahead of a group without members (present.moved.rewinds)."""


def is_told(moves: pa.Table) -> Array:
    """The same of rows in this process."""
    is_back = numbers(moves["to_offset"]) < numbers(moves["from_offset"])
    return is_back | (numbers(moves["was_empty"]) & ~numbers(moves["was_removed"]))


def _moves(words: Words) -> str:
    by_key = f"PARTITION BY {_KEY} ORDER BY log_offset"
    earlier = f"{by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    row = words.row({name: name for name in ("committed_offset", "topic_id")})
    known = f"CASE WHEN NOT is_tombstone THEN {row} END"
    return f"""
WITH whole AS (
    SELECT {_COLUMNS}, true AS is_new FROM {words.of("commits")}
    UNION ALL SELECT {_COLUMNS}, false AS is_new FROM {words.of("last_commits")}
),
steps AS (
    SELECT *, {words.last_known(known, earlier)} AS known,
        coalesce(lag(is_tombstone) OVER ({by_key}), false) AS was_removed
    FROM whole
),
memberships AS ({memberships(words)}),
timeline AS (
    SELECT {_KEY}, commit_time AS rewind_time, known.committed_offset AS from_offset, committed_offset AS to_offset,
        topic_id, was_removed, log_partition, log_offset, CAST(NULL AS BOOLEAN) AS is_empty
    FROM steps
    WHERE is_new AND NOT is_tombstone AND committed_offset != known.committed_offset
        AND coalesce(topic_id = known.topic_id, true)
    UNION ALL
    SELECT cluster, group_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, log_offset, is_empty FROM memberships
),
found AS (
    SELECT *, {words.last_known("is_empty", "PARTITION BY cluster, group_id ORDER BY log_offset")} AS is_empty_by_now
    FROM timeline
),
judged AS (
    SELECT found.*, coalesce(is_empty_by_now, was_empty) AS was_empty,
        max(log_offset) OVER (PARTITION BY {_KEY}) AS last_offset
    FROM found LEFT JOIN (SELECT cluster, group_id, was_empty FROM {words.of("facts")}) AS facts
        USING (cluster, group_id)
    WHERE to_offset IS NOT NULL
)
SELECT {_NAMES} FROM judged WHERE {IS_TOLD} OR log_offset = last_offset
"""


MOVES_OF = Query(
    NEW_MOVES,
    _moves,
    {"commits": COMMITS, "last_commits": LAST_COMMITS, "group_events": GROUP_EVENTS, "facts": GROUP_FACTS},
)
"""Of `commits`, and the carried ones before them, the moves that are reported: rewinds, and the last of each key.
Whether the group had members tell `group_events`, and the `facts` of before.
"""


def moves(commits: DataFrame, group_events: DataFrame) -> DataFrame:
    """The moves from all rows of tables.COMMITS, computed by Spark."""
    return of_frames(MOVES_OF, commits.sparkSession, {"commits": commits, "group_events": group_events})
