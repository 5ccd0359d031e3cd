"""Facts of a group's past that are needed to interpret later records (tables.state.GROUP_FACTS)."""

from __future__ import annotations

from pyspark.sql import DataFrame

from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS
from groupkeeper.pipeline.tables.state import GROUP_FACTS
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames
from groupkeeper.pipeline.transforms.record_kinds import IS_GROUP, IS_MEMBER, IS_TARGET
from groupkeeper.rules.status import REBALANCES_MS

__all__ = ["GROUP_FACTS_OF", "group_facts", "memberships"]

_GROUP = "cluster, group_id"
_SHOWS = f"problem IS NULL AND ({IS_GROUP} OR {IS_MEMBER} OR {IS_TARGET})"


def memberships(words: Words) -> str:
    """A query for the offsets from which on a group had members, or had none (`is_empty`)."""
    return f"""
    SELECT {_GROUP}, log_offset, min(members) = 0 AS is_empty
    FROM {words.of("group_events")} WHERE members IS NOT NULL GROUP BY {_GROUP}, log_offset
"""


def _group_facts(words: Words) -> str:
    is_recent = f"rebalanced >= last_one - INTERVAL '{REBALANCES_MS // 60_000}' MINUTE"
    recent = f"CASE WHEN {is_recent} THEN rebalanced END"
    return f"""
WITH memberships AS ({memberships(words)}),
known_rebalances AS (
    SELECT {_GROUP}, {words.each_of("rebalanced")} AS rebalanced FROM {words.of("known")}
),
facts AS (
    SELECT {_GROUP}, CASE WHEN {_SHOWS} THEN log_time END AS began, log_time AS changed,
        CAST(NULL AS BOOLEAN) AS is_empty, CAST(NULL AS BIGINT) AS since, CAST(NULL AS TIMESTAMP) AS rebalanced
    FROM {words.of("group_records")} WHERE group_id IS NOT NULL
    UNION ALL SELECT {_GROUP}, began, changed, was_empty, CASE WHEN was_empty IS NOT NULL THEN -1 END, NULL
    FROM {words.of("known")}
    UNION ALL SELECT {_GROUP}, NULL, NULL, is_empty, log_offset, NULL FROM memberships
    UNION ALL SELECT {_GROUP}, NULL, NULL, NULL, NULL, rebalanced FROM known_rebalances
    UNION ALL SELECT {_GROUP}, NULL, NULL, NULL, NULL, event_time
    FROM {words.of("group_events")} WHERE event = 'rebalanced'
),
dated AS (SELECT *, max(rebalanced) OVER (PARTITION BY {_GROUP}) AS last_one FROM facts)
SELECT {_GROUP}, min(began) AS began, max(changed) AS changed, max_by(is_empty, since) AS was_empty,
    {words.in_order(recent, "rebalanced")} AS rebalanced
FROM dated GROUP BY {_GROUP}
"""


GROUP_FACTS_OF = Query(
    GROUP_FACTS,
    _group_facts,
    {"group_records": GROUP_RECORDS, "group_events": GROUP_EVENTS, "known": GROUP_FACTS},
)
"""Of `group_records` and `group_events`, which come after those that are `known`."""


def group_facts(group_records: DataFrame, group_events: DataFrame) -> DataFrame:
    """The facts from the whole history, computed by Spark."""
    given = {"group_records": group_records, "group_events": group_events}
    return of_frames(GROUP_FACTS_OF, group_records.sparkSession, given)
