"""A cluster of three nodes with a connection to each, and what tests of it ask."""

from tests.broker.conftest import Wire

from groupkeeper.broker import Broker
from groupkeeper.broker.network.server import Server
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import CoordinatorNotAvailable
from groupkeeper.protocol.messages.describe_topic_partitions_request import TopicRequest
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
        assigned = [m.CreatableReplicaAssignment(index, nodes) for index, nodes in enumerate(replicas)]
        settings = [m.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        topic = m.CreatableTopic(name, -1, factor, assigned, settings)
        wire = await self(min(self.broker.topics.placements.running))
        return (await wire.call(m.CreateTopicsRequest([topic]), 7)).topics[0].error_code

    async def partition(self, topic: str, index: int = 0) -> m.MetadataResponsePartition:
        wire = await self(min(self.broker.topics.placements.running))
        answer = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name=topic)]), 12)
        return answer.topics[0].partitions[index]

    async def coordinator(self, key: str, kind: int = GROUP) -> int:
        """The node of a coordinator; −1 when there is none."""
        wire = await self(min(self.broker.topics.placements.running))
        for _ in range(2):  # the first request creates the topic
            request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            (found,) = (await wire.call(request, 6)).coordinators
            if found.error_code != CoordinatorNotAvailable.code:
                break
        return found.node_id

    async def commit(self, node: int, offset: int) -> int:
        """Commits an offset of t-0 for the group g at a node; returns the error code."""
        return await (await self(node)).commit("g", offset)


async def placed(wire: Wire, topic: str) -> tuple[int, int, list[int], list[int], list[int], list[int]]:
    """Leader, its epoch, replicas, those in sync, eligible ones, last known eligible ones of partition 0."""
    request = m.DescribeTopicPartitionsRequest([TopicRequest(topic)])
    part = (await wire.call(request, 0)).topics[0].partitions[0]
    eligible, last = list(part.eligible_leader_replicas or ()), list(part.last_known_elr or ())
    isr = sorted(part.isr_nodes)
    return part.leader_id, part.leader_epoch, list(part.replica_nodes), isr, eligible, last


def batch(*values: bytes) -> bytes:
    return write_batch([Record(None, value, timestamp=1) for value in values])


async def produce(
    wire: Wire, topic: str, *values: bytes, acks: int = -1, version: int = 11, timeout_ms: int = 1000
) -> m.ProduceResponse:
    topics = [m.TopicProduceData(topic, partition_data=[m.PartitionProduceData(0, batch(*values))])]
    return await wire.call(m.ProduceRequest(None, acks, timeout_ms, topics), version)


def code_of(response: m.ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code
