"""Reassignments of partitions in a cluster: other replicas, at once or when they are there."""

from pathlib import Path

from tests.broker.nodes import PROPERTIES, Nodes, produce

from groupkeeper.broker import Broker
from groupkeeper.protocol.errors import InvalidReplicaAssignment, InvalidReplicationFactor, NoReassignmentInProgress
from groupkeeper.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from groupkeeper.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from groupkeeper.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from groupkeeper.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from groupkeeper.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from groupkeeper.protocol.messages.list_partition_reassignments_response import ListPartitionReassignmentsResponse


async def test_partitions_get_other_replicas(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    await produce(await nodes(1), "t", b"a")
    wire = await nodes(2)

    async def reassign(*replicas: int, may_resize: bool = True) -> int:
        parts = [ReassignablePartition(0, list(replicas) or None)]
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=may_resize, topics=[ReassignableTopic("t", parts)]
        )
        answer = await wire.call(request, 1, AlterPartitionReassignmentsResponse)
        return answer.responses[0].partitions[0].error_code

    async def placed() -> tuple[int, int, list[int]]:
        part = await nodes.partition("t")
        return part.leader_id, part.leader_epoch, list(part.replica_nodes)

    async def listed() -> list[tuple[list[int], ...]]:
        request = ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("t", [0])])
        answer = await wire.call(request, 0, ListPartitionReassignmentsResponse)
        parts = [part for topic in answer.topics for part in topic.partitions]
        return [(list(one.replicas), list(one.adding_replicas), list(one.removing_replicas)) for one in parts]

    assert await reassign(3, 1, 2) == 0
    assert await placed() == (1, 0, [3, 1, 2])
    assert await reassign(3, 2) == 0
    assert await placed() == (3, 1, [3, 2])
    assert (await (await nodes(3)).fetch("t", 0)).records
    assert await reassign(4) == InvalidReplicaAssignment.code
    assert await reassign() == NoReassignmentInProgress.code
    assert await reassign(1, may_resize=False) == InvalidReplicationFactor.code
    assert not await listed()

    await nodes.broker.stop_node(1)  # nothing is moved there until it is back
    assert await reassign(1) == 0
    assert await listed() == [([1, 3, 2], [1], [3, 2])]
    assert await placed() == (3, 1, [1, 3, 2])
    assert await reassign() == 0
    assert (await listed(), await placed()) == ([], (3, 1, [3, 2]))
    assert await reassign(2, 1) == 0
    assert await listed() == [([2, 1, 3], [1], [3])]
    await nodes.broker.start_node(1)
    await nodes.forget(1)
    assert (await listed(), await placed()) == ([], (2, 2, [2, 1]))
    assert list((await nodes.partition("t")).isr_nodes) == [1, 2]


async def test_a_reassignment_waits_while_it_is_throttled(nodes: Nodes, tmp_path: Path) -> None:
    await nodes.create("t", [1], follower_replication_throttled_replicas="0:2")
    await produce(await nodes(1), "t", b"a")

    async def throttle(rate: str | None) -> None:
        config = AlterableConfig("follower.replication.throttled.rate", 0 if rate else 1, rate)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "2", [config])])
        answer = await (await nodes(2)).call(request, 1, IncrementalAlterConfigsResponse)
        assert answer.responses[0].error_code == 0

    await throttle("1")
    parts = [ReassignablePartition(0, [2, 3])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", parts)])
    await (await nodes(1)).call(request, 1, AlterPartitionReassignmentsResponse)
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (1, [2, 3, 1], [1, 3])
    await throttle(None)
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (2, [2, 3], [2, 3])


async def test_a_reassignment_ends_at_a_restart(tmp_path: Path) -> None:
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        nodes = Nodes(broker)
        await nodes.create("t", [1, 2])
        await broker.stop_node(3)
        await broker.reassign({broker.topics.partition("t", 0): [3, 2]})
        assert (await nodes.partition("t")).leader_id == 1
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        part = await Nodes(broker).partition("t")
        assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (3, [3, 2], [3, 2])
