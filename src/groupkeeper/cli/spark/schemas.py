"""The rows that `groupkeeper spark` reports, column by column: the reference is written from here."""

from __future__ import annotations

from groupkeeper.cli.framework.reports import PARTITION, Column, Schema

QUERIES_LAG = Schema(
    "spark_lag",
    "offsets",
    [
        Column("query", "the name given with the checkpoint, else that of its folder"),
        *PARTITION,
        Column(
            "next_offset",
            "the next offset to read, after the last completed batch; before the first batch: where the query began",
        ),
        Column("running_to", "where the planned batch that is not yet completed will end; null: there is none"),
        Column("log_start_offset", "of the oldest record", in_table=False),
        Column("log_end_offset", "after the newest record"),
        Column(
            "lag", "offsets from the next offset to read to the log's end (or the last stable offset); null: not known"
        ),
        Column("lost", "offsets of the lag before the log start: their records were removed unread; null: not known"),
        Column("status", "as of `groups offsets`"),
        Column("batch", "the last completed batch; null: no batch is completed"),
        Column("batch_time", "when it was completed; null: no batch is completed"),
        Column("query_id", "the query's id; null: the checkpoint has none", in_table=False),
    ],
)

STARTING_OFFSETS = Schema(
    "starting_offsets",
    "offsets",
    [
        *PARTITION,
        Column("offset", "where to start; -2: the earliest, -1: the latest"),
        Column("note", "why it differs from the requested offset; null: it doesn't"),
    ],
)
