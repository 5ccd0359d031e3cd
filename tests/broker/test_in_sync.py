"""Replicas that are in sync with the leader, or not: who may lead then, and which records are committed."""

import asyncio
from typing import Any

import pytest
from tests.broker.conftest import Start
from tests.broker.held import log_of, topic_of
from tests.broker.nodes import PROPERTIES, Nodes, batch, code_of, produce
from tests.broker.nodes import placed as placed_at
from tests.patience import becomes

from groupkeeper.broker.shares import dead_letters
from groupkeeper.broker.shares.state_host import coordinator_key
from groupkeeper.coordinator.share_partition.partition import DeadRecords
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import (
    CoordinatorNotAvailable,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownMemberId,
)
from groupkeeper.protocol.messages import alter_share_group_offsets_request as alter
from groupkeeper.protocol.messages import share_acknowledge_request as share_acknowledge
from groupkeeper.protocol.messages import share_fetch_request as share_fetch
from groupkeeper.protocol.messages.initialize_share_group_state_request import InitializeStateData, PartitionData
from groupkeeper.protocol.primitives import RootMessage


async def placed(nodes: Nodes, topic: str = "t") -> tuple[int, int, list[int], list[int], list[int]]:
    """Leader, its epoch, replicas in sync, eligible ones, last known eligible ones."""
    leader, epoch, _, isr, eligible, last = await placed_at(
        await nodes(min(nodes.broker.topics.placements.running)), topic
    )
    return leader, epoch, isr, eligible, last


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


async def end(nodes: Nodes, node: int, topic: str = "t") -> int:
    """The high watermark."""
    return (await (await nodes(node)).list_offset(topic, -1)).offset


async def test_what_a_replica_in_sync_lacks_is_not_committed(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], min_insync_replicas="2")
    leader = await nodes(1)
    assert code_of(await produce(leader, "t", b"a")) == 0
    await nodes.broker.pause_node(3)
    answer = await produce(leader, "t", b"b", timeout_ms=50)
    (part,) = answer.responses[0].partition_responses
    assert (part.error_code, part.base_offset) == (RequestTimedOut.code, 1)
    assert code_of(await produce(leader, "t", b"c", acks=1)) == 0
    assert await end(nodes, 1) == 1
    fetched = await leader.fetch("t", 1, max_wait_ms=20)
    assert (fetched.high_watermark, fetched.last_stable_offset, fetched.records) == (1, 1, b"")
    assert (await placed(nodes))[2] == [1, 2, 3]
    waiting = asyncio.ensure_future(produce(await nodes.connect(1), "t", b"d", timeout_ms=60_000))
    reading = asyncio.ensure_future((await nodes.connect(1)).fetch("t", 1, max_wait_ms=60_000))
    log = log_of(nodes.broker, "t")
    await becomes(lambda: len(log.waiters) >= 2)
    assert not waiting.done()
    await nodes.broker.resume_node(3)
    assert code_of(await waiting) == 0
    assert (await reading).high_watermark == 4
    assert await end(nodes, 1) == 4


async def test_a_suspended_node_is_missed_and_what_waits_for_it_goes_on(start: Start) -> None:
    broker = await start(brokers=3, properties={"broker.session.timeout.ms": 200})
    nodes = Nodes(broker)
    await nodes.create("t", [3, 2, 1], min_insync_replicas="2")
    await nodes.create("u", [1, 3], min_insync_replicas="2")
    leader = await nodes(3)
    await broker.pause_node(3)
    waiting = asyncio.ensure_future(produce(leader, "t", b"lost"))
    assert code_of(await produce(await nodes(1), "u", b"a", timeout_ms=20)) == RequestTimedOut.code
    async with asyncio.timeout(20):
        while (await placed(nodes))[0] != 2:
            pass
    assert await placed(nodes) == (2, 1, [1, 2], [], [])
    assert code_of(await produce(await nodes(2), "t", b"b")) == 0
    assert await placed(nodes, "u") == (1, 0, [1], [3], [])
    assert code_of(await produce(await nodes(1), "u", b"b")) == NotEnoughReplicas.code
    assert await end(nodes, 1, "u") == 0
    assert broker.state_of(3) == "paused"
    assert not waiting.done()
    await broker.resume_node(3)
    assert code_of(await waiting) == NotLeaderOrFollower.code
    assert await placed(nodes) == (2, 1, [1, 2, 3], [], [])
    assert await end(nodes, 1, "u") == 1


