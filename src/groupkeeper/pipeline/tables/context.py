"""Tables of what groups stand in: topics with their sizes, readers of topics, owners, and open transactions."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.schema import TIME, Column, Table

__all__ = ["EDGES", "OWNERS", "SHARE_OFFSETS", "TOPICS", "TRANSACTIONS"]

_CLUSTER = Column("cluster", pa.string(), "name of the cluster")

TOPICS = Table(
    "topics",
    "topic of the clusters, as it was measured last",
    ("cluster", "topic"),
    (
        _CLUSTER,
        Column("topic", pa.string(), "the topic"),
        Column("topic_id", pa.string(), "its id; null: the brokers are too old to have ids"),
        Column("is_internal", pa.bool_(), "whether it is Kafka's own; null: not known"),
        Column("partitions", pa.int32(), "number of partitions"),
        Column("replication_factor", pa.int32(), "replicas of a partition, the fewest; null: not known"),
        Column("cleanup_policy", pa.string(), "delete, compact, or both; null: it could not be queried"),
        Column("retention_ms", pa.int64(), "retention.ms; −1: without end; null as above"),
        Column("retention_bytes", pa.int64(), "retention.bytes, of each partition; −1: without end; null as above"),
        Column("records", pa.int64(), "offsets in its logs; null: not known of a partition"),
        Column("log_bytes", pa.int64(), "size of its logs, of each the largest replica; null: it could not be queried"),
        Column("disk_bytes", pa.int64(), "size of all replicas; null as above"),
        Column("groups", pa.int32(), "groups that have a committed offset of it"),
        Column("measured_time", TIME, "the instant; of several in one minute the first"),
        Column(
            "measures",
            pa.list_(pa.struct([("time", TIME), ("log_end_offset", pa.int64()), ("log_bytes", pa.int64())])),
            "the last measurements, 11 at most, of a minute one: the sum of the logs' ends, and of their sizes; they "
            "begin again where the topic is another one",
        ),
        Column(
            "records_per_s",
            pa.float64(),
            "records per second that came since the first of the measures; null: it is less than 30 s ago",
        ),
        Column(
            "growth_bytes_per_s",
            pa.float64(),
            "by how much its logs grew since, per second; below 0: more was removed than came; null as above",
        ),
        Column("problem", pa.string(), "why a request failed; null: none failed"),
    ),
)

EDGES = Table(
    "edges",
    "client, group and topic: the client reads the topic in the group, since when and until when",
    ("cluster", "group_id", "topic", "client_id"),
    (
        _CLUSTER,
        Column("group_id", pa.string(), "the group"),
        Column("topic", pa.string(), "the topic"),
        Column(
            "client_id",
            pa.string(),
            "client id of members that subscribed to the topic or had partitions of it; null: committed by any client",
        ),
        Column("first_time", TIME, "when that was first seen"),
        Column("last_time", TIME, "when it was last seen; of a member that is there: the instant"),
    ),
    is_carried=True,
)

OWNERS = Table(
    "owners",
    "existing group and topic: its owner, by the file of owners",
    ("cluster", "kind", "name"),
    (
        _CLUSTER,
        Column("kind", pa.string(), "group or topic"),
        Column("name", pa.string(), "the group or topic"),
        Column("owner", pa.string(), "its owner; null: no pattern matches"),
        Column("pattern", pa.string(), "the pattern that matches; null as above"),
        Column(
            "records_per_s",
            pa.float64(),
            "records per second that the group reads, or that come to the topic; null: not known",
        ),
        Column(
            "bytes_per_s",
            pa.float64(),
            "the same in bytes, by the mean size that records have in the topic's log; null: not known",
        ),
    ),
)

TRANSACTIONS = Table(
    "transactions",
    "partition and transaction that was open in it at the instant",
    ("cluster", "topic", "partition", "producer_id"),
    (
        _CLUSTER,
        Column("topic", pa.string(), "the topic"),
        Column("partition", pa.int32(), "its partition"),
        Column("producer_id", pa.int64(), "the transaction's producer"),
        Column("producer_epoch", pa.int32(), "its epoch"),
        Column("transactional_id", pa.string(), "its transactional id; null: no coordinator has it"),
        Column("state", pa.string(), "as the coordinator has it: Ongoing, PrepareCommit …; null as above"),
        Column("first_offset", pa.int64(), "its first record there"),
        Column(
            "held_offsets", pa.int64(), "offsets from there to the log's end: no reader of committed records has them"
        ),
        Column("started_time", TIME, "when it began; null: not known. Without a coordinator: its last record there"),
        Column("open_ms", pa.int64(), "for how long it was open; null as above"),
        Column("timeout_ms", pa.int64(), "after how long its coordinator aborts it; null: no coordinator has it"),
        Column(
            "is_hanging",
            pa.bool_(),
            "whether no coordinator has it, so that nothing will end it; null: a coordinator could not be queried",
        ),
        Column("groups", pa.int32(), "groups that have read all up to the last stable offset, and wait for it"),
        Column("measured_time", TIME, "the instant"),
    ),
)

SHARE_OFFSETS = Table(
    "share_offsets",
    "share group and partition that it has state of, at the instant, by the topic __share_group_state",
    ("cluster", "group_id", "topic", "partition"),
    (
        _CLUSTER,
        Column("group_id", pa.string(), "the share group"),
        Column("topic", pa.string(), "the topic"),
        Column("partition", pa.int32(), "its partition"),
        Column("start_offset", pa.int64(), "before it every record is done; null: no member has read the partition"),
        Column("log_end_offset", pa.int64(), "the partition's end"),
        Column("lag", pa.int64(), "offsets from the start offset on that are not done; null as start_offset"),
        Column("done_ahead", pa.int64(), "of those after the start offset: accepted or rejected"),
        Column("rejected", pa.int64(), "of done_ahead: rejected, or delivered too often"),
        Column("to_redeliver", pa.int64(), "delivered, and given back or timed out: they will be delivered again"),
        Column("redelivered", pa.int64(), "after the start offset: delivered more than once"),
        Column("most_deliveries", pa.int32(), "the most deliveries of a record after the start offset"),
        Column("write_time", TIME, "when a snapshot of the state was written last; null: not known"),
        Column("measured_time", TIME, "the instant"),
    ),
)
