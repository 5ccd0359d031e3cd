"""tables.STALE: groups and committed offsets that seem unused."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from groupkeeper.pipeline.kafka.retention import DEFAULT, Retentions
from groupkeeper.pipeline.present.sql import LATEST_RECORDS, Rows, made
from groupkeeper.pipeline.tables import STALE
from groupkeeper.pipeline.transforms.record_kinds import IS_CLASSIC_GROUP, IS_MEMBER

__all__ = ["StaleLimits", "stale"]

_DAY_MS = 24 * 3600 * 1000


class StaleLimits(NamedTuple):
    """`now_ms`: the time of the answer. Offsets that expire within `expiring_ms` are reported."""

    now_ms: int
    idle_days: float = 30
    expiring_ms: int = _DAY_MS
    retentions: Retentions = MappingProxyType({})


_OFFSETS = f"""
latest AS ({LATEST_RECORDS}),
said AS (  -- which topics members subscribe to, whether that is known, since when a classic group is in its state
    SELECT cluster, group_id,
        coalesce(flatten(list_transform(members, lambda member: coalesce(member.subscribed_topics, []))),
            subscribed_topics) AS topics,
        coalesce(len(list_filter(members, lambda member: member.subscribed_topics IS NULL)) = 0,
            subscribed_topics IS NOT NULL AND coalesce(subscribed_regex, '') = '') AS is_known,
        time_of(state_timestamp_ms) AS state_time
    FROM latest
    WHERE {IS_CLASSIC_GROUP} OR {IS_MEMBER}
),
readers AS (
    SELECT cluster, group_id, flatten(list(topics) FILTER (WHERE topics IS NOT NULL)) AS read_topics,
        bool_and(is_known) AS topics_known, max(state_time) AS state_time
    FROM said
    GROUP BY cluster, group_id
),
offsets AS (  -- committed offsets with their logs, and when they expire (groupkeeper.coordinator.offsets.expiry)
    SELECT own.cluster, group_id, own.topic, own.partition, committed_offset, commit_time, own.topic_id,
        logs.topic_id AS topic_id_now, log_start_offset, log_end_offset, is_deleted,
        coalesce(members, 0) AS number_of_members,
        CASE WHEN group_type = 'classic' AND members = 0 AND protocol_type != '' THEN coalesce(state_time, commit_time)
            ELSE commit_time END AS expires_from,
        group_type = 'simple' OR (
            group_type IS DISTINCT FROM 'spark'  -- whose offsets are in a checkpoint
            AND coalesce(topics_known, members = 0) AND NOT coalesce(list_contains(read_topics, own.topic), false)
        ) AS may_expire,
        coalesce(retentions.retention_ms, $retention_ms) AS kept_ms,
        CASE WHEN may_expire THEN coalesce(expire_time, later(expires_from, kept_ms)) END AS expires_time,
        greatest(committed_offset, 0) AS next_offset, ms_between(commit_time, $now) / $day_ms AS idle_days
    FROM current_offsets AS own
    LEFT JOIN log_offsets AS logs USING (cluster, topic, partition)
    LEFT JOIN groups USING (cluster, group_id)
    LEFT JOIN readers USING (cluster, group_id)
    LEFT JOIN retentions USING (cluster)
)"""

_STALE = f"""
WITH {_OFFSETS},
by_offset AS (
    SELECT *, unnest([  -- a quiet topic whose group is there and has read everything is not idle, however old
        CASE WHEN idle_days >= $idle_days AND (number_of_members = 0 OR log_end_offset > committed_offset)
            THEN 'idle' END,
        CASE WHEN is_deleted OR topic_id != topic_id_now THEN 'topic_deleted' END,
        CASE WHEN expires_time <= later($now, $expiring_ms) THEN 'expiring' END,
        CASE WHEN next_offset < log_start_offset THEN 'below_log_start' END
    ]) AS reason
    FROM offsets
),
idle_groups AS (  -- groups without members and without activity: no commit, no change of the group itself
    SELECT cluster, group_id, 'idle' AS reason,
        ms_between(greatest(last_commit_time, changed), $now) / $day_ms AS idle_days
    FROM groups LEFT JOIN facts USING (cluster, group_id)
    WHERE members = 0
)
SELECT cluster, group_id, topic, partition, reason, idle_days, expires_time,
    CASE WHEN reason = 'below_log_start' THEN log_start_offset - next_offset END AS lost_records
FROM by_offset
WHERE reason IS NOT NULL
UNION ALL BY NAME
SELECT * FROM idle_groups WHERE idle_days >= $idle_days
"""


def stale(
    current_offsets: Rows, log_offsets: Rows, group_records: Rows, groups: Rows, facts: Rows, limits: StaleLimits
) -> pa.RecordBatchReader:
    """Of rows of the tables of those names (tables.state.GROUP_FACTS). An offset can be there for several reasons."""
    given = {
        "current_offsets": current_offsets, "log_offsets": log_offsets, "group_records": group_records,
        "groups": groups, "facts": facts, "retentions": pa.table({
            "cluster": pa.array(limits.retentions, pa.string()),
            "retention_ms": pa.array([each.retention_ms for each in limits.retentions.values()], pa.int64()),
        }),
    }  # fmt: skip
    values = {
        "now": datetime(1970, 1, 1) + timedelta(milliseconds=limits.now_ms), "day_ms": _DAY_MS,
        "idle_days": limits.idle_days, "expiring_ms": limits.expiring_ms, "retention_ms": DEFAULT.retention_ms,
    }  # fmt: skip
    return made(STALE, _STALE, given, values)
