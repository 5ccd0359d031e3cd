"""Client quotas: which holds, how long clients are throttled, and that they outlive the broker."""

import asyncio
import math
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.test_cluster_apis import part

from groupkeeper.broker.quotas.entities import (
    CLIENT_ID,
    CONNECTED,
    CONSUMED,
    HANDLED,
    IP,
    MUTATED,
    PRODUCED,
    USER,
    Entity,
    QuotaTable,
)
from groupkeeper.broker.quotas.rate import QuotaRate, TokenBucket
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import UnknownTopicOrPartition
from groupkeeper.protocol.record_batch import Record, write_batch

ANONYMOUS: Entity = frozenset({(USER, "ANONYMOUS")})


def entity(**names: str | None) -> Entity:
    return frozenset((name.replace("_", "-"), text) for name, text in names.items())


def test_the_most_specific_one_holds() -> None:
    order = [
        (entity(user="u", client_id="c"), ("u", "c")),
        (entity(user="u", client_id=None), ("u", "c")),
        (entity(user="u"), ("u", "")),
        (entity(user=None, client_id="c"), ("u", "c")),
        (entity(user=None, client_id=None), ("u", "c")),
        (entity(user=None), ("u", "")),
        (entity(client_id="c"), ("", "c")),
        (entity(client_id=None), ("", "c")),
    ]
    table = QuotaTable()
    assert table.limit(PRODUCED, "u", "c") is None
    for rank, (one, sharers) in reversed(list(enumerate(order))):
        table.put(one, PRODUCED, rank + 1.0)
        found = table.limit(PRODUCED, "u", "c")
        assert found is not None
        assert tuple(found) == (rank + 1.0, sharers)
    assert table.limit(CONSUMED, "u", "c") is None
    found = table.limit(PRODUCED, "other", "other")
    assert found is not None
    assert tuple(found) == (5.0, ("other", "other"))
    for one, _ in order:
        table.put(one, PRODUCED, None)
    assert not table


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_who_waits_as_told_comes_to_the_quota(size: int) -> None:
    rate, now, sent = QuotaRate(1000, 11), 0, 0
    while now < 1_000_000:
        rate.record(size, now)
        sent += size
        now += max(rate.excess_ms(5_000, now), 1)
    # A new client may use ten windows at once; one that is told to wait never gets less than its quota.
    assert 5_000 * 990 <= sent <= 5_000 * 1_011 + size


@pytest.mark.parametrize("per_second", [0.0, 5e-324, 1e-9])
def test_a_wait_fits_into_an_answer(per_second: float) -> None:
    rate, bucket = QuotaRate(1000, 11), TokenBucket(1)
    rate.record(10**12, 0)
    bucket.take(10**12, per_second, 0)
    assert rate.excess_ms(per_second, 0) == bucket.debt_ms(per_second, 0) == 2**31 - 1


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("user", PRODUCED, math.nan),
        ("user", "request_percentage", math.inf),
        ("ip", "connection_creation_rate", 1e-7),
        ("ip", "connection_creation_rate", math.nan),
    ],
)
async def test_quotas_that_are_none(start: Start, connect: Connect, kind: str, key: str, value: float) -> None:
    wire = await connect(await start())
    names = [part(49, "EntityData", entity_type=kind, entity_name=None)]
    entry = part(49, "EntryData", entity=names, ops=[part(49, "OpData", key=key, value=value)])
    answer: Any = await wire.call(m.AlterClientQuotasRequest([entry]), 1)
    assert [one.error_code for one in answer.entries] == [42]


async def set_quota(wire: Wire, one: Entity, key: str, value: float) -> None:
    names = [part(49, "EntityData", entity_type=kind, entity_name=name) for kind, name in one]
    entry = part(49, "EntryData", entity=names, ops=[part(49, "OpData", key=key, value=value)])
    answer: Any = await wire.call(m.AlterClientQuotasRequest([entry]), 1)
    assert [(one.error_code, one.error_message) for one in answer.entries] == [(0, None)]


