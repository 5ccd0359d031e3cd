"""Tables of the records of the offsets topic, one row for each."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.schema import TIME, Column, Table

ASSIGNED = pa.list_(
    pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partitions", pa.list_(pa.int32()))])
)
"""Partitions by topic. Groups of the classic protocol give the topic's name, others its id; the other field is null."""

MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rebalance_timeout_ms", pa.int32()),
        ("session_timeout_ms", pa.int32()),
        ("subscribed_topics", pa.list_(pa.string())),
        ("assigned", ASSIGNED),
    ]
)
"""A member within a classic group's record. The last two are null where the group's protocol is not "consumer"."""

GROUP_RECORD = (
    Column(
        "record_name",
        pa.string(),
        "Kafka's name of the record: GroupMetadata, ConsumerGroupMemberMetadata …; "
        "EndTransaction for a transaction's marker; null for unknown types",
    ),
    Column("group_type", pa.string(), "classic, consumer, share or streams; null for markers and unknown types"),
    Column("member_id", pa.string(), "the member that the record is about; null when it is about the group"),
    Column("key_json", pa.string(), "the key as Apache Kafka's tools print it; null for markers and unknown types"),
    Column(
        "value_json",
        pa.string(),
        "the value in its version, as Apache Kafka's tools print it; null for tombstones and unknown types",
    ),
    Column("protocol_type", pa.string(), "classic: consumer, connect …"),
    Column("protocol", pa.string(), "classic: the assignor in use; null before the first rebalance"),
    Column("leader", pa.string(), "classic: member id of the leader"),
    Column("generation", pa.int32(), "classic: the generation"),
    Column(
        "state_timestamp_ms",
        pa.int64(),
        "when the classic group entered its state, or when the target assignment was made",
    ),
    Column("group_epoch", pa.int32(), "the group's epoch; null for classic groups"),
    Column("assignment_epoch", pa.int32(), "epoch of the target assignment"),
    Column("member_epoch", pa.int32(), "the member's epoch"),
    Column("previous_member_epoch", pa.int32(), "the member's epoch before"),
    Column("member_state", pa.string(), "STABLE, UNREVOKED_PARTITIONS …; the number if the state has no name"),
    Column("instance_id", pa.string(), "the instance id of a static member; null for a dynamic member"),
    Column("rack_id", pa.string(), "the member's rack"),
    Column("client_id", pa.string(), "the member's client id"),
    Column("client_host", pa.string(), "the member's host"),
    Column("rebalance_timeout_ms", pa.int32(), "the member's rebalance timeout"),
    Column("server_assignor", pa.string(), "the assignor that the member prefers"),
    Column("subscribed_topics", pa.list_(pa.string()), "topics that the member subscribes to by name"),
    Column("subscribed_regex", pa.string(), "the pattern that the member subscribes to; null or empty: none"),
    Column(
        "assigned",
        ASSIGNED,
        "the member's assignment (CurrentMemberAssignment), or its target assignment (TargetAssignmentMember)",
    ),
    Column("pending_revocation", ASSIGNED, "the partitions that the member must revoke first"),
    Column("members", pa.list_(MEMBER), "classic: all members of the group"),
)
"""Columns of a record that is not an offset commit. A field that the record's type doesn't have is null."""

REJECTED = (
    Column("raw_bytes", pa.int64(), "length of key and value, where the record is not decoded"),
    Column("raw_sha256", pa.string(), "SHA-256 of key and value, in hexadecimal; null as raw_bytes"),
)
"""Columns of a record that could not be decoded; they are kept even where its bytes must not be kept."""

PLACE = (
    Column("cluster", pa.string(), "name of the cluster, as given to the job; its cluster id otherwise"),
    Column("log_partition", pa.int32(), "partition of __consumer_offsets that holds the record"),
    Column("log_offset", pa.int64(), "the record's offset there"),
)

_BY_PLACE = tuple(column.name for column in PLACE)
_LOG_TIME = Column("log_time", TIME, "when the broker or the coordinator wrote the record")
_COMMIT = (
    Column("group_id", pa.string(), "the group; null for markers, and where the key is not known"),
    Column("topic", pa.string(), "the topic whose offset was committed"),
    Column("partition", pa.int32(), "its partition"),
    Column("committed_offset", pa.int64(), "the next offset to read; null for a tombstone"),
    Column("leader_epoch", pa.int32(), "leader epoch of the last record read; null: not given"),
    Column("topic_id", pa.string(), "id of the topic, as Kafka prints it; null: not given (transactions; before 4.1)"),
    Column("metadata", pa.string(), "the client's text beside the offset; null for a tombstone"),
)