async def test_a_leader_that_is_cut_off_loses_what_only_it_has(start: Start) -> None:
    broker = await start(brokers=3, properties={"broker.session.timeout.ms": 200})
    nodes = Nodes(broker)
    await nodes.create("t", [1, 2, 3])
    assert code_of(await produce(await nodes(1), "t", b"a")) == 0
    await broker.cut_off_node(1)
    assert code_of(await produce(await nodes(1), "t", b"b", acks=1)) == 0
    assert code_of(await produce(await nodes(1), "t", b"c", timeout_ms=1000)) == RequestTimedOut.code
    assert await placed_at(await nodes(2), "t") == (2, 1, [1, 2, 3], [2, 3], [], [])
    assert await end(nodes, 2) == 1
    (stale,) = (await produce(await nodes(1), "t", b"d", b"e", acks=1)).responses[0].partition_responses
    assert (stale.error_code, stale.base_offset) == (0, 3)
    waiting = asyncio.ensure_future(produce(await nodes(1), "t", b"f", timeout_ms=60_000))
    for offset in range(1, 9):
        (new,) = (await produce(await nodes(2), "t", b"g")).responses[0].partition_responses
        assert (new.error_code, new.base_offset) == (0, offset)
    assert not waiting.done()
    await broker.resume_node(1)
    assert code_of(await waiting) == NotLeaderOrFollower.code
    assert code_of(await produce(await nodes(1), "t", b"h", acks=1)) == NotLeaderOrFollower.code
    assert await end(nodes, 2) == 9
    assert await placed(nodes) == (2, 1, [1, 2, 3], [], [])


async def test_a_node_that_is_cut_off_tells_what_it_knew(start: Start) -> None:
    broker = await start(brokers=3, properties=PROPERTIES | {"broker.session.timeout.ms": 50})
    nodes = Nodes(broker)
    await nodes.create("t", [1, 2, 3])
    groups = {await nodes.coordinator(str(number)): str(number) for number in range(20)}

    async def told_by(node: int, group: str) -> tuple[object, ...]:
        wire = await nodes(node)
        cluster = await wire.call(m.DescribeClusterRequest(), 1)
        metadata = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name="t")]), 12)
        assert [one.node_id for one in metadata.brokers] == [one.broker_id for one in cluster.brokers]
        assert metadata.controller_id == cluster.controller_id
        (part,) = metadata.topics[0].partitions
        leader, epoch, _, isr, *_ = await placed_at(wire, "t")
        assert (part.leader_id, part.leader_epoch, sorted(part.isr_nodes)) == (leader, epoch, isr)
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        (found,) = (await wire.call(request, 6)).coordinators
        running = [one.broker_id for one in cluster.brokers]
        return leader, epoch, isr, list(part.offline_replicas), running, cluster.controller_id, found.node_id

    before: tuple[Any, ...] = 1, 0, [1, 2, 3], [], [1, 2, 3], 1
    assert await told_by(1, groups[1]) == (*before, 1)
    await broker.cut_off_node(1)
    async with asyncio.timeout(20):
        while (await placed_at(await nodes(2), "t"))[0] == 1:
            pass
    assert await told_by(2, groups[1]) == (2, 1, [2, 3], [1], [2, 3], 2, 2)
    assert await told_by(1, groups[1]) == (*before, 1)
    await broker.stop_node(2)
    assert await told_by(1, groups[2]) == (*before, 2)
    assert await told_by(3, groups[2]) == (3, 2, [3], [1, 2], [3], 3, 3)
    await broker.resume_node(1)
    assert await told_by(1, groups[2]) == (3, 2, [1, 3], [2], [1, 3], 1, 3)


async def test_a_replica_that_lags_for_too_long_is_not_in_sync(start: Start) -> None:
    broker = await start(brokers=3, properties={"replica.lag.time.max.ms": 100})
    nodes = Nodes(broker)
    await nodes.create("t", [1, 2])
    await nodes.create("u", [1, 2])
    await broker.cut_off_node(2)
    assert code_of(await produce(await nodes(1), "t", b"a", timeout_ms=60_000)) == 0
    assert await placed(nodes) == (1, 0, [1], [], [])
    assert await placed(nodes, "u") == (1, 0, [1, 2], [], [])
    follower = await nodes(2)
    assert (await follower.fetch("t", 0)).high_watermark == 0


