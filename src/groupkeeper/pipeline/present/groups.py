"""tables.GROUPS: what the groups are."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.sql import LATEST_RECORDS, Rows, empty, made
from groupkeeper.pipeline.tables import GROUPS
from groupkeeper.pipeline.transforms.record_kinds import IS_CURRENT_ASSIGNMENT, IS_GROUP, IS_MEMBER, IS_TARGET

__all__ = ["groups"]

_DESCRIBED = f"""
latest AS ({LATEST_RECORDS}),
facts_of AS (
    SELECT cluster, group_id,
        arg_max({{'group_type': group_type, 'protocol_type': protocol_type, 'protocol': protocol,
            'generation': generation, 'group_epoch': group_epoch, 'members': len(members)}}, log_offset)
            FILTER (WHERE {IS_GROUP}) AS last,
        max(assignment_epoch) FILTER (WHERE {IS_TARGET}) AS assignment_epoch,
        count(*) FILTER (WHERE {IS_MEMBER}) AS joined,
        -- What makes a member reconciled is compared with the group's epoch below: all must have the same.
        count(*) FILTER (WHERE {IS_CURRENT_ASSIGNMENT} AND member_state = 'STABLE') AS stable,
        min(member_epoch) FILTER (WHERE {IS_CURRENT_ASSIGNMENT}) AS least_epoch,
        max(member_epoch) FILTER (WHERE {IS_CURRENT_ASSIGNMENT}) AS greatest_epoch
    FROM latest
    GROUP BY cluster, group_id
),
described AS (
    SELECT cluster, group_id, last.group_type AS group_type,
        CASE WHEN group_type = 'classic' THEN last.protocol_type ELSE group_type END AS protocol_type,
        last.protocol AS protocol, last.generation AS generation, last.group_epoch AS group_epoch,
        CASE WHEN group_type != 'classic' THEN facts_of.assignment_epoch END AS assignment_epoch,
        coalesce(last.members, joined) AS members,
        coalesce(facts_of.assignment_epoch, -1) AS epoch,
        -- As the coordinator would report it, from what it has written: a rebalance of a classic group that is under
        -- way cannot be seen.
        CASE
        WHEN coalesce(last.members, joined) = 0 THEN 'Empty'
        WHEN last.group_type IN ('classic', 'share') THEN 'Stable'
        WHEN last.group_type = 'streams' THEN 'Unknown'
        WHEN last.group_epoch > epoch THEN 'Assigning'
        WHEN stable = joined AND least_epoch = epoch AND greatest_epoch = epoch THEN 'Stable'
        ELSE 'Reconciling' END AS group_state
    FROM facts_of
    WHERE last IS NOT NULL
)"""

_GROUPS = f"""
WITH {_DESCRIBED},
offsets AS (
    SELECT cluster, group_id, count(DISTINCT topic) AS topics, count(*) AS partitions,
        max(commit_time) AS last_commit_time
    FROM current_offsets
    GROUP BY cluster, group_id
)
SELECT cluster, group_id,
    CASE WHEN is_query THEN 'spark' ELSE coalesce(described.group_type, 'simple') END AS group_type,
    CASE WHEN is_query THEN 'Unknown' WHEN described.group_type IS NULL THEN 'Empty' ELSE group_state END
        AS group_state,
    CASE WHEN is_query THEN 'spark' WHEN described.group_type IS NULL THEN '' ELSE protocol_type END AS protocol_type,
    protocol, generation, group_epoch, assignment_epoch,
    coalesce(members, 0) AS members, coalesce(topics, 0) AS topics, coalesce(partitions, 0) AS partitions,
    last_commit_time, list_max(rebalanced) AS last_rebalance_time
FROM described
FULL JOIN offsets USING (cluster, group_id)
LEFT JOIN facts USING (cluster, group_id)
LEFT JOIN (SELECT cluster, group_id, true AS is_query FROM queries) AS queries USING (cluster, group_id)
"""


def groups(
    group_records: Rows, facts: Rows, current_offsets: Rows, queries: Rows | None = None
) -> pa.RecordBatchReader:
    """The groups of rows of tables.GROUP_RECORDS and tables.CURRENT_OFFSETS; tables.state.GROUP_FACTS tells when they
    rebalanced. `queries`: which of them, by the key, are queries of Spark.
    """
    given = {
        "group_records": group_records, "facts": facts, "current_offsets": current_offsets,
        "queries": empty(GROUPS).select(GROUPS.key) if queries is None else queries,
    }  # fmt: skip
    return made(GROUPS, _GROUPS, given)
