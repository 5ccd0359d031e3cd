"""Transactions of several nodes: no partition has a record or an outcome that the next coordinator does not know of."""

import asyncio
from typing import Any

import pytest
from tests.broker.conftest import Start
from tests.broker.held import log_of, topic_of
from tests.broker.nodes import PROPERTIES, Nodes
from tests.broker.test_transactions import ADDING_PRODUCE, ID, Producer
from tests.patience import becomes

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m

TXN_OFFSET_COMMIT = 5


async def begin(nodes: Nodes, topic: str = "t", *replicas: int, **configs: Any) -> tuple[Producer, PartitionLog]:
    """A producer whose coordinator is node 1, with a replica on node 3, and a topic, by default on node 2."""
    await nodes.create(topic, list(replicas) or [2], **configs)
    await nodes.create("__transaction_state", *[[1, 3]] * 6)
    producer = Producer(await nodes(1))
    assert await producer.init() == 0
    return producer, log_of(nodes.broker, topic)


def coordinator_log(nodes: Nodes) -> PartitionLog:
    return nodes.broker.transactions.shard_of(ID).log


async def write(nodes: Nodes, producer: Producer, what: str) -> int:
    """Writes to node 2 in the transaction, which adds the partition; returns the error code."""
    producer.wire = await nodes.connect(2)
    if what == "produce":
        answer = await producer.produce("t", "a", version=ADDING_PRODUCE)
        return answer.error_code
    return await producer.commit_offset("g", "t", 1, version=TXN_OFFSET_COMMIT)


@pytest.mark.parametrize("what", ["produce", "commit"])
async def test_a_write_waits_until_the_coordinators_replicas_have_its_partition(nodes: Nodes, what: str) -> None:
    producer, log = await begin(nodes)
    await nodes.create("__consumer_offsets", *[[2]] * 6)
    if what == "commit":
        log = nodes.broker.groups.shard_of("g").log
    await nodes.broker.pause_node(3)
    writing = asyncio.ensure_future(write(nodes, producer, what))
    again = asyncio.ensure_future(write(nodes, producer, what))
    await becomes(lambda: len(coordinator_log(nodes).waiters) == 2)
    assert (writing.done(), log.log_end_offset) == (False, 0)
    await nodes.broker.resume_node(3)
    assert [await writing, await again] == [0, 0]
    assert log.log_end_offset > 0


async def test_all_partitions_of_a_request_are_waited_for_together(nodes: Nodes) -> None:
    await nodes.create("u", [2], [2], [1], [2])
    producer, _ = await begin(nodes)
    producer.wire = await nodes.connect(2)
    await nodes.broker.pause_node(3)
    writing = asyncio.ensure_future(producer.produce_to("u", 0, 1, 2, 3, values=["a"], version=ADDING_PRODUCE))
    transaction = nodes.broker.transactions.shard_of(ID).coordinator.transactions
    await becomes(lambda: transaction[ID].partitions == {("u", 0), ("u", 1), ("u", 3)})
    topic = topic_of(nodes.broker, "u")
    assert [log.log_end_offset for log in topic.partitions] == [0, 0, 0, 0]
    await nodes.broker.resume_node(3)
    not_led = errors.NotLeaderOrFollower.code
    assert [(one.error_code, one.base_offset) for one in await writing] == [(0, 0), (0, 0), (not_led, -1), (0, 0)]


@pytest.mark.parametrize("what", ["produce", "commit"])
async def test_a_coordinator_that_does_not_know_a_partition_has_nothing_to_end_there(nodes: Nodes, what: str) -> None:
    producer, log = await begin(nodes)
    await nodes.create("__consumer_offsets", *[[2]] * 6)
    await nodes.broker.pause_node(3)
    writing = asyncio.ensure_future(write(nodes, producer, what))
    await becomes(lambda: coordinator_log(nodes).waiters)
    await nodes.broker.kill_node(1)
    await nodes.broker.resume_node(3)
    assert await writing == (errors.NotEnoughReplicas if what == "produce" else errors.NotCoordinator).code
    for one in (log, nodes.broker.groups.shard_of("g").log):
        assert one.log_end_offset == 0
    assert await write(nodes, producer, what) == 0


async def test_a_write_waits_no_longer_than_nodes_wait_for_each_other(start: Start) -> None:
    nodes = Nodes(await start(brokers=3, properties=PROPERTIES | {"request.timeout.ms": 50}))
    producer, log = await begin(nodes)
    await nodes.broker.pause_node(3)
    assert await write(nodes, producer, "produce") == errors.NotEnoughReplicas.code
    assert log.log_end_offset == 0