async def test_a_slow_node_gets_records_late(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2])
    await nodes.broker.slow_node(2, 30)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(3):
        assert code_of(await produce(await nodes(1), "t", b"a")) == 0
    assert loop.time() - began > 0.06
    began = loop.time()
    await (await nodes(2)).call(m.MetadataRequest([]), 12)
    assert loop.time() - began > 0.02
    assert await placed(nodes) == (1, 0, [1, 2], [], [])


async def test_a_node_that_is_hidden_from_clients_goes_on_leading(nodes: Nodes) -> None:
    await nodes.create("t", [2, 3])
    await nodes(2)
    await nodes.broker.hide_node(2)
    with pytest.raises(ConnectionError):
        await nodes(2)
    assert await placed(nodes) == (2, 0, [2, 3], [], [])
    await nodes.broker.resume_node(2)
    assert code_of(await produce(await nodes(2), "t", b"a")) == 0


async def test_nothing_is_committed_while_too_few_are_in_sync(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], min_insync_replicas="2")
    for node in (2, 3):
        await nodes.broker.stop_node(node)
    assert code_of(await produce(await nodes(1), "t", b"a", acks=1)) == 0
    assert await end(nodes, 1) == 0
    assert code_of(await produce(await nodes(1), "t", b"b", acks=1)) == 0
    nodes.broker.topics.partition("t", 0).advance_start(1)  # type: ignore[union-attr]  # retention does not wait
    assert await end(nodes, 1) == 1
    assert await (await nodes(1)).alter(2, "t", "min.insync.replicas", "1") == (0, None)
    assert await end(nodes, 1) == 2


async def commit_that_waits(nodes: Nodes) -> asyncio.Future[int]:
    """A commit at node 1 that waits for node 3, which is suspended."""
    await nodes.create("t", [1])
    await nodes.create("__consumer_offsets", *[[1, 2, 3]] * 6)
    assert await nodes.commit(1, 7) == 0
    nodes.broker.config.of(1).offsets_commit_timeout_ms = 60_000
    await nodes.broker.pause_node(3)
    waiting = asyncio.ensure_future(nodes.commit(1, 8))
    await becomes(lambda: nodes.broker.groups.shard_of("g").log.waiters)
    return waiting


async def test_a_commit_that_waits_ends_when_its_coordinator_moves(nodes: Nodes) -> None:
    waiting = await commit_that_waits(nodes)
    await nodes.broker.move_coordinator("g", 2)
    assert await waiting == NotCoordinator.code
    await nodes.broker.resume_node(3)
    assert await nodes.commit(2, 9) == 0


async def test_a_refusal_waits_for_no_replica(nodes: Nodes) -> None:
    waiting = await commit_that_waits(nodes)
    wire = await nodes.connect(1)
    async with asyncio.timeout(20):
        assert (await wire.call(m.HeartbeatRequest("g", 1, "x"), 4)).error_code == UnknownMemberId.code
    await wire.close()
    assert not waiting.done()
    await nodes.broker.resume_node(3)
    assert await waiting == 0


async def test_a_join_does_not_stay_parked_while_its_group_is_not_committed(start: Start) -> None:
    properties = {"offsets.commit.timeout.ms": 50, "group.initial.rebalance.delay.ms": 60_000}
    nodes = Nodes(await start(brokers=3, properties=PROPERTIES | properties))
    await nodes.create("__consumer_offsets", *[[1, 2, 3]] * 6)
    await nodes.broker.pause_node(3)
    protocols = [m.JoinGroupRequestProtocol("range", b"")]
    join = m.JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols)
    wire = await nodes(1)
    async with asyncio.timeout(4):  # less than by default
        assert (await wire.call(join, 3)).error_code == CoordinatorNotAvailable.code


async def test_share_coordinators_wait_for_replicas(start: Start) -> None:
    nodes = Nodes(await start(brokers=3, properties={"share.coordinator.write.timeout.ms": 50}))
    await nodes.create("t", [1])
    await nodes.create("__share_group_state", *[[1, 2]] * 50)
    topic = topic_of(nodes.broker, "t")
    wire = await nodes(1)

    async def initialize(start_offset: int) -> int:
        parts = [PartitionData(0, 1, start_offset)]
        request = m.InitializeShareGroupStateRequest("s", [InitializeStateData(topic.topic_id, parts)])
        return (await wire.call(request, 0)).results[0].partitions[0].error_code

    assert await initialize(1) == 0
    await nodes.broker.pause_node(2)
    async with asyncio.timeout(4):  # less than by default
        assert await initialize(2) == CoordinatorNotAvailable.code
    await nodes.broker.resume_node(2)
    assert await initialize(3) == 0


