"""The series of `groupkeeper serve` are what Kafka's own tools print, of groups of three types."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families as families
from tests.acts import make_topic, produce
from tests.conformance.brokers import RunningBroker, kinds_under_test, new_broker
from tests.web.serving import serving
from tools.apache_kafka import run_tool

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(240)]

PATIENCE_S = 40.0
Table = dict[tuple[str, str, str], tuple[str, str]]
"""What is committed, and the lag, by group, topic and partition, as texts; "-": not known."""


@pytest.fixture(params=kinds_under_test())
def broker(request: pytest.FixtureRequest, apache_jars: None) -> Iterator[RunningBroker]:
    settings = {"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"}
    broker = new_broker(request.param, settings)
    broker.start()
    yield broker
    broker.stop()


def fill(servers: str) -> None:
    for name, count in {"orders": 3, "payments": 2, "queue": 2}.items():
        make_topic(servers, name, count)
        produce(servers, name, [b"x"] * 300, range(count))


def read(servers: str, group_id: str, topics: list[str], count: int, **settings: str) -> Consumer:
    """A member that has read so many records, and committed each."""
    given = {"bootstrap.servers": servers, "group.id": group_id, "auto.offset.reset": "earliest", **settings}
    consumer = Consumer({**given, "enable.auto.commit": False})
    consumer.subscribe(topics)
    while count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        consumer.commit(message=message, asynchronous=False)
        count -= 1
    return consumer


@contextmanager
def kept_alive(*consumers: Consumer) -> Iterator[None]:
    """The members stay, and commit nothing."""
    is_over = threading.Event()

    def poll() -> None:
        for consumer in consumers:
            consumer.pause(consumer.assignment())
        while not is_over.wait(0.05):
            for consumer in consumers:
                consumer.poll(0)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        for consumer in consumers:
            consumer.close()


def printed(servers: str) -> Table:
    """What the official tools print."""
    found: Table = {}
    for line in run_tool(
        "consumer-groups", "--bootstrap-server", servers, "--describe", "--all-groups"
    ).stdout.splitlines():
        words = line.split()
        if len(words) > 6 and words[0] != "GROUP":
            found[words[0], words[1], words[2]] = (words[3], words[5])
    for line in run_tool(
        "share-groups", "--bootstrap-server", servers, "--describe", "--all-groups"
    ).stdout.splitlines():
        words = line.split()
        if len(words) == 5 and words[0] != "GROUP":
            found[words[0], words[1], words[2]] = (words[3], words[4])
    return found


def served(text: str) -> Table:
    """The same of the series."""
    committed: dict[tuple[str, str, str], str] = {}
    lags: dict[tuple[str, str, str], str] = {}
    places = {"groupkeeper_group_partition_committed_offset": committed, "groupkeeper_group_partition_lag": lags}
    for family in families(text):
        for sample in family.samples:
            if sample.name in places:
                key = (sample.labels["group"], sample.labels["topic"], sample.labels["partition"])
                places[sample.name][key] = str(int(sample.value))
    return {key: (committed.get(key, "-"), lags.get(key, "-")) for key in committed.keys() | lags.keys()}


def test_series_are_what_the_official_tools_print(broker: RunningBroker) -> None:
    servers = broker.bootstrap_servers
    fill(servers)
    read(servers, "idle", ["payments"], 50).close()
    earliest = (
        "--alter",
        "--entity-type",
        "groups",
        "--entity-name",
        "sharing",
        "--add-config",
        "share.auto.offset.reset=earliest",
    )
    run_tool("configs", "--bootstrap-server", servers, *earliest)
    sharing = ("--topic", "queue", "--group", "sharing", "--max-messages", "20", "--timeout-ms", "20000")
    run_tool("console-share-consumer", "--bootstrap-server", servers, *sharing)
    members = [
        read(servers, "classic", ["orders"], 100),
        read(servers, "modern", ["orders", "payments"], 120, **{"group.protocol": "consumer"}),
    ]
    with (
        kept_alive(*members),
        serving("--bootstrap-server", servers, "--interval", "1s", "--series", "partitions") as site,
    ):
        site.until_ready()
        expected = printed(servers)
        assert {group for group, _, _ in expected} == {"idle", "classic", "modern", "sharing"}
        known = {key: values for key, values in expected.items() if values != ("-", "-")}
        assert known == served(site.get("/metrics").text)
