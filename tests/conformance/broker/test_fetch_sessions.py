"""Fetch sessions (KIP-227) with the clients that open them."""

import subprocess
from collections.abc import Iterator

import pytest
from tests.conformance.brokers import wait_for
from tests.conformance.clients import CLIENTS, Client, ConsumerOptions, Sent, TopicPartition
from tools.apache_kafka import run_tool

from groupkeeper.broker.call import Call
from groupkeeper.protocol.messages.fetch_request import FetchRequest
from groupkeeper.testing.background import BackgroundBroker

PARTITIONS = 12
PROPERTIES = {"group.initial.rebalance.delay.ms": "0", "num.partitions": str(PARTITIONS)}


@pytest.fixture
def broker() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=PROPERTIES) as broker:
        yield broker


def continues_a_session(call: Call) -> bool:
    return isinstance(call.message, FetchRequest) and call.message.session_epoch > 0


def sent(number: int) -> list[Sent]:
    return [Sent(b"%d-%d" % (number, partition), partition=partition) for partition in range(PARTITIONS)]


def test_every_record_arrives_once(broker: BackgroundBroker, client: Client) -> None:
    servers = broker.bootstrap_servers
    CLIENTS["confluent"].produce(servers, "t", sent(0))
    consumer = client.consumer(servers, ConsumerOptions())
    consumer.assign([TopicPartition("t", partition) for partition in range(PARTITIONS)])
    received: list[bytes | None] = []

    def receive(count: int) -> bool:
        received.extend(one.value for one in consumer.poll())
        return len(received) >= count

    with broker.faults.delay("Fetch", 0, where=continues_a_session) as incremental:
        for number in range(4):
            wait_for(lambda count=number * PARTITIONS + PARTITIONS: receive(count), "the records")  # type: ignore[misc]
            CLIENTS["confluent"].produce(servers, "t", sent(number + 1))
        # A session that is lost is opened again, and a request that is refused is sent again.
        lost = broker.faults.error("Fetch", "FETCH_SESSION_ID_NOT_FOUND", where=continues_a_session, times=1)
        with lost:
            CLIENTS["confluent"].produce(servers, "t", sent(5))
            wait_for(lambda: receive(6 * PARTITIONS), "the last records")
        # librdkafka and aiokafka want no sessions; the others use them all the time.
        assert (incremental.hits > 3) == (client.name == "kafka-python")
        assert lost.hits == (client.name == "kafka-python")
    consumer.close()
    assert sorted(received, key=str) == sorted((one.value for n in range(6) for one in sent(n)), key=str)


@pytest.mark.conformance
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("apache_jars")
def test_apaches_consumer(broker: BackgroundBroker) -> None:
    servers = broker.bootstrap_servers
    for number in range(20):
        CLIENTS["confluent"].produce(servers, "t", sent(number))
    options = ["--from-beginning", "--max-messages", str(20 * PARTITIONS), "--timeout-ms", "20000"]
    # Few records at a time, so that there are many requests.
    few = ["--command-property", "max.partition.fetch.bytes=100", "--command-property", "fetch.max.bytes=1024"]
    with broker.faults.delay("Fetch", 0, where=continues_a_session) as incremental:
        lost = broker.faults.error("Fetch", "FETCH_SESSION_ID_NOT_FOUND", where=continues_a_session, nth=5)
        done: subprocess.CompletedProcess[str] = run_tool(
            "console-consumer", "--bootstrap-server", servers, "--topic", "t", *options, *few
        )
        assert (incremental.hits > 10, lost.hits) == (True, 1)
    assert sorted(done.stdout.split()) == sorted(f"{n}-{p}" for n in range(20) for p in range(PARTITIONS))
