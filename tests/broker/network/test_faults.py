"""Faults on purpose, as they look on the wire."""

import asyncio
import time
from collections.abc import Callable

import pytest
from tests.broker.conftest import Connect, Start, Wire

from groupkeeper.broker import Broker
from groupkeeper.broker.api_table import TABLE
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import GroupIdNotFound, NotCoordinator, RequestTimedOut, UnknownMemberId
from groupkeeper.protocol.framing import request_class
from groupkeeper.protocol.record_batch import Record, write_batch

BATCH = write_batch([Record(b"k", b"v", timestamp=1)])
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}


@pytest.fixture
async def broker(start: Start) -> Broker:
    return await start(properties=SETTINGS)


async def end_offset(wire: Wire, topic: str) -> int:
    return (await wire.list_offset(topic, -1)).offset


async def found(wire: Wire, key: str, key_type: int = 0) -> None:
    while await wire.find(key, key_type):
        pass


async def join(wire: Wire, group_id: str, instance_id: str | None, version: int = 9) -> m.JoinGroupResponse:
    protocols = [m.JoinGroupRequestProtocol("range", b"")]
    request = m.JoinGroupRequest(group_id, 10_000, 60_000, "", instance_id, "consumer", protocols)
    return await wire.call(request, version)


async def join_alone(wire: Wire, group_id: str, instance_id: str) -> str:
    member_id = (await join(wire, group_id, instance_id)).member_id
    given = [m.SyncGroupRequestAssignment(member_id, b"a")]
    sync = m.SyncGroupRequest(group_id, 1, member_id, None, "consumer", "range", given)
    assert (await wire.call(sync, 5)).error_code == 0
    return member_id


