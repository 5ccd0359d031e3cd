"""What goes wrong in the shells of coordinators: logs that fail, records that can't be applied, full disks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.broker.held import log_of, topic_of
from tests.patience import becomes
from tests.unit.broker.peer import FailingLog, Peer, fail, peer_with_topic

from groupkeeper.broker.broker import Broker
from groupkeeper.broker.coordination.group_shard import _first_pass
from groupkeeper.broker.coordination.shard_host import Shard, pause_s
from groupkeeper.broker.shares.leader import LedPartition
from groupkeeper.coordinator.share_partition.acquire import Acquired, Span
from groupkeeper.coordinator.share_partition.partition import Acknowledgement, SharePartition, Transition
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import SharePartitionKey, StateBatch
from groupkeeper.coordinator.transactions.transaction import TransactionStatus
from groupkeeper.protocol import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import (
    NONE,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
)
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.protocol.transaction_log import TransactionEntry, encode_transaction

T0, T1 = ("t", 0), ("t", 1)
PROPERTIES: dict[str, str | int] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 1,
}


def new_broker(directory: Path, **properties: int) -> Broker:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Broker(directory=directory, properties={**PROPERTIES, **given})


class Broken(dict[Any, Any]):
    """A table of a coordinator that a record cannot be applied to."""

    def __getitem__(self, key: object) -> Any:
        raise ValueError(f"a mistake with {key}")

    def pop(self, key: object, default: object = None) -> Any:
        raise ValueError(f"a mistake with {key}")


@pytest.fixture(autouse=True)
def failing_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupkeeper.broker.log.topics.PartitionLog", FailingLog)


@pytest_asyncio.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with new_broker(tmp_path) as one:
        yield peer_with_topic(one).broker


def is_active(shard: Shard[Any]) -> bool:
    return shard.failure is None and not shard.is_loading


async def init(broker: Broker, transactional_id: str = "x") -> m.InitProducerIdResponse:
    broker.transactions.ensure_topic()
    return await Peer(broker).ask(m.InitProducerIdRequest(transactional_id, 60_000, -1, -1), 4)


async def end(broker: Broker, producer: m.InitProducerIdResponse, *, is_commit: bool = True) -> int:
    request = m.EndTxnRequest("x", producer.producer_id, producer.producer_epoch, is_commit)
    return (await Peer(broker).ask(request, 3)).error_code


def begin(broker: Broker, producer: m.InitProducerIdResponse, *partitions: tuple[str, int]) -> None:
    shard = broker.transactions.shard_of("x")
    shard.add_partitions("x", producer.producer_id, producer.producer_epoch, partitions)


# --- between the append and the change of the state


async def test_a_failure_after_the_append_of_a_commit(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer(broker)
    await peer.commit({T0: 5})
    failed = broker.groups.shard_of("g")
    fail(broker.groups.shard_of("g").log, "append_built", ValueError("a mistake"))
    assert await peer.commit({T0: 6}) == {T0: UnknownServerError.code}
    assert await peer.commit({T0: 7}) == {T0: NotCoordinator.code}
    assert await peer.commit({T0: 7}, group_id="b") == {T0: NONE}, "other partitions go on"
    await becomes(lambda: is_active(broker.groups.shard_of("g")))
    assert broker.groups.shard_of("g") is not failed
    assert await peer.fetch() == {T0: (6, NONE)}, "what the log holds"
    assert await peer.commit({T0: 8}) == {T0: NONE}
    assert "cannot go on with its coordinator, which will be loaded again: ValueError: a mistake" in caplog.text


async def test_clients_are_told_while_it_is_loaded_again(broker: Broker) -> None:
    peer = Peer(broker)
    for offset in range(600):
        await peer.commit({T0: offset})
    failed = broker.groups.shard_of("g")
    fail(broker.groups.shard_of("g").log, "append_built", ValueError("a mistake"))
    codes = {(await peer.commit({T1: 1}))[T1]}
    while NONE not in codes:
        codes.add((await peer.commit({T1: 1}))[T1])
        await asyncio.sleep(0)
    expected = {UnknownServerError.code, NotCoordinator.code, CoordinatorLoadInProgress.code, NONE}
    assert codes == expected
    assert await peer.fetch() == {T0: (599, NONE), T1: (1, NONE)}
    assert not failed.parked_count


async def test_a_failure_after_the_append_of_a_transactions_end(broker: Broker) -> None:
    producer = await init(broker)
    begin(broker, producer, T0)
    shard = broker.transactions.shard_of("x")
    fail(shard.log, "append_built", ValueError("a mistake"))
    assert await end(broker, producer) == UnknownServerError.code
    await becomes(lambda: is_active(broker.transactions.shard_of("x")))
    found = broker.transactions.shard_of("x").coordinator.transactions["x"]
    assert found.status is TransactionStatus.COMPLETE_COMMIT, "the outcome was in the log, so it is carried out"


async def test_a_failure_after_the_append_of_share_state(broker: Broker) -> None:
    key = SharePartitionKey("g", topic_of(broker, "t").topic_id, 0)
    await broker.share_states.ready(key)
    (failed,) = broker.share_states.shards
    fail(failed.log, "append_built", ValueError("a mistake"))
    with pytest.raises(UnknownServerError):
        broker.share_states.initialize(key, 1, 42)
    await becomes(lambda: is_active(broker.share_states.shards[0]))
    assert broker.share_states.shards[0] is not failed
    assert broker.share_states.summary(key).start_offset == 42


async def test_a_record_that_cannot_be_applied_is_named(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    shard = broker.groups.shard_of("g")
    shard.coordinator.state.offsets._committed = Broken()  # type: ignore[attr-defined]
    assert await Peer(broker).commit({T0: 5}) == {T0: UnknownServerError.code}
    assert "at Entry(key=OffsetCommitKey(group='g', topic='t', partition=0)" in caplog.text
    await becomes(lambda: is_active(broker.groups.shard_of("g")))
    assert await Peer(broker).fetch() == {T0: (5, NONE)}


async def test_a_failure_after_a_marker(broker: Broker) -> None:
    producer = await init(broker)
    begin(broker, producer, (OFFSETS_TOPIC, broker.groups.partition_of("g")))
    shard = broker.groups.shard_of("g")
    shard.coordinator.state.offsets._groups_by_producer = Broken()  # type: ignore[attr-defined]
    assert await end(broker, producer) == NONE
    assert shard.failure is not None
    transactions = broker.transactions.shard_of("x").coordinator.transactions
    await becomes(lambda: transactions["x"].status is TransactionStatus.COMPLETE_COMMIT)
    assert is_active(broker.groups.shard_of("g"))


# --- loading


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError(99)], ids=["disk", "mistake"])
async def test_what_could_not_be_loaded_is_loaded_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async with new_broker(tmp_path) as broker:
        await peer_with_topic(broker).commit({T0: 5})
        await init(broker)
        key = SharePartitionKey("g", topic_of(broker, "t").topic_id, 0)
        await broker.share_states.ready(key)
        broker.share_states.initialize(key, 1, 42)
        for host, name in ((broker.groups, "g"), (broker.transactions, "x")):
            log = host.shard_of(name).log
            raised = fail(log, "records", error, times=2)
            host.resign(host.partition_of(name))
            host.elect(host.partition_of(name))
            await becomes(lambda shards=host.shards: any(one.failure for one in shards))  # type: ignore[misc]
            with pytest.raises(NotCoordinator):
                host.shard_of(name).require_active()
            await becomes(lambda shards=host.shards: all(map(is_active, shards)))  # type: ignore[misc]
            assert len(raised) == 2
        raised = fail(broker.share_states.shards[0].log, "records", error)
        broker.share_states.restart(0)
        await becomes(lambda: bool(raised) and is_active(broker.share_states.shards[0]))
        assert await Peer(broker).fetch() == {T0: (5, NONE)}
        assert "x" in broker.transactions.shard_of("x").coordinator.transactions
        assert broker.share_states.summary(key).start_offset == 42
    assert caplog.text.count("cannot load its coordinator, which will be loaded again") == 5


async def test_a_transaction_of_unknown_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with new_broker(tmp_path) as broker:
        await init(broker)
        shard = broker.transactions.shard_of("x")
        pair = encode_transaction(TransactionEntry("x", m.TransactionLogValue(transaction_status=9)), 1)
        shard.log.append(write_batch([Record(*pair, (), 0)]), 0)
        index = shard.log.index
    async with new_broker(tmp_path) as broker:
        await becomes(lambda: broker.transactions.shards[index].failure is not None)
        assert (await init(broker)).error_code == NotCoordinator.code
    assert "transactional id x has the unknown status 9, at Record(" in caplog.text
    assert "Traceback" not in caplog.text


async def test_it_is_loaded_again_ever_more_rarely(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    await Peer(broker).commit({T0: 5})
    shard = broker.groups.shard_of("g")
    times: list[float] = []
    loop = asyncio.get_running_loop()

    def errors() -> Iterator[Exception]:
        while True:
            times.append(loop.time())
            yield OSError(5, "Input/output error")

    assert isinstance(shard.log, FailingLog)
    shard.log.failures = {"records": errors()}
    broker.groups.resign(shard.log.index)
    broker.groups.elect(shard.log.index)
    await becomes(lambda: len(times) == 4)
    first, second, third = (later - earlier for earlier, later in pairwise(times))
    assert first >= 0.1
    assert second >= 0.2
    assert third >= 0.4


def test_pauses_have_an_end_however_often_it_fails() -> None:
    assert [pause_s(0.1, failures, 30) for failures in (0, 1, 2)] == [0.1, 0.2, 0.4]
    assert pause_s(0.1, 5000, 30) == 30


async def test_one_that_resigned_while_it_was_loaded_does_nothing_more(broker: Broker) -> None:  # GP-05
    peer = Peer(broker)
    for offset in range(300):
        await peer.commit({T0: offset})
    index = broker.groups.partition_of("g")
    broker.groups.resign(index)
    broker.groups.elect(index)
    shard = broker.groups.shards[index]
    await asyncio.sleep(0)
    assert shard.is_loading
    broker.groups.resign(index)
    await broker.groups.wait_until_loaded()
    assert len(shard._timers) == 0
    broker.groups.elect(index)
    await broker.groups.wait_until_loaded()
    assert await peer.fetch() == {T0: (299, NONE)}
    assert len(broker.groups.shards[index]._timers) == 1


# --- appends that fail


async def test_offsets_of_a_deleted_topic_go_once_the_disk_works(broker: Broker) -> None:  # GO-76
    peer = Peer(broker)
    await peer.commit({T0: 5})
    log = broker.groups.shard_of("g").log
    log.failure = "disk on fire"
    broker.topics.delete("t")
    log.failure = None
    assert await peer.fetch() == {T0: (5, NONE)}
    shard = broker.groups.shard_of("g")
    await becomes(lambda: not shard.coordinator.state.offsets.of_group("g"))
    assert await peer.fetch() == {}


async def test_offsets_of_a_topic_deleted_while_its_coordinator_had_failed(broker: Broker) -> None:  # GO-76
    peer = Peer(broker)
    await peer.commit({T0: 5})
    fail(broker.groups.shard_of("g").log, "append_built", ValueError("a mistake"))
    assert await peer.commit({T0: 6}) == {T0: UnknownServerError.code}
    broker.topics.delete("t")
    await becomes(lambda: is_active(broker.groups.shard_of("g")))
    assert await peer.fetch() == {}


async def test_share_state_of_a_deleted_topic_goes_once_the_disk_works(broker: Broker) -> None:  # GS-20
    key = SharePartitionKey("g", topic_of(broker, "t").topic_id, 0)
    await broker.share_states.ready(key)
    broker.share_states.initialize(key, 1, 42)
    (shard,) = broker.share_states.shards
    shard.log.failure = "disk on fire"
    broker.topics.delete("t")
    shard.log.failure = None
    assert key in shard.coordinator.states
    await becomes(lambda: key not in shard.coordinator.states)


async def test_what_stands_for_itself_goes_in_as_many_batches_as_it_takes(tmp_path: Path) -> None:
    small = {"max.message.bytes": "400"}
    async with new_broker(tmp_path, transactional_id_expiration_ms=1) as broker:
        for name, count in ((OFFSETS_TOPIC, 4), (TRANSACTIONS_TOPIC, 2), (SHARE_STATE_TOPIC, 1)):
            broker.topics.create(name, count, small)
        topic = broker.topics.create("t", 40, {})
        peer = Peer(broker)
        for index in range(40):
            await peer.commit({("t", index): 5})
            key = SharePartitionKey("g", topic.topic_id, index)
            await broker.share_states.ready(key)
            broker.share_states.initialize(key, 1, 42)
            assert (await init(broker, f"transactional-{index}")).error_code == NONE
        now_ms = broker.now_ms()
        await becomes(lambda: broker.now_ms() > now_ms + 1)
        for shard in broker.transactions.shards:
            shard.expire_ids()
            assert not shard.coordinator.transactions
        broker.topics.delete("t")
        assert await peer.fetch() == {}
        assert not broker.share_states.shards[0].coordinator.states


async def test_a_transaction_too_large_for_its_log(tmp_path: Path) -> None:
    async with new_broker(tmp_path) as broker:
        broker.topics.create(TRANSACTIONS_TOPIC, 1, {"max.message.bytes": "300"})
        broker.topics.create("t", 200, {})
        producer = await init(broker)
        end_offset = log_of(broker, TRANSACTIONS_TOPIC).log_end_offset
        with pytest.raises(UnknownServerError):
            begin(broker, producer, *(("t", index) for index in range(200)))
        assert log_of(broker, TRANSACTIONS_TOPIC).log_end_offset == end_offset
        begin(broker, producer, T0)
        assert await end(broker, producer) == NONE


async def test_a_marker_that_cannot_be_written_is_told_of(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    producer = await init(broker)
    begin(broker, producer, T0, T1)
    log = log_of(broker, "t", 1)
    log.failure = "disk on fire"
    assert await end(broker, producer) == NONE
    told = "the transaction of x is not complete, its marker is not written to t-1 yet: disk on fire"
    await becomes(lambda: caplog.text.count(told) == 2)
    first, second = (one.created for one in caplog.records if told in one.getMessage())
    assert second - first > 0.7, "it is tried again less often in time"
    log.failure = None
    transactions = broker.transactions.shard_of("x").coordinator.transactions
    await becomes(lambda: transactions["x"].status is TransactionStatus.COMPLETE_COMMIT)
    assert "the transaction of x is complete now" in caplog.text


async def test_what_was_not_appended_looks_nothing_up(broker: Broker) -> None:
    pytest.importorskip("re2", reason="not made for PyPy")
    shard = broker.groups.shard_of("g")
    looked_at: list[str] = []
    request = m.ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_regex="t.*")
    request.topic_partitions = []

    def look(topic: str) -> bool:
        looked_at.append(topic)
        return True

    async def beat() -> int:
        answer = await shard.ask(request, 1, may_describe=look)
        assert isinstance(answer, m.ConsumerGroupHeartbeatResponse)
        return answer.error_code

    shard.log.failure = "disk on fire"
    assert await beat() == NotCoordinator.code
    shard.log.failure = None
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert looked_at == []
    assert await beat() == NONE
    await becomes(lambda: "t" in looked_at)


def test_first_expiration_passes_are_spread() -> None:
    shares = [_first_pass(index) for index in range(50)]
    assert shares[0] == 1
    assert all(0.5 < share <= 1 for share in shares)
    ordered = sorted(shares)
    assert min(later - earlier for earlier, later in pairwise(ordered)) > 0.005


# --- what time brings


async def test_a_pass_that_raises_costs_nobody_a_turn(broker: Broker) -> None:
    await Peer(broker).commit({T0: 5})
    seen: list[int] = []
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))

    def fail(shard: Shard[Any]) -> None:
        seen.append(shard.log.index)
        raise RuntimeError

    broker.groups.every(10, fail)
    count = len(broker.groups.shards)
    await becomes(lambda: min(map(seen.count, range(count))) >= 2)
    assert len(raised) == len(seen)
    broker.groups.resign(0)
    del seen[:]
    await becomes(lambda: min(map(seen.count, range(1, count))) >= 2)
    assert 0 not in seen


async def test_locks_of_share_partitions_end_although_their_timer_raised(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupkeeper.broker.shares.leader._RETRY_S", 0.01)
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))
    topic = broker.topics.create("u", 1, {})
    key, states = SharePartitionKey("g", topic.topic_id, 0), Failing(0)
    led = LedPartition(broker.share_sessions.partitions, key, topic.partitions[0], states, 0)
    with pytest.raises(RuntimeError):
        led._ring()
    await becomes(lambda: states.calls > 2)
    assert len(raised) == 1


class Locks:
    """A share-partition that is led, whose clock is set by hand, and whose writes fail as long as they are to."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("groupkeeper.broker.shares.leader._RETRY_S", 0.01)
        self.topic = broker.topics.create("u", 1, {})
        self.key = SharePartitionKey("g", self.topic.topic_id, 0)
        self.owner = broker.share_sessions.partitions
        self.now_ms = self.owner.lock_time_ms()
        self.is_failing = False
        self.refusal: Exception = NotCoordinator()
        self.written: list[ShareStateWrite] = []
        """Also what failed."""
        monkeypatch.setattr(self.owner, "lock_time_ms", lambda: self.now_ms)
        write = broker.share_states.write

        def write_or_fail(key: SharePartitionKey, written: ShareStateWrite) -> None:
            self.written.append(written)
            if self.is_failing:
                raise self.refusal
            write(key, written)

        monkeypatch.setattr(broker.share_states, "write", write_or_fail)

    async def load(self) -> LedPartition:
        place = "g", self.topic.topic_id, 0
        return self.owner.get(*place) or await self.owner.load(*place)

    def ring(self, led: LedPartition) -> None:
        """All locks are over."""
        self.now_ms += 60_000
        assert led._timer is not None
        led._timer.cancel()
        led._ring()