@pytest.mark.parametrize("node", [1, 2])
async def test_share_coordinators_are_asked_across_no_cut(nodes: Nodes, node: int) -> None:
    for topic in ("t", "__consumer_offsets"):
        await nodes.create(topic, [1])
    await nodes.create("dlq.s", [2], errors_deadletterqueue_group_enable="true")
    await nodes.create("__share_group_state", *[[2]] * 50)
    t = topic_of(nodes.broker, "t")
    nodes.broker.share_states.initialize(SharePartitionKey("s", t.topic_id, 0), 1, 0)
    nodes.broker.group_configs.configure("s", {"errors.deadletterqueue.topic.name": "dlq.s"})
    topics = [share_fetch.FetchTopic(t.topic_id, [share_fetch.FetchPartition(0)])]
    fetch = m.ShareFetchRequest("s", "x" * 22, 0, 500, 1, 1 << 20, 9, 9, topics=topics)
    altered = [alter.AlterShareGroupOffsetsRequestTopic("t", [alter.AlterShareGroupOffsetsRequestPartition(0, 3)])]
    described = [m.DescribeShareGroupOffsetsRequestGroup("s", [m.DescribeShareGroupOffsetsRequestTopic("t", [0])])]

    async def ask() -> tuple[int, int, int]:
        """What come of a fetch and an alteration, and the start offset of the group."""
        wire = await nodes.connect(1)
        codes = [
            answer.responses[0].partitions[0].error_code
            for answer in [await wire.call(fetch, 2), await wire.call(m.AlterShareGroupOffsetsRequest("s", altered), 0)]
        ]
        answer = await wire.call(m.DescribeShareGroupOffsetsRequest(described), 1)
        return codes[0], codes[1], answer.groups[0].topics[0].partitions[0].start_offset

    async def bury() -> int:
        """How many dead letters the queue has then."""
        dead, meters = [DeadRecords(0, 0, 1, is_rejected=True)], nodes.broker.share_states.meters
        await dead_letters.bury(nodes.broker, "s", t.partitions[0], dead, meters)
        return log_of(nodes.broker, "dlq.s").log_end_offset

    await nodes.broker.cut_off_node(node)
    code = CoordinatorNotAvailable.code
    assert (await ask(), await bury()) == ((code, code, -1), 0)
    await nodes.broker.resume_node(node)
    assert (await ask(), await bury()) == ((0, 0, 3), 1)


async def test_share_coordinators_wait_for_replicas_at_the_same_time(nodes: Nodes) -> None:
    await nodes.create("t", *[[1, 3]] * 9)
    await nodes.create("__consumer_offsets", [1])
    await nodes.create("__share_group_state", *[[1, 2]] * 50)
    topic, states = topic_of(nodes.broker, "t"), topic_of(nodes.broker, "__share_group_state")
    at = {}
    for index in range(9):
        key = coordinator_key(SharePartitionKey("s", topic.topic_id, index))
        at[nodes.broker.share_states.partition_of(key)] = index
    indexes = sorted(at.values())[:3]  # of different coordinators

    async def ask(request: RootMessage, version: int, node: int = 1) -> Any:
        wire = await nodes(node)
        await nodes.broker.pause_node(2)
        asking = asyncio.ensure_future(wire.call(request, version))
        async with asyncio.timeout(4):  # a leader waits 25 seconds for each, the API five
            await becomes(lambda: sum(bool(log.waiters) for log in states.partitions) == 3)
        await nodes.broker.resume_node(2)
        answer = await asking
        for topic in answer.results if isinstance(request, m.InitializeShareGroupStateRequest) else answer.responses:
            assert [one.error_code for one in topic.partitions] == [0, 0, 0]
        return answer

    data = [PartitionData(index, 1, 0) for index in indexes]
    await ask(m.InitializeShareGroupStateRequest("s", [InitializeStateData(topic.topic_id, data)]), 0)
    altered = [alter.AlterShareGroupOffsetsRequestPartition(index, 0) for index in indexes]
    alter_topics = [alter.AlterShareGroupOffsetsRequestTopic("t", altered)]
    await ask(alter.AlterShareGroupOffsetsRequest("s", alter_topics), 0)
    records = batch(b"a", b"b")
    for index in indexes:
        await (await nodes(1)).produce("t", records, partition=index)
        await nodes.broker.move_leader("t", index, 3)  # a new leader has the coordinator write its epoch
    wanted = [share_fetch.FetchTopic(topic.topic_id, [share_fetch.FetchPartition(index) for index in indexes])]
    size = 3 * len(records)
    fetched = await ask(m.ShareFetchRequest("s", "x" * 22, 0, 60_000, size, 1 << 20, 9, 9, topics=wanted), 2, 3)
    assert [len(one.acquired_records) for one in fetched.responses[0].partitions] == [1, 1, 1]
    accepted = [share_acknowledge.AcknowledgementBatch(0, 0, [1])]
    parts = [share_acknowledge.AcknowledgePartition(index, accepted) for index in indexes]
    topics = [share_acknowledge.AcknowledgeTopic(topic.topic_id, parts)]
    await ask(m.ShareAcknowledgeRequest("s", "x" * 22, 1, topics=topics), 2, 3)
    await ask(m.ShareAcknowledgeRequest("s", "x" * 22, -1, topics=[]), 2, 3)  # gives back what it has


