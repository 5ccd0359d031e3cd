"""Append batches to partitions (Produce), acknowledged by all in-sync replicas."""

from __future__ import annotations

from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.types import Failure, TopicPartition
from groupkeeper.client.batch import failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.peer import Peer
from groupkeeper.protocol.messages import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

_ALL_IN_SYNC = -1


async def produce(cluster: Cluster, tp: TopicPartition, batch: bytes, timeout_ms: int | None = None) -> int:
    """Append a batch; returns its first offset. After a lost response the log may have it twice. Raises KafkaError,
    ClientError.
    """

    async def ask(peer: Peer, keys: list[TopicPartition]) -> dict[TopicPartition, int | Failure]:
        data = [TopicProduceData(tp.topic, partition_data=[PartitionProduceData(tp.partition, batch)])]
        response = await peer.ask(
            ProduceResponse, ProduceRequest(None, _ALL_IN_SYNC, deadline.timeout_ms, data), deadline
        )
        return {
            TopicPartition(topic.name, each.index): failure_of(each.error_code, each.error_message) or each.base_offset
            for topic in response.responses
            for each in topic.partition_responses
        }

    deadline = cluster.deadline("produce", timeout_ms)
    return (await of_leaders(cluster, deadline, ask, chunk=1).run([tp])).result(tp)
