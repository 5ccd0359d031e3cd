"""A leader that is cut off while others lead: what it takes, refuses and serves, as a leader that does not know."""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copytree

import pytest
from tests.broker.held import log_of, topic_of
from tests.broker.nodes import PROPERTIES, Nodes, batch, placed
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.share_acknowledge_request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)
from groupkeeper.protocol.messages.share_fetch_request import FetchPartition as FetchPartitionOfShares
from groupkeeper.protocol.messages.share_fetch_request import FetchTopic as FetchTopicOfShares
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    soon = PROPERTIES | {"broker.session.timeout.ms": "50"}
    async with Broker(directory=tmp_path / "data", properties=soon, brokers=3) as broker:
        yield Nodes(broker)


async def cut_off(nodes: Nodes, node: int = 1) -> None:
    """Cuts a node off; returns when another one leads t-0."""
    await nodes.broker.cut_off_node(node)
    async with asyncio.timeout(20):
        while (await placed(await nodes(2), "t"))[0] == node:
            pass


async def take(
    nodes: Nodes,
    *values: bytes,
    node: int = 1,
    acks: int = 1,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional_id: str | None = None,
) -> m.PartitionProduceResponse:
    """Produces to t-0; `producer`: id, epoch, sequence."""
    producer_id, epoch, sequence = producer
    records = write_batch(
        [Record(key, value, timestamp=1) for value in values or (b"a",)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional_id is not None,
    )
    topics = [m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, records)])]
    answer = await (await nodes(node)).call(m.ProduceRequest(transactional_id, acks, 50, topics), 12)
    return answer.responses[0].partition_responses[0]


async def test_a_stale_leader_checks_records(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], cleanup_policy="compact", message_timestamp_type="LogAppendTime")
    await cut_off(nodes)
    for node in (1, 2):
        refused = await take(nodes, node=node, key=None)
        assert (refused.error_code, len(refused.record_errors)) == (errors.InvalidRecord.code, 1)
        taken = await take(nodes, b"a", b"b", node=node)
        assert (taken.error_code, taken.base_offset, taken.log_start_offset) == (0, 0, 0)
        assert taken.log_append_time_ms > 1


async def test_a_stale_leader_checks_the_sequences_of_producers(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    assert (await take(nodes, producer=(7, 0, 0))).base_offset == 0
    await cut_off(nodes)
    for node in (1, 2):
        assert (await take(nodes, node=node, producer=(7, 0, 2))).error_code == errors.OutOfOrderSequenceNumber.code
        for _ in range(2):
            assert (await take(nodes, b"b", b"c", node=node, producer=(7, 0, 1))).base_offset == 1
        assert (await take(nodes, node=node, producer=(7, 0, 3))).base_offset == 3
    assert (await take(nodes, producer=(7, 1, 1))).error_code == errors.OutOfOrderSequenceNumber.code
    assert (await take(nodes, producer=(7, 1, 0))).base_offset == 4
    log = log_of(nodes.broker, "t")
    assert log.log_end_offset == 4
    assert not log.producers.has_open_transaction(7, 1)
    assert (await take(nodes, node=2, producer=(7, 0, 4))).base_offset == 4


async def test_a_stale_leader_asks_for_as_many_in_sync_as_it_knows(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], min_insync_replicas="2")
    await nodes.broker.stop_node(3)
    await cut_off(nodes)
    assert (await take(nodes, acks=-1)).error_code == errors.RequestTimedOut.code
    assert (await take(nodes, node=2, acks=-1)).error_code == errors.NotEnoughReplicas.code


