"""Rows of share_offsets by the stored state of share-partitions."""

from uuid import UUID

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState, StateBatch
from groupkeeper.pipeline.jobs.share_offsets import share_offset_rows
from groupkeeper.pipeline.kafka.instants import ClusterIdentity, Instant, LogEnds
from groupkeeper.protocol.uuids import uuid_text

TOPIC_ID = UUID(int=7).bytes
ACKNOWLEDGED, ARCHIVING, ARCHIVED = 2, 3, 4


def test_records_on_their_way_to_the_dead_letter_queue_are_rejected_but_not_done() -> None:
    batches = (StateBatch(5, 6, ACKNOWLEDGED, 1), StateBatch(7, 9, ARCHIVING, 5), StateBatch(10, 10, ARCHIVED, 2))
    state = ShareState(start_offset=5, batches=batches)
    logs = {TopicPartition("jobs", 0): LogEnds(0, 20, 20, uuid_text(TOPIC_ID))}
    instant = Instant(1, ClusterIdentity(None, None), "__consumer_offsets", {}, logs)
    (row,) = share_offset_rows([(SharePartitionKey("queue", TOPIC_ID, 0), state)], instant)
    told = {name: row[name] for name in ("start_offset", "rejected", "done_ahead", "lag", "most_deliveries")}
    assert told == {"start_offset": 7, "rejected": 4, "done_ahead": 1, "lag": 12, "most_deliveries": 5}
