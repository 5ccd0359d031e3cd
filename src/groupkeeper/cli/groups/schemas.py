"""The rows that `groupkeeper groups` reports, column by column: the reference is written from here."""

from __future__ import annotations

from groupkeeper.cli.framework.reports import CLUSTER, GROUP, PARTITION, Column, Schema

_TRENDS = (
    Column("produced_per_s", "offsets produced per second between two polls; null unless `--trend`, or not known",
           in_table=False),
    Column("consumed_per_s", "offsets that the group committed per second; null as above", in_table=False),
    Column("trend", "`growing`, `shrinking` or `steady`: the two rates differ by at most a twentieth; null as above",
           in_table=False),
    Column("catch_up_ms", "until the lag is 0, if both rates stay; null: never, or as above", in_table=False),
)  # fmt: skip

_STATUS = (
    Column("group_status", "`ok`, `abandoned`, `unknown`, `lagging` or `losing`, as the glossary has them; null unless "
           "`--with-status`", in_table=False),
    Column("reason", "why the group has this status, as its worst partition shows; null: no reason, or without "
           "`--with-status`", in_table=False),
    Column("not_judged", "statuses that could not be judged, each with the missing fact; null: none, or without "
           "`--with-status`", in_table=False),
)  # fmt: skip

GROUPS = Schema(
    "group_list",
    "groups",
    [
        GROUP,
        Column("type", "`Classic`, `Consumer`, `Share` or `Streams`; null: the broker is too old to report it"),
        Column("state", "null: the broker is too old to report it"),
        *_STATUS,
        CLUSTER,
    ],
)

OFFSETS = Schema(
    "offsets", "offsets",
    [
        GROUP,
        *PARTITION,
        Column("committed_offset", "the offset of the next record to read; null: nothing is committed. "
               "In a share group: the start offset, before which every record is done; null: no member has read the "
               "partition yet"),
        Column("log_start_offset", "of the oldest record", in_table=False),
        Column("log_end_offset", "after the newest record", goes=2),
        Column("last_stable_offset", "null unless `--lag-to lso`", in_table=False),
        Column("lag", "offsets from the commit to the log's end (or the last stable offset), never negative; null: "
               "nothing is committed, or the end isn't known. In a share group: the broker's count of the records "
               "from the start offset that are not done, including those in flight"),
        Column("done_ahead", "of a share group: records after the start offset that are done already; null: not "
               "known, or no share group", in_table=False),
        Column("lost", "offsets of the lag before the log start: their records were removed unread; null: not known",
               goes=3),
        Column("status", "see below"),
        Column("member_id", "the member that the partition is assigned to; null: none, or several of a share group",
               goes=5),
        Column("client_id", "the member's", goes=1),
        Column("host", "the member's", in_table=False),
        Column("leader_epoch", "stored with the commit; null: none", in_table=False),
        Column("metadata", "stored with the commit", in_table=False),
        Column("readable", "offsets that can still be read: of the lag, or of the log where nothing is committed; "
               "null: not known", in_table=False),
        *_STATUS,
        *_TRENDS,
        CLUSTER,
    ],
)  # fmt: skip

STATUSES = {
    "ok": "all is known, and the committed offset is within the log",
    "uncommitted": "nothing is committed yet, and a member is assigned the partition; or it was added after a group "
    "without members had committed in all others, and has records",
    "below_log_start": "the log now starts after the committed offset: `lost` records were removed unread",
    "beyond_log_end": "the committed offset is past the end of the log, which was truncated or recreated; the lag is 0",
    "no_leader": "no broker leads the partition now",
    "deleted": "the topic or partition no longer exists",
    "not_authorized": "you may not describe the topic",
    "unknown": "the log's ends are not known, for another reason: it is among the problems",
}