@pytest_asyncio.fixture
async def locks(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Locks:
    found = Locks(broker, monkeypatch)
    await broker.share_states.ready(found.key)
    broker.share_states.initialize(found.key, 1, 0)
    return found


def take(led: LedPartition, *spans: Span, member_id: str = "m") -> list[Acquired]:
    return led.acquire(member_id, spans, spans[0].first, aborted=[], max_records=100, batch_size=100, is_strict=False)


@pytest.mark.parametrize("refusal", [NotCoordinator(), RuntimeError("unexpected")])
async def test_the_end_of_locks_is_stored_as_soon_as_it_can_be(
    broker: Broker, locks: Locks, refusal: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    led = await locks.load()
    locks.refusal, locks.is_failing = refusal, True
    take(led, Span(0, 3))
    locks.ring(led)
    await becomes(lambda: len(locks.written) >= 3)
    take(led, Span(0, 3), Span(4, 4))
    locks.ring(led)
    locks.is_failing = False
    await becomes(lambda: not led._is_storing)
    assert broker.share_states.summary(locks.key).batches == (StateBatch(0, 3, 0, 2), StateBatch(4, 4, 0, 1))
    assert ("RuntimeError: unexpected" in caplog.text) == isinstance(refusal, RuntimeError)
    count = len(locks.written)
    await asyncio.sleep(0.05)
    assert len(locks.written) == count


async def test_what_cannot_be_appended_is_told_of_once(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        broker.groups.shard_of("g").log_refusal(NotCoordinator("no room"))
    assert caplog.text.count("cannot append") == 1


async def test_a_leader_of_before_stores_nothing_over_what_the_next_one_stored(broker: Broker, locks: Locks) -> None:
    led = await locks.load()
    take(led, Span(0, 4), Span(5, 9))
    locks.is_failing = True
    locks.ring(led)
    await becomes(lambda: len(locks.written) == 1)
    locks.is_failing = False
    locks.owner.drop_group("g")
    later = await locks.load()
    take(later, Span(0, 4), Span(5, 9), member_id="n")
    for first, last in ((0, 4), (5, 7)):
        await later.acknowledge("n", [Acknowledgement(first, last, [1])])
    before = broker.share_states.summary(locks.key)
    await becomes(lambda: not led._is_storing)
    assert broker.share_states.summary(locks.key) == before
    assert before.start_offset == 5
    assert await locks.load() is later
    with pytest.raises(NotLeaderOrFollower):
        await led.acknowledge("m", [Acknowledgement(8, 9, [1])])


async def test_what_waits_for_the_share_coordinator_is_stored_with_the_start_offset_of_then(
    broker: Broker, locks: Locks
) -> None:
    led = await locks.load()
    take(led, Span(0, 4), Span(5, 9))
    (shard,) = broker.share_states.shards
    shard.is_loading = True
    shard.loaded.clear()
    waiting = asyncio.create_task(led.acknowledge("m", [Acknowledgement(7, 9, [1])]))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    shard.is_loading = False
    shard.loaded.set()  # others come first, in the same turn of the loop
    for first, last in ((0, 4), (5, 6)):
        await led.acknowledge("m", [Acknowledgement(first, last, [1])])
    await waiting
    assert [one.start_offset for one in locks.written] == [0, 5, 7]


async def test_a_lock_that_is_back_after_a_failed_acknowledgement_ends(locks: Locks) -> None:
    led = await locks.load()
    take(led, Span(0, 4))
    locks.now_ms += 20_000
    take(led, Span(5, 9))
    gate = asyncio.Event()
    store = locks.owner.coordinators.ready

    async def wait(key: SharePartitionKey) -> None:
        await gate.wait()
        await store(key)

    locks.owner.coordinators.ready = wait  # type: ignore[method-assign, assignment]
    locks.is_failing = True
    acknowledging = asyncio.create_task(led.acknowledge("m", [Acknowledgement(0, 9, [1])]))
    await asyncio.sleep(0)
    locks.now_ms += 11_000  # the first lock is over, all is waiting to be stored
    assert led._timer is not None
    led._timer.cancel()
    led._ring()
    assert led._timer is None
    gate.set()
    with pytest.raises(CoordinatorNotAvailable):
        await acknowledging
    assert led._timer is not None


class Failing(SharePartition):
    """Cannot end its locks at first."""

    calls = 0

    def expire(self, now_ms: int, limit: Any) -> Transition:
        self.calls += 1
        if self.calls <= 2:
            raise RuntimeError
        return super().expire(now_ms, limit)