DECODED = Table(
    "decoded",
    "record of the offsets topic",
    _BY_PLACE,
    (
        *PLACE,
        Column("log_timestamp_ms", pa.int64(), "the record's timestamp, −1 for none"),
        Column("producer_id", pa.int64(), "the transaction's producer; null outside of transactions"),
        Column(
            "record_type",
            pa.int16(),
            "type of the key: 0 and 1 are offset commits; null for markers and keys without a type",
        ),
        Column("value_version", pa.int16(), "version of the value; null for tombstones and markers"),
        Column("is_tombstone", pa.bool_(), "whether the record removes the key"),
        *_COMMIT,
        Column(
            "commit_timestamp_ms", pa.int64(), "when the offset was committed, from its value; null for a tombstone"
        ),
        Column(
            "expire_timestamp_ms",
            pa.int64(),
            "when the offset expires, in the only value version that has this field (1); null otherwise",
        ),
        Column(
            "group_record",
            pa.string(),
            "the record when it is no offset commit, as a JSON object of the columns of `group_records` from "
            "`record_name` to `members` that are not null, or, when it could not be decoded, of `raw_bytes` and "
            "`raw_sha256`; null for offset commits",
        ),
        Column("raw_key", pa.binary(), "the key of a record that could not be decoded; null otherwise"),
        Column("raw_value", pa.binary(), "its value; null also for a tombstone"),
        Column(
            "problem",
            pa.string(),
            "why the record could not be decoded (unknown type or version, malformed); null otherwise",
        ),
    ),
)
"""The rows that the source returns with rows=decoded; the tables are built from them. Times are as in the log, in
milliseconds."""

COMMITS = Table(
    "commits",
    "offset commit, or its deletion, in the order of the log; history, rows are only appended",
    _BY_PLACE,
    (
        *PLACE,
        _LOG_TIME,
        *_COMMIT,
        Column(
            "commit_time",
            TIME,
            "when the offset was committed; of a commit without a valid time, when its record was written; null for a "
            "tombstone",
        ),
        Column("expire_time", TIME, "the expiry time that the commit itself set; null: the broker's retention decides"),
        Column("is_tombstone", pa.bool_(), "whether the record removes the offset"),
        Column(
            "removed_by",
            pa.string(),
            "why a tombstone was written: expired, deleted, or unknown if the log does not show it; null for commits",
        ),
        Column("is_transactional", pa.bool_(), "whether it was committed within a (committed) transaction"),
        Column("producer_id", pa.int64(), "the transaction's producer; null outside of transactions"),
    ),
    day_of="log_time",
)

GROUP_RECORDS = Table(
    "group_records",
    "record of the offsets topic that is not an offset commit, including records of unknown types; history",
    _BY_PLACE,
    (
        *PLACE,
        _LOG_TIME,
        Column("record_type", pa.int16(), "type of the key; null for markers"),
        Column("value_version", pa.int16(), "version of the value; null for tombstones and markers"),
        Column("is_tombstone", pa.bool_(), "whether the record removes the key"),
        Column("group_id", pa.string(), "the group; null for markers and unknown types"),
        *GROUP_RECORD,
        Column("producer_id", pa.int64(), "a marker's producer; null otherwise"),
        Column("raw_key", pa.binary(), "the key, where the record is not decoded"),
        Column("raw_value", pa.binary(), "the value, where the record is not decoded"),
        Column("problem", pa.string(), "why the record is not decoded; null when it is"),
        *REJECTED,
    ),
    day_of="log_time",
)

REJECTS = Table(
    "rejects",
    "record of the offsets topic that could not be decoded",
    _BY_PLACE,
    (
        *PLACE,
        Column("log_time", TIME, "when the record was written, by its timestamp; null: it has none"),
        Column("record_type", pa.int16(), "type of the key; null: the key is too short"),
        Column("value_version", pa.int16(), "version of the value; null: it has none"),
        Column("reason", pa.string(), "why it could not be decoded: unknown type or version, malformed"),
        Column("raw_bytes", pa.int64(), "length of key and value"),
        Column("raw_sha256", pa.string(), "SHA-256 of key and value, in hexadecimal"),
        Column("first_time", TIME, "when a run first saw it, by the clock of the machine that ran it"),
    ),
    is_carried=True,
)