async def test_adding_a_partition_again_waits_as_the_first_time(nodes: Nodes) -> None:
    producer, _ = await begin(nodes)
    await nodes.broker.pause_node(3)
    adding = []
    for _ in range(2):
        producer.wire = await nodes.connect(1)
        adding.append(asyncio.ensure_future(producer.add("t", 0)))
    await becomes(lambda: len(coordinator_log(nodes).waiters) == 2)
    await nodes.broker.resume_node(3)
    assert await asyncio.gather(*adding) == [[0], [0]]


async def test_what_replicas_have_is_forgotten(nodes: Nodes) -> None:
    await begin(nodes)
    shard = nodes.broker.transactions.shard_of(ID)
    await nodes.broker.pause_node(3)
    adding = asyncio.ensure_future(Producer(await nodes.connect(1)).init())
    await becomes(lambda: shard._ends)
    shard.abort_timed_out()
    assert (len(shard._ends), shard.is_replicated(ID)) == (1, False)
    await nodes.broker.resume_node(3)
    await adding
    shard.abort_timed_out()
    assert (len(shard._ends), shard.is_replicated(ID)) == (0, True)


async def readable(nodes: Nodes, node: int) -> int:
    """The last stable offset of t-0."""
    return (await (await nodes.connect(node)).fetch("t", 0)).last_stable_offset


async def waiting_end(nodes: Nodes) -> tuple[Producer, PartitionLog, asyncio.Future[int]]:
    """A producer whose commit waits for a replica of the coordinator that is held up, and the log it has written to."""
    producer, log = await begin(nodes)
    return producer, log, await held_up(nodes, producer)


async def held_up(nodes: Nodes, producer: Producer) -> asyncio.Future[int]:
    assert await write(nodes, producer, "produce") == 0
    await nodes.broker.pause_node(3)
    producer.wire = await nodes.connect(1)
    ending = asyncio.ensure_future(producer.end(commit=True))
    await becomes(lambda: coordinator_log(nodes).waiters)
    return ending


async def test_no_marker_is_sent_before_the_coordinators_replicas_have_the_outcome(nodes: Nodes) -> None:
    producer, log, ending = await waiting_end(nodes)
    await asyncio.sleep(0.01)
    assert (ending.done(), log.log_end_offset) == (False, 1)
    await nodes.broker.kill_node(1)  # the next coordinator has not heard of the outcome
    with pytest.raises(asyncio.IncompleteReadError):
        await ending
    await nodes.broker.resume_node(3)
    producer.wire = await nodes.connect(3)
    assert await producer.end(commit=False) == 0
    (aborted,) = log.producers.aborted
    assert (aborted.first_offset, aborted.last_offset, log.log_end_offset) == (0, 1, 2)


async def test_no_marker_is_sent_when_the_log_of_the_outcome_fails(nodes: Nodes) -> None:
    _, log, ending = await waiting_end(nodes)
    coordinator_log(nodes).close("its disk is broken")
    await becomes(lambda: not nodes.broker.transactions.shard_of(ID)._retries)
    assert (ending.done(), log.log_end_offset) == (False, 1)
    ending.cancel()


@pytest.mark.parametrize("node", [1, 2])
async def test_a_marker_crosses_no_cut(nodes: Nodes, node: int) -> None:
    producer, log = await begin(nodes)
    await nodes.broker.reassign({coordinator_log(nodes): [1]})
    assert await write(nodes, producer, "produce") == 0
    await nodes.broker.cut_off_node(node)
    producer.wire = await nodes.connect(1)
    assert await producer.end(commit=True) == 0
    await becomes(lambda: nodes.broker.transactions.shard_of(ID)._retries)
    assert log.log_end_offset == 1
    await nodes.broker.resume_node(node)
    await becomes(lambda: log.log_end_offset == 2)


@pytest.mark.parametrize("what", ["produce", "commit"])
@pytest.mark.parametrize("node", [1, 2])
async def test_a_leader_asks_no_coordinator_across_a_cut(nodes: Nodes, what: str, node: int) -> None:
    producer, log = await begin(nodes)
    await nodes.create("__consumer_offsets", *[[2]] * 6)
    await nodes.broker.cut_off_node(node)
    found = await write(nodes, producer, what)
    assert found == (errors.NotEnoughReplicas if what == "produce" else errors.NotCoordinator).code
    assert (log.log_end_offset, nodes.broker.groups.shard_of("g").log.log_end_offset) == (0, 0)
    await nodes.broker.resume_node(node)
    assert await write(nodes, producer, what) == 0


