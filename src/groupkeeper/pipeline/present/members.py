"""tables.MEMBERS: the members of groups, with their assignments."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.present.sql import LATEST_RECORDS, Rows, made
from groupkeeper.pipeline.tables import MEMBERS
from groupkeeper.pipeline.transforms.record_kinds import (
    IS_CLASSIC_GROUP,
    IS_CURRENT_ASSIGNMENT,
    IS_MEMBER,
    IS_TARGET_OF_MEMBER,
)

__all__ = ["members"]

_ROSTER = (
    "member_id", "instance_id", "client_id", "client_host", "rebalance_timeout_ms", "subscribed_topics", "assigned"
)  # fmt: skip
_DESCRIBED = ("instance_id", "client_id", "client_host", "rack_id", "rebalance_timeout_ms", "subscribed_topics")

_MEMBERS = f"""
WITH latest AS ({LATEST_RECORDS}),
rosters AS (
    SELECT cluster, group_id, group_type, unnest(members) AS member FROM latest WHERE {IS_CLASSIC_GROUP}
),
others AS (
    SELECT cluster, group_id, member_id, any_value(group_type) AS group_type,
        {", ".join(f"any_value({name}) FILTER (WHERE {IS_MEMBER}) AS {name}" for name in _DESCRIBED)},
        nullif(any_value(subscribed_regex) FILTER (WHERE {IS_MEMBER}), '') AS subscribed_regex,
        any_value(member_epoch) FILTER (WHERE {IS_CURRENT_ASSIGNMENT}) AS member_epoch,
        any_value(member_state) FILTER (WHERE {IS_CURRENT_ASSIGNMENT}) AS member_state,
        any_value(assigned) FILTER (WHERE {IS_CURRENT_ASSIGNMENT}) AS has,
        any_value(assigned) FILTER (WHERE {IS_TARGET_OF_MEMBER}) AS should_have
    FROM latest
    WHERE member_id IS NOT NULL AND group_type != 'classic'
    GROUP BY cluster, group_id, member_id
    HAVING bool_or({IS_MEMBER})
)
SELECT cluster, group_id, group_type, {", ".join(f"member.{name} AS {name}" for name in _ROSTER)} FROM rosters
UNION ALL BY NAME
SELECT * EXCLUDE (has, should_have),  -- tasks of streams groups are in group_records as JSON
    CASE WHEN group_type != 'streams' THEN coalesce(has, []) END AS assigned,
    CASE WHEN group_type != 'streams' THEN coalesce(should_have, []) END AS target
FROM others
"""


def members(group_records: Rows) -> pa.RecordBatchReader:
    """The members of rows of tables.GROUP_RECORDS."""
    return made(MEMBERS, _MEMBERS, {"group_records": group_records})
