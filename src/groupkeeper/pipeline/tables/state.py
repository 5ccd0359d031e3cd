"""Rows that are carried from one refresh to the next (CARRIED), so that no refresh reads the whole history again. Their
number depends on the current state, not on the length of the history. The other tables here are for the steps of one
refresh; where the key has no group, each share of the groups has rows of its own.

They are below DIR/_groupkeeper; their columns are not a contract.
"""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.context import EDGES, OWNERS
from groupkeeper.pipeline.tables.derived import CURRENT_OFFSETS, GROUPS, LOG_OFFSETS, RATES, REWINDS
from groupkeeper.pipeline.tables.log import COMMITS, GROUP_RECORDS, REJECTS
from groupkeeper.pipeline.tables.schema import CLUSTER, GROUP, PARTITION, TIME, Column, Table

_FOLDER = "_groupkeeper/carried_"

LAST_COMMITS = Table(
    f"{_FOLDER}commits", "last commit, and last tombstone if that is later", COMMITS.key, COMMITS.columns
)

LAST_RECORDS = Table(
    f"{_FOLDER}records",
    "last record of each key, unless it removes a member, and last record of each group",
    GROUP_RECORDS.key,
    GROUP_RECORDS.columns,
)

GROUP_FACTS = Table(
    f"{_FOLDER}groups",
    "group that has ever had a record",
    GROUPS.key,
    (
        *GROUP,
        Column("began", TIME, "the earliest record that shows an event; null: none"),
        Column("changed", TIME, "the latest record of any kind"),
        Column("was_empty", pa.bool_(), "whether it had no members after the last event; null: not known"),
        Column("rebalanced", pa.list_(TIME), "the last rebalances, in order: those of REBALANCES_MS"),
    ),
)

MOVES = Table(
    f"{_FOLDER}moves",
    "group and partition: the last commit of another offset than the one before",
    CURRENT_OFFSETS.key,
    (
        *GROUP,
        *PARTITION,
        Column("rewind_time", TIME, "when it was committed"),
        Column("from_offset", pa.int64(), "the offset before"),
        Column("to_offset", pa.int64(), "the offset after"),
        Column("topic_id", pa.string(), "id of the topic; null: not given"),
        Column("was_removed", pa.bool_(), "whether the offset before had been removed"),
        Column("was_empty", pa.bool_(), "whether the group had no members then; null: not known"),
        Column("log_partition", pa.int32(), "partition of __consumer_offsets"),
        Column("log_offset", pa.int64(), "offset of the commit there"),
    ),
)

PACES = Table(
    f"{_FOLDER}paces",
    "group and partition that has a committed offset: how it has committed since the last tombstone",
    CURRENT_OFFSETS.key,
    (
        *GROUP,
        *PARTITION,
        Column("first_time", TIME, "the first commit"),
        Column("moved_time", TIME, "the last commit of another offset; null: none"),
        Column("commit_gaps", pa.list_(pa.int64()), "ms between the last commits, in order"),
        Column("move_gaps", pa.list_(pa.int64()), "ms between the last commits of another offset, in order"),
    ),
)

RECENT_REWINDS = Table(f"{_FOLDER}rewinds", "move back that a status may tell of", REWINDS.key, REWINDS.columns)

NEW_MOVES = Table(
    "_groupkeeper/new_moves", "new move that is reported, or the last one of its offset", REWINDS.key, MOVES.columns
)

READERS = Table(
    "_groupkeeper/readers",
    "topic of which a share of the groups has offsets",
    ("cluster", "topic"),
    (CLUSTER, PARTITION[0], Column("groups", pa.int64(), "how many of the groups")),
)

WANTED = Table(
    "_groupkeeper/wanted",
    "committed offset of a partition",
    (*LOG_OFFSETS.key, "committed_offset"),
    (
        CLUSTER,
        *PARTITION,
        Column("committed_offset", pa.int64(), "-1: none; null: only the ends of the log are wanted"),
    ),
)

WAITING = Table(
    "_groupkeeper/waiting",
    "partition in which groups wait for a transaction",
    LOG_OFFSETS.key,
    (CLUSTER, *PARTITION, Column("groups", pa.int64(), "how many have read up to its last stable offset")),
)

OWNED_GROUPS = Table("_groupkeeper/owned_groups", "group", OWNERS.key, OWNERS.columns)


def _counts(name: str) -> Table:
    return Table(
        f"_groupkeeper/{name}",
        "table",
        ("table_name",),
        (
            Column("table_name", pa.string(), "the table"),
            Column("rows", pa.int64(), "number of rows"),
            Column("doubled", pa.int64(), "how many of them have the key of another"),
            Column("judged", pa.int64(), "how many of them are of a topic; null: the table has none"),
        ),
    )


COUNTS_OF_OFFSETS, COUNTS_OF_LAG = _counts("counts_of_offsets"), _counts("counts_of_lag")

SPANS = Table(
    "_groupkeeper/spans", "client that reads a topic in a group, as new rows of history show", EDGES.key, EDGES.columns
)

GROUP_RATES = Table("_groupkeeper/group_rates", "group and minute of new rows of history", RATES.key, RATES.columns)

NEW_REJECTS = Table("_groupkeeper/new_rejects", "new record that could not be decoded", REJECTS.key, REJECTS.columns)

OFFSETS_READ = Table(
    "_groupkeeper/offsets_read",
    "cluster and partition of its offsets topic that has new rows in the history",
    ("cluster", "log_partition"),
    (
        CLUSTER,
        Column("log_partition", pa.int32(), "partition of __consumer_offsets"),
        Column("records", pa.int64(), "number of rows"),
        Column("offsets", pa.int64(), "number of different offsets there"),
        Column("first", pa.int64(), "the first of them"),
    ),
)

ESTIMATES = Table(
    "_groupkeeper/estimates",
    "committed offset whose time no record shows",
    WANTED.key,
    (*WANTED.columns, Column("estimated_time", TIME, "by the commits around it; null: there are none")),
)

CARRIED = (LAST_COMMITS, LAST_RECORDS, GROUP_FACTS, MOVES, PACES, RECENT_REWINDS)
