"""What a sweep says of offsets that will expire is what the coordinators do when the time has come."""

import time
from collections.abc import AsyncIterator

import pytest_asyncio
from tests.unit.broker.peer import Peer

from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.coordinator.offsets.expiry import expire_offsets
from groupkeeper.operations.plans.builder import ALL_COMMITTED
from groupkeeper.operations.plans.sweeps import Criteria, make_sweep
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from groupkeeper.protocol.errors import NONE

T, U = ("t", 0), ("u", 0)
GROUPS = ("simple", "own", "left", "classic", "unclear", "modern")
DAY_MS = 86_400_000
OWN_MS = 3 * DAY_MS


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    """Groups of each kind, with the topics t and u; members read t."""
    async with Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as started:
        for topic in ("t", "u"):
            started.topics.create(topic, 1, {})
        started.groups.ensure_topic()
        peer = Peer(started)
        assert await peer.commit({T: 0}, group_id="simple") == {T: NONE}
        partitions = [m.OffsetCommitRequestPartition(0, 0, -1, "")]
        topics = [m.OffsetCommitRequestTopic("t", partitions=partitions)]
        own = m.OffsetCommitRequest("own", retention_time_ms=OWN_MS, topics=topics)
        await peer.ask(own, 4)

        reads_t = encode_subscription(ConsumerProtocolSubscription(topics=["t"]), 1)
        for group_id, metadata in (("left", reads_t), ("classic", reads_t), ("unclear", b"")):
            member_id = await peer.stable_member(group_id, [m.JoinGroupRequestProtocol("range", metadata)])
            found = await peer.commit({T: 0, U: 0}, group_id=group_id, generation=1, member_id=member_id)
            assert found == {T: NONE, U: NONE}
            if group_id == "left":
                committed_ms = started.now_ms()
                while started.now_ms() == committed_ms:  # so that it is empty since later than its commit
                    pass
                leave = m.LeaveGroupRequest("left", members=[m.MemberIdentity(member_id)])
                assert (await peer.ask(leave, 5)).error_code == NONE

        joined = await peer.ask(
            m.ConsumerGroupHeartbeatRequest("modern", "m", 0, None, None, 60_000, ["t"], topic_partitions=[]), 1,
        )  # fmt: skip
        epoch = joined.member_epoch
        assert await peer.commit({T: 0, U: 0}, group_id="modern", generation=epoch, member_id="m") == {T: NONE, U: NONE}
        yield started


def expired_at(broker: Broker, time_ms: int) -> set[tuple[str, str]]:
    """Group and topic of the offsets that coordinators would remove then."""
    found = set()
    for shard in broker.groups.shards:
        coordinator = shard.coordinator
        for record in expire_offsets(coordinator.state, broker.groups.settings, time_ms).records:
            if isinstance(record.key, m.OffsetCommitKey):
                found.add((record.key.group, record.key.topic))
    return found


async def said_to_expire(broker: Broker, now_ms: int, expiring_ms: int, retention_ms: int) -> set[tuple[str, str]]:
    """Group and topic of the offsets of which a sweep says that they expire within this time."""
    criteria = Criteria(expiring_ms=expiring_ms, retention_ms=retention_ms)
    async with Admin(broker.bootstrap_servers) as admin:
        made = await make_sweep(admin, GROUPS, ALL_COMMITTED, criteria, now_ms)
    assert made.troubles == ()
    found = {(plan.group_id, tp.topic) for plan in made.plan.groups for tp in plan.changes}
    for note in made.notes:
        if "its offsets expire" in note:
            found |= {(note.partition(":")[0], topic) for topic in ("t", "u")}
        elif " expires " in note:
            group_id, place, _ = note.split(" ", 2)
            found.add((group_id, place.rpartition("-")[0]))
    return found


async def test_offsets_expire_when_it_is_said(broker: Broker) -> None:  # GO-71, GO-72, GO-75
    retention_ms = broker.groups.settings.offsets_retention_ms
    now_ms = time.time_ns() // 10**6
    times_ms = {now_ms + 100 * retention_ms}
    for group_id in GROUPS:
        state = broker.groups.shard_of(group_id).coordinator.state
        for offset in (one for some in state.offsets.of_group(group_id).values() for one in some.values()):
            times_ms |= {offset.commit_timestamp_ms + retention_ms, offset.commit_timestamp_ms + OWN_MS}
    left = broker.groups.shard_of("left").coordinator.state.groups["left"]
    times_ms.add(left.roster.state_since_ms + retention_ms)  # type: ignore[attr-defined]
    for time_ms in sorted(times_ms | {one - 1 for one in times_ms}):
        said = await said_to_expire(broker, now_ms, time_ms - now_ms, retention_ms)
        assert said == expired_at(broker, time_ms), time_ms - now_ms
    assert expired_at(broker, max(times_ms)) == {
        ("simple", "t"), ("own", "t"), ("left", "t"), ("left", "u"), ("classic", "u"), ("modern", "u"),
    }  # fmt: skip
