"""Faults on purpose under the real clients: they do what their documentation says they do."""

from collections.abc import Iterator

import pytest
from tests.conformance.brokers import wait_for
from tests.conformance.clients import Client, Consumer, ConsumerOptions, ProducerOptions, Sent, TopicPartition

from groupkeeper.testing.background import BackgroundBroker

TOPIC = "orders"
PARTITION = TopicPartition(TOPIC, 0)


@pytest.fixture
def faulty() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


def values_of(client: Client, servers: str, count: int) -> list[bytes | None]:
    consumer = client.consumer(servers, ConsumerOptions())
    consumer.assign([PARTITION])
    received: list[bytes | None] = []

    def has_all() -> bool:
        received.extend(one.value for one in consumer.poll())
        return len(received) >= count

    wait_for(has_all, "the records")
    consumer.close()
    return received


def joined(client: Client, servers: str, group: str) -> Consumer:
    consumer = client.consumer(servers, ConsumerOptions(group=group))
    consumer.subscribe([TOPIC])
    wait_for(lambda: consumer.poll() is None or bool(consumer.assignment()), "an assignment", 40)
    return consumer


@pytest.mark.parametrize("how", ["lost answer", "not leader", "disconnected", "late", "throttled"])
def test_a_producer_gets_over_it(faulty: BackgroundBroker, client: Client, how: str) -> None:
    faults = faulty.faults
    client.produce(faulty.bootstrap_servers, TOPIC, [Sent(b"before")])
    fault = {
        "lost answer": lambda: faults.disconnect("Produce", executes=True, nth=1),
        "not leader": lambda: faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", nth=1),
        "disconnected": lambda: faults.disconnect("Produce", nth=1),
        "late": lambda: faults.delay("Produce", 500, nth=1),
        "throttled": lambda: faults.throttle("Produce", 300, nth=1),
    }[how]()
    with fault:
        client.produce(faulty.bootstrap_servers, TOPIC, [Sent(b"during")], ProducerOptions(idempotent=True))
        assert fault.hits == 1
    client.produce(faulty.bootstrap_servers, TOPIC, [Sent(b"after")])
    assert values_of(client, faulty.bootstrap_servers, 3) == [b"before", b"during", b"after"]


def test_a_consumer_follows_its_coordinator(faulty: BackgroundBroker, client: Client) -> None:
    client.produce(faulty.bootstrap_servers, TOPIC, [Sent(b"one")])
    consumer = joined(client, faulty.bootstrap_servers, "g")
    consumer.commit({PARTITION: 1})
    with faulty.faults.error("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=1) as fault:
        faulty.faults.move_coordinator("g", away_ms=200)
        consumer.commit({PARTITION: 1})
        assert consumer.committed(PARTITION) == 1
        assert fault.hits == 1
    consumer.close()


def test_a_consumer_whose_session_ended_joins_again(faulty: BackgroundBroker, client: Client) -> None:
    client.produce(faulty.bootstrap_servers, TOPIC, [Sent(b"one")])
    consumer = joined(client, faulty.bootstrap_servers, "g")
    with faulty.faults.delay("JoinGroup", 0) as joins:
        assert len(faulty.faults.expire_session("g")) == 1
        wait_for(
            lambda: consumer.poll() is None or (joins.hits > 0 and bool(consumer.assignment())), "a new session", 40
        )
    consumer.commit({PARTITION: 1})
    assert consumer.committed(PARTITION) == 1
    consumer.close()