async def test_errors_hit_the_chosen_request_and_are_counted(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", nth=2) as fault:
        codes = [(await wire.produce("t", BATCH)).error_code for _ in range(3)]
        assert codes == [0, 6, 0]
        assert (fault.hits, fault.seen) == (1, 3)
    assert await end_offset(wire, "t") == 2
    assert broker.active_faults is None


async def test_an_error_after_the_request_was_carried_out(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    with broker.faults.error(0, RequestTimedOut, executes=True, times=1):
        assert [(await wire.produce("t", BATCH)).error_code for _ in range(2)] == [7, 0]
    assert await end_offset(wire, "t") == 2


async def test_which_requests_are_hit(broker: Broker, wire: Wire) -> None:
    await wire.create("t")

    async def codes(count: int) -> list[int]:
        return [(await wire.produce("t", BATCH, client_id=f"c{n % 2}")).error_code for n in range(count)]

    with broker.faults.error("Produce", 6, every=3, times=2) as fault:
        assert await codes(10) == [0, 0, 6, 0, 0, 6, 0, 0, 0, 0]
        assert (fault.hits, fault.seen) == (2, 10)
    with broker.faults.error("Produce", 6, where=lambda call: call.client_id == "c1") as fault:
        assert await codes(4) == [0, 6, 0, 6]
        assert (fault.hits, fault.seen) == (2, 2)
    drawn = []
    for _ in range(2):
        with broker.faults.error("Produce", 6, probability=0.5, seed=3):
            drawn.append(await codes(20))
    assert drawn[0] == drawn[1]
    assert 4 <= drawn[0].count(6) <= 16
    with broker.faults.error(None, 42, where=lambda call: call.api_key == 3):
        assert (await wire.call(m.MetadataRequest([]), 13)).error_code == 42
        assert await codes(1) == [0]


async def test_every_api_can_answer_an_error(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    with broker.faults.error(None, "REQUEST_TIMED_OUT") as fault:
        for key, api in TABLE.items():
            for version in range(api.lowest, api.highest + 1):
                await asyncio.wait_for(
                    wire.call(m.ProduceRequest(acks=1) if key == 0 else request_class(key)(), version), 10
                )
        assert fault.hits == sum(api.highest - api.lowest + 1 for api in TABLE.values())
        answer = await wire.call(m.ApiVersionsRequest("x", "1"), 4)
        assert answer.error_code == 7


async def test_a_produce_that_wants_no_answer_is_refused_by_closing(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER"):
        parts = [m.PartitionProduceData(0, BATCH)]
        wire.send(m.ProduceRequest(None, 0, 1000, [m.TopicProduceData("t", partition_data=parts)]), 9)
        assert await wire.is_closed()


@pytest.mark.parametrize("executes", [False, True])
async def test_delays(broker: Broker, wire: Wire, connect: Connect, executes: bool) -> None:
    await wire.create("t")
    other = await connect(broker)
    with broker.faults.delay("Produce", 300, executes=executes):
        began = time.monotonic()
        slow = asyncio.ensure_future(wire.produce("t", BATCH))
        if executes:
            while await end_offset(other, "t") == 0:
                assert not slow.done()
        else:
            assert await end_offset(other, "t") == 0
        assert (await slow).error_code == 0
        assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("executes", [False, True])
async def test_disconnecting(
    broker: Broker, wire: Wire, connect: Connect, caplog: pytest.LogCaptureFixture, executes: bool
) -> None:
    await wire.create("t")
    other = await connect(broker)
    with broker.faults.disconnect("Produce", executes=executes), pytest.raises(asyncio.IncompleteReadError):
        await wire.produce("t", BATCH)
    assert await end_offset(other, "t") == executes
    assert "a fault was wanted for Produce" in caplog.text


async def test_a_dropped_request_leaves_its_connection_silent(broker: Broker, wire: Wire, connect: Connect) -> None:
    await wire.create("t")
    other = await connect(broker)
    with broker.faults.drop("Produce", executes=True, times=1) as fault:
        waiting = asyncio.ensure_future(wire.produce("t", BATCH))
        await asyncio.to_thread(fault.wait_for_hits)
        assert (await other.produce("t", BATCH)).error_code == 0
        assert await end_offset(other, "t") == 2
        assert not waiting.done()
    wire.writer.close()
    with pytest.raises(asyncio.IncompleteReadError):
        await waiting
    while len(broker.server.connections) > 1:
        await other.call(m.MetadataRequest([]), 13)


async def test_throttling_tells_and_mutes(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    with broker.faults.throttle("Metadata", 2000, nth=1):
        began = time.monotonic()
        answer = await wire.call(m.MetadataRequest([]), 13)
        assert answer.throttle_time_ms == 2000
        told = time.monotonic() - began
        assert (await wire.produce("t", BATCH)).error_code == 0
        muted = time.monotonic() - began
        assert told < 2 <= muted
        assert (await wire.call(m.MetadataRequest([]), 13)).throttle_time_ms == 0


async def test_several_faults_at_once(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    with broker.faults.delay("Produce", 100), broker.faults.error("Produce", 7) as late:
        began = time.monotonic()
        assert (await wire.produce("t", BATCH)).error_code == 7
        assert time.monotonic() - began >= 0.1
        late.remove()
        late.remove()
        assert (await wire.produce("t", BATCH)).error_code == 0
        broker.faults.error(None, 7)
        broker.faults.clear()
        assert (await wire.produce("t", BATCH)).error_code == 0


async def test_what_cannot_be_a_fault(broker: Broker) -> None:
    faults = broker.faults
    calls: tuple[Callable[[], object], ...] = (
        lambda: faults.delay("Prodcue", 1),
        lambda: faults.delay(999, 1),
        lambda: faults.error("Produce", "NO_SUCH_ERROR"),
        lambda: faults.error("Produce", 0),
        lambda: faults.error("Produce", 9999),
        lambda: faults.delay("Produce", -5),
        lambda: faults.delay("Produce", float("nan")),
        lambda: faults.delay("Produce", "5s"),  # type: ignore[arg-type]
        lambda: faults.throttle("Produce", -1),
        lambda: faults.throttle("Produce", "1"),  # type: ignore[arg-type]
        lambda: faults.drop("Produce", nth=0),
        lambda: faults.drop("Produce", probability=2),
    )
    for wrong in calls:
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match="'5s' is not a number of milliseconds"):
        faults.delay("Produce", "5s")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a fault has"):
        faults.drop("Produce", first=1)  # type: ignore[call-arg]
    with pytest.raises(TimeoutError, match="Produce"):
        faults.drop("Produce").wait_for_hits(timeout_s=0)
    with pytest.raises(NotCoordinator):
        faults.move_coordinator("g")
    with pytest.raises(RuntimeError, match="not running"):
        Broker().faults.move_coordinator("g")


async def test_a_coordinator_that_moves(broker: Broker, wire: Wire, connect: Connect) -> None:
    # GP-02 GP-03 GP-05
    await wire.create("t")
    await found(wire, "g")
    member_id = await join_alone(wire, "g", "i")
    waiting = asyncio.ensure_future(join(await connect(broker), "g", "j"))
    heartbeat = m.HeartbeatRequest("g", 1, member_id)
    while (await wire.call(heartbeat, 4)).error_code != 27:
        pass
    with broker.faults.move_coordinator("g", away_ms=None) as move:
        assert (await waiting).error_code == 16
        assert move.partition == broker.groups.partition_of("g")
        assert await wire.find("g") == 15
        assert (await wire.call(heartbeat, 4)).error_code == 16
        assert await wire.committed("g") == (16, {})
        assert move.hits >= 2
    await found(wire, "g")
    # The rebalance in formation is lost; the member is as the log has it.
    while (code := (await wire.call(heartbeat, 4)).error_code) in (14, 16):
        pass
    assert code == 0


async def test_offsets_survive_a_move(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    await found(wire, "g")
    assert await wire.commit("g", 5) == 0
    broker.faults.move_coordinator("g")
    while (answer := await wire.committed("g"))[0] == 14:
        pass
    assert answer == (0, {("t", 0): 5})
    broker.faults.move_coordinator("g", away_ms=50)
    assert await wire.commit("g", 6) == 16
    while await wire.commit("g", 6):
        pass
    assert await wire.committed("g") == (0, {("t", 0): 6})


async def test_a_transaction_coordinator_that_moves(broker: Broker, wire: Wire) -> None:
    await found(wire, "x", 1)
    first = await wire.call(m.InitProducerIdRequest("x", 60_000), 4)
    with broker.faults.move_transaction_coordinator("x", away_ms=None) as move:
        assert await wire.find("x", 1) == 15
        assert (await wire.call(m.InitProducerIdRequest("x", 60_000), 4)).error_code == 16
        assert move.hits == 1
    await found(wire, "x", 1)
    while (again := await wire.call(m.InitProducerIdRequest("x", 60_000), 4)).error_code == 14:
        pass
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, first.producer_epoch + 1)


async def test_a_session_that_ends(broker: Broker, wire: Wire) -> None:
    await found(wire, "g")
    member_id = await join_alone(wire, "g", "i")
    for unknown, error in (("g", UnknownMemberId), ("nope", GroupIdNotFound)):
        with pytest.raises(error):
            broker.faults.expire_session(unknown, "nobody")
    assert broker.faults.expire_session("g", "i") == [member_id]
    assert (await wire.call(m.HeartbeatRequest("g", 1, member_id), 4)).error_code == 25
    again = await join_alone(wire, "other", "i")
    assert broker.faults.expire_session("other") == [again]


async def test_a_session_of_the_new_protocol_that_ends(broker: Broker, wire: Wire) -> None:
    await wire.create("t")
    await found(wire, "g")
    request = m.ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    joined = await wire.call(request, 1)
    assert joined.error_code == 0
    assert broker.faults.expire_session("g", "test") == ["m"]
    later = m.ConsumerGroupHeartbeatRequest("g", "m", joined.member_epoch)
    assert (await wire.call(later, 1)).error_code == 25