@pytest.mark.parametrize(
    ("asked", "answered", "error_code"),
    [
        ([(USER, "a"), (CLIENT_ID, "b")], [(CLIENT_ID, "b"), (USER, "a")], 0),
        ([(USER, "a"), (USER, "b")], [(USER, "b")], 0),
        ([("ip", "a"), (USER, "b"), (CLIENT_ID, "c")], [(CLIENT_ID, "c"), (USER, "b"), ("ip", "a")], 42),
        ([("zebra", "a"), ("apple", "b")], [("zebra", "a"), ("apple", "b")], 42),
    ],
)
async def test_the_answer_names_the_parts_of_an_entity_as_in_kafka(
    start: Start, connect: Connect, asked: Any, answered: Any, error_code: int
) -> None:
    wire = await connect(await start())
    names = [part(49, "EntityData", entity_type=kind, entity_name=name) for kind, name in asked]
    op = part(49, "OpData", key=PRODUCED, value=1.0, remove=False)
    answer: Any = await wire.call(m.AlterClientQuotasRequest([part(49, "EntryData", entity=names, ops=[op])]), 1)
    (entry,) = answer.entries
    assert ([(one.entity_type, one.entity_name) for one in entry.entity], entry.error_code) == (answered, error_code)
    described: Any = await wire.call(m.DescribeClientQuotasRequest([]), 1)
    kept = [[(one.entity_type, one.entity_name) for one in entry.entity] for entry in described.entries]
    assert kept == ([] if error_code else [answered])


async def produce(wire: Wire, size: int) -> int:
    """How long the broker asks to wait, in ms."""
    batch = write_batch([Record(None, b"x" * size, timestamp=1)])
    data = m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, batch)])
    answer: Any = await wire.call(m.ProduceRequest(None, -1, 1000, [data]), 9)
    return int(answer.throttle_time_ms)


async def test_a_producer_and_a_consumer_are_throttled(start: Start, connect: Connect, tmp_path: Path) -> None:
    broker = await start(directory=tmp_path)
    wire = await connect(broker)
    await wire.create("t")
    assert await produce(wire, 50_000) == 0
    await set_quota(wire, ANONYMOUS, PRODUCED, 10_000)
    began = time.monotonic()
    assert await produce(wire, 60_000) == 0  # ten windows are free
    throttle_ms = await produce(wire, 45_000)
    assert 300 - 1000 * (time.monotonic() - began) <= throttle_ms <= 900
    # The answer came at once, the next one comes after the wait; others are served.
    other = await connect(broker)
    assert (await other.call(m.ListGroupsRequest(), 4)).error_code == 0
    assert (await wire.call(m.ListGroupsRequest(), 4)).error_code == 0
    assert time.monotonic() - began >= throttle_ms / 1000 - 0.01
    await set_quota(other, frozenset({(CLIENT_ID, None)}), CONSUMED, 500)
    fetch = part(1, "FetchTopic", topic="t", partitions=[part(1, "FetchPartition", partition_max_bytes=1_000_000)])
    answer: Any = await other.call(m.FetchRequest(topics=[fetch]), 11)
    assert len(answer.responses[0].partitions[0].records) < 60_000
    assert answer.throttle_time_ms > 10_000

    await broker.stop()
    broker = await start(directory=tmp_path)
    found = dict(broker.quotas.table.items())
    assert found == {ANONYMOUS: {PRODUCED: 10_000.0}, frozenset({(CLIENT_ID, None)}): {CONSUMED: 500.0}}


async def test_librdkafka_waits(start: Start, connect: Connect) -> None:
    broker = await start()
    wire = await connect(broker)
    await wire.create("t")
    await set_quota(wire, frozenset({(CLIENT_ID, "slow")}), PRODUCED, 4_000)
    throttled: list[float] = []

    def run() -> None:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "client.id": "slow",
                "throttle_cb": lambda event: throttled.append(event.throttle_time),
            }
        )
        for _ in range(42):
            producer.produce("t", b"x" * 1_000)
            assert producer.flush(20) == 0
        producer.poll(0)

    await asyncio.to_thread(run)
    assert throttled
    assert max(throttled) > 0


async def test_time_that_requests_take(start: Start, connect: Connect) -> None:
    broker = await start()
    wire = await connect(broker)
    await set_quota(wire, ANONYMOUS, HANDLED, 0.0001)  # a microsecond in a second
    await wire.create("t")
    answer: Any = await wire.call(m.ListGroupsRequest(), 4)
    assert answer.throttle_time_ms == 1_000  # never more than a window
    assert await produce(wire, 10) == 1_000
    await set_quota(wire, ANONYMOUS, HANDLED, 1_000_000)
    answer = await wire.call(m.ListGroupsRequest(), 4)
    assert answer.throttle_time_ms == 0


