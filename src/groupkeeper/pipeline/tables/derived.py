"""Tables derived from the history: the current state, past events, and what needs attention."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.log import ASSIGNED, COMMITS
from groupkeeper.pipeline.tables.schema import CLUSTER, GROUP, PARTITION, TIME, Column, Table

_PARTITION_OR_GROUP = (
    Column("topic", pa.string(), "the topic; null: the group as a whole"),
    Column("partition", pa.int32(), "its partition; null: the group as a whole"),
)
_COMMITTED_OFFSET = Column("committed_offset", pa.int64(), "the next offset to read")
_LEADER_EPOCH = Column("leader_epoch", pa.int32(), "leader epoch of the last record read; null: not given")
_METADATA = Column("metadata", pa.string(), "the client's text beside the offset")
_COMMIT_PLACE = (
    Column("log_partition", pa.int32(), "partition of __consumer_offsets that holds the commit; null: none"),
    Column("log_offset", pa.int64(), "offset of the commit there; null as above"),
)
_LOG_ENDS = (
    Column("log_start_offset", pa.int64(), "first offset of the partition; null: the partition could not be queried"),
    Column("last_stable_offset", pa.int64(), "first offset of an open transaction, else the end; null as above"),
    Column("log_end_offset", pa.int64(), "the partition's end; null as above"),
)
_MEASURED_TIME = Column(
    "measured_time",
    TIME,
    "the instant of the measurement, one for each cluster; null: the cluster could not be queried",
)

_BY_PARTITION = ("cluster", "topic", "partition")
_BY_COMMITTED = ("cluster", "group_id", "topic", "partition")

CURRENT_OFFSETS = Table(
    "current_offsets",
    "group and partition that has a committed offset",
    _BY_COMMITTED,
    (
        *GROUP,
        *PARTITION,
        _COMMITTED_OFFSET,
        _LEADER_EPOCH,
        Column("topic_id", pa.string(), "id of the topic; null: not given"),
        _METADATA,
        Column("commit_time", TIME, "when it was committed"),
        Column("expire_time", TIME, "the expiry time that the commit itself set; null: the broker's retention decides"),
        *_COMMIT_PLACE,
    ),
)

FRESHNESS = Table(
    "freshness",
    "partition of __consumer_offsets in the clusters that were queried: how far its history was read",
    ("cluster", "log_partition"),
    (
        CLUSTER,
        Column("log_partition", pa.int32(), "partition of __consumer_offsets"),
        Column("read_to", pa.int64(), "first offset that is not in the tables yet"),
        Column("last_stable_offset", pa.int64(), "first offset of an open transaction, else the end; null: not known"),
        Column("log_end_offset", pa.int64(), "its end; null: not known"),
        Column(
            "unread_time",
            TIME,
            "when the first record that is not in the tables was written; null: none is missing, or not known",
        ),
        Column(
            "behind_ms", pa.int64(), "how long before measured_time that was; 0: nothing is missing; null: not known"
        ),
        _MEASURED_TIME,
        Column(
            "problem", pa.string(), "why the latest commits are not known; null: at most the last minute's are missing"
        ),
    ),
)

GROUPS = Table(
    "groups",
    "group that exists: it has metadata, members or committed offsets",
    ("cluster", "group_id"),
    (
        *GROUP,
        Column(
            "group_type",
            pa.string(),
            "classic, consumer, share, streams; simple: offsets only, without members; spark: a query",
        ),
        Column("group_state", pa.string(), "Empty, Stable, … as the log shows it; Unknown where it does not"),
        Column("protocol_type", pa.string(), "classic: consumer, connect …; otherwise the group's type"),
        Column("protocol", pa.string(), "classic: the assignor; null otherwise"),
        Column("generation", pa.int32(), "classic: the generation; null otherwise"),
        Column("group_epoch", pa.int32(), "the group's epoch; null for classic groups"),
        Column("assignment_epoch", pa.int32(), "epoch of the target assignment; null for classic groups"),
        Column("members", pa.int32(), "number of members"),
        Column("topics", pa.int32(), "number of topics with a committed offset"),
        Column("partitions", pa.int32(), "number of partitions with a committed offset"),
        Column("last_commit_time", TIME, "the latest commit; null: none in the log"),
        Column(
            "last_rebalance_time",
            TIME,
            "the latest completed rebalance or new target assignment; null: none in the log",
        ),
    ),
)

MEMBERS = Table(
    "members",
    "member of a group",
    ("cluster", "group_id", "member_id"),
    (
        *GROUP,
        Column("group_type", pa.string(), "classic, consumer, share, streams"),
        Column("member_id", pa.string(), "the member"),
        Column("instance_id", pa.string(), "the instance id of a static member; null for a dynamic member"),
        Column("client_id", pa.string(), "the client id"),
        Column("client_host", pa.string(), "the host"),
        Column("rack_id", pa.string(), "the rack; null: not given"),
        Column("member_epoch", pa.int32(), "the member's epoch; null for classic groups"),
        Column("member_state", pa.string(), "STABLE …; null for classic groups"),
        Column("rebalance_timeout_ms", pa.int32(), "the rebalance timeout; null: the group's type has none"),
        Column("subscribed_topics", pa.list_(pa.string()), "topics subscribed to by name; null: not known"),
        Column("subscribed_regex", pa.string(), "the pattern subscribed to; null: none"),
        Column("assigned", ASSIGNED, "the partitions assigned to the member now; empty: none"),
        Column("target", ASSIGNED, "the member's target assignment; null for classic groups"),
    ),
)

GROUP_EVENTS = Table(
    "group_events",
    "event in the life of a group",
    (*COMMITS.key, "event", "member_id"),
    (
        *GROUP,
        Column("event_time", TIME, "when it happened"),
        Column("event", pa.string(), "created, joined, left, rebalanced, epoch_bumped, emptied, deleted, migrated"),
        Column("member_id", pa.string(), "the member, for joined and left; empty for other events"),
        Column("instance_id", pa.string(), "its instance id; null for dynamic members"),
        Column("client_id", pa.string(), "its client id; null where the event is about the group"),
        Column("client_host", pa.string(), "its host; null where the event is about the group"),
        Column("generation", pa.int32(), "classic: the generation after the event; null otherwise"),
        Column("group_epoch", pa.int32(), "the group's epoch after the event; null for classic groups"),
        Column("members", pa.int32(), "members after the event; null: not known"),
        Column("log_partition", pa.int32(), "partition of __consumer_offsets that shows it"),
        Column("log_offset", pa.int64(), "offset of the record that shows it"),
    ),
    day_of="event_time",
)

RATES = Table(
    "rates",
    "minute, cluster and group in which something happened; group_id null: the whole cluster. Add rows of the same "
    "minute up: records that came more than ten minutes late are counted in another row",
    ("cluster", "group_id", "minute"),
    (
        *GROUP,
        Column("minute", TIME, "start of the minute"),
        Column("offset_commits", pa.int64(), "offsets committed (KIP-496: OffsetCommitRate)"),
        Column("offset_expirations", pa.int64(), "offsets that expired (OffsetExpirationRate)"),
        Column(
            "offset_deletions",
            pa.int64(),
            "offsets deleted by an operator (OffsetDeletionRate); also those deleted with their topic, which the meter "
            "does not count and the log does not distinguish",
        ),
        Column(
            "completed_rebalances",
            pa.int64(),
            "rebalances completed (CompletedRebalanceRate); for groups that are not classic: new target assignments",
        ),
        Column("unexplained_removals", pa.int64(), "offsets removed where the log does not show whether they expired"),
        Column(
            "removed_with_group",
            pa.int64(),
            "offsets deleted together with their group, which none of the meters counts",
        ),
    ),
    day_of="minute",
)

LOG_OFFSETS = Table(
    "log_offsets",
    "partition for which a group has a committed offset, or which a member is assigned, as its cluster reports it",
    _BY_PARTITION,
    (
        CLUSTER,
        *PARTITION,
        Column("topic_id", pa.string(), "id of the topic that has this name now; null: not known"),
        *_LOG_ENDS,
        Column(
            "records",
            pa.list_(
                pa.struct(
                    [
                        ("offset", pa.int64()),
                        ("is_there", pa.bool_()),
                        ("time", TIME),
                        ("is_committed_there", pa.bool_()),
                        ("committed_time", TIME),
                    ]
                )
            ),
            "for each committed offset the first record at or after it: whether there is one, and its timestamp "
            "(null: it has none); then the same for the first record before the LSO that was not aborted; offsets "
            "whose records could not be read are missing",
        ),
        Column(
            "retention_ms",
            pa.int64(),
            "age at which the topic's records may be deleted; −1: they are not deleted by age; null: no group has "
            "records to read in it, or it could not be queried",
        ),
        _MEASURED_TIME,
        Column("is_deleted", pa.bool_(), "whether the partition does not exist in the cluster"),
        Column(
            "problem",
            pa.string(),
            "why the partition could not be queried, or why a record could not be read; null: no problem",
        ),
    ),
)

LAG = Table(
    "lag",
    "group and partition that has a committed offset",
    _BY_COMMITTED,
    (
        *GROUP,
        *PARTITION,
        _COMMITTED_OFFSET,
        *_LOG_ENDS,
        Column(
            "lag",
            pa.int64(),
            "records that a reader of everything still has to read (all records if the offset is below 0); null: not "
            "known; 0 with a problem: the offset is past the end of the log, and auto.offset.reset decides what "
            "follows",
        ),
        Column(
            "committed_lag",
            pa.int64(),
            "records up to the LSO that a reader of committed records still has to read; null as lag",
        ),
        Column(
            "lag_ms",
            pa.int64(),
            "age of the oldest record that a reader of everything still has to read; 0: none; null: unknown",
        ),
        Column("lag_basis", pa.string(), "how lag_ms is known: exact, interpolated, unknown"),
        Column("commit_time", TIME, "when the offset was committed"),
        _MEASURED_TIME,
        Column(
            "committed_lag_ms",
            pa.int64(),
            "as lag_ms, for a reader of committed records: 0 if every record up to the LSO was read or aborted",
        ),
        Column(
            "problem",
            pa.string(),
            "why lag or lag_ms is not known, or that the offset is past the end of the log; null: no problem",
        ),
        Column(
            "measures",
            pa.list_(pa.struct([("time", TIME), ("committed_offset", pa.int64()), ("log_end_offset", pa.int64())])),
            "the last measurements, one per minute, 11 at most; the list starts over when the group is moved to "
            "another offset; offsets are null where lag was not known",
        ),
        Column(
            "produced_per_s",
            pa.float64(),
            "records produced per second since the first of the measures; null: it is less than 30 s old",
        ),
        Column("consumed_per_s", pa.float64(), "records per second that the group has read since; null as above"),
        Column(
            "trend",
            pa.string(),
            "growing, shrinking, or steady: the rates differ by at most a twentieth of the larger one, or nothing is "
            "left to read; null as above",
        ),
        Column(
            "catch_up_ms",
            pa.int64(),
            "time until lag is 0 if both rates stay as they are; 0: lag is 0 now; null: never, or not known",
        ),
        Column(
            "retention_margin_ms",
            pa.int64(),
            "time until retention.ms lets the oldest unread record that was not aborted be deleted; below 0: it may "
            "be deleted at any moment; null: there is no such record, records are not deleted by age, or not known",
        ),
        Column(
            "is_waiting",
            pa.bool_(),
            "whether a record waits to be read: aborted records and markers of transactions do not; null: not known",
        ),
    ),
)

LAG_HISTORY = Table(
    "lag_history",
    "group, partition and minute in which a measured value changed: a row holds until the next one. Each hour with a "
    "measurement has at least one row. After 7 days, only the row with the most lag is kept for each hour",
    (*_BY_COMMITTED, "measured_time"),
    (
        *GROUP,
        *PARTITION,
        Column("measured_time", TIME, "the instant"),
        _COMMITTED_OFFSET,
        Column("log_end_offset", pa.int64(), "the partition's end; null: the partition could not be queried"),
        Column("lag", pa.int64(), "records still to read; null: not known, see problem"),
        Column(
            "committed_lag", pa.int64(), "records that a reader of committed records still has to read; null as lag"
        ),
        Column("lag_ms", pa.int64(), "age of the oldest record still to read; 0: none; null: unknown"),
        Column("problem", pa.string(), "why lag or lag_ms is not known; null: both are known"),
    ),
    day_of="measured_time",
    is_measured=True,
)

LOG_ENDS = Table(
    "log_ends",
    "partition (one that a group reads, or one of __consumer_offsets) and minute in which its log changed: a row "
    "holds until the next one. Each hour with a measurement has at least one row. After 7 days, only the last row is "
    "kept for each hour",
    (*_BY_PARTITION, "measured_time"),
    (
        CLUSTER,
        *PARTITION,
        Column("measured_time", TIME, "the instant"),
        Column("log_start_offset", pa.int64(), "first offset of the partition; null: not requested"),
        Column("last_stable_offset", pa.int64(), "first offset of an open transaction, else the end"),
        Column("log_end_offset", pa.int64(), "the partition's end"),
    ),
    day_of="measured_time",
    is_measured=True,
)

REWINDS = Table(
    "rewinds",
    "commit that moves an offset back, or ahead although no member read the records (a reset, an offset beyond the "
    "log)",
    COMMITS.key,
    (
        *GROUP,
        *PARTITION,
        Column("rewind_time", TIME, "when it was committed"),
        Column("from_offset", pa.int64(), "the offset before"),
        Column("to_offset", pa.int64(), "the offset after"),
        Column("records", pa.int64(), "records read again (below 0: skipped); null: more than a BIGINT holds"),
        Column("direction", pa.string(), "back or ahead"),
        Column("was_empty", pa.bool_(), "whether the group had no members then, as in a reset; null: not known"),
        *_COMMIT_PLACE,
        Column("topic_id", pa.string(), "id of the topic; null: the commit does not have it"),
        Column("change_id", pa.string(), "id of the change in groupkeeper's journal; null: no journal has it"),
        Column("change_kind", pa.string(), "the kind of the change: reset, undo, clone, sweep; null: no change_id"),
        Column("changed_by", pa.string(), "the user, with server and principal if known; null: no change_id"),
        Column("changed_on", pa.string(), "host on which it was made; null: no change_id, or hosts are not kept"),
        Column("command", pa.string(), "the command, without secrets; null: no change_id"),
        Column("undoes", pa.string(), "for an undo: id of the change that it undoes; null for all other changes"),
    ),
    day_of="rewind_time",
)

STALE = Table(
    "stale",
    "group or committed offset that seems unused, and why",
    ("cluster", "group_id", "topic", "partition", "reason"),
    (
        *GROUP,
        *_PARTITION_OR_GROUP,
        Column("reason", pa.string(), "idle, topic_deleted, expiring, below_log_start"),
        Column("idle_days", pa.float64(), "days since the last commit"),
        Column(
            "expires_time",
            TIME,
            "when it will expire at the broker; null: not known, or never while the group has members",
        ),
        Column(
            "lost",
            pa.int64(),
            "for below_log_start: records that were deleted before the group read them; null otherwise",
        ),
    ),
)

STATUS = Table(
    "status",
    "group and partition that has a committed offset, and its group (topic null)",
    _BY_COMMITTED,
    (
        *GROUP,
        *_PARTITION_OR_GROUP,
        Column(
            "status",
            pa.string(),
            "ok, abandoned, unknown, unstable, lagging, rewound, stalled, stopped, losing; partitions that members are "
            "assigned count for the group also where nothing is committed",
        ),
        Column(
            "since_time",
            TIME,
            "since when; null for ok and unknown, and where no member reads the topic; for a group: the earliest time "
            "among its partitions with that "
            "status; for unstable: the first rebalance that the rule counts",
        ),
        Column(
            "lag",
            pa.int64(),
            "records still to read; null: not known; for a group: the sum of all known lags, at most 2^63 − 1",
        ),
        Column(
            "rule",
            pa.string(),
            "the rule that decided, as a sentence; for a group: the rule of the partition that has waited longest "
            "among those with that status; the sentence names the partition",
        ),
        Column(
            "lag_ms",
            pa.int64(),
            "age of the oldest record still to read; null: not known; for a group: the oldest over all its "
            "partitions, whatever their status",
        ),
    ),
)

OFFSETS_AS_OF = Table(
    "offsets_as_of",
    "group and partition that had a committed offset at the given time",
    _BY_COMMITTED,
    (
        *GROUP,
        *PARTITION,
        Column("committed_offset", pa.int64(), "the offset committed then"),
        Column("commit_time", TIME, "when that offset was committed"),
        _LEADER_EPOCH,
        _METADATA,
        Column("topic_id", pa.string(), "id that the topic had; null: the commit does not have it"),
    ),
)

SCAN_TIME = Table(
    "scan_time",
    "partition that was scanned",
    _BY_PARTITION,
    (
        CLUSTER,
        *PARTITION,
        Column("offset", pa.int64(), "first offset with a timestamp at or after the given time; −1: none"),
        Column("record_time", TIME, "timestamp of that record; null: none"),
        Column("end_offset", pa.int64(), "where the scan ends: the last stable offset when it was planned"),
    ),
)

QUALITY = Table(
    "quality",
    "check of the last run",
    ("cluster", "table_name", "check_name"),
    (
        Column("cluster", pa.string(), "name of the cluster; null: the check covers all clusters"),
        Column("table_name", pa.string(), "the table; null: the check covers the directory"),
        Column("check_name", pa.string(), "keys, gaps, counts, rejects or freshness"),
        Column("result", pa.string(), "ok, failed, or unknown if the run lacked inputs of the check"),
        Column("found", pa.int64(), "how many rows, offsets or partitions failed the check"),
        Column("detail", pa.string(), "the finding, as a sentence"),
        Column("measured_time", TIME, "the instant"),
    ),
)
"""Covers only the rows that the run read and built; `groupkeeper pipeline quality` checks all rows."""
