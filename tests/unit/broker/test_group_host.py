"""Coordinators coming, going, loading and failing: the shell round them."""

import asyncio
from pathlib import Path

from tests.broker.held import log_of, topic_of
from tests.patience import becomes
from tests.unit.broker.peer import Peer, peer_with_topic

from groupkeeper.broker.broker import Broker
from groupkeeper.broker.coordination.group_shard import GroupShard
from groupkeeper.broker.meters import GroupMeters
from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.protocol import OFFSETS_TOPIC, errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch

T0, T1 = ("t", 0), ("t", 1)
PROPERTIES = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}


def new_broker(directory: Path) -> Broker:
    return Broker(directory=directory, properties=PROPERTIES)


async def heartbeat(peer: Peer, member_id: str, generation: int = 1) -> int:
    return (await peer.ask(m.HeartbeatRequest("g", generation, member_id), 4)).error_code


async def wait_until_loaded(broker: Broker) -> None:
    await becomes(lambda: not any(shard.is_loading for shard in broker.groups.shards))


async def test_all_coordinators_see_new_topics_when_one_starts_again_before_the_next_request(peer: Peer) -> None:
    await peer.commit({T0: 5})
    groups = peer.broker.groups
    peer.broker.topics.create("u", 3, {})
    index = groups.partition_of("other")
    assert index != groups.partition_of("g")
    groups.resign(index)
    groups.elect(index)
    await wait_until_loaded(peer.broker)
    await peer.commit({T0: 6})
    assert ["u" in shard.coordinator.state.topics.topics for shard in groups.shards] == [True] * 4


async def test_loading_partition_answers_so(peer: Peer) -> None:  # GP-03, GC-18, K518-14
    await peer.commit({T0: 5})
    shard = peer.broker.groups.shard_of("g")
    shard.is_loading = True
    assert await peer.commit({T0: 6}) == {T0: errors.CoordinatorLoadInProgress.code}
    assert await heartbeat(peer, "m") == NONE
    listed = await peer.ask(m.ListGroupsRequest(), 5)
    assert (listed.error_code, list(listed.groups)) == (errors.CoordinatorLoadInProgress.code, [])
    shard.is_loading = False
    assert await peer.fetch() == {T0: (5, NONE)}


async def test_partition_that_cannot_be_loaded(tmp_path: Path) -> None:  # GR-08
    async with new_broker(tmp_path) as broker:
        peer = peer_with_topic(broker)
        await peer.commit({T0: 5})
        await peer.commit({T0: 7}, group_id="b")
        key, _ = encode_record(Entry(m.OffsetCommitKey("g", "t", 0), m.OffsetCommitValue()))
        log_of(broker, OFFSETS_TOPIC, 3).append(write_batch([Record(key, b"\0\x63", (), 0)]), 0)
    async with new_broker(tmp_path) as broker:
        peer = Peer(broker)
        await wait_until_loaded_or_failed(broker)
        assert await peer.commit({T0: 6}) == {T0: errors.NotCoordinator.code}
        assert await peer.fetch(group_id="b") == {T0: (7, NONE)}
        listed = await peer.ask(m.ListGroupsRequest(), 5)
        assert [group.group_id for group in listed.groups] == ["b"]


async def wait_until_loaded_or_failed(broker: Broker) -> None:
    await becomes(lambda: all(shard.failure or not shard.is_loading for shard in broker.groups.shards))


async def test_unknown_record_types_are_skipped(tmp_path: Path) -> None:  # GR-08
    async with new_broker(tmp_path) as broker:
        await peer_with_topic(broker).commit({T0: 5})
        log_of(broker, OFFSETS_TOPIC, 3).append(write_batch([Record(b"\0\x63\0\1g", b"\0\0", (), 0)]), 0)
    async with new_broker(tmp_path) as broker:
        await wait_until_loaded(broker)
        assert await Peer(broker).fetch() == {T0: (5, NONE)}


async def test_failed_append_changes_nothing(peer: Peer) -> None:  # GR-09, GW-08
    await peer.commit({T0: 5})
    log = log_of(peer.broker, OFFSETS_TOPIC, 3)
    log.failure = "disk on fire"
    assert await peer.commit({T0: 6}) == {T0: errors.NotCoordinator.code}
    log.failure = None
    assert await peer.fetch() == {T0: (5, NONE)}
    assert peer.broker.groups.meters.marks[Meter.OFFSET_COMMIT].total == 1


async def test_records_larger_than_allowed(tmp_path: Path) -> None:  # GW-08
    async with new_broker(tmp_path) as broker:
        broker.topics.create(OFFSETS_TOPIC, 4, {"max.message.bytes": "200"})
        peer = Peer(broker)
        answer = await peer.ask(peer.join_request(instance_id="i" * 300), 9)
        sync = m.SyncGroupRequest("g", 1, answer.member_id, None, "consumer", "range")
        assert (await peer.ask(sync, 5)).error_code == errors.UnknownServerError.code


async def test_deleted_topic_takes_its_offsets_along(peer: Peer) -> None:  # GO-76
    await peer.commit({T0: 5})
    peer.broker.topics.delete("t")
    assert await peer.fetch() == {}


async def test_a_topic_deleted_while_its_offsets_are_loaded_takes_them_along(tmp_path: Path) -> None:  # GO-76
    async with new_broker(tmp_path) as broker:
        await peer_with_topic(broker).commit({T0: 5})
        log = broker.groups.shard_of("g").log
        shard, again = (GroupShard(log, broker.groups.settings, broker.now_ms, GroupMeters()) for _ in range(2))
        shard.remove_topics({"t": topic_of(broker, "t").topic_id})
        for one in (shard, again):
            await one.load()
            assert not one.coordinator.state.offsets.of_group("g")
            one.unload()


async def test_more_partitions_are_loaded_anew(peer: Peer) -> None:  # GP-01
    await peer.commit({T0: 5})
    peer.broker.topics.grow(topic_of(peer.broker, OFFSETS_TOPIC), 8)
    await wait_until_loaded(peer.broker)
    assert len(peer.broker.groups.shards) == 8


async def test_long_logs_load_in_turns(tmp_path: Path) -> None:  # GP-03
    async with new_broker(tmp_path) as broker:
        peer = peer_with_topic(broker)
        for offset in range(300):
            await peer.commit({T0: offset})
        shard = GroupShard(log_of(broker, OFFSETS_TOPIC, 3), broker.groups.settings, broker.now_ms, GroupMeters())
        loading = asyncio.create_task(shard.load())
        await asyncio.sleep(0)
        assert shard.is_loading
        await loading
        assert not shard.is_loading
        assert shard.coordinator.state.offsets.of_group("g")["t"][0].committed_offset == 299
        shard.unload()
