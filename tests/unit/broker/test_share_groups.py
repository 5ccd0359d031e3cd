"""Share groups through the broker: from heartbeats to durable share state, restarts, offsets, and who may what."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.broker.held import topic_of
from tests.patience import becomes
from tests.unit.broker.peer import Denies, Peer

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.shares.state_host import coordinator_key
from groupkeeper.coordinator.kernel.result import Work
from groupkeeper.coordinator.share.group import ShareGroup
from groupkeeper.coordinator.share.work import ShareErrors
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import SHARE_STATE_TOPIC
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NonEmptyGroup, NotCoordinator
from groupkeeper.protocol.messages import (
    alter_share_group_offsets_request,
    delete_share_group_offsets_request,
    describe_share_group_offsets_request,
    read_share_group_state_summary_request,
)
from groupkeeper.protocol.primitives import Message

PROPERTIES: Mapping[str, str | int] = {
    "offsets.topic.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.share.assignment.interval.ms": 0,
}
MEMBER = "m"


def new_broker(directory: Path, **more: str | int) -> Broker:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Broker(directory=directory, properties={**PROPERTIES, **given})


async def beat(
    peer: Peer, epoch: int, names: list[str] | None = None, member_id: str = MEMBER
) -> m.ShareGroupHeartbeatResponse:
    request = m.ShareGroupHeartbeatRequest("g", member_id, epoch, None, names)
    return await peer.ask(request, 1)


async def until_initialized(peer: Peer) -> None:
    await becomes(lambda: bool(share_group(peer).has.initialized) and not share_group(peer).has.initializing)


def share_group(peer: Peer) -> ShareGroup:
    group = peer.broker.groups.shard_of("g").coordinator.state.groups["g"]
    assert isinstance(group, ShareGroup)
    return group


async def settled_member(peer: Peer) -> int:
    """A member with its assignment; returns its epoch."""
    await beat(peer, 0, ["t"])
    await until_initialized(peer)
    return (await beat(peer, 2)).member_epoch


async def alter(peer: Peer, offsets: Mapping[int, int], topic: str = "t") -> m.AlterShareGroupOffsetsResponse:
    module = alter_share_group_offsets_request
    partitions = [module.AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
    topics = [module.AlterShareGroupOffsetsRequestTopic(topic, partitions)]
    return await peer.ask(module.AlterShareGroupOffsetsRequest("g", topics), 0)


async def delete_offsets(peer: Peer, *topics: str) -> m.DeleteShareGroupOffsetsResponse:
    module = delete_share_group_offsets_request
    wanted = [module.DeleteShareGroupOffsetsRequestTopic(topic) for topic in topics]
    return await peer.ask(module.DeleteShareGroupOffsetsRequest("g", wanted), 0)


async def describe(
    peer: Peer, topics: Mapping[str, list[int]] | None = None
) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Start offset, lag and error by partition."""
    module = describe_share_group_offsets_request
    wanted = None
    if topics is not None:
        wanted = [module.DescribeShareGroupOffsetsRequestTopic(*one) for one in topics.items()]
    request = module.DescribeShareGroupOffsetsRequest([module.DescribeShareGroupOffsetsRequestGroup("g", wanted)])
    (group,) = (await peer.ask(request, 1)).groups
    assert group.error_code == 0
    return {
        (topic.topic_name, one.partition_index): (one.start_offset, one.lag, one.error_code)
        for topic in group.topics
        for one in topic.partitions
    }


# --- membership and what follows from it


async def test_topics_that_are_deleted(peer: Peer) -> None:  # GS-20
    await settled_member(peer)
    topic = topic_of(peer.broker, "t")
    peer.broker.topics.delete("t")
    assert share_group(peer).has.initialized == {}
    assert all(not shard.coordinator.states for shard in peer.broker.share_states.shards)
    summary = read_share_group_state_summary_request
    request = summary.ReadShareGroupStateSummaryRequest(
        "g", [summary.ReadStateSummaryData(topic.topic_id, [summary.PartitionData(0)])]
    )
    response = await peer.ask(request, 1)
    assert response.results[0].partitions[0].error_code == 3


