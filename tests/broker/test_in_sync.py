"""Replicas that are in sync with the leader, or not: who may lead then, and which records are committed."""

from __future__ import annotations

from tests.broker.conftest import Start
from tests.broker.nodes import Nodes

from groupkeeper.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest, TopicRequest
from groupkeeper.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse


async def placed(nodes: Nodes, topic: str = "t") -> tuple[int, int, list[int], list[int], list[int]]:
    """Leader, its epoch, replicas in sync, eligible ones, last known eligible ones."""
    wire = await nodes(min(nodes.broker.topics.placements.running))
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)])
    (part,) = (await wire.call(request, 0, DescribeTopicPartitionsResponse)).topics[0].partitions
    eligible, last = list(part.eligible_leader_replicas or ()), list(part.last_known_elr or ())
    return part.leader_id, part.leader_epoch, list(part.isr_nodes), eligible, last


async def test_replicas_that_left_below_the_least_number_in_sync_are_eligible(nodes: Nodes) -> None:
    for topic, least in (("t", 2), ("u", 1), ("v", 3)):
        await nodes.create(topic, [1, 2, 3], min_insync_replicas=str(least))
    await nodes.broker.stop_node(3)
    assert await placed(nodes) == (1, 0, [1, 2], [], [])
    assert await placed(nodes, "v") == (1, 0, [1, 2], [3], [])
    await nodes.broker.stop_node(2)
    assert await placed(nodes) == (1, 0, [1], [2], [])
    assert await placed(nodes, "v") == (1, 0, [1], [2, 3], [])
    await nodes.broker.start_node(3)
    assert await placed(nodes) == (1, 0, [1, 3], [], [])
    assert await placed(nodes, "v") == (1, 0, [1, 3], [2], [])
    await nodes.broker.kill_node(1)
    assert await placed(nodes) == (3, 1, [3], [1], [])
    assert await placed(nodes, "v") == (3, 1, [3], [1, 2], [])
    await nodes.broker.start_node(2)
    await nodes.broker.stop_node(3)
    assert await placed(nodes) == (2, 2, [2], [3], [])
    await nodes.broker.kill_node(2)
    await nodes.broker.start_node(3)  # in order of leaving: 1 (killed), 3 (stopped), 2 (killed)
    assert await placed(nodes) == (3, 4, [3], [2], [])
    assert await placed(nodes, "u") == (-1, 3, [], [2], [2])


async def test_a_node_that_was_killed_is_not_eligible_any_more_when_it_is_back(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], min_insync_replicas="2")
    await nodes.broker.kill_node(2)
    await nodes.broker.stop_node(3)
    await nodes.broker.kill_node(1)
    await nodes.broker.kill_node(3)  # its files are damaged meanwhile
    await nodes.broker.start_node(3)
    assert await placed(nodes) == (-1, 1, [], [1], [1])
    await nodes.broker.start_node(1)  # the last leader may lead all the same
    assert await placed(nodes) == (1, 2, [1, 3], [], [])


async def test_without_eligible_replicas_the_last_one_stays_in_sync(start: Start) -> None:
    broker = await start(brokers=3, properties={"feature.eligible.leader.replicas.version": "0"})
    nodes = Nodes(broker)
    await nodes.create("t", [2, 3], min_insync_replicas="2")
    for node in (3, 2):
        await broker.stop_node(node)
    assert await placed(nodes) == (-1, 1, [2], [], [])
    await broker.start_node(3)
    assert (await placed(nodes))[0] == -1
    await broker.start_node(2)
    assert await placed(nodes) == (2, 2, [2, 3], [], [])
