"""How often groups commit and move on (tables.state.PACES): a group's usual pace decides when it counts as stopped."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupkeeper.pipeline.tables import COMMITS
from groupkeeper.pipeline.tables.state import LAST_COMMITS, PACES
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames

__all__ = ["GAPS", "PACES_OF", "paces", "usual"]

GAPS = 15
"""The last gaps that count."""

_KEY = "cluster, group_id, topic, partition"
_COLUMNS = f"{_KEY}, log_offset, committed_offset, commit_time, is_tombstone"


def _paces(words: Words) -> str:
    in_order = f"PARTITION BY {_KEY} ORDER BY log_offset"
    earlier = f"{in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    gaps = []
    for name in ("commit_gap", "move_gap"):
        then = words.there(f"any_value(then_{name})", "ARRAY<BIGINT>")
        gaps.append(f"{words.tail(words.joined(then, words.in_order(name, 'log_offset')), GAPS)} AS {name}s")
    return f"""
WITH whole AS (
    SELECT {_COLUMNS}, true AS is_new FROM {words.of("commits")}
    UNION ALL SELECT {_COLUMNS}, false AS is_new FROM {words.of("last_commits")}
),
lives AS (
    SELECT *, max(CASE WHEN is_tombstone THEN log_offset END) OVER (PARTITION BY {_KEY}) AS ended,
        bool_or(is_tombstone AND is_new) OVER (PARTITION BY {_KEY}) AS is_over
    FROM whole
),
steps AS (
    SELECT *, lag(commit_time) OVER ({in_order}) AS time_before,
        lag(committed_offset) OVER ({in_order}) AS offset_before
    FROM lives WHERE NOT is_tombstone AND (ended IS NULL OR log_offset > ended)
),
moving AS (
    SELECT *, CASE WHEN is_new AND offset_before IS NOT NULL AND committed_offset != offset_before THEN commit_time END
            AS move_time,
        CASE WHEN is_new THEN {words.ms_between("time_before", "commit_time")} END AS commit_gap
    FROM steps
),
timed AS (
    SELECT moving.*, {words.last_known("move_time", earlier)} AS moved_before,
        CASE WHEN NOT is_over THEN known.first_time END AS then_first_time,
        CASE WHEN NOT is_over THEN known.moved_time END AS then_moved_time,
        CASE WHEN NOT is_over THEN known.commit_gaps END AS then_commit_gap,
        CASE WHEN NOT is_over THEN known.move_gaps END AS then_move_gap
    FROM moving LEFT JOIN {words.of("known")} AS known USING ({_KEY})
),
found AS (
    SELECT *, {words.ms_between("coalesce(moved_before, then_moved_time)", "move_time")} AS move_gap FROM timed
)
SELECT {_KEY}, least(any_value(then_first_time), min(commit_time)) AS first_time,
    coalesce(max_by(move_time, CASE WHEN move_time IS NOT NULL THEN log_offset END), any_value(then_moved_time))
        AS moved_time,
    {", ".join(gaps)}
FROM found GROUP BY {_KEY}
"""


PACES_OF = Query(PACES, _paces, {"commits": COMMITS, "last_commits": LAST_COMMITS, "known": PACES})
"""Of `commits` that come after those that are `known`; `last_commits` are the carried ones before them. A tombstone
ends what was before it.
"""


def paces(commits: DataFrame) -> DataFrame:
    """The paces from all rows of tables.COMMITS, computed by Spark."""
    return of_frames(PACES_OF, commits.sparkSession, {"commits": commits})


def usual(gaps: str) -> Column:
    """The median of a column of gaps, the lower of two; null: none."""
    in_order = F.array_sort(F.col(gaps))
    return F.get(in_order, F.floor((F.array_size(in_order) - 1) / 2).cast("int"))