async def test_redundant_records_are_dropped(tmp_path: Path) -> None:  # GS-14
    async with new_broker(
        tmp_path,
        share_coordinator_state_topic_prune_interval_ms=1,
        share_coordinator_snapshot_update_records_per_snapshot=1,
    ) as broker:
        topic = broker.topics.create("t", 1, {})
        key = SharePartitionKey("g", topic.topic_id, 0)
        await broker.share_states.ready(key)
        broker.share_states.initialize(key, 1, 0)
        for leader_epoch in range(1, 20):
            broker.share_states.read(key, leader_epoch)
        states = topic_of(broker, SHARE_STATE_TOPIC)
        (log,) = [log for log in states.partitions if log.log_end_offset]
        await becomes(lambda: log.log_start_offset >= 18)
        log.placement.held_high_watermark = end = log.log_end_offset
        for leader_epoch in range(20, 40):  # replicas in sync lack what is written now
            broker.share_states.read(key, leader_epoch)
        for shard in broker.share_states.shards:
            shard.prune()
        assert log.log_start_offset <= end
        log.placement.held_high_watermark = None
        before = broker.share_states.summary(key)
    async with new_broker(tmp_path) as broker:
        await broker.share_states.ready(key)
        assert broker.share_states.summary(key) == before


async def test_snapshots_of_cold_share_partitions_and_compression(tmp_path: Path) -> None:  # GS-14
    codecs = {"offsets_topic_compression_codec": 1, "share_coordinator_state_topic_compression_codec": 4}
    async with new_broker(tmp_path, share_coordinator_cold_partition_snapshot_interval_ms=1, **codecs) as broker:
        key = SharePartitionKey("g", broker.topics.create("t", 1, {}).topic_id, 0)
        await broker.share_states.ready(key)
        broker.share_states.initialize(key, 1, 0)
        broker.groups.ensure_topic()
        await Peer(broker).commit({("t", 0): 5})
        for name, found in (("__consumer_offsets", ["gzip"]), (SHARE_STATE_TOPIC, ["zstd", "zstd"])):
            (log,) = [log for log in topic_of(broker, name).partitions if log.log_end_offset]
            await becomes(lambda log=log, found=found: log.log_end_offset == len(found))  # type: ignore[misc]
            assert [header.compression for header, _ in log.records()] == found


async def test_unloading_answers_who_waits(peer: Peer) -> None:  # GP-05
    peer.broker.share_states.ensure_topic()
    for shard in peer.broker.share_states.shards:
        shard.is_loading = True
        shard.loaded.clear()
    asked = asyncio.create_task(alter(peer, {0: 1}))
    await becomes(lambda: any(shard.parked_count for shard in peer.broker.groups.shards))
    peer.broker.groups.shard_of("g").unload()
    assert (await asked).error_code == NotCoordinator.code


async def test_what_members_may_be_assigned_by_now_is_not_deleted(peer: Peer) -> None:
    assert (await alter(peer, {0: 1})).error_code == 0
    for shard in peer.broker.share_states.shards:
        shard.is_loading = True
        shard.loaded.clear()
    shard_of_group = peer.broker.groups.shard_of("g")
    alteration = asyncio.create_task(alter(peer, {0: 2}))
    await becomes(lambda: shard_of_group.parked_count == 1)
    deletion_of_offsets = asyncio.create_task(delete_offsets(peer, "t"))
    await becomes(lambda: shard_of_group.parked_count == 2)
    deletion = asyncio.create_task(peer.ask(m.DeleteGroupsRequest(["g"]), 2))
    await becomes(lambda: shard_of_group.parked_count == 3)
    await beat(peer, 0, ["t"])
    for shard in peer.broker.share_states.shards:
        shard.is_loading = False
        shard.loaded.set()
    altered, offsets_deleted = await asyncio.gather(alteration, deletion_of_offsets)
    assert (altered.error_code, offsets_deleted.error_code) == (0, 0)
    assert [one.error_code for one in offsets_deleted.responses] == [NonEmptyGroup.code]
    assert [one.error_code for one in (await deletion).results] == [NonEmptyGroup.code]
    await until_initialized(peer)
    assert (await describe(peer))["t", 0][0] == 2


async def test_offsets_are_deleted_although_a_member_joins_meanwhile(peer: Peer) -> None:
    """It cannot have been assigned them: they begin anew for it."""
    peer.broker.topics.create("u", 1, {})
    assert (await alter(peer, {0: 5, 1: 6})).error_code == 0
    gates = held_work(peer)
    shard = peer.broker.groups.shard_of("g")
    altered = asyncio.create_task(alter(peer, {0: 1}, "u"))
    await becomes(lambda: shard.parked_count == 1)
    deleted = asyncio.create_task(delete_offsets(peer, "t"))
    await becomes(lambda: shard.parked_count == 2)
    await beat(peer, 0, ["t"])
    for gate in gates:
        gate.set()
    assert (await altered).error_code == 0
    assert [(one.topic_name, one.error_code) for one in (await deleted).responses] == [("t", 0)]
    await until_initialized(peer)
    assert await describe(peer) == {("t", 0): (-1, -1, 0), ("t", 1): (-1, -1, 0), ("u", 0): (1, -1, 0)}


