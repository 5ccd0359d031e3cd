"""Fixtures: the broker under test, Apache Kafka, and the real clients."""

import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.apache_kafka import require as require_apache_kafka
from tests.conformance.brokers import PROPERTIES, RunningBroker, kinds_under_test, new_broker, wait_for
from tests.conformance.clients import CLIENTS, Client
from tools.apache_kafka import ApacheKafka

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` runs each test with one client, by turns; `make conformance` runs it with all of them."""
    names = sorted(CLIENTS)
    for item in items:
        params = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        client = params.pop("client", None)
        if client is None or not Path(item.path).is_relative_to(HERE):
            continue
        function = getattr(item, "originalname", None)
        turn = zlib.crc32(f"{function}{sorted(map(str, params.values()))}".encode()) % len(names)
        if getattr(client, "name", client) != names[turn]:
            item.add_marker(pytest.mark.conformance)


@pytest.fixture(scope="session")
def apache_jars() -> None:
    """Skips where Apache Kafka cannot be had."""
    require_apache_kafka()


@pytest.fixture(scope="session")
def apache_kafka(apache_jars: None) -> Iterator[ApacheKafka]:
    """A running Apache Kafka 4.4.0."""
    with ApacheKafka(PROPERTIES) as broker:
        yield broker


@pytest.fixture(scope="session", params=kinds_under_test())
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """The broker under test, one for the whole session: tests take topics and groups of their own names."""
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka")
        return
    broker = new_broker(request.param)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the real client libraries."""
    return CLIENTS[request.param]


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the topics and groups of one test."""
    return f"{request.node.originalname}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def admin(broker: RunningBroker) -> AdminClient:
    """librdkafka's admin client on the broker under test, for setting a scene."""
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


@pytest.fixture
def topic(name: str, admin: AdminClient) -> Iterator[str]:
    """A topic of six partitions."""
    make_topic(admin, name, 6)
    yield name
    admin.delete_topics([name])[name].result(20)


def make_topic(admin: AdminClient, name: str, partitions: int) -> None:
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(20)

    def is_led() -> bool:
        found = admin.list_topics(name, timeout=10).topics[name]
        return len(found.partitions) == partitions and all(p.leader >= 0 for p in found.partitions.values())

    wait_for(is_led, f"leaders of {name}")
