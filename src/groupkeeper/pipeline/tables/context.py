"""Tables about the surroundings of groups: topics with their sizes, readers of topics, owners, open transactions."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.schema import CLUSTER, GROUP, PARTITION, TIME, Column, Table

TOPICS = Table(
    "topics",
    "topic of a cluster, as last measured",
    ("cluster", "topic"),
    (
        CLUSTER,
        Column("topic", pa.string(), "the topic"),
        Column("topic_id", pa.string(), "its id; null: the brokers are too old to have ids"),
        Column("is_internal", pa.bool_(), "whether it is Kafka's own; null: not known"),
        Column("partitions", pa.int32(), "number of partitions"),
        Column(
            "replication_factor",
            pa.int32(),
            "replicas per partition, the smallest number among its partitions; null: not known",
        ),
        Column("cleanup_policy", pa.string(), "delete, compact, or both; null: it could not be queried"),
        Column("retention_ms", pa.int64(), "retention.ms; −1: unlimited; null as above"),
        Column("retention_bytes", pa.int64(), "retention.bytes, for each partition; −1: unlimited; null as above"),
        Column("records", pa.int64(), "offsets in its logs; null: not known for some partition"),
        Column(
            "log_bytes",
            pa.int64(),
            "size of its logs, counting the largest replica of each; null: it could not be queried",
        ),
        Column("disk_bytes", pa.int64(), "size of all replicas; null as above"),
        Column("groups", pa.int32(), "groups that have a committed offset in it"),
        Column("measured_time", TIME, "the instant; the first one if there were several in one minute"),
        Column(
            "measures",
            pa.list_(pa.struct([("time", TIME), ("log_end_offset", pa.int64()), ("log_bytes", pa.int64())])),
            "the last measurements, one per minute, 11 at most: the sum of the log ends, and of the log sizes; the "
            "list starts over when the topic is recreated",
        ),
        Column(
            "records_per_s",
            pa.float64(),
            "records produced per second since the first of the measures; null: it is less than 30 s old",
        ),
        Column(
            "growth_bytes_per_s",
            pa.float64(),
            "bytes by which its logs grew per second since then; below 0: more was removed than written; null as above",
        ),
        Column("problem", pa.string(), "why a request failed; null: none failed"),
    ),
)

EDGES = Table(
    "edges",
    "client, group and topic: the client reads the topic in the group, since when and until when",
    ("cluster", "group_id", "topic", "client_id"),
    (
        *GROUP,
        Column("topic", pa.string(), "the topic"),
        Column(
            "client_id",
            pa.string(),
            "client id of members that subscribed to the topic or were assigned partitions of it; null: committed by "
            "any client",
        ),
        Column("first_time", TIME, "when this was first seen"),
        Column("last_time", TIME, "when this was last seen; for a member that is in the group now: the instant"),
    ),
    is_carried=True,
)

OWNERS = Table(
    "owners",
    "existing group or topic, with its owner from the file of owners",
    ("cluster", "kind", "name"),
    (
        CLUSTER,
        Column("kind", pa.string(), "group or topic"),
        Column("name", pa.string(), "the group or topic"),
        Column("owner", pa.string(), "its owner; null: no pattern matches"),
        Column("pattern", pa.string(), "the pattern that matches; null as above"),
        Column(
            "records_per_s",
            pa.float64(),
            "records per second that the group reads, or that are written to the topic; null: not known",
        ),
        Column(
            "bytes_per_s",
            pa.float64(),
            "the same in bytes, computed from the mean record size in the topic's log; null: not known",
        ),
    ),
)

TRANSACTIONS = Table(
    "transactions",
    "partition and transaction that was open in the partition at the instant",
    ("cluster", "topic", "partition", "producer_id"),
    (
        CLUSTER,
        *PARTITION,
        Column("producer_id", pa.int64(), "the transaction's producer"),
        Column("producer_epoch", pa.int32(), "its epoch"),
        Column("transactional_id", pa.string(), "its transactional id; null: no coordinator knows the transaction"),
        Column("state", pa.string(), "the state at the coordinator: Ongoing, PrepareCommit …; null as above"),
        Column("first_offset", pa.int64(), "offset of its first record in the partition"),
        Column(
            "held_offsets",
            pa.int64(),
            "offsets from there to the log end: readers of committed records cannot read them yet",
        ),
        Column(
            "started_time",
            TIME,
            "when it began; null: not known. If no coordinator knows it: the time of its last record in the partition",
        ),
        Column("open_ms", pa.int64(), "how long it has been open; null as above"),
        Column("timeout_ms", pa.int64(), "after how long its coordinator aborts it; null: no coordinator knows it"),
        Column(
            "is_hanging",
            pa.bool_(),
            "whether no coordinator reports it, and its last record, by its own time, is older than brokers let a "
            "transaction be open; null: a coordinator could not be queried, or the age or that limit is not known",
        ),
        Column(
            "groups",
            pa.int32(),
            "groups that have read everything up to the last stable offset and wait for this transaction",
        ),
        Column("measured_time", TIME, "the instant"),
    ),
)

SHARE_OFFSETS = Table(
    "share_offsets",
    "share group and partition for which it has state at the instant, from the topic __share_group_state",
    ("cluster", "group_id", "topic", "partition"),
    (
        CLUSTER,
        Column("group_id", pa.string(), "the share group"),
        *PARTITION,
        Column("start_offset", pa.int64(), "every record before it is done; null: no member has read the partition"),
        Column("log_end_offset", pa.int64(), "the partition's end"),
        Column("lag", pa.int64(), "offsets at or after the start offset that are not done; null as start_offset"),
        Column("done_ahead", pa.int64(), "records after the start offset that are done: accepted or rejected"),
        Column("rejected", pa.int64(), "records after the start offset that were rejected, or delivered too often"),
        Column(
            "to_redeliver",
            pa.int64(),
            "records that were delivered, then released or timed out: they will be delivered again",
        ),
        Column("redelivered", pa.int64(), "records after the start offset that were delivered more than once"),
        Column("most_deliveries", pa.int32(), "the highest number of deliveries of a record after the start offset"),
        Column("write_time", TIME, "when a snapshot of the state was last written; null: not known"),
        Column("measured_time", TIME, "the instant"),
    ),
)