async def test_a_fetch_gets_records_while_another_share_partition_is_loaded(nodes: Nodes) -> None:
    await nodes.create("t", *[[1, 3]] * 24)
    await nodes.create("__share_group_state", *[[1, 2], [1, 3]] * 25)
    topic, states = topic_of(nodes.broker, "t"), nodes.broker.share_states
    at = {}
    for index in range(24):
        key = SharePartitionKey("s", topic.topic_id, index)
        states.initialize(key, 1, 0)
        at[states.partition_of(coordinator_key(key)) % 2] = index
    held, free = at[0], at[1]
    for index in (held, free):
        await nodes.broker.move_leader("t", index, 3)
    held_log = states.shard_of(coordinator_key(SharePartitionKey("s", topic.topic_id, held))).log
    wire = await nodes(3)
    await nodes.broker.pause_node(2)

    async def fetch(epoch: int, *added: int) -> list[tuple[int, int]]:
        topics = [share_fetch.FetchTopic(topic.topic_id, [share_fetch.FetchPartition(index) for index in added])]
        request = m.ShareFetchRequest("s", "x" * 22, epoch, 60_000, 1, 1 << 20, 9, 9, topics=topics if added else [])
        answer = await wire.call(request, 2)
        return [(one.partition_index, len(one.acquired_records)) for one in answer.responses[0].partitions]

    async with asyncio.timeout(20):
        for epoch, added in enumerate(((held, free), ())):
            fetching = asyncio.ensure_future(fetch(epoch, *added))
            await becomes(lambda: held_log.waiters)
            await (await nodes.connect(3)).produce("t", batch(b"a"), partition=free)
            assert [one for one in await fetching if one[1]] == [(free, 1)]
        fetching = asyncio.ensure_future(fetch(2))
        await (await nodes.connect(3)).produce("t", batch(b"a"), partition=held)
        await nodes.broker.resume_node(2)
        assert [one for one in await fetching if one[1]] == [(held, 1)]


@pytest.mark.parametrize("meanwhile", ["altered", "moved"])
async def test_what_was_read_of_a_share_partition_is_not_used_after_a_change(nodes: Nodes, meanwhile: str) -> None:
    await nodes.create("t", [1, 3])
    await nodes.create("__share_group_state", [1, 2])
    topic, states = topic_of(nodes.broker, "t"), topic_of(nodes.broker, "__share_group_state")
    key = SharePartitionKey("s", topic.topic_id, 0)
    nodes.broker.share_states.initialize(key, 1, 0)
    await nodes.broker.move_leader("t", 0, 3)
    await nodes.broker.pause_node(2)
    partitions = nodes.broker.share_sessions.partitions
    loading = partitions.load(*key)
    await becomes(lambda: states.partitions[0].waiters)
    if meanwhile == "altered":
        nodes.broker.share_states.initialize(key, 2, 5)
    else:
        await nodes.broker.move_leader("t", 0, 1)
    await nodes.broker.resume_node(2)
    with pytest.raises(NotLeaderOrFollower):
        await loading
    led = await partitions.load(*key)
    assert led.states.start_offset == (5 if meanwhile == "altered" else 0)
    assert not partitions._loading