async def test_the_log_says_before_a_deletion_that_nothing_is_initialized(peer: Peer) -> None:
    """Of two alterations around it the first one ends once the second one has taken its topic out of deletion."""
    assert (await alter(peer, {0: 5, 1: 6})).error_code == 0
    gates = held_work(peer)
    shard = peer.broker.groups.shard_of("g")
    asked: list[asyncio.Task[Message]] = []
    for call in (alter(peer, {0: 1, 1: 1}), delete_offsets(peer, "t"), alter(peer, {0: 2, 1: 2})):
        asked.append(asyncio.create_task(call))
        await becomes(lambda: shard.parked_count == len(asked))
    gates[0].set()
    await asked[0]
    await becomes(lambda: not share_group(peer).has.initialized)  # and the deletion has not begun yet
    gates[1].set()
    await asked[1]
    joined = await beat(peer, 0, ["t"])
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == []
    gates[2].set()
    await asked[2]
    assert (await describe(peer))["t", 0][0] == 2


async def test_an_unexpected_error_leaves_nobody_waiting(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    await beat(peer, 0, ["t"])
    shard = peer.broker.groups.shard_of("g")

    async def fail(work: Work, node: int) -> ShareErrors:
        raise RuntimeError("of a test")

    shard._do_share_work = fail
    assert (await asyncio.wait_for(alter(peer, {0: 1}), 20)).error_code == NotCoordinator.code
    assert "RuntimeError: of a test" in caplog.text
    await becomes(lambda: peer.broker.groups.shard_of("g").is_active)  # loaded again


async def test_work_for_share_groups_that_fails_is_told_of(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("of a test")

    owner = peer.broker.share_sessions.partitions
    owner.spawn(fail())
    await becomes(lambda: not owner._tasks)
    assert "work for share groups failed" in caplog.text
    assert "RuntimeError: of a test" in caplog.text


def held_work(peer: Peer) -> list[asyncio.Event]:
    """Lets each work for the share coordinator wait for a gate of its own, in their order."""
    shard = peer.broker.groups.shard_of("g")
    do, gates = shard._do_share_work, [asyncio.Event() for _ in range(10)]
    assert do is not None
    left = iter(gates)

    async def wait_and_do(work: Work, node: int) -> ShareErrors:
        await next(left).wait()
        return await do(work, node)

    shard._do_share_work = wait_and_do
    return gates


# --- who finds and may what


async def test_share_coordinators_are_found(peer: Peer) -> None:  # GW-06
    topic = topic_of(peer.broker, "t")
    keys = [coordinator_key(SharePartitionKey(group_id, topic.topic_id, 1)) for group_id in ("g", "with:colon")]

    async def find(*asked: str) -> list[int]:
        response = await peer.ask(m.FindCoordinatorRequest("", 2, list(asked)), 6)
        return [one.error_code for one in response.coordinators]

    assert await find(keys[0]) == [15]
    assert await find(*keys, "g", "g:x:1", keys[0] + "x") == [0, 0, 42, 42, 42]


async def test_without_the_feature(tmp_path: Path) -> None:  # K1099-23
    async with Broker(directory=tmp_path, properties={**PROPERTIES, "feature.share.version": 0}) as broker:
        peer = Peer(broker)
        assert (await beat(peer, 0, ["t"])).error_code == 35
        assert (await alter(peer, {0: 1})).error_code == 35
        assert (await delete_offsets(peer, "t")).error_code == 35
        described = await peer.ask(m.ShareGroupDescribeRequest(["g"]), 1)
        assert described.groups[0].error_code == 35


async def test_topics_that_may_not_be_seen(peer: Peer) -> None:  # K1099-21, GA-03
    await settled_member(peer)
    await beat(peer, -1)
    peer.broker.authorizer = Denies(
        (Operation.READ, ResourceType.TOPIC, "t"), (Operation.DESCRIBE, ResourceType.TOPIC, "t")
    )
    assert [one.error_code for one in (await alter(peer, {0: 1})).responses[0].partitions] == [29]
    assert [one.error_code for one in (await delete_offsets(peer, "t")).responses] == [29]
    assert await describe(peer) == {}
    assert (await describe(peer, {"t": [0]}))["t", 0][2] == 29


@pytest.mark.parametrize("member_id", ["", "x" * 37])
async def test_member_ids(peer: Peer, member_id: str) -> None:  # GS-01
    refused = await beat(peer, 0, ["t"], member_id)
    assert (refused.error_code, refused.error_message) == (42, None)
    assert (await beat(peer, 0, ["t"], "x" * 36)).error_code == 0