async def test_markers_follow_when_the_coordinators_replicas_have_the_outcome(nodes: Nodes) -> None:
    producer, log = await begin(nodes)
    assert await write(nodes, producer, "produce") == 0
    await nodes.broker.slow_node(3, 30)
    producer.wire = await nodes.connect(1)
    assert await producer.end(commit=True) == 0
    await becomes(lambda: log.log_end_offset == 2)
    await becomes(lambda: not nodes.broker.transactions.shard_of(ID)._retries)
    assert await readable(nodes, 2) == 2


async def test_a_coordinator_that_moves_sends_markers_when_its_replicas_have_what_it_loaded(nodes: Nodes) -> None:
    producer, log = await begin(nodes)
    await nodes.broker.reassign({coordinator_log(nodes): [1, 2, 3]})
    ending = await held_up(nodes, producer)
    await nodes.broker.move_transaction_coordinator(ID, 2)
    assert await ending == errors.NotCoordinator.code
    assert log.log_end_offset == 1
    await nodes.broker.resume_node(3)
    await becomes(lambda: log.log_end_offset == 2)


@pytest.mark.parametrize("what", ["produce", "commit"])
async def test_a_marker_that_a_failover_loses_is_written_again(nodes: Nodes, what: str) -> None:
    producer, log = await begin(nodes, "t", 2, 3)
    await nodes.create("__consumer_offsets", *[[2, 3]] * 6)
    await nodes.broker.reassign({coordinator_log(nodes): [1]})
    if what == "commit":
        log = nodes.broker.groups.shard_of("g").log
    assert await write(nodes, producer, what) == 0
    await nodes.broker.pause_node(3)
    producer.wire = await nodes.connect(1)
    assert await producer.end(commit=True) == 0
    known = nodes.broker.transactions.shard_of(ID).coordinator.transactions
    assert known[ID].status.is_ending
    assert log.log_end_offset == 2
    await nodes.broker.kill_node(2)
    await nodes.broker.resume_node(3)
    await becomes(lambda: not known[ID].status.is_ending)
    assert (log.last_stable_offset, log.log_end_offset) == (2, 2)
    assert not log.producers.has_open_transaction(producer.producer_id, producer.epoch)


async def test_a_marker_that_an_operator_writes_waits_for_replicas(start: Start) -> None:
    nodes = Nodes(await start(brokers=3, properties=PROPERTIES | {"request.timeout.ms": 50}))
    producer, log = await begin(nodes, "t", 2, 3)
    assert await write(nodes, producer, "produce") == 0
    wire = await nodes.connect(2)
    topics = [m.WritableTxnMarkerTopic("t", [0])]
    marker = m.WritableTxnMarker(producer.producer_id, producer.epoch, transaction_result=False, topics=topics)

    async def end() -> int:
        answer = await wire.call(m.WriteTxnMarkersRequest([marker]), 1)
        return answer.markers[0].topics[0].partitions[0].error_code

    await nodes.broker.pause_node(3)
    assert await end() == errors.RequestTimedOut.code
    nodes.broker.config.request_timeout_ms = 60_000
    ending = asyncio.ensure_future(end())
    await becomes(lambda: log.waiters)
    await nodes.broker.move_leader("t", 0, 3)
    assert await ending == errors.NotLeaderOrFollower.code
    await nodes.broker.resume_node(3)


async def test_a_partition_without_a_leader_keeps_no_other_from_its_marker(nodes: Nodes) -> None:
    producer, log = await begin(nodes, "u", 3)
    await nodes.create("t", [2])
    assert [await producer.add(topic, 0) for topic in ("t", "u")] == [[0], [0]]
    producer.wire = await nodes.connect(3)
    assert (await producer.produce("u", "a")).error_code == 0
    await nodes.broker.stop_node(2)
    producer.wire = await nodes.connect(1)
    assert await producer.end(commit=True) == 0
    assert (log.last_stable_offset, log.log_end_offset) == (2, 2)
    await nodes.broker.start_node(2)
    await becomes(lambda: not nodes.broker.transactions.shard_of(ID)._retries)
    assert log.log_end_offset == 2