async def test_the_marker_of_a_transaction_waits_for_enough_replicas(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2], min_insync_replicas="2")
    await nodes.create("__transaction_state", *[[1, 3]] * 6)
    wire = await nodes(1)
    begun = await wire.call(m.InitProducerIdRequest("x", 60_000), 4)
    owner = begun.producer_id, begun.producer_epoch
    added = m.AddPartitionsToTxnTopic("t", [0])
    assert (await wire.call(m.AddPartitionsToTxnRequest([], "x", *owner, [added]), 3)).error_code == 0
    await nodes.broker.stop_node(2)
    assert (await wire.call(m.EndTxnRequest("x", *owner, committed=True), 3)).error_code == 0
    log = log_of(nodes.broker, "t")
    assert log.log_end_offset == 0
    await nodes.broker.start_node(2)
    await becomes(lambda: log.log_end_offset != 0)


async def test_a_new_topic_knows_of_nodes_that_are_not_well(nodes: Nodes) -> None:
    await nodes.broker.cut_off_node(2)
    await nodes.broker.stop_node(3)
    await nodes.create("t", [1, 2])
    await nodes.create("u", [1, 3], min_insync_replicas="2")
    for topic in ("t", "u"):
        assert code_of(await produce(await nodes(1), topic, b"a", acks=1)) == 0
        assert await end(nodes, 1, topic) == 0


async def test_a_batch_that_waits_is_committed_without_the_replica_that_is_taken_away(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3])
    await nodes.broker.pause_node(3)
    waiting = asyncio.ensure_future(produce(await nodes(1), "t", b"a", timeout_ms=60_000))
    log = log_of(nodes.broker, "t")
    await becomes(lambda: log.waiters)
    await nodes.broker.reassign({log: [1, 2]})
    assert (log.placement.leader, log.placement.epoch) == (1, 1)
    assert code_of(await waiting) == 0


async def test_a_coordinator_stays_when_another_replica_is_taken_away(nodes: Nodes) -> None:
    waiting = await commit_that_waits(nodes)
    await nodes.broker.reassign({nodes.broker.groups.shard_of("g").log: [1, 2]})
    assert await waiting == 0


async def test_nodes_have_metrics_of_their_own(nodes: Nodes) -> None:
    await nodes.create("t", [1, 2, 3], min_insync_replicas="2")
    await nodes.create("u", [2])

    def value(name: str, node: int) -> float:
        return nodes.broker.metrics.value(name, node=str(node))

    assert [value("PartitionCount", node) for node in (1, 2, 3)] == [1, 2, 1]
    assert [value("LeaderCount", node) for node in (1, 2, 3)] == [1, 1, 0]
    assert [value("UnderReplicatedPartitions", node) for node in (1, 2, 3)] == [0, 0, 0]
    await nodes.broker.stop_node(2)
    assert value("UnderReplicatedPartitions", 1) == 1
    assert value("UnderMinIsrPartitionCount", 1) == 0
    assert nodes.broker.metrics.value("OfflinePartitionsCount") == 1
    with pytest.raises(KeyError):
        value("LeaderCount", 2)
    await nodes.broker.stop_node(3)
    assert value("UnderMinIsrPartitionCount", 1) == 1


@pytest.mark.parametrize("way", ["pause", "cut_off", "hide"])
@pytest.mark.parametrize("end_of_it", ["stop", "kill"])
async def test_a_node_that_is_not_well_is_stopped_and_starts_well(nodes: Nodes, way: str, end_of_it: str) -> None:
    await nodes.create("t", [1, 2])
    await getattr(nodes.broker, f"{way}_node")(2)
    await getattr(nodes.broker, f"{end_of_it}_node")(2)
    assert nodes.broker.state_of(2) == "down"
    assert code_of(await produce(await nodes(1), "t", b"a")) == 0
    with pytest.raises(ConnectionError):
        await nodes(2)
    await nodes.broker.start_node(2)
    assert await placed(nodes) == (1, 0, [1, 2], [], [])
    await (await nodes(2)).call(m.MetadataRequest([]), 12)


async def test_a_cluster_stops_while_a_node_is_suspended(start: Start) -> None:
    broker = await start(brokers=3, properties={"broker.session.timeout.ms": 50})
    nodes = Nodes(broker)
    wire = await nodes(2)
    await broker.pause_node(2)
    waiting = asyncio.ensure_future(wire.call(m.MetadataRequest([]), 12))
    await (await nodes(1)).call(m.MetadataRequest([]), 12)
    await asyncio.wait_for(broker.stop(), 20)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await waiting
