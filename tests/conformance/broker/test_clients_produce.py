"""What real producers send comes back to real consumers unchanged, and is where the broker said it is."""

import itertools

import pytest
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients import (
    CLIENTS,
    COMPRESSIONS,
    Client,
    ConsumerOptions,
    ProducerOptions,
    Received,
    Sent,
    TopicPartition,
    wait_for_records,
)

T0 = 1_700_000_000_000

SAMPLES = [
    Sent(b"plain", key=b"k", timestamp_ms=T0),
    Sent(b"no key", key=None, timestamp_ms=T0 + 1),
    Sent(None, key=b"tombstone", timestamp_ms=T0 + 2),
    Sent(b"", key=b"", timestamp_ms=T0 + 3),
    Sent(b"headers", headers=(("a", b"1"), ("a", b"2"), ("empty", b""), ("\u00e9", b"\x00\xff")), timestamp_ms=T0 + 4),
    Sent(b"older than the one before", timestamp_ms=T0 - 1000),
    Sent("caf\u00e9 \u6771\u4eac".encode() * 300, key=b"long", timestamp_ms=T0 + 5),
]


def read_all(client: Client, broker: RunningBroker, topic: str, count: int, partitions: int = 1) -> list[Received]:
    consumer = client.consumer(broker.bootstrap_servers, ConsumerOptions())
    try:
        consumer.assign([TopicPartition(topic, p) for p in range(partitions)])
        return wait_for_records(consumer, count)
    finally:
        consumer.close()


def content(r: Sent | Received) -> tuple[object, ...]:
    return r.key, r.value, tuple(r.headers), r.timestamp_ms


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_unchanged(broker: RunningBroker, client: Client, topic: str, compression: str) -> None:
    if compression not in client.compressions():
        pytest.skip(f"{client.name} has no {compression} here")
    places = client.produce(broker.bootstrap_servers, topic, SAMPLES, ProducerOptions(compression=compression))
    assert places == [(0, i) for i in range(len(SAMPLES))]
    # A client reads its own records, and another reads them too.
    others = [c for c in CLIENTS.values() if compression in c.compressions() and c is not client]
    for reader in (client, others[0]):
        got = read_all(reader, broker, topic, len(SAMPLES))
        assert [content(r) for r in got] == [content(r) for r in SAMPLES], reader.name
        assert [r.offset for r in got] == list(range(len(SAMPLES)))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(broker: RunningBroker, client: Client, topic: str, acks: str) -> None:
    # Without acknowledgement a leader that isn't ready yet would lose them rightly.
    client.produce(broker.bootstrap_servers, topic, [Sent(b"the leader is there")])
    records = [Sent(b"%d" % i) for i in range(20)]
    places = client.produce(broker.bootstrap_servers, topic, records, ProducerOptions(acks=acks))
    if acks != "0":
        assert places == [(0, i) for i in range(1, 21)]
    assert [r.value for r in read_all(client, broker, topic, 21)][1:] == [r.value for r in records]


def test_an_idempotent_producer_writes_each_record_once_and_in_order(
    broker: RunningBroker, client: Client, topic: str
) -> None:
    records = [Sent(b"%d" % i, partition=i % 3) for i in range(3000)]
    places = client.produce(broker.bootstrap_servers, topic, records, ProducerOptions(idempotent=True))
    counters = [itertools.count() for _ in range(3)]
    assert places == [(i % 3, next(counters[i % 3])) for i in range(3000)]
    got = read_all(client, broker, topic, 3000, partitions=3)
    for p in range(3):
        assert [r.value for r in got if r.partition == p] == [r.value for r in records if r.partition == p]


def test_keys_choose_partitions_and_big_batches_arrive_whole(broker: RunningBroker, client: Client, topic: str) -> None:
    records = [Sent(b"v" * 1000, key=b"key-%d" % (i % 40), partition=None) for i in range(4000)]
    places = client.produce(broker.bootstrap_servers, topic, records)
    assert len({p for p, _ in places}) > 1
    got = read_all(client, broker, topic, 4000, partitions=6)
    assert sorted((r.partition, r.offset) for r in got) == sorted(places)
    partitions_by_key: dict[bytes | None, set[int]] = {}
    for r in got:
        partitions_by_key.setdefault(r.key, set()).add(r.partition)
    assert len(partitions_by_key) == 40
    assert all(len(p) == 1 for p in partitions_by_key.values())


def test_a_record_of_nearly_a_megabyte(broker: RunningBroker, client: Client, topic: str) -> None:
    big = bytes(range(256)) * 3900  # 998,400 bytes: the limit of brokers and clients is 1 MiB with its overhead
    assert client.produce(broker.bootstrap_servers, topic, [Sent(big), Sent(b"after")]) == [(0, 0), (0, 1)]
    assert [r.value for r in read_all(client, broker, topic, 2)] == [big, b"after"]


def test_a_waiting_consumer_gets_what_is_produced_later(broker: RunningBroker, client: Client, topic: str) -> None:
    consumer = client.consumer(broker.bootstrap_servers, ConsumerOptions(extra=LONG_POLL[client.name]))
    try:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.poll(0.5) == []
        for i in range(3):
            client.produce(broker.bootstrap_servers, topic, [Sent(b"%d" % i)])
            (got,) = wait_for_records(consumer, 1, timeout=4)  # well below the 5 s that the fetch may wait
            assert (got.offset, got.value) == (i, b"%d" % i)
    finally:
        consumer.close()


LONG_POLL = {
    "confluent": {"fetch.wait.max.ms": 5000},
    "kafka-python": {"fetch_max_wait_ms": 5000},
    "aiokafka": {"fetch_max_wait_ms": 5000},
}
