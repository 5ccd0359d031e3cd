"""tables.GROUP_EVENTS: what happened to groups, from consecutive records of the same key."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS
from groupkeeper.pipeline.tables.state import GROUP_FACTS, LAST_RECORDS
from groupkeeper.pipeline.transforms.query import Query, Words, of_frames
from groupkeeper.pipeline.transforms.record_kinds import IS_GROUP, IS_MEMBER, IS_TARGET

__all__ = ["group_events", "group_events_of"]

_GROUP = "cluster, group_id"
_PERSON = ("member_id", "instance_id", "client_id", "client_host")
_PEOPLE = f"ARRAY<STRUCT<{', '.join(f'{name}: STRING' for name in _PERSON)}>>"
_COLUMNS = (
    f"{_GROUP}, group_type, record_name, {', '.join(_PERSON)}, is_tombstone, generation, group_epoch, "
    "assignment_epoch, members, log_time, log_partition, log_offset, problem"
)
_LAST = ("is_tombstone", "generation", "group_epoch", "assignment_epoch", "people", *_PERSON[1:])

# The numbers that grow during the life of a group: each record has one of them.
_NUMBER = "coalesce(generation, group_epoch, assignment_epoch)"
_LAST_NUMBER = "coalesce(last.generation, last.group_epoch, last.assignment_epoch)"


def _group_events(words: Words, column: str) -> str:
    return f"""
WITH {_steps(words)},
{_moved(words)},
judged AS (
    SELECT counted.*, coalesce({words.has("moved_in", "log_offset")}, false) AS moves_in,
        coalesce({words.has("moved_out", "log_offset")}, false) AS moves_out,
        coalesce({words.has("moved", "member_id")}, false) AS is_moved,
        NOT is_tombstone AND NOT was_there AS is_created, last IS NULL AS is_first,
        coalesce(generation, group_epoch, 0) <= 1 AS is_young, coalesce(group_type = 'classic', false) AS is_classic
    FROM counted LEFT JOIN moved USING (cluster, group_id, log_time)
),
told AS (SELECT {words.each_of(_events(words))} AS found FROM judged WHERE is_new)
SELECT {", ".join(f"found.{name} AS {name}" for name in GROUP_EVENTS.names)}, false AS {column} FROM told
"""


def _steps(words: Words) -> str:
    """Records that show events, with the previous record of the same key as `last`, the number of members of the group
    after each record, and the time of the group's first remaining record.
    """
    people = words.mapped("members", lambda one: words.row({name: f"{one}.{name}" for name in _PERSON}))
    return f"""
records AS (
    SELECT {_COLUMNS}, true AS is_new FROM {words.of("group_records")}
    UNION ALL SELECT {_COLUMNS}, false AS is_new FROM {words.of("last_records")}
),
kinds AS (
    SELECT *, {words.there(people, _PEOPLE)} AS people,
        CASE WHEN {IS_GROUP} THEN 'group' WHEN {IS_MEMBER} THEN 'member' WHEN {IS_TARGET} THEN 'target' END AS kind
    FROM records WHERE problem IS NULL AND group_id IS NOT NULL
),
following AS (
    SELECT *, lag({words.row({name: name for name in _LAST})}) OVER (
        PARTITION BY {_GROUP}, record_name, member_id ORDER BY log_offset
    ) AS last
    FROM kinds WHERE kind IS NOT NULL
),
numbered AS (  -- a number that falls is that of a group made again: compaction has taken the tombstone between
    SELECT *, coalesce(NOT last.is_tombstone, false) AND NOT coalesce({_NUMBER} < {_LAST_NUMBER}, false) AS was_there
    FROM following
),
summed AS (
    SELECT *, min(log_time) OVER (PARTITION BY {_GROUP} ORDER BY log_offset) AS began_here,
        sum(CASE WHEN kind = 'member' THEN CAST(NOT is_tombstone AS INT) - CAST(was_there AS INT) ELSE 0 END)
            OVER (PARTITION BY {_GROUP} ORDER BY log_offset) AS difference
    FROM numbered
),
counted AS (
    SELECT summed.*, least(began_here, had_begun) AS began,
        CASE WHEN group_type = 'classic' AND NOT is_tombstone THEN {words.size("people")} ELSE greatest(difference, 0)
            END AS count
    FROM summed LEFT JOIN (SELECT {_GROUP}, began AS had_begun FROM {words.of("facts")}) AS facts USING ({_GROUP})
)"""


def _moved(words: Words) -> str:
    """Groups that change their type (KIP-848): no member joins or leaves; the group's members are in `moved`."""
    ids = words.mapped("people", lambda one: f"{one}.member_id")
    last_ids = words.mapped("last.people", lambda one: f"{one}.member_id")
    level = words.row({name: name for name in ("group_type", "is_tombstone", "log_time", "log_offset", "ids")})
    return f"""
levels AS (
    SELECT {_GROUP}, group_type, is_tombstone, log_time, log_offset,
        CASE WHEN is_tombstone THEN {last_ids} ELSE {ids} END AS ids
    FROM counted WHERE kind = 'group'
),
pairs AS (
    SELECT *, lag({level}) OVER (PARTITION BY {_GROUP} ORDER BY log_offset) AS earlier FROM levels
),
moved AS (  -- a group may come and go within a millisecond
    SELECT {_GROUP}, log_time, {words.collected("log_offset")} AS moved_in,
        {words.collected("earlier.log_offset")} AS moved_out,
        flatten({words.collected("coalesce(CASE WHEN group_type = 'classic' THEN ids END, earlier.ids)")}) AS moved
    FROM pairs
    WHERE NOT is_tombstone AND earlier.group_type != group_type AND earlier.is_tombstone
        AND earlier.log_time = log_time
    GROUP BY {_GROUP}, log_time
)"""


