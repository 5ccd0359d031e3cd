"""Reassignments of partitions in a cluster: other replicas, at once or when they are there."""

import resource
from pathlib import Path

import pytest
from tests.broker.held import log_of
from tests.broker.nodes import PROPERTIES, Nodes, produce
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidReplicaAssignment, InvalidReplicationFactor, NoReassignmentInProgress


async def test_partitions_get_other_replicas(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    await produce(await nodes(1), "t", b"a")
    wire = await nodes(2)

    async def reassign(*replicas: int, may_resize: bool = True) -> int:
        parts = [m.ReassignablePartition(0, list(replicas) or None)]
        topics = [m.ReassignableTopic("t", parts)]
        request = m.AlterPartitionReassignmentsRequest(allow_replication_factor_change=may_resize, topics=topics)
        answer = await wire.call(request, 1)
        return answer.responses[0].partitions[0].error_code

    async def placed() -> tuple[int, int, list[int]]:
        part = await nodes.partition("t")
        return part.leader_id, part.leader_epoch, list(part.replica_nodes)

    async def listed() -> list[tuple[list[int], ...]]:
        request = m.ListPartitionReassignmentsRequest(topics=[m.ListPartitionReassignmentsTopics("t", [0])])
        answer = await wire.call(request, 0)
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
    assert (await listed(), await placed()) == ([], (3, 2, [3, 2]))
    assert await reassign(2, 1) == 0
    assert await listed() == [([2, 1, 3], [1], [3])]
    await nodes.broker.start_node(1)
    assert (await listed(), await placed()) == ([], (2, 3, [2, 1]))
    assert list((await nodes.partition("t")).isr_nodes) == [1, 2]


async def test_a_replica_that_is_added_and_leads_has_all_records(nodes: Nodes) -> None:
    await nodes.create("t", [1])
    await produce(await nodes(1), "t", b"a", b"b")
    await nodes.broker.reassign({log_of(nodes.broker, "t"): [3, 2]})
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (3, [3, 2], [2, 3])
    assert (await (await nodes(3)).list_offset("t", -1)).offset == 2


async def test_another_target_takes_no_replica_away_before_it_is_reached(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    await nodes.broker.kill_node(3)
    log = log_of(nodes.broker, "t")
    at = log.placement
    for target, replicas, removing in [
        ([3, 2], [3, 2, 1], [1]),
        ([2, 1], [2, 1, 3], [3]),
        ([3, 1], [3, 1, 2], [2]),
        ([1, 3], [1, 3, 2], [2]),
    ]:
        await nodes.broker.reassign({log: target})
        assert (at.replicas, list(at.adding), list(at.removing)) == (replicas, [3], removing)
        assert (at.leader, list(at.isr)) == (1, [1, 2])
    await nodes.broker.reassign({log: None})
    assert (at.leader, at.epoch, at.replicas, list(at.isr), at.is_moving) == (1, 1, [1, 2], [1, 2], False)


async def test_a_reassignment_is_not_taken_back_where_that_would_lose_records(nodes: Nodes) -> None:
    await nodes.create("t", [1])
    await nodes.create("u", [1], unclean_leader_election_enable="true")
    await nodes.broker.stop_node(3)
    wire = await nodes(2)

    async def reassign(replicas: list[int] | None) -> list[tuple[int, str | None]]:
        topics = [m.ReassignableTopic(name, [m.ReassignablePartition(0, replicas)]) for name in ("t", "u")]
        request = m.AlterPartitionReassignmentsRequest(topics=topics)
        answer = await wire.call(request, 1)
        return [(one.error_code, one.error_message) for topic in answer.responses for one in topic.partitions]

    assert await reassign([2, 3]) == [(0, None), (0, None)]
    await nodes.broker.kill_node(1)
    part = await nodes.partition("t")
    assert (part.leader_id, part.leader_epoch, list(part.isr_nodes)) == (2, 1, [2])
    why = "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    assert await reassign(None) == [(InvalidReplicaAssignment.code, why), (0, None)]
    assert (await nodes.partition("t")).leader_id == 2
    part = await nodes.partition("u")
    assert (part.leader_id, part.leader_epoch, list(part.replica_nodes), list(part.isr_nodes)) == (-1, 2, [1], [1])
    assert await reassign([1]) == [(0, None), (0, None)]
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (2, [1, 2, 3], [2])


async def test_a_leader_that_returns_uncleanly_has_only_its_records_during_a_reassignment(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], unclean_leader_election_enable="true")
    await produce(await nodes(1), "t", b"a")
    await nodes.broker.stop_node(2)
    await produce(await nodes(1), "t", b"b")
    await nodes.broker.reassign({log_of(nodes.broker, "t"): [2]})
    for node in (3, 1):
        await nodes.broker.stop_node(node)
    await nodes.broker.start_node(2)
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (2, [2], [2])
    assert (await (await nodes(2)).list_offset("t", -1)).offset == 1
    assert (await produce(await nodes(2), "t", b"c")).responses[0].partition_responses[0].base_offset == 1


async def throttle(nodes: Nodes, rate: str | None) -> None:
    """Sets how many bytes in a second may be copied to node 2; None: as many as it can."""
    name = "follower.replication.throttled.rate"
    assert await (await nodes(2)).alter(4, "2", name, rate, 0 if rate else 1) == (0, None)


async def test_a_reassignment_waits_while_it_is_throttled(nodes: Nodes) -> None:
    await nodes.create("t", [1], follower_replication_throttled_replicas="0:2")
    await produce(await nodes(1), "t", b"a")
    await throttle(nodes, "1")
    parts = [m.ReassignablePartition(0, [2, 3])]
    request = m.AlterPartitionReassignmentsRequest(topics=[m.ReassignableTopic("t", parts)])
    await (await nodes(1)).call(request, 1)
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (1, [2, 3, 1], [1, 3])
    await throttle(nodes, None)
    part = await nodes.partition("t")
    assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (2, [2, 3], [2, 3])


async def test_a_throttled_reassignment_that_cannot_be_written_down_is_tried_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("groupkeeper.broker.cluster.nodes.RETRY_S", 0.02)
    await nodes.create("t", [1], follower_replication_throttled_replicas="0:2")
    await produce(await nodes(1), "t", b"a")
    await throttle(nodes, "1000")
    log = log_of(nodes.broker, "t")
    await nodes.broker.reassign({log: [2]})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    journal = Path(nodes.broker.storage_path, "placements.journal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size, hard))
    try:
        await becomes(lambda: "cannot go on with reassignments" in caplog.text)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.placement.leader == 1
    await becomes(lambda: log.placement.leader != 1)
    assert list(log.placement.replicas) == [2]


async def test_a_reassignment_ends_at_a_restart(tmp_path: Path) -> None:
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        nodes = Nodes(broker)
        await nodes.create("t", [1, 2])
        await broker.stop_node(3)
        await broker.reassign({log_of(broker, "t"): [3, 2]})
        assert (await nodes.partition("t")).leader_id == 1
    async with Broker(directory=tmp_path, properties=PROPERTIES, brokers=3) as broker:
        part = await Nodes(broker).partition("t")
        assert (part.leader_id, list(part.replica_nodes), list(part.isr_nodes)) == (3, [3, 2], [2, 3])
