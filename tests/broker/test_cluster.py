"""A cluster in one process: who leads and coordinates what, what a node answers for others, and nodes that go down."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Start, Wire
from tests.broker.held import log_of, topic_of
from tests.broker.nodes import PROPERTIES, TRANSACTION, Nodes, batch, code_of, produce
from tests.patience import becomes

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.coordination.transaction_marker import Marker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.describe_topic_partitions_request import TopicRequest
from groupkeeper.protocol.messages.elect_leaders_request import TopicPartitions
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


async def test_leaders_and_coordinators_go_round(nodes: Nodes) -> None:
    assert await nodes.create("t", factor=3) == 0
    assert await nodes.create("u", factor=2) == 0
    first, second = await nodes.partition("t"), await nodes.partition("u")
    assert (list(first.replica_nodes), list(second.replica_nodes)) == ([1, 2, 3], [2, 3])
    assert (first.leader_id, second.leader_id) == (1, 2)
    groups = {await nodes.coordinator(f"g{number}") for number in range(20)}
    assert groups == {1, 2, 3}
    assert {await nodes.coordinator(f"t{number}", TRANSACTION) for number in range(20)} == {1, 2, 3}


async def test_more_replicas_than_nodes_are_refused(nodes: Nodes) -> None:
    assert await nodes.create("t", factor=4) == errors.InvalidReplicationFactor.code
    await nodes.broker.stop_node(2)
    assert await nodes.create("t", factor=3) == 0
    part = await nodes.partition("t")
    assert (list(part.replica_nodes), list(part.isr_nodes), list(part.offline_replicas)) == ([1, 3, 2], [1, 3], [2])


async def test_the_oldest_metadata_has_only_replicas_that_run(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    await nodes.broker.stop_node(3)
    request = m.MetadataRequest([m.MetadataRequestTopic(name="t")])
    (part,) = (await (await nodes(1)).call(request, 0)).topics[0].partitions
    assert (part.error_code, list(part.replica_nodes)) == (errors.ReplicaNotAvailable.code, [1, 2])
    (part,) = (await (await nodes(1)).call(request, 1)).topics[0].partitions
    assert (part.error_code, list(part.replica_nodes)) == (0, [1, 2, 3])


async def test_the_wrong_node_names_the_leader(nodes: Nodes) -> None:
    await nodes.create("t", [2, 3])
    answer = await produce(await nodes(1), "t", b"a")
    (part,) = answer.responses[0].partition_responses
    assert (part.error_code, part.current_leader.leader_id) == (errors.NotLeaderOrFollower.code, 2)
    (named,) = answer.node_endpoints
    assert (named.node_id, named.port) == (2, nodes.broker.endpoint("PLAINTEXT", 2).port)
    assert code_of(await produce(await nodes(2), "t", b"a")) == 0
    assert (await (await nodes(1)).list_offset("t", -1)).error_code == errors.NotLeaderOrFollower.code
    assert (await (await nodes(2)).list_offset("t", -1)).offset == 1


async def test_a_wrong_node_without_acknowledgement_hangs_up(nodes: Nodes) -> None:
    await nodes.create("t", [2])
    wire = await nodes(1)
    parts = [m.PartitionProduceData(0, batch(b"a"))]
    wire.send(m.ProduceRequest(None, 0, 1000, [m.TopicProduceData("t", partition_data=parts)]), 9)
    with pytest.raises(asyncio.IncompleteReadError):
        await wire.receive(m.ProduceResponse, 9)


async def test_followers_serve_consumers_that_may_read_from_them(nodes: Nodes) -> None:
    await nodes.create("t", [2, 3])
    await produce(await nodes(2), "t", b"a")
    follower = await nodes(3)
    assert (await follower.fetch("t", 0, version=11)).records
    assert (await follower.fetch("t", 0, version=10)).error_code == errors.NotLeaderOrFollower.code


async def test_groups_and_transactions_are_served_by_their_coordinators_only(nodes: Nodes) -> None:
    here = await nodes.coordinator("g")
    elsewhere = here % 3 + 1
    beat = m.HeartbeatRequest("g", 1, "m")
    assert (await (await nodes(elsewhere)).call(beat, 4)).error_code == errors.NotCoordinator.code
    assert (await (await nodes(here)).call(beat, 4)).error_code != errors.NotCoordinator.code
    at = await nodes.coordinator("x", TRANSACTION)
    init = m.InitProducerIdRequest("x", 1000)
    elsewhere = at % 3 + 1
    assert (await (await nodes(elsewhere)).call(init, 4)).error_code == errors.NotCoordinator.code
    assert (await (await nodes(at)).call(init, 4)).error_code == 0


async def test_a_leader_that_moves(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    await produce(await nodes(1), "t", b"a", b"b")
    await nodes.broker.move_leader("t", 0, 3)
    part = await nodes.partition("t")
    assert (part.leader_id, part.leader_epoch, list(part.isr_nodes)) == (3, 1, [1, 2, 3])
    assert code_of(await produce(await nodes(1), "t", b"c")) == errors.NotLeaderOrFollower.code
    new = await nodes(3)
    assert code_of(await produce(new, "t", b"c")) == 0
    assert (await new.fetch("t", 0, leader_epoch=0)).error_code == errors.FencedLeaderEpoch.code
    assert (await new.fetch("t", 0, leader_epoch=2)).error_code == errors.UnknownLeaderEpoch.code
    assert (await new.list_offset("t", -1)).leader_epoch == 1
    assert (await new.list_offset("t", -2)).leader_epoch == 0

    async def end_of(epoch: int) -> tuple[int, int]:
        parts = [m.OffsetForLeaderPartition(0, 1, epoch)]
        request = m.OffsetForLeaderEpochRequest(-2, [m.OffsetForLeaderTopic("t", parts)])
        answer = await new.call(request, 4)
        return answer.topics[0].partitions[0].leader_epoch, answer.topics[0].partitions[0].end_offset

    assert [await end_of(epoch) for epoch in (0, 1, 2)] == [(0, 2), (1, 3), (-1, -1)]
    with pytest.raises(ValueError, match="node 4 cannot lead t-0"):
        await nodes.broker.move_leader("t", 0, 4)


async def test_a_fetch_that_waits_learns_of_the_move(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    wire = await nodes(1)
    topics = [FetchTopic("t", partitions=[FetchPartition(0, 0, 0)])]
    wire.send(m.FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics), 12)
    log: Any = nodes.broker.topics.partition("t", 0)
    await becomes(lambda: log.waiters)
    await nodes.broker.move_leader("t", 0, 2)
    _, answer = await wire.receive(m.FetchResponse, 12)
    assert answer.responses[0].partitions[0].error_code == errors.FencedLeaderEpoch.code


@pytest.mark.parametrize("way", ["stop_node", "kill_node"])
async def test_a_node_that_goes_down_and_comes_back(nodes: Nodes, way: str) -> None:
    await nodes.create("t", [2, 3])
    await nodes.create("alone", [2])
    lost = await nodes(2)
    port = nodes.broker.endpoint("PLAINTEXT", 2).port
    await getattr(nodes.broker, way)(2)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await lost.call(m.MetadataRequest([]), 12)
    with pytest.raises(ConnectionError):
        await nodes.connect(2)
    part = await nodes.partition("t")
    assert (part.leader_id, part.leader_epoch) == (3, 1)
    assert (list(part.isr_nodes), list(part.offline_replicas)) == ([3], [2])
    part = await nodes.partition("alone")
    assert (part.error_code, part.leader_id, list(part.isr_nodes)) == (errors.LeaderNotAvailable.code, -1, [])
    request = m.DescribeTopicPartitionsRequest([TopicRequest("alone")])
    described = await (await nodes(1)).call(request, 0)
    (eligible,) = described.topics[0].partitions
    assert (eligible.error_code, eligible.leader_id, eligible.eligible_leader_replicas) == (0, -1, [2])
    metadata = await (await nodes(1)).call(m.MetadataRequest([]), 12)
    assert [one.node_id for one in metadata.brokers] == [1, 3]
    assert code_of(await produce(await nodes(3), "t", b"a")) == 0
    with pytest.raises(ValueError, match="node 2 is stopped already"):
        await nodes.broker.stop_node(2)

    await nodes.broker.start_node(2)
    assert nodes.broker.endpoint("PLAINTEXT", 2).port == port
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.isr_nodes), list(part.offline_replicas)) == (3, [2, 3], [])
    part = await nodes.partition("alone")
    assert (part.error_code, part.leader_id, part.leader_epoch) == (0, 2, 2)
    assert code_of(await produce(await nodes(2), "alone", b"a")) == 0


async def test_a_node_is_stopped_and_started_in_order(nodes: Nodes) -> None:
    broker = nodes.broker
    await asyncio.gather(broker.stop_node(2), broker.start_node(2), broker.kill_node(2), broker.start_node(2))
    await nodes.create("t", [2])
    assert code_of(await produce(await nodes(2), "t", b"a")) == 0


async def test_a_transaction_does_not_end_where_nobody_leads(nodes: Nodes) -> None:
    await nodes.create("t", [2])
    await nodes.broker.stop_node(2)
    with pytest.raises(errors.NotLeaderOrFollower):
        nodes.broker.transactions.write_marker(("t", 0), Marker(1, 0, is_commit=True))
    await nodes.broker.start_node(2)
    nodes.broker.transactions.write_marker(("t", 0), Marker(1, 0, is_commit=True))


async def test_a_coordinator_that_moves_keeps_its_groups(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    here = await nodes.coordinator("g")
    there = here % 3 + 1
    assert await nodes.commit(here, 5) == 0
    await nodes.broker.move_coordinator("g", there)
    assert await nodes.coordinator("g") == there
    assert await nodes.commit(here, 6) == errors.NotCoordinator.code
    assert await nodes.commit(there, 6) == 0
    listed = {node: await (await nodes(node)).call(m.ListGroupsRequest(), 4) for node in (1, 2, 3)}
    assert [node for node, answer in listed.items() if answer.groups] == [there]
    await nodes.broker.stop_node(there)
    after = await nodes.coordinator("g")
    assert after not in (there, -1)
    assert await nodes.commit(after, 7) == 0


async def test_leaders_move_back_to_the_first_replicas(tmp_path: Path) -> None:
    soon = PROPERTIES | {"leader.imbalance.check.interval.seconds": "1"}
    async with asyncio.timeout(30):
        async with Broker(directory=tmp_path, properties=soon, brokers=3) as broker:
            nodes = Nodes(broker)
            await nodes.create("t", [1, 2], [2, 3])
            await broker.stop_node(1)
            await broker.move_leader("t", 1, 3)
            while (await nodes.partition("t", 1)).leader_id != 2:
                pass
            assert (await nodes.partition("t", 0)).leader_id == 2
            await broker.start_node(1)
            while (await nodes.partition("t", 0)).leader_id != 1:
                pass
            await broker.move_leader("t", 1, 3)
        async with Broker(directory=tmp_path, properties=soon, brokers=3) as broker:
            assert (await Nodes(broker).partition("t", 1)).leader_id == 3
            while (await Nodes(broker).partition("t", 1)).leader_id != 2:
                pass


async def test_leaders_move_back_only_after_what_happens_to_a_node(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await start(brokers=3, properties=PROPERTIES | {"leader.imbalance.check.interval.seconds": "1"})
    await Nodes(broker).create("t", [1, 2])
    log = log_of(broker, "t")
    goes_down, may_go = asyncio.Event(), asyncio.Event()

    async def go_down() -> None:
        goes_down.set()
        await may_go.wait()

    monkeypatch.setattr(broker.fronts[1], "go_down", go_down)
    killing = asyncio.ensure_future(broker.kill_node(1))
    await goes_down.wait()
    await broker.move_leader("t", 0, 2)
    await asyncio.sleep(1.1)
    assert log.placement.leader == 2  # the first replica has no connections any more
    may_go.set()
    await killing
    assert (log.placement.leader, log.placement.epoch) == (2, 1)
    monkeypatch.undo()
    await broker.fronts[1].go_down()


async def test_leaders_stay_where_the_setting_says_so(start: Start) -> None:
    broker = await start(brokers=3, properties=PROPERTIES | {"auto.leader.rebalance.enable": "false"})
    await Nodes(broker).create("t", [1, 2])
    await broker.move_leader("t", 0, 2)
    assert broker._moves_back is None


async def test_a_coordinator_moves_before_there_is_its_topic(nodes: Nodes) -> None:
    for node in (1, 2, 3):
        await nodes.broker.move_coordinator("g", node)
        await nodes.broker.move_transaction_coordinator("x", node)
        assert await nodes.coordinator("g") == node
        assert await nodes.coordinator("x", TRANSACTION) == node


async def test_placements_survive_a_restart(tmp_path: Path) -> None:
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        nodes = Nodes(broker)
        await nodes.create("t", [3, 1])
        await nodes.create("alone", [2])
        await produce(await nodes(3), "t", b"a")
        await broker.move_leader("t", 0, 1)
        await broker.stop_node(2)
        here = await nodes.coordinator("g")
        there = 4 - here
        assert await nodes.commit(here, 1) == 0
        await broker.move_coordinator("g", there)
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        nodes = Nodes(broker)
        part = await nodes.partition("t")
        assert (part.leader_id, part.leader_epoch, list(part.replica_nodes)) == (1, 1, [3, 1])
        assert (await (await nodes(1)).list_offset("t", -2)).leader_epoch == 0
        part = await nodes.partition("alone")
        assert (part.leader_id, part.leader_epoch) == (2, 2)
        assert await nodes.coordinator("g") == there
        assert await nodes.commit(there, 2) == 0
    with pytest.raises(InvalidSetting, match=r"the cluster has nodes \[1, 2, 3\]: give --brokers 3"):
        await Broker(directory=tmp_path, properties=PROPERTIES).start()


async def test_consumers_are_sent_to_the_replica_in_their_rack(tmp_path: Path) -> None:
    properties = {**PROPERTIES, "replica.selector.class": RACK_AWARE}
    async with Broker(directory=tmp_path, properties=properties, brokers=3, racks=["a", "b", "c"]) as broker:
        nodes = Nodes(broker)
        await nodes.create("t", [1, 2, 3])
        await produce(await nodes(1), "t", b"a")

        async def sent_to(rack: str) -> tuple[int, int]:
            topics = [FetchTopic("t", partitions=[FetchPartition(0)])]
            answer = await (await nodes(1)).call(m.FetchRequest(topics=topics, rack_id=rack), 12)
            part = answer.responses[0].partitions[0]
            return part.preferred_read_replica, len(part.records or b"") > 0

        assert [await sent_to(rack) for rack in ("a", "b", "z", "")] == [(-1, 1), (2, 0), (-1, 1), (-1, 1)]
        await broker.stop_node(2)
        assert await sent_to("b") == (-1, 1)


async def test_the_rack_and_replicas_of_all_nodes(start: Start) -> None:
    broker = await start(brokers=2, properties={"broker.rack": "r", "default.replication.factor": "2"})
    nodes = Nodes(broker)
    assert await nodes.create("t") == 0
    wire = await nodes(1)
    for name in ("t", "automatic"):
        request = m.MetadataRequest([m.MetadataRequestTopic(name=name)])
        await wire.call(request, 12)  # creates it
        answer = await wire.call(request, 12)
        assert [one.rack for one in answer.brokers] == ["r", "r"]
        assert sorted(answer.topics[0].partitions[0].replica_nodes) == [1, 2]


async def test_replicas_of_the_coordinators_topics(start: Start) -> None:
    factors = {
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "share.coordinator.state.topic.replication.factor": 1,
    }
    broker = await start(brokers=2, properties={**factors, "share.coordinator.state.topic.min.isr": 1})
    for host in (broker.groups, broker.transactions, broker.share_states):
        host.ensure_topic()
        assert len(topic_of(broker, host.topic_name).partitions[0].placement.replicas) == 1
    assert topic_of(broker, broker.share_states.topic_name).config.min_insync_replicas == 1


def test_wrong_numbers_of_nodes() -> None:
    with pytest.raises(InvalidSetting, match="2 racks for 3 brokers"):
        Broker(brokers=3, racks=["a", "b"])


async def test_a_broker_alone_has_nothing_to_move() -> None:
    async with Broker() as broker:
        with pytest.raises(ValueError, match="this broker is the only one"):
            await broker.stop_node(1)


async def elect(wire: Wire, topic: str | None, kind: int = 0) -> list[tuple[str, list[tuple[int, int]]]]:
    """The error code of each partition, by topic. `kind`: 0 preferred, 1 unclean."""
    wanted = None if topic is None else [TopicPartitions(topic, [0])]
    answer = await wire.call(m.ElectLeadersRequest(kind, wanted), 2)
    assert answer.error_code == 0
    return [
        (one.topic, [(part.partition_id, part.error_code) for part in one.partition_result])
        for one in answer.replica_election_results
    ]


async def test_the_preferred_leader_is_elected(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    wire = await nodes(3)
    assert await elect(wire, "t") == [("t", [(0, errors.ElectionNotNeeded.code)])]
    await nodes.broker.kill_node(1)
    assert await elect(wire, "t") == [("t", [(0, errors.PreferredLeaderNotAvailable.code)])]
    await nodes.broker.start_node(1)
    assert (await nodes.partition("t")).leader_id == 2
    assert await elect(wire, None) == [("t", [(0, 0)])]
    part = await nodes.partition("t")
    assert (part.leader_id, part.leader_epoch) == (1, 2)
    assert await elect(wire, None) == [("t", [])]


async def test_a_replica_that_is_not_in_sync_leads_only_when_that_is_wanted(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    await nodes.create("u", [1, 2], unclean_leader_election_enable="true")
    for topic in ("t", "u"):
        await nodes.broker.set_in_sync(topic, 0, [1])
    assert list((await nodes.partition("t")).isr_nodes) == [1]
    with pytest.raises(ValueError, match=r"\[2\] cannot be in sync for t-0: give running replicas of \[1, 2\]"):
        await nodes.broker.set_in_sync("t", 0, [2])
    await nodes.broker.kill_node(1)
    assert ((await nodes.partition("t")).leader_id, (await nodes.partition("u")).leader_id) == (-1, 2)
    wire = await nodes(3)
    assert await elect(wire, "t", 1) == [("t", [(0, 0)])]
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.isr_nodes)) == (2, [2])
    assert await elect(wire, "t", 1) == [("t", [(0, errors.ElectionNotNeeded.code)])]
    await nodes.broker.kill_node(2)
    assert await elect(wire, "t", 1) == [("t", [(0, errors.EligibleLeadersNotAvailable.code)])]


async def test_a_leader_that_was_not_in_sync_has_not_all_records(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], unclean_leader_election_enable="true")
    await produce(await nodes(1), "t", b"a", b"b")
    await nodes.broker.kill_node(3)
    await produce(await nodes(1), "t", b"c")
    await nodes.broker.set_in_sync("t", 0, [1])
    await produce(await nodes(1), "t", b"d")
    await nodes.broker.kill_node(1)
    assert (await nodes.partition("t")).leader_id == 2
    new = await nodes(2)
    assert (await new.list_offset("t", -1)).offset == 3
    assert (await new.fetch("t", 4)).error_code == errors.OffsetOutOfRange.code
    assert (await produce(new, "t", b"e")).responses[0].partition_responses[0].base_offset == 3
    topics = [m.OffsetForLeaderTopic("t", [m.OffsetForLeaderPartition(0, -1, 0)])]
    found = await new.call(m.OffsetForLeaderEpochRequest(topics=topics), 4)
    assert found.topics[0].partitions[0].end_offset == 3
    await nodes.broker.kill_node(2)
    await nodes.broker.start_node(3)  # it left before "c"
    assert (await (await nodes(3)).list_offset("t", -1)).offset == 2


async def test_new_partitions_have_as_many_replicas_as_the_others(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])

    async def grow(*replicas: int) -> int:
        topic = m.CreatePartitionsTopic("t", 2, [m.CreatePartitionsAssignment(list(replicas))])
        answer = await (await nodes(1)).call(m.CreatePartitionsRequest([topic], 1000), 3)
        return answer.results[0].error_code

    assert await grow(1) == errors.InvalidReplicaAssignment.code
    assert await grow(1, 2, 3) == errors.InvalidReplicaAssignment.code
    assert await grow(3, 1) == 0


async def test_a_node_that_is_suspended(nodes: Nodes) -> None:
    with nodes.broker.faults.hold(None, node=2) as fault:
        held = asyncio.ensure_future((await nodes(2)).call(m.MetadataRequest([]), 12))
        await (await nodes(1)).call(m.MetadataRequest([]), 12)
        await asyncio.to_thread(fault.wait_for_hits)
        assert not held.done()
    assert len((await held).brokers) == 3
