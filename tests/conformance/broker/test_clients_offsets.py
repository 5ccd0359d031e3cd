"""Committing, seeking and looking up offsets with real consumers."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import (
    Client,
    Consumer,
    ConsumerOptions,
    Received,
    Sent,
    TopicPartition,
    wait_for_records,
)

T0 = 1_700_000_000_000


def filled(client: Client, broker: RunningBroker, topic: str, count: int = 20) -> TopicPartition:
    """`count` records in partition 0, a second apart from T0."""
    client.produce(broker.bootstrap_servers, topic, [Sent(b"%d" % i, timestamp_ms=T0 + 1000 * i) for i in range(count)])
    return TopicPartition(topic, 0)


@pytest.fixture
def consumer(broker: RunningBroker, client: Client, topic: str) -> Iterator[Consumer]:
    """Partition 0 of the topic, with a group, but not as a member of it."""
    made = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic))
    made.assign([TopicPartition(topic, 0)])
    yield made
    made.close()


def test_a_group_goes_on_where_it_committed(broker: RunningBroker, client: Client, topic: str) -> None:
    tp = filled(client, broker, topic)
    first = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic))
    first.subscribe([topic])
    assert len(wait_for_records(first, 20)) == 20
    assert first.committed(tp) is None
    first.commit({tp: 7}, metadata="a note")
    assert first.committed(tp) == 7
    first.commit()  # what was polled
    assert first.committed(tp) == 20
    first.commit({tp: 12})
    first.close()
    second = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic))
    second.subscribe([topic])
    assert [r.offset for r in wait_for_records(second, 8)] == list(range(12, 20))
    second.close()


def test_commits_without_membership(
    broker: RunningBroker, client: Client, topic: str, consumer: Consumer, admin: AdminClient
) -> None:
    tp = filled(client, broker, topic)
    assert consumer.committed(tp) is None
    consumer.commit({tp: 5})
    assert consumer.committed(tp) == 5
    consumer.commit_async({tp: 6})

    def has_arrived() -> bool:
        consumer.poll(0.05)
        return consumer.committed(tp) == 6

    wait_for(has_arrived, "the commit sent last")
    found = admin.describe_consumer_groups([topic])[topic].result(20)
    assert (found.state.name, found.members, found.is_simple_consumer_group) == ("EMPTY", [], True)


def test_auto_commit(broker: RunningBroker, client: Client, topic: str) -> None:
    tp = filled(client, broker, topic)
    consumer = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic, auto_commit=True))
    consumer.subscribe([topic])
    wait_for_records(consumer, 20)

    def is_committed() -> bool:
        consumer.poll(0.05)
        return consumer.committed(tp) == 20

    wait_for(is_committed, "the commit by itself")
    consumer.close()


def test_seek_and_position(broker: RunningBroker, client: Client, topic: str, consumer: Consumer) -> None:
    tp = filled(client, broker, topic)
    wait_for_records(consumer, 20)
    assert consumer.position(tp) == 20
    consumer.seek(tp, 15)
    assert [r.offset for r in wait_for_records(consumer, 5)] == [15, 16, 17, 18, 19]
    consumer.seek(tp, 0)
    assert [r.offset for r in wait_for_records(consumer, 20)] == list(range(20))


def test_seek_out_of_range_resets(broker: RunningBroker, client: Client, topic: str, consumer: Consumer) -> None:
    tp = filled(client, broker, topic)
    wait_for_records(consumer, 20)
    consumer.seek(tp, 1000)  # OFFSET_OUT_OF_RANGE, and auto.offset.reset=earliest
    assert [r.offset for r in wait_for_records(consumer, 20)] == list(range(20))


def test_first_and_last_offsets(broker: RunningBroker, client: Client, topic: str, consumer: Consumer) -> None:
    tp = TopicPartition(topic, 0)
    assert consumer.bounds(tp) == (0, 0)
    filled(client, broker, topic)
    assert consumer.bounds(tp) == (0, 20)


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"), [(0, 0), (T0, 0), (T0 + 1, 1), (T0 + 9999, 10), (T0 + 19_000, 19), (T0 + 19_001, None)]
)
def test_offsets_for_times(
    broker: RunningBroker, client: Client, topic: str, consumer: Consumer, timestamp_ms: int, offset: int | None
) -> None:
    tp = filled(client, broker, topic)
    assert consumer.offset_for_time(tp, timestamp_ms) == offset


def test_pause_and_resume(broker: RunningBroker, client: Client, topic: str) -> None:
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic))
    consumer.assign([one, two])
    consumer.poll(0.1)
    consumer.pause([one])
    client.produce(broker.bootstrap_servers, topic, [Sent(b"%d" % i, partition=i % 2) for i in range(10)])
    assert {r.partition for r in wait_for_records(consumer, 5)} == {1}
    assert consumer.poll(0.3) == []
    consumer.resume([one])
    assert {r.partition for r in wait_for_records(consumer, 5)} == {0}
    consumer.close()


def test_starting_at_the_end(broker: RunningBroker, client: Client, topic: str) -> None:
    tp = filled(client, broker, topic)
    consumer = client.consumer(broker.bootstrap_servers, ConsumerOptions(group=topic, offset_reset="latest"))
    consumer.assign([tp])

    def next_records() -> list[Received]:
        # When the position was looked up cannot be seen from outside: what is produced meanwhile may be skipped.
        client.produce(broker.bootstrap_servers, topic, [Sent(b"new")])
        return consumer.poll(0.5)

    got = wait_for(next_records, "a new record")
    assert {r.value for r in got} == {b"new"}
    assert got[0].offset >= 20
    consumer.close()
