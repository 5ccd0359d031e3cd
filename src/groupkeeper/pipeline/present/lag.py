"""tables.LAG: how far behind groups are, in records and in time."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.sql import Rows, empty, made
from groupkeeper.pipeline.present.trends import TREND, with_trend
from groupkeeper.pipeline.tables import FRESHNESS, LAG, TOPICS
from groupkeeper.pipeline.tables.state import ESTIMATES
from groupkeeper.pipeline.transforms.estimates import ASKED

__all__ = ["BEYOND", "lag", "to_estimate"]

BEYOND = "the committed offset is past the end of the log"
"""A problem of tables.LAG: `lag` is 0 there, but what a consumer reads depends on its `auto.offset.reset`."""

_JUDGED = """
asked AS (  -- where the latest commits are not known, lag is not either: what was before is of another instant
    SELECT own.cluster, group_id, own.topic, own.partition, committed_offset, commit_time,
        behind.problem AS not_read, coalesce(behind.problem, logs.problem) AS why,
        logs.* EXCLUDE (cluster, topic, partition, problem)
    FROM current_offsets AS own
    LEFT JOIN (SELECT * FROM freshness WHERE problem IS NOT NULL) AS behind
        ON behind.cluster = own.cluster AND behind.log_partition = own.log_partition
    LEFT JOIN log_offsets AS logs
        ON logs.cluster = own.cluster AND logs.topic = own.topic AND logs.partition = own.partition
),
measured AS (
    SELECT *, CASE WHEN not_read IS NULL THEN list_filter(
            records, lambda each: each['offset'] = committed_offset)[1] END AS oldest,
        committed_offset > log_end_offset AS is_beyond,
        greatest(committed_offset, 0) AS next_offset,  -- of an offset below 0 reading begins where the log does
        CASE WHEN not_read IS NULL AND log_end_offset IS NOT NULL
            THEN greatest(log_end_offset - next_offset, 0) END AS lag,
        CASE WHEN not_read IS NULL AND last_stable_offset IS NOT NULL
            THEN greatest(last_stable_offset - next_offset, 0) END AS committed_lag
    FROM asked
),
judged AS (
    SELECT *, lag = 0 OR NOT oldest.is_there AS is_nothing,
        committed_lag = 0 OR NOT oldest.is_committed_there AS is_committed_nothing,
        coalesce(is_nothing OR oldest.time IS NOT NULL, false) AS is_exact
    FROM measured
)"""

_ASKED = f"""
WITH {_JUDGED}
SELECT cluster, group_id, topic, partition, committed_offset AS at, log_end_offset, measured_time
FROM judged
WHERE NOT is_exact AND lag > 0
"""

_LAG = f"""
WITH {_JUDGED},
timed AS (
    SELECT judged.*, estimated_time,
        coalesce(oldest.time, estimated_time) AS oldest_time,
        CASE WHEN is_nothing THEN 0 WHEN oldest_time IS NOT NULL
            THEN greatest(ms_between(oldest_time, measured_time), 0) END AS oldest_ms
    FROM judged LEFT JOIN estimates USING (cluster, group_id, topic, partition)
),
found AS (
    SELECT * EXCLUDE (oldest_ms), oldest_ms AS lag_ms,
        CASE WHEN is_committed_nothing THEN 0
            WHEN oldest.committed_time IS NULL THEN lag_ms
            ELSE greatest(ms_between(oldest.committed_time, measured_time), 0) END AS committed_lag_ms,
        CASE WHEN is_exact THEN 'exact' WHEN estimated_time IS NOT NULL THEN 'interpolated' ELSE 'unknown' END
            AS lag_basis,
        -- aborted records don't wait; those of an open transaction do where nothing before them does
        CASE WHEN NOT is_committed_nothing OR last_stable_offset = log_end_offset
            THEN NOT coalesce(is_committed_nothing, is_nothing, lag_ms IS NULL)
            ELSE NOT coalesce(is_nothing, lag_ms IS NULL) END AS waits,
        CASE WHEN is_nothing IS NOT NULL OR lag_ms IS NOT NULL THEN waits END AS is_waiting,
        CASE WHEN lag_ms IS NULL THEN why WHEN is_beyond THEN '{BEYOND}' END AS problem
    FROM timed
),
jumps AS (
    SELECT cluster, group_id, topic, partition FROM ahead
    UNION ALL
    SELECT own.cluster, own.group_id, own.topic, own.partition  -- the topic was deleted and created again
    FROM current_offsets AS own
    JOIN log_offsets AS logs ON logs.cluster = own.cluster AND logs.topic = own.topic
        AND logs.partition = own.partition
    JOIN topics_then AS past ON past.cluster = own.cluster AND past.topic = own.topic
    WHERE past.topic_id != logs.topic_id
),
{TREND}
"""


def lag(
    current_offsets: Rows, log_offsets: Rows, estimates: Rows | None = None, freshness: Rows | None = None, *,
    then: Rows | None = None, topics_then: Rows | None = None, jumps: Rows | None = None,
) -> pa.RecordBatchReader:  # fmt: skip
    """The lag, from rows of tables.CURRENT_OFFSETS and tables.LOG_OFFSETS. If `freshness` (rows of tables.FRESHNESS)
    shows that the latest commits are not known, lag is not known either.

    The time is exact if the record at the committed offset was read; otherwise it comes from `estimates`
    (estimates.estimated). trends.TREND describes `then` and `jumps`. Measures also start over for a topic whose id
    differs from that in `topics_then` (rows of tables.TOPICS).
    """
    given = {
        **_given(current_offsets, log_offsets, freshness),
        "estimates": empty(ESTIMATES) if estimates is None else estimates,
        "earlier": empty(LAG) if then is None else then, "ahead": empty(LAG) if jumps is None else jumps,
        "topics_then": empty(TOPICS) if topics_then is None else topics_then,
    }  # fmt: skip
    return with_trend(_LAG, given)


def to_estimate(current_offsets: Rows, log_offsets: Rows, freshness: Rows | None = None) -> pa.Table:
    """The offsets whose time no record shows: rows of estimates.ASKED."""
    return made(ASKED, _ASKED, _given(current_offsets, log_offsets, freshness)).read_all()


def _given(current_offsets: Rows, log_offsets: Rows, freshness: Rows | None) -> dict[str, Rows]:
    return {
        "current_offsets": current_offsets, "log_offsets": log_offsets,
        "freshness": empty(FRESHNESS) if freshness is None else freshness,
    }  # fmt: skip
