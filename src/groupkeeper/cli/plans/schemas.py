"""The rows that the commands on plans and the journal report, column by column."""

from __future__ import annotations

from groupkeeper.cli.framework.reports import CLUSTER, GROUP, PARTITION, Column, Schema

CHANGES = Schema(
    "plan",
    "changes",
    [
        GROUP,
        *PARTITION,
        Column("before", "the committed offset; null: nothing is committed"),
        Column("after", "the planned offset; null: it is deleted"),
        Column(
            "skipped",
            "the number of offsets skipped, counted from the offset before; in a clone from another cluster, the "
            "greatest possible number of skipped records that the source group has not read; null: not known",
            goes=1,
        ),
        Column("replayed", "the number of offsets read again, counted likewise; null: not known", goes=1),
        Column("before_time", "of the record at the offset before; null: there is none, or it isn't known", goes=5),
        Column("after_time", "of the record at the planned offset; null: there is none, or it isn't known", goes=4),
        Column("log_start_offset", "where the log begins", goes=6),
        Column("log_end_offset", "where the log ends", goes=7),
        Column("state", "of the group", in_table=False),
        Column(
            "certainty",
            "how the offset was translated from another log: `identity`, `header`, `sync`, `content` (exact), "
            "`bounded`, or `time`; "
            "null: it is not from another log",
            goes=2,
        ),
        Column("why", "", goes=3),
    ],
)

OUTCOMES = Schema(
    "outcome",
    "changes",
    [
        GROUP,
        *PARTITION,
        Column("before", "the committed offset before; null: nothing was committed"),
        Column("after", "the committed offset afterwards, as read back, or as it would be; null: nothing is committed"),
        Column("result", "`applied`, `would be applied`, or `already`: there was nothing to change"),
    ],
)

HISTORY = Schema(
    "history",
    "changes",
    [
        Column("id", "of the change: `groupkeeper undo ID` takes it back"),
        Column("time", ""),
        Column("user", "who made it"),
        Column("host", "the machine", in_table=False),
        Column("principal", "the principal of that user for the brokers; null: not known", in_table=False),
        Column("cluster_id", "of the cluster; null: not known", goes=3),
        Column("kind", "`reset`, `undo`, `delete-offsets`, ..."),
        Column("groups", "how many"),
        Column("partitions", "of all groups together", goes=1),
        Column("names", "of the first groups, or of the transaction"),
        Column("result", "`applied`, `partly`, `refused`, `undone`, or `unfinished`: no outcome is known"),
        Column("undone_by", "the id of the change that took it back; null: none did", goes=2),
        Column("command", "how it was made, without secrets", in_table=False),
        CLUSTER,
    ],
)

RECORDED = Schema(
    "recorded",
    "changes",
    [
        Column("group", "the group's id; null: it is of a transaction"),
        Column("transaction", "the name of the aborted transaction; null: it is of a group", goes=1),
        *PARTITION,
        Column("before", "the committed offset before; null: nothing was committed"),
        Column("after", "the offset to commit; null: it was to be deleted"),
        Column("error", "why that failed; null: no failure is known"),
    ],
)
