"""Descriptions of the topologies of streams groups: asked for, kept in memory, shown again (KIP-1331)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.unit.broker.peer import Denies, Peer

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.streams.description import asks_for_description
from groupkeeper.coordinator.streams.group import StreamsGroup
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.coordinator.streams.topology import StatusCode, TopologyProblem, TopologyRecord
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology
from groupkeeper.protocol.messages.streams_group_topology_description_update_request import (
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
KEY = "group.streams.topology.description.plugin.class"
QUICK = {"offsets.topic.num.partitions": 1, "group.streams.initial.rebalance.delay.ms": 0}
SOURCE = TopologyDescriptionNode("in", 1, ["t", "t"], "ignored", ["ignored"], ["count", "count"])
COUNT = TopologyDescriptionNode("count", 2, ["ignored"], None, ["words"], [])
GIVEN = TopologyDescription(
    [TopologyDescriptionSubtopology("0", [SOURCE, COUNT, TopologyDescriptionNode("out", 3, [], "o")])],
    [TopologyDescriptionGlobalStore(SOURCE, COUNT)],
)
NOT_STORED, AVAILABLE = 1, 3


def new_broker(directory: Path) -> Broker:
    return Broker(directory=directory, properties={**QUICK, KEY: PLUGIN})


@pytest_asyncio.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    async with new_broker(tmp_path) as broker:
        broker.topics.create("t", 2, {})
        broker.groups.ensure_topic()
        yield Peer(broker)


async def beat(peer: Peer, epoch: int, version: int = 1) -> m.StreamsGroupHeartbeatResponse:
    request = m.StreamsGroupHeartbeatRequest("g", "m", epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.process_id = 1000, "p"
        request.topology = Topology(0, [Subtopology("0", ["t"])])
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    return await peer.ask(request, version)


async def tell(
    peer: Peer, description: TopologyDescription = GIVEN, member_id: str = "m", epoch: int = 0, group_id: str = "g"
) -> tuple[int, str | None]:
    request = m.StreamsGroupTopologyDescriptionUpdateRequest(group_id, member_id, epoch, description)
    answer = await peer.ask(request, 0)
    return answer.error_code, answer.error_message


async def describe(peer: Peer, *, is_asked: bool = True) -> DescribedGroup:
    request = m.StreamsGroupDescribeRequest(["g"], include_topology_description=is_asked)
    return (await peer.ask(request, 1)).groups[0]


async def test_a_description_is_asked_for_kept_and_shown(peer: Peer) -> None:
    first = await beat(peer, 0)
    assert first.topology_description_required
    assert not (await beat(peer, first.member_epoch)).topology_description_required
    assert (await describe(peer)).topology_description_status == NOT_STORED
    assert await tell(peer) == (0, None)
    shown = await describe(peer)
    assert shown.topology_description_status == AVAILABLE
    assert shown.topology_description is not None
    (subtopology,), (store,) = shown.topology_description.subtopologies, shown.topology_description.global_stores
    assert [
        (node.name, list(node.source_topics), node.sink_topic, list(node.stores), list(node.successors))
        for node in subtopology.nodes
    ] == [("in", ["t"], None, [], ["count"]), ("count", [], None, ["words"], []), ("out", [], "o", [], [])]
    assert (store.source.name, store.processor.name) == ("in", "count")
    unasked = await describe(peer, is_asked=False)
    assert (unasked.topology_description, unasked.topology_description_status) == (None, 0)


async def test_the_log_says_that_there_is_one_but_memory_is_lost(tmp_path: Path) -> None:
    async with new_broker(tmp_path) as broker:
        broker.topics.create("t", 2, {})
        broker.groups.ensure_topic()
        peer = Peer(broker)
        await beat(peer, 0)
        await tell(peer)
    async with new_broker(tmp_path) as broker:
        peer = Peer(broker)
        assert (await describe(peer)).topology_description_status == NOT_STORED
        assert not (await beat(peer, 0)).topology_description_required


async def test_what_is_refused(peer: Peer) -> None:
    await beat(peer, 0)
    odd = TopologyDescription([TopologyDescriptionSubtopology("0", [TopologyDescriptionNode("x", 9)])])
    swapped = TopologyDescription([], [TopologyDescriptionGlobalStore(COUNT, SOURCE)])
    assert await tell(peer, member_id=" ") == (42, "MemberId can't be empty.")
    assert await tell(peer, group_id="") == (42, "GroupId can't be empty.")
    assert await tell(peer, group_id="nope") == (69, "Group nope not found.")
    assert await tell(peer, member_id="n") == (25, "Member n is not a member of group g.")
    old = "Topology epoch 1 does not match the group's current topology epoch 0."
    assert await tell(peer, epoch=1) == (42, old)
    assert await tell(peer, odd) == (42, "Unknown topology node type: 9")
    assert await tell(peer, swapped) == (42, "Global store must be composed of a source and a processor node.")
    peer.broker.authorizer = Denies((Operation.READ, ResourceType.GROUP, "g"))
    assert (await tell(peer))[0] == 30


async def test_a_deleted_group_takes_its_description_with_it(peer: Peer) -> None:
    first = await beat(peer, 0)
    await tell(peer)
    await beat(peer, -1)
    await peer.ask(m.DeleteGroupsRequest(["g"]), 3)
    assert (await beat(peer, 0)).topology_description_required
    assert first.member_epoch
    assert (await describe(peer)).topology_description_status == NOT_STORED


async def test_without_the_plug_in_nothing_is_asked_nor_kept(tmp_path: Path) -> None:
    async with Broker(directory=tmp_path, properties=QUICK) as broker:
        broker.topics.create("t", 2, {})
        broker.groups.ensure_topic()
        peer = Peer(broker)
        assert not (await beat(peer, 0)).topology_description_required
        assert await tell(peer) == (35, "The broker has no streams group topology description plugin configured.")
        assert (await describe(peer)).topology_description_status == NOT_STORED
    with pytest.raises(InvalidSetting, match="the one that there is is org"):
        Broker(directory=tmp_path, properties={KEY: "com.example.Plugin"})


def test_it_is_asked_for_again_after_longer_and_longer_times() -> None:
    group = StreamsGroup("g", topology=TopologyRecord(m.StreamsGroupTopologyValue(4)))
    settings = Settings(group_streams_topology_description_plugin_class=PLUGIN)
    asked, now_ms = [], 0
    while now_ms <= 30 * 60_000:
        step = StreamsStep(group, settings, TopicsImage(), now_ms)
        if asks_for_description(step, 1):
            asked.append(now_ms // 1000)
        group = group.with_soft(step.soft)
        now_ms += 15_000
    assert asked == [0, 30, 90, 210, 450, 930]
    step = StreamsStep(group, settings, TopicsImage(), now_ms + 3_600_000)
    assert not asks_for_description(step, 0)
    step.statuses.append(TopologyProblem(StatusCode.STALE_TOPOLOGY, ""))
    assert not asks_for_description(step, 1)