async def test_how_long_a_window_is(start: Start, connect: Connect) -> None:
    broker = await start(properties={"quota.window.size.seconds": "3"})
    wire, other = await connect(broker), await connect(broker)
    await wire.create("t")
    await set_quota(wire, ANONYMOUS, PRODUCED, 10_000)
    assert await produce(wire, 250_000) == 0  # ten windows are free
    assert await produce(wire, 100_000) > 0
    broker.quotas.table.put(ANONYMOUS, HANDLED, 1e-9)  # whatever a request takes is more
    answer: Any = await other.call(m.ListGroupsRequest(), 4)
    assert answer.throttle_time_ms == 3_000  # never more than a window


async def test_a_request_that_waits_takes_no_time(start: Start, connect: Connect) -> None:
    broker = await start()
    wire = await connect(broker)
    await wire.create("t")
    await set_quota(wire, ANONYMOUS, HANDLED, 4)
    fetch = part(1, "FetchTopic", topic="t", partitions=[part(1, "FetchPartition", partition_max_bytes=1_000)])
    began = time.monotonic()
    answer: Any = await wire.call(m.FetchRequest(topics=[fetch], max_wait_ms=500, min_bytes=1), 11)
    assert answer.throttle_time_ms == 0  # 0.4 seconds in ten are free
    assert time.monotonic() - began >= 0.45


def creation(name: str, partitions: int) -> Any:
    topic = part(19, "CreatableTopic", name=name, num_partitions=partitions, replication_factor=1)
    return m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000)


async def test_changes_of_topics(start: Start, connect: Connect) -> None:
    broker = await start(properties={"controller.quota.window.num": "1", "controller.quota.window.size.seconds": "500"})
    await set_quota(await connect(broker), ANONYMOUS, MUTATED, 0.02)

    async def ask(request: Any, version: int) -> tuple[int, int, str | None]:
        wire = await connect(broker)  # the one before waits
        answer: Any = await wire.call(request, version)
        (result,) = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
        return result.error_code, answer.throttle_time_ms, result.error_message

    assert await ask(creation("a", 9), 7) == (0, 0, None)
    assert await ask(creation("b", 3), 7) == (0, 0, None)  # the last one may be more than is left
    code, throttle_ms, message = await ask(creation("c", 1), 7)
    assert (code, message) == (89, None)
    assert 80_000 <= throttle_ms <= 100_000
    deletion = m.DeleteTopicsRequest
    code, throttle_ms, _ = await ask(deletion(topic_names=["b"], timeout_ms=1_000), 4)  # before version 5: only late
    assert code == 0
    assert 230_000 <= throttle_ms <= 250_000
    topics = [part(37, "CreatePartitionsTopic", name="a", count=11, assignments=None)]
    assert (await ask(m.CreatePartitionsRequest(topics), 3))[0] == 89
    assert (await ask(m.CreatePartitionsRequest(topics), 2))[0] == 0
    assert (await ask(creation("c", 1), 6))[0] == 89
    broker.quotas.table.put(ANONYMOUS, MUTATED, None)
    assert await ask(creation("c", 1), 7) == (0, 0, None)


async def test_automatic_topics_count(start: Start, connect: Connect) -> None:
    broker = await start(properties={"controller.quota.window.size.seconds": "100", "num.partitions": "9"})
    wire = await connect(broker)
    await set_quota(wire, ANONYMOUS, MUTATED, 0.004)
    for name in ("a", "b", "__consumer_offsets"):
        answer: Any = await wire.call(m.MetadataRequest([part(3, "MetadataRequestTopic", name=name)]), 12)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (UnknownTopicOrPartition.code, 0)
    assert (broker.topics.get("a") is None, broker.topics.names()) == (False, ["a"])
    assert (await wire.call(creation("c", 1), 7)).topics[0].error_code == 89
    broker.quotas.table.put(ANONYMOUS, MUTATED, None)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wire.call(m.ListGroupsRequest(), 4), 0.2)  # the connection waits
    wire = await connect(broker)
    await wire.call(m.MetadataRequest([part(3, "MetadataRequestTopic", name="b")]), 12)
    assert broker.topics.get("b") is not None


def test_how_many_connections_an_address_may_open() -> None:
    table = QuotaTable()
    assert table.connection_rate("127.0.0.1") is None
    table.put(frozenset({(IP, None)}), CONNECTED, 5.0)
    table.put(frozenset({(IP, "10.0.0.1")}), CONNECTED, 7.0)
    assert [table.connection_rate(one) for one in ("127.0.0.1", "10.0.0.1")] == [5, 7]
    table.put(frozenset({(IP, "localhost")}), CONNECTED, 9.0)
    assert table.connection_rate("127.0.0.1") == 9
