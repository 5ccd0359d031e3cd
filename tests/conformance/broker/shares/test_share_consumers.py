"""The official console consumer of share groups, and librdkafka's consumer without acknowledgements of its own."""

import re

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient
from tests.acts import begin_with_the_first_record
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import CLIENTS, Sent
from tests.conformance.conftest import make_topic
from tools.apache_kafka import run_tool

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]


@pytest.fixture
def queue(broker: RunningBroker, admin: AdminClient, name: str) -> str:
    """A topic of ten records, and a share group of the same name that begins with the first."""
    make_topic(admin, name, 1)
    CLIENTS["confluent"].produce(broker.bootstrap_servers, name, [Sent(b"%d" % number) for number in range(10)])
    begin_with_the_first_record(broker.bootstrap_servers, name)
    return name


def console(broker: RunningBroker, queue: str, *arguments: str) -> list[tuple[int, str]]:
    """What kafka-console-share-consumer prints: delivery count and value of each record."""
    done = run_tool(
        "console-share-consumer",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", queue, "--group", queue),
        *("--max-messages", "10", "--timeout-ms", "60000", "--formatter-property", "print.delivery=true"),
        *arguments,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = (re.fullmatch(r"Delivery:(\d+)\t(.*)", line) for line in done.stdout.splitlines())
    return [(int(one[1]), one[2]) for one in found if one]


def test_the_console_consumer(apache_jars: None, broker: RunningBroker, queue: str) -> None:
    values = [str(number) for number in range(10)]
    assert console(broker, queue, "--release") == [(1, value) for value in values]
    assert console(broker, queue) == [(2, value) for value in values]
    CLIENTS["confluent"].produce(broker.bootstrap_servers, queue, [Sent(b"more")] * 10)
    assert console(broker, queue, "--reject") == [(1, "more")] * 10
    CLIENTS["confluent"].produce(broker.bootstrap_servers, queue, [Sent(b"last")] * 10)
    assert console(broker, queue) == [(1, "last")] * 10


def test_librdkafka_accepts_what_it_polled(broker: RunningBroker, queue: str) -> None:
    def consumer() -> ShareConsumer:
        made = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": queue})
        made.subscribe([queue])
        return made

    with consumer() as first:
        polled = wait_for(lambda: list(first.poll(1)), "records", 60)
        assert [(message.value(), message.delivery_count()) for message in polled] == [
            (b"%d" % number, 1) for number in range(10)
        ]
        assert [error for error in first.commit_sync(30).values() if error is not None] == []
    with consumer() as second:
        CLIENTS["confluent"].produce(broker.bootstrap_servers, queue, [Sent(b"more")])
        assert [message.value() for message in wait_for(lambda: list(second.poll(1)), "a record", 60)] == [b"more"]
