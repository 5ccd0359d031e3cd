"""Why offsets were removed: `removed_by` of tables.COMMITS, derived from ages and the group's state at the time."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.kafka.retention import DEFAULT, Retentions
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS
from groupkeeper.pipeline.tables.schema import Column, Table
from groupkeeper.pipeline.tables.state import LAST_COMMITS, LAST_RECORDS
from groupkeeper.pipeline.transforms.query import Query, Words

__all__ = ["CAUSES_OF", "kept_for"]

# The expiry of offsets follows the rule of groupkeeper.coordinator.offsets.expiry, in SQL.
_SLACK_MS = 60_000
"""What a check itself may take, and what the clocks of two coordinators may differ by."""
_GROUP = "cluster, group_id"
_NAMES = ", ".join(COMMITS.names)
_PLACE = "cluster, group_id, log_offset"
_OTHERS = [name for name in COMMITS.names if name not in ("cluster", "group_id", "log_offset")]
_JUDGED = ", ".join(name for name in COMMITS.names if name != "removed_by")

_KEPT = Table(
    "kept_for",
    "cluster whose brokers said so",
    ("cluster",),
    (
        Column("cluster", pa.string(), "name of the cluster"),
        Column("retention_ms", pa.int64(), "how long offsets are kept"),
        Column("check_ms", pa.int64(), "how often is looked for those that expired"),
    ),
)


def kept_for(retentions: Retentions) -> pa.Table:
    """The settings as rows that CAUSES_OF takes; clusters that are not named have DEFAULT."""
    rows = [(name, own.retention_ms, own.check_interval_ms) for name, own in sorted(retentions.items())]
    return pa.Table.from_pylist([dict(zip(_KEPT.names, each, strict=True)) for each in rows], _KEPT.arrow)


def _timeline(words: Words) -> str:
    """New tombstones with the commit before each (`last`), merged with the changes of their groups."""
    last = words.row({"is_tombstone": "is_tombstone", "commit_time": "commit_time", "expire_time": "expire_time"})
    roster = words.row({
        "is_empty": f"{words.size('members')} = 0",
        "has_protocol": "protocol_type != ''",
        "since": words.time_of("state_timestamp_ms"),
        "topics": words.mapped("members", lambda one: f"{one}.subscribed_topics"),
    })  # fmt: skip
    absent = ", ".join(f"NULL AS {name}" for name in _OTHERS)
    change = f"{_PLACE}, log_time, record_name, protocol_type, state_timestamp_ms, members"
    return f"""
touched AS (SELECT DISTINCT {_GROUP} FROM {words.of("commits")} WHERE is_tombstone),
whole AS (
    SELECT {_NAMES}, true AS is_new FROM {words.of("commits")}
    UNION ALL SELECT {_NAMES}, false AS is_new FROM {words.of("last_commits")}
),
steps AS (
    SELECT whole.*, lag({last}) OVER (PARTITION BY {_GROUP}, topic, partition ORDER BY log_offset) AS last
    FROM whole JOIN touched USING ({_GROUP})
),
records AS (
    SELECT {change} FROM {words.of("group_records")} WHERE group_id IS NOT NULL
    UNION ALL SELECT {change} FROM {words.of("last_records")} WHERE group_id IS NOT NULL
),
timeline AS (
    SELECT {_PLACE}, {", ".join(_OTHERS)}, last, NULL AS changed, NULL AS roster
    FROM steps WHERE is_new AND is_tombstone
    UNION ALL
    SELECT {_PLACE}, {absent}, NULL AS last, log_time AS changed,
        CASE WHEN record_name = 'GroupMetadata' THEN {roster} END AS roster
    FROM records JOIN touched USING ({_GROUP})
)"""


def _causes(words: Words) -> str:
    before = f"PARTITION BY {_GROUP} ORDER BY log_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    readers = words.kept("roster.topics", lambda own: f"coalesce({words.has(own, 'topic')}, true)")
    return f"""
WITH {_timeline(words)},
known AS (
    SELECT {_NAMES}, last, {words.last_known("roster", before)} AS roster,
        {words.last_known("changed", before)} AS changed
    FROM timeline
),
aged AS (
    SELECT known.*, coalesce(check_ms, {DEFAULT.check_interval_ms}) * 2 + {_SLACK_MS} AS patience_ms,
        -- Nothing expires that is read, or of which the members don't say that they do not read it.
        {words.size(readers)} > 0 AND roster.has_protocol AS is_kept,
        coalesce(retention_ms, {DEFAULT.retention_ms}) AS retention_ms,
        CASE WHEN roster.is_empty AND roster.has_protocol THEN coalesce(roster.since, last.commit_time)
            ELSE last.commit_time END AS base_time
    FROM known LEFT JOIN {words.of("kept_for")} AS kept_for USING (cluster)
    WHERE is_tombstone
),
due AS (SELECT *, coalesce(last.expire_time, {words.later("base_time", "retention_ms")}) AS due_time FROM aged),
ready AS (SELECT *, greatest(due_time, changed) AS ready_time FROM due)
SELECT {_JUDGED},
    CASE
    WHEN last IS NULL OR last.is_tombstone THEN 'unknown'
    WHEN log_time < due_time OR is_kept THEN 'deleted'
    WHEN log_time <= {words.later("ready_time", "patience_ms")} THEN 'expired'
    ELSE 'unknown' END AS removed_by
FROM ready
"""


CAUSES_OF = Query(
    COMMITS,
    _causes,
    {
        "commits": COMMITS, "last_commits": LAST_COMMITS, "group_records": GROUP_RECORDS, "last_records": LAST_RECORDS,
        "kept_for": _KEPT,
    },
)  # fmt: skip
"""The tombstones of `commits`, with `removed_by`, by what came before: the earlier ones of these, and of
`group_records`, and the carried ones.

An offset can't have expired before its time, nor while members of a classic group may read it: it was deleted. When it
went within two checks after it could expire (its age, or that of the group's emptiness, is reached, and the group has
changed for the last time), it expired. Later, and where the log no longer has the commit, it is unknown.
"""
