"""More partitions for topics (CreatePartitions), and fewer records in them (DeleteRecords)."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.resources.controller import NOT_CONTROLLER, ask_controller, broker_timeout_ms
from groupkeeper.client.admin.resources.types import NewPartitions
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.client.peer import Peer
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

_PARTITIONS_PER_REQUEST = 5000
_LOWEST = -1


async def create_partitions(
    cluster: Cluster, totals: Mapping[str, int | NewPartitions], validate_only: bool, timeout_ms: int | None
) -> Batch[str, None]:
    """Admin.create_partitions."""
    deadline = cluster.deadline("createPartitions", timeout_ms)
    if not totals:
        return Batch()

    def topic_of(name: str, wanted: int | NewPartitions) -> m.CreatePartitionsTopic:
        new = NewPartitions(wanted) if isinstance(wanted, int) else wanted
        assignments = (
            None if new.assignments is None else [m.CreatePartitionsAssignment(ids) for ids in new.assignments]
        )
        return m.CreatePartitionsTopic(name, new.total_count, assignments)

    topics = [topic_of(name, wanted) for name, wanted in totals.items()]
    answer = await ask_controller(
        cluster,
        m.CreatePartitionsResponse,
        lambda version: m.CreatePartitionsRequest(topics, broker_timeout_ms(deadline), validate_only),
        deadline,
        lambda answer: any(topic.error_code == NOT_CONTROLLER for topic in answer.results),
    )
    results: dict[str, Failure | None] = {
        topic.name: failure_of(topic.error_code, topic.error_message) for topic in answer.results
    }
    return batch_of(totals, results, "createPartitions: the reply has no result for {}")


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int | None], timeout_ms: int | None
) -> Batch[TopicPartition, int]:
    """Admin.delete_records."""
    for partition, offset in before.items():
        if offset is not None and offset < 0:
            raise IllegalArgument(f"{partition}: an offset must not be negative: {offset}; None deletes all records")
    deadline = cluster.deadline("deleteRecords", timeout_ms)

    async def ask(peer: Peer, keys: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, int | Failure]:
        topics: dict[str, list[m.DeleteRecordsPartition]] = {}
        for key in keys:
            offset = before[key]
            wanted = m.DeleteRecordsPartition(key.partition, _LOWEST if offset is None else offset)
            topics.setdefault(key.topic, []).append(wanted)
        requested = [m.DeleteRecordsTopic(name, partitions) for name, partitions in topics.items()]
        answer = await peer.ask(
            m.DeleteRecordsResponse,
            lambda version: m.DeleteRecordsRequest(requested, broker_timeout_ms(deadline)),
            deadline,
        )
        return {
            TopicPartition(topic.name, each.partition_index): (
                error_for(each.error_code) if each.error_code else each.low_watermark
            )
            for topic in answer.topics
            for each in topic.partitions
        }

    return await of_leaders(cluster, deadline, ask, chunk=_PARTITIONS_PER_REQUEST).run(list(before))
