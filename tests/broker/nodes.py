"""A cluster of three nodes with a connection to each, and what tests of it ask."""

from __future__ import annotations

from tests.broker.conftest import Wire

from groupkeeper.broker import Broker
from groupkeeper.broker.network.server import Server
from groupkeeper.protocol.errors import CoordinatorNotAvailable
from groupkeeper.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from groupkeeper.protocol.messages.create_topics_response import CreateTopicsResponse
from groupkeeper.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from groupkeeper.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from groupkeeper.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from groupkeeper.protocol.messages.metadata_response import MetadataResponse, MetadataResponsePartition
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_commit_response import OffsetCommitResponse
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.produce_response import ProduceResponse
from groupkeeper.protocol.record_batch import Record, write_batch

GROUP, TRANSACTION = 0, 1
PROPERTIES = {"offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "6"}


class Nodes:
    """Three nodes, with a connection to each."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._wires: dict[Server, Wire] = {}

    async def __call__(self, node: int) -> Wire:
        """The connection to a node, since it runs."""
        server = self.broker.fronts[node].server
        if server not in self._wires:
            self._wires[server] = await self.connect(node)
        return self._wires[server]

    async def connect(self, node: int) -> Wire:
        at = self.broker.endpoint("PLAINTEXT", node)
        return await Wire.open(f"{at.host}:{at.port}")

    async def create(self, name: str, *replicas: list[int], factor: int = -1, **configs: str) -> int:
        """Creates a topic; returns the error code."""
        assigned = [CreatableReplicaAssignment(index, nodes) for index, nodes in enumerate(replicas)]
        settings = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        topic = CreatableTopic(name, -1, factor, assigned, settings)
        wire = await self(min(self.broker.topics.placements.running))
        return (await wire.call(CreateTopicsRequest([topic]), 7, CreateTopicsResponse)).topics[0].error_code

    async def partition(self, topic: str, index: int = 0) -> MetadataResponsePartition:
        wire = await self(min(self.broker.topics.placements.running))
        answer = await wire.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12, MetadataResponse)
        return answer.topics[0].partitions[index]

    async def coordinator(self, key: str, kind: int = GROUP) -> int:
        """The node of a coordinator; −1 when there is none."""
        wire = await self(min(self.broker.topics.placements.running))
        for _ in range(2):  # the first request creates the topic
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            (found,) = (await wire.call(request, 6, FindCoordinatorResponse)).coordinators
            if found.error_code != CoordinatorNotAvailable.code:
                break
        return found.node_id

    async def commit(self, node: int, offset: int) -> int:
        """Commits an offset of t-0 for the group g at a node; returns the error code."""
        topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset, -1, "")])]
        wire = await self(node)
        answer = await wire.call(OffsetCommitRequest("g", topics=topics), 9, OffsetCommitResponse)
        return answer.topics[0].partitions[0].error_code


async def placed(wire: Wire, topic: str) -> tuple[int, int, list[int], list[int], list[int], list[int]]:
    """Leader, its epoch, replicas, those in sync, eligible ones, last known eligible ones of partition 0."""
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)])
    (part,) = (await wire.call(request, 0, DescribeTopicPartitionsResponse)).topics[0].partitions
    eligible, last = list(part.eligible_leader_replicas or ()), list(part.last_known_elr or ())
    isr = sorted(part.isr_nodes)
    return part.leader_id, part.leader_epoch, list(part.replica_nodes), isr, eligible, last


def batch(*values: bytes) -> bytes:
    return write_batch([Record(None, value, timestamp=1) for value in values])


async def produce(
    wire: Wire, topic: str, *values: bytes, acks: int = -1, version: int = 11, timeout_ms: int = 1000
) -> ProduceResponse:
    topics = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch(*values))])]
    return await wire.call(ProduceRequest(None, acks, timeout_ms, topics), version, ProduceResponse)


def code_of(response: ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code