_SUMS = (
    Column("partitions", "how many", goes=1),
    Column("uncommitted_partitions", "the number of them without a committed offset", goes=2),
    Column("unknown", "the number of partitions with a committed offset but without a known lag", goes=4),
    Column("lag", "the sum of the known lags; null: no lag is known"),
    Column("max_lag", "the largest lag of a partition", goes=3),
    Column("lost", "the sum; null: not known", goes=1),
    Column(
        "uncommitted", "offsets in the logs of partitions without a commit, which `lag` leaves out; null: not known"
    ),
    Column(
        "readable",
        "offsets of `lag` and `uncommitted` that the logs still have; null: both are unknown",
        in_table=False,
    ),
    *_STATUS,
    *_TRENDS,
    CLUSTER,
)

GROUP_SUMS = Schema("lag_by_group", "lag_by_group", [GROUP, *_SUMS])

TOPIC_SUMS = Schema("lag_by_topic", "lag_by_topic", [GROUP, Column("topic", ""), *_SUMS])

MEMBERS = Schema(
    "members",
    "members",
    [
        GROUP,
        Column("member_id", "", goes=5),
        Column("instance_id", "null: the member isn't static", goes=3),
        Column("client_id", ""),
        Column("host", "", goes=2),
        Column("epoch", "null in a classic group", goes=1),
        Column("partitions", "how many are assigned to it; null: that cannot be read", in_table=False),
        Column(
            "assignment",
            "a list of `{topic, partition}`; in a streams group those of its active tasks; null: it cannot be read",
        ),
        Column("target_assignment", "its target assignment; null in a classic group", goes=6),
        Column("rack_id", "", in_table=False),
        Column("upgraded", "whether it uses the consumer protocol; null: not known", in_table=False),
        CLUSTER,
    ],
)

STATES = Schema(
    "group_states",
    "groups",
    [
        GROUP,
        Column("type", "`Classic`, `Consumer`, `Share` or `Streams`"),
        Column("state", ""),
        Column("members", "how many"),
        Column("assignor", "null: the members have not agreed on one", goes=2),
        Column("coordinator", "`host:port`", goes=3),
        Column("group_epoch", "null in a classic group", goes=1),
        Column("target_epoch", "null in a classic group", goes=4),
        *_STATUS,
        CLUSTER,
        Column("dead_letter_queue", "a share group's topic for records that it gives up; null: none", in_table=False),
        Column("dead_letters", "how many records are in that topic; null: not known", in_table=False),
    ],
)

TOPOLOGY = Schema(
    "topology",
    "nodes",
    [
        GROUP,
        Column("subtopology", "the part of the topology; null: the node fills a global store", goes=1),
        Column("node", "its name"),
        Column("kind", "`source`, `processor` or `sink`", goes=4),
        Column(
            "topics",
            "the topics that a source reads or a sink writes, separated by `, `; null: the application computes them",
        ),
        Column("stores", "the state stores of a processor; null: none", goes=3),
        Column("successors", "the nodes that get its records; null: none", goes=2),
        CLUSTER,
    ],
)

NEW_OFFSETS = Schema(
    "reset",
    "offsets",
    [
        GROUP,
        *PARTITION,
        Column("committed_offset", "the committed offset before; null: nothing is committed"),
        Column("new_offset", ""),
        Column("note", "why it differs from the requested offset; null: it doesn't", goes=2),
        Column("skipped", "how many offsets are skipped; null: not known"),
        Column("replayed", "how many offsets are read again; null: not known"),
        Column(
            "before_time", "of the record at the offset before; null: there is none, or it isn't known", in_table=False
        ),
        Column("after_time", "of the record at the new offset; null: there is none, or it isn't known", goes=1),
        Column("result", "`applied`, `would be applied`, or `already`: there was nothing to change"),
    ],
)

DELETED_OFFSETS = Schema(
    "deleted_offsets",
    "deleted",
    [
        GROUP,
        *PARTITION,
        Column("deleted_offset", "the committed offset before"),
        Column("result", "`deleted`, or `would be deleted`"),
    ],
)

DELETED_GROUPS = Schema(
    "deleted_groups",
    "deleted",
    [
        GROUP,
        Column("offsets", "how many committed offsets are deleted with it; null: not known"),
        Column("result", "`deleted`, or `would be deleted`"),
    ],
)
