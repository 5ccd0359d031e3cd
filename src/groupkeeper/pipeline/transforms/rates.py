"""tables.RATES: KIP-496's meters for the past, by minute."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from groupkeeper.pipeline.tables import COMMITS, GROUP_EVENTS, RATES
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames

__all__ = ["rates", "rates_of"]

_OPEN_MINUTES = 10
_KEY = "cluster, group_id, minute"
_NUMBERS = [name for name in RATES.names if name not in RATES.key]
_SUMS = ", ".join(f"CAST(coalesce(sum({name}), 0) AS BIGINT) AS {name}" for name in _NUMBERS)
_COLUMNS = ", ".join(RATES.names)


def _rates(words: Words, column: str) -> str:
    return f"""
WITH deleted AS (  -- a group that is deleted takes its offsets with it: tombstones of the same time before its own
    SELECT cluster, group_id, event_time AS log_time, max(log_offset) AS deleted_at
    FROM {words.of("group_events")} WHERE event = 'deleted' GROUP BY cluster, group_id, event_time
),
causes AS (
    SELECT cluster, group_id, log_time, removed_by, coalesce(log_offset < deleted_at, false) AS is_with_group
    FROM {words.of("commits")} AS commits LEFT JOIN deleted USING (cluster, group_id, log_time)
    WHERE is_tombstone
),
counts AS (
    SELECT cluster, group_id, date_trunc('minute', coalesce(log_time, commit_time)) AS minute,
        count(*) AS offset_commits, 0 AS offset_expirations, 0 AS offset_deletions, 0 AS completed_rebalances,
        0 AS unexplained_removals, 0 AS removed_with_group
    FROM {words.of("commits")} WHERE NOT is_tombstone GROUP BY 1, 2, 3
    UNION ALL
    SELECT cluster, group_id, date_trunc('minute', log_time), 0, count_if(removed_by = 'expired'),
        count_if(removed_by = 'deleted' AND NOT is_with_group), 0, count_if(removed_by = 'unknown'),
        count_if(removed_by = 'deleted' AND is_with_group)
    FROM causes GROUP BY 1, 2, 3
    UNION ALL
    SELECT cluster, group_id, date_trunc('minute', event_time), 0, 0, 0, count(*), 0, 0
    FROM {words.of("group_events")} WHERE event = 'rebalanced' GROUP BY 1, 2, 3
),
by_group AS (SELECT {_KEY}, {_SUMS} FROM counts GROUP BY {_KEY}),
of_all AS (
    SELECT {_COLUMNS} FROM by_group
    UNION ALL
    SELECT cluster, CAST(NULL AS STRING), minute, {_SUMS} FROM by_group GROUP BY cluster, minute
    UNION ALL
    SELECT {_COLUMNS} FROM {words.of("known")}
),
found AS (SELECT {_KEY}, {_SUMS} FROM of_all GROUP BY {_KEY})
SELECT {_COLUMNS}, coalesce(
    minute >= max(minute) OVER (PARTITION BY cluster) - INTERVAL '{_OPEN_MINUTES}' MINUTE, true
) AS {column}
FROM found
"""


def rates_of(column: str) -> Query:
    """The rates per group and per cluster (`group_id` null), added to the `known` rows. The column says whether the
    counts of a minute may still grow, which is so for a cluster's last ten minutes.

    Minutes are those of the records in the log. Tombstones of unknown cause are counted separately, and so are
    tombstones of offsets deleted with their group: none of the four meters counts the deletion of a group.
    """
    given = {"commits": COMMITS, "group_events": GROUP_EVENTS, "known": RATES}
    return Query(RATES, lambda words: _rates(words, column), given, (pa.field(column, pa.bool_()),))


def rates(commits: DataFrame, group_events: DataFrame) -> DataFrame:
    """The rates from the whole history, computed by Spark."""
    given = {"commits": commits, "group_events": group_events}
    return of_frames(rates_of("is_open"), commits.sparkSession, given).select(*RATES.names)