def _events(words: Words) -> str:
    """The events that one step shows."""
    # A group of the newer protocols is created: since Kafka 4.3 the first epoch in the log is 2, written together with
    # the first member. If compaction has left an epoch 2, there were other records before it.
    is_second_of_new = "coalesce(group_epoch = 2 AND count = 1 AND began = log_time, false)"
    is_classic_now = "kind = 'group' AND is_classic AND NOT is_tombstone"
    was_inhabited = f"coalesce({words.size('last.people')}, 1) > 0"
    of_classic = f"kind = 'group' AND is_classic AND {_grows('generation')}"
    rebalanced = f"({of_classic} OR kind = 'target' AND {_grows('assignment_epoch')})"
    of_group: Mapping[str, str] = {
        "migrated": "moves_in",
        "created": "kind = 'group' AND is_created AND NOT moves_in "
        f"AND (is_young OR {is_second_of_new} OR NOT is_first)",
        "deleted": "kind = 'group' AND is_tombstone AND NOT moves_out",  # a group with only offsets has no other record
        "epoch_bumped": f"kind = 'group' AND was_there AND {_grows('group_epoch')}",
        "rebalanced": f"{rebalanced} AND count > 0",
        "emptied": f"({is_classic_now} AND {was_inhabited} AND NOT is_young "
        "OR kind = 'member' AND is_tombstone AND was_there AND NOT is_moved) AND count = 0",
    }
    of_member = {
        "joined": "kind = 'member' AND is_created AND NOT is_moved",
        # of a group without records: compaction has removed them
        "left": "kind = 'member' AND is_tombstone AND NOT is_moved",
    }
    nobody = {"member_id": "''"} | dict.fromkeys(_PERSON[1:], "CAST(NULL AS STRING)")
    person = {"member_id": "member_id"} | {name: f"coalesce({name}, last.{name})" for name in _PERSON[1:]}
    single = [
        f"CASE WHEN {when} THEN {_event(words, name, columns)} END"
        for whens, columns in ((of_group, nobody), (of_member, person))
        for name, when in whens.items()
    ]
    knows_before = f"{is_classic_now} AND NOT moves_in AND (NOT is_first OR is_young)"
    before = words.there("CASE WHEN was_there THEN last.people END", _PEOPLE)
    several = [
        _missing(words, event, of, others, knows_before)
        for event, of, others in (("joined", "people", before), ("left", before, "people"))
    ]
    return words.joined(words.known(*single), *several)


def _event(words: Words, name: str, person: Mapping[str, str]) -> str:
    """A whole row of tables.GROUP_EVENTS."""
    made = {"event_time": "log_time", "event": f"'{name}'", "members": "CAST(count AS INT)", **person}
    return words.row({column: made.get(column, column) for column in GROUP_EVENTS.names})


def _grows(name: str) -> str:
    """Whether a number is larger than in the record before, or there was no record before."""
    return f"({name} IS NOT NULL AND NOT is_tombstone AND (NOT was_there OR {name} > coalesce(last.{name}, -1)))"


def _missing(words: Words, event: str, people: str, others: str, when: str) -> str:
    """An event for each member in `people` that isn't among the others."""
    ids = words.mapped(others, lambda other: f"{other}.member_id")
    missing = words.kept(people, lambda one: f"{when} AND NOT {words.has(ids, f'{one}.member_id')}")
    return words.mapped(missing, lambda one: _event(words, event, {name: f"{one}.{name}" for name in _PERSON}))


def group_events_of(column: str) -> Query:
    """The events in `group_records`. If compaction has removed earlier records, a group's first remaining record does
    not show that the group was created or that its members joined then. `last_records` are the carried records before
    them, which give no events; `facts` say since when groups have existed. The column is always false: events are
    final.
    """
    given = {"group_records": GROUP_RECORDS, "last_records": LAST_RECORDS, "facts": GROUP_FACTS}
    return Query(GROUP_EVENTS, lambda words: _group_events(words, column), given, (pa.field(column, pa.bool_()),))


def group_events(group_records: DataFrame) -> DataFrame:
    """The events from the whole history, computed by Spark."""
    query, given = group_events_of("is_open"), {"group_records": group_records}
    return of_frames(query, group_records.sparkSession, given).select(*GROUP_EVENTS.names)