async def test_a_stale_leader_reaches_no_transaction_coordinator(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    await nodes.create("__transaction_state", *[[2]] * 6)
    begun = await (await nodes(2)).call(m.InitProducerIdRequest("x", 60_000), 4)
    owner = begun.producer_id, begun.producer_epoch
    assert (await take(nodes, producer=(*owner, 0), transactional_id="x")).error_code == 0
    await cut_off(nodes)
    assert (await take(nodes, producer=(*owner, 1), transactional_id="x")).base_offset == 1
    begun = await (await nodes(2)).call(m.InitProducerIdRequest("y", 60_000), 4)
    other = begun.producer_id, begun.producer_epoch, 0
    assert (await take(nodes, producer=other, transactional_id="y")).error_code == errors.NotEnoughReplicas.code


async def test_a_stale_leader_without_another_one_may_lead_again(nodes: Nodes) -> None:
    await nodes.create("t", [1])
    assert (await take(nodes)).base_offset == 0
    await cut_off(nodes)
    assert (await take(nodes)).error_code == errors.NotLeaderOrFollower.code
    await nodes.broker.resume_node(1)
    assert (await take(nodes)).base_offset == 1


async def test_a_leader_that_is_cut_off_leads_again_and_parts_again(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    nodes.broker.config.broker_session_timeout_ms = 60_000
    await nodes.broker.cut_off_node(1)
    await nodes.broker.move_leader("t", 0, 2)
    assert (await take(nodes, b"a", b"b")).base_offset == 0
    assert (await take(nodes)).base_offset == 2
    await nodes.broker.move_leader("t", 0, 1)
    assert (await take(nodes)).base_offset == 0
    await nodes.broker.move_leader("t", 0, 3)
    assert (await take(nodes)).base_offset == 1


async def part(nodes: Nodes) -> PartitionLog:
    """Cuts node 1 off, which leads t-0; then node 2 leads, in sync with node 3."""
    nodes.broker.config.broker_session_timeout_ms = 60_000
    await nodes.broker.cut_off_node(1)
    assert (await take(nodes)).error_code == 0
    await nodes.broker.move_leader("t", 0, 2)
    await nodes.broker.set_in_sync("t", 0, [2, 3])
    return log_of(nodes.broker, "t")


async def test_a_stale_leader_serves_what_it_knows_to_be_committed(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    assert (await take(nodes, b"a", b"b", acks=-1)).error_code == 0
    await part(nodes)
    assert (await take(nodes, b"c", b"d", b"e", node=2, acks=-1)).base_offset == 2
    assert (await take(nodes)).base_offset == 3
    stale = await nodes(1)

    async def records(offset: int) -> int:
        found = await stale.fetch("t", offset, max_bytes=100_000)
        assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 2, 2)
        return sum(header.record_count for _, header in iter_headers(found.records or b""))

    assert [await records(offset) for offset in (0, 2, 4)] == [2, 0, 0]
    assert (await stale.fetch("t", 5)).error_code == errors.OffsetOutOfRange.code
    assert (await stale.fetch("t", 0, leader_epoch=0)).records
    assert (await stale.fetch("t", 0, leader_epoch=1)).error_code == errors.UnknownLeaderEpoch.code
    assert (await stale.list_offset("t", 2)).offset == -1
    found = [await stale.list_offset("t", timestamp) for timestamp in (-1, -2, 1)]
    assert [(one.offset, one.leader_epoch) for one in found] == [(2, 0), (0, 0), (0, 0)]

    async def end_of(node: int) -> tuple[int, int]:
        parts = [m.OffsetForLeaderPartition(0, -1, 0)]
        request = m.OffsetForLeaderEpochRequest(-2, [m.OffsetForLeaderTopic("t", parts)])
        ended = (await (await nodes(node)).call(request, 4)).topics[0].partitions[0]
        return ended.leader_epoch, ended.end_offset

    assert [await end_of(node) for node in (1, 2)] == [(0, 4), (0, 2)]


async def test_what_a_stale_leader_still_reads_when_it_leads_again_is_not_taken(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    log = await part(nodes)
    stale = log.seen_by(1)
    await nodes.broker.resume_node(1)
    await nodes.broker.move_leader("t", 0, 1)
    with pytest.raises(errors.NotLeaderOrFollower):
        stale.append(batch(b"a"), 1)


async def test_a_start_after_a_kill_does_not_miss_what_a_failover_lost(nodes: Nodes, tmp_path: Path) -> None:
    nodes.broker.config.broker_session_timeout_ms = 60_000
    await nodes.create("t", [1, 2])
    assert (await take(nodes, acks=-1)).error_code == 0
    await nodes.broker.cut_off_node(1)
    assert (await take(nodes, b"b", b"c")).base_offset == 1
    await nodes.broker.topics.write_recovery_points()
    await nodes.broker.move_leader("t", 0, 2)
    killed = copytree(nodes.broker.storage_path, tmp_path / "killed")
    async with Broker(directory=killed, properties=PROPERTIES, brokers=3) as started:
        assert log_of(started, "t").log_end_offset == 1


async def test_what_a_failover_cannot_cut_off_keeps_no_other_partition_from_moving(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.broker.config.broker_session_timeout_ms = 60_000
    await nodes.create("t", [1, 2, 3])
    await nodes.create("__consumer_offsets", *[[1, 2, 3]] * 6)
    await nodes.broker.cut_off_node(1)
    assert (await take(nodes)).error_code == 0

    def fail(topic: str, partitions: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(nodes.broker.topics._recovery_points, "forget", fail)
    await nodes.broker.kill_node(1)
    assert (await take(nodes, node=2)).error_code == errors.KafkaStorageError.code
    assert (await (await nodes(2)).fetch("t", 0)).error_code == errors.KafkaStorageError.code
    assert await nodes.commit(2, 8) == 0


async def test_a_fetch_that_waits_for_a_stale_leader_goes_on_when_that_knows_of_the_others(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    log = await part(nodes)
    reading = asyncio.ensure_future((await nodes.connect(1)).fetch("t", 0, max_wait_ms=60_000))
    await becomes(lambda: log.waiters)
    assert (await take(nodes, node=2)).error_code == 0
    await nodes.broker.resume_node(1)
    assert (await reading).records


async def test_a_stale_leader_does_not_know_that_a_transaction_has_ended(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    await nodes.create("__transaction_state", *[[2]] * 6)
    begun = await (await nodes(2)).call(m.InitProducerIdRequest("x", 60_000), 4)
    owner = begun.producer_id, begun.producer_epoch
    taken = await take(nodes, producer=(*owner, 0), transactional_id="x", acks=-1)
    assert taken.error_code == 0
    log = await part(nodes)
    ended = await (await nodes(2)).call(m.EndTxnRequest("x", *owner, committed=True), 4)
    assert (ended.error_code, log.last_stable_offset) == (0, 2)
    for node, stable in ((1, 0), (2, 2)):
        topics = [FetchTopic("t", partitions=[FetchPartition(0)])]
        answer = await (await nodes(node)).call(m.FetchRequest(isolation_level=1, topics=topics), 12)
        found = answer.responses[0].partitions[0]
        assert (found.last_stable_offset, bool(found.records)) == (stable, stable > 0)


async def test_a_stale_follower_knows_the_epoch_that_it_knew(nodes: Nodes) -> None:
    await nodes.create("t", [2, 1, 3])
    assert (await take(nodes, node=2, acks=-1)).error_code == 0
    await nodes.broker.cut_off_node(1)
    await nodes.broker.move_leader("t", 0, 3)
    stale = await nodes(1)
    assert (await stale.fetch("t", 0, leader_epoch=0)).records
    assert (await stale.fetch("t", 0, leader_epoch=1)).error_code == errors.UnknownLeaderEpoch.code
    assert (await (await nodes(2)).fetch("t", 0, leader_epoch=1)).records


async def test_errors_of_a_node_name_the_leader_that_it_knew(nodes: Nodes) -> None:
    await nodes.create("t", [2, 3])
    topic_id = topic_of(nodes.broker, "t").topic_id
    await nodes.broker.cut_off_node(1)
    await nodes.broker.move_leader("t", 0, 3)

    async def named_by(node: int) -> list[tuple[int, int, list[int]]]:
        """What Produce, Fetch, ShareFetch and ShareAcknowledge say: leader, its epoch, the nodes with addresses."""
        wire = await nodes(node)
        records = [m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, batch(b"a"))])]
        produced = await wire.call(m.ProduceRequest(None, 1, 50, records), 12)
        wanted = [FetchTopic(topic_id=topic_id, partitions=[FetchPartition(0)])]
        fetched = await wire.call(m.FetchRequest(topics=wanted), 16)
        shared = [FetchTopicOfShares(topic_id, [FetchPartitionOfShares(0)])]
        acquired = await wire.call(m.ShareFetchRequest("g", "m", 0, 0, 1, 1000, 10, 10, topics=shared), 2)
        acknowledged = [AcknowledgeTopic(topic_id, [AcknowledgePartition(0, [AcknowledgementBatch(0, 0, [1])])])]
        answered = await wire.call(m.ShareAcknowledgeRequest("g", "m", 1, topics=acknowledged), 2)
        parts = [produced.responses[0].partition_responses[0]]
        parts += [one.responses[0].partitions[0] for one in (fetched, acquired, answered)]
        assert {one.error_code for one in parts} == {errors.NotLeaderOrFollower.code}
        leaders = [(one.current_leader.leader_id, one.current_leader.leader_epoch) for one in parts]
        nodes_named = [[one.node_id for one in each.node_endpoints] for each in (produced, fetched, acquired, answered)]
        return [(*leader, named) for leader, named in zip(leaders, nodes_named, strict=True)]

    assert await named_by(1) == [(2, 0, [2])] * 4
    await nodes.broker.resume_node(1)
    assert await named_by(1) == [(3, 1, [3])] * 4


async def test_what_only_a_leader_that_is_cut_off_has_is_lost_when_it_is_killed(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.broker.config.broker_session_timeout_ms = 60_000
    await nodes.create("t", [1, 2, 3])
    await nodes.broker.cut_off_node(1)
    assert (await take(nodes)).base_offset == 0
    log, front = nodes.broker.topics.partition("t", 0), nodes.broker.fronts[1]
    assert log is not None
    go_down = front.go_down

    async def go_down_while_replicas_change() -> None:
        await nodes.broker.set_in_sync("t", 0, [1, 2])
        await go_down()

    monkeypatch.setattr(front, "go_down", go_down_while_replicas_change)
    await nodes.broker.kill_node(1)
    assert (log.placement.leader, log.log_end_offset) == (2, 0)
