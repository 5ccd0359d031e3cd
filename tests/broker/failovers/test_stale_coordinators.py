"""Coordinators whose node is cut off while others do their work: they go on with what they had, as Apache Kafka's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.held import topic_of
from tests.broker.nodes import PROPERTIES, Nodes
from tests.broker.test_transactions import Producer
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.initialize_share_group_state_request import InitializeStateData, PartitionData

LATE = errors.CoordinatorNotAvailable.code
NO_MORE = errors.NotCoordinator.code


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    properties = PROPERTIES | {"broker.session.timeout.ms": "60000", "offsets.commit.timeout.ms": "50"}
    async with Broker(directory=tmp_path / "data", properties=properties, brokers=3) as broker:
        nodes = Nodes(broker)
        await nodes.create("t", [2, 3])
        await nodes.create("__consumer_offsets", *[[1, 2, 3]] * 6)
        await nodes.create("__transaction_state", *[[1, 2, 3]] * 6)
        yield nodes


async def part(nodes: Nodes) -> None:
    """Cuts node 1 off, which has all coordinators; then node 2 has them."""
    nodes.broker.config.broker_session_timeout_ms = 50
    await nodes.broker.cut_off_node(1)
    await becomes(lambda: nodes.broker.groups.shard_of("g").node == 2)
    await nodes.broker.groups.wait_until_loaded()
    await nodes.broker.transactions.wait_until_loaded()


async def ask(nodes: Nodes, node: int, request: Any, version: int) -> Any:
    return await (await nodes.connect(node)).call(request, version)


async def committed(nodes: Nodes, node: int) -> int:
    """The offset of t-0 that a node has of the group g; −1 and less: error codes."""
    topics = [m.OffsetFetchRequestTopics("t", partition_indexes=[0])]
    request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=topics)])
    (group,) = (await ask(nodes, node, request, 9)).groups
    return -group.error_code or group.topics[0].partitions[0].committed_offset


async def test_commits_are_read_and_new_ones_are_late_and_lost(nodes: Nodes) -> None:
    assert await nodes.commit(1, 5) == 0
    await part(nodes)
    assert [await committed(nodes, node) for node in (1, 2, 3)] == [5, 5, -NO_MORE]
    assert await nodes.commit(1, 6) == LATE
    assert await nodes.commit(2, 7) == 0
    assert [await committed(nodes, node) for node in (1, 2)] == [6, 7]
    for node in (1, 2):
        assert [one.group_id for one in (await ask(nodes, node, m.ListGroupsRequest(), 5)).groups] == ["g"]
    await nodes.broker.resume_node(1)
    assert [await committed(nodes, node) for node in (1, 2)] == [-NO_MORE, 7]
    assert await nodes.commit(1, 8) == NO_MORE
    assert (await ask(nodes, 1, m.ListGroupsRequest(), 5)).groups == []
    await nodes.broker.move_coordinator("g", 1)
    assert (await committed(nodes, 1), await nodes.commit(1, 9)) == (7, 0)


async def test_all_commits_are_read_in_turns(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    await part(nodes)
    assert await nodes.commit(1, 6) == LATE
    monkeypatch.setattr("groupkeeper.broker.apis.offset_fetch._LONG", -1)
    for node, topics in ((1, ["t"]), (2, [])):
        request = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=None)])
        (group,) = (await ask(nodes, node, request, 9)).groups
        assert [one.name for one in group.topics] == topics


async def test_members_stay_until_the_node_knows_of_the_others(nodes: Nodes) -> None:
    protocols = [m.JoinGroupRequestProtocol("range", b"")]
    join = m.JoinGroupRequest("g", 10_000, 10_000, "", "a", "consumer", protocols)
    joined = await ask(nodes, 1, join, 7)
    member = joined.generation_id, joined.member_id, "a"
    assignments = [m.SyncGroupRequestAssignment(joined.member_id, b"")]
    assert (await ask(nodes, 1, m.SyncGroupRequest("g", *member, "consumer", "range", assignments), 5)).error_code == 0
    await part(nodes)
    beat = m.HeartbeatRequest("g", *member)
    assert [(await ask(nodes, node, beat, 4)).error_code for node in (1, 2, 3)] == [0, 0, NO_MORE]
    protocols.append(m.JoinGroupRequestProtocol("x", b""))
    other = m.JoinGroupRequest("g", 10_000, 10_000, "", "b", "consumer", protocols)
    joining = asyncio.ensure_future(ask(nodes, 1, other, 7))  # parked until the first member joins again
    async with asyncio.timeout(20):
        while (await ask(nodes, 1, beat, 4)).error_code != errors.RebalanceInProgress.code:
            pass
    assert (await ask(nodes, 2, beat, 4)).error_code == 0
    await nodes.broker.resume_node(1)
    assert [(await joining).error_code, (await ask(nodes, 1, beat, 4)).error_code] == [NO_MORE, NO_MORE]
    assert (await ask(nodes, 2, beat, 4)).error_code == 0


async def test_heartbeats_of_consumer_and_share_groups(nodes: Nodes) -> None:
    epochs = {"consumer": 0, "share": 0}

    async def beat(node: int) -> list[int]:
        """The error codes of a member of each kind."""
        consumer = m.ConsumerGroupHeartbeatRequest("g", "m", epochs["consumer"], rebalance_timeout_ms=1000)
        shared = m.ShareGroupHeartbeatRequest("s", "m" * 22, epochs["share"])
        if not epochs["consumer"]:
            consumer.subscribed_topic_names = shared.subscribed_topic_names = ["t"]
            consumer.topic_partitions = []
        answers = {"consumer": await ask(nodes, node, consumer, 1), "share": await ask(nodes, node, shared, 1)}
        for kind, answer in answers.items():
            epochs[kind] = answer.member_epoch or epochs[kind]
        return [answer.error_code for answer in answers.values()]

    for _ in range(3):  # until there is nothing more to write
        assert await beat(1) == [0, 0]
        await becomes(lambda: not nodes.broker.groups.shard_of("s")._share_work)
    await part(nodes)
    assert [await beat(node) for node in (1, 2)] == [[0, 0], [0, 0]]
    await nodes.broker.resume_node(1)
    assert [await beat(node) for node in (1, 2)] == [[NO_MORE, NO_MORE], [0, 0]]


async def test_transactions_are_described_and_new_ones_are_late(nodes: Nodes) -> None:
    assert (await ask(nodes, 1, m.InitProducerIdRequest("x", 50), 4)).error_code == 0
    await part(nodes)
    states = [(await ask(nodes, node, m.DescribeTransactionsRequest(["x"]), 0)) for node in (1, 2, 3)]
    assert [one.transaction_states[0].error_code for one in states] == [0, 0, NO_MORE]
    begun = [await ask(nodes, node, m.InitProducerIdRequest("x", 50), 4) for node in (1, 2)]
    assert [(one.error_code, one.producer_epoch) for one in begun] == [(LATE, -1), (0, 1)]
    await nodes.broker.resume_node(1)
    assert (await ask(nodes, 1, m.InitProducerIdRequest("x", 50), 4)).error_code == NO_MORE


async def test_it_ends_when_it_leads_again_and_when_its_topic_goes(nodes: Nodes) -> None:
    await nodes.create("__share_group_state", *[[1, 2]] * 50)
    assert await nodes.commit(1, 5) == 0
    await nodes.broker.cut_off_node(1)
    await nodes.broker.move_coordinator("g", 2)
    await nodes.broker.set_in_sync("__consumer_offsets", nodes.broker.groups.partition_of("g"), [1, 2])
    assert await nodes.commit(1, 6) == LATE
    for node in (1, 2):
        await nodes.broker.move_coordinator("g", node)
        assert await committed(nodes, 1) == 5
        assert [one.group_id for one in (await ask(nodes, 1, m.ListGroupsRequest(), 5)).groups] == ["g"]
    stale = nodes.broker.groups.shard_for_request("g", 1)
    nodes.broker.topics.delete("__consumer_offsets")
    assert (await nodes.commit(1, 8), stale.is_active) == (NO_MORE, False)


async def test_who_is_on_the_other_side_is_not_asked_for_it(nodes: Nodes) -> None:
    await nodes.create("__share_group_state", *[[1, 2, 3]] * 50)
    t = topic_of(nodes.broker, "t")
    assert await nodes.commit(1, 5) == 0
    await part(nodes)
    producer = Producer(await nodes.connect(2), "x")
    assert await producer.init() == 0
    producer.wire = await nodes.connect(1)
    assert await producer.commit_offset("g", "t", 6, version=5) == NO_MORE
    assert nodes.broker.transactions.shard_of("x").coordinator.transactions["x"].partitions == set()
    states = [InitializeStateData(t.topic_id, [PartitionData(0, 1, 0)])]
    answer = await ask(nodes, 1, m.InitializeShareGroupStateRequest("s", states), 0)
    assert answer.results[0].partitions[0].error_code == NO_MORE


async def test_without_another_one_it_takes_no_commits(nodes: Nodes) -> None:
    await nodes.broker.set_in_sync("__consumer_offsets", nodes.broker.groups.partition_of("g"), [1])
    assert await nodes.commit(1, 5) == 0
    nodes.broker.config.broker_session_timeout_ms = 50
    await nodes.broker.cut_off_node(1)
    log = nodes.broker.groups.shard_of("g").log
    await becomes(lambda: log.placement.leader != 1)
    assert (await nodes.commit(1, 6), await committed(nodes, 1)) == (NO_MORE, 5)
    await nodes.broker.resume_node(1)
    assert (await nodes.commit(1, 6), await committed(nodes, 1)) == (0, 6)
