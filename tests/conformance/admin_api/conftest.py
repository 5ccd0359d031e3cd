"""Our Admin on the embedded broker in `make test`, and on Apache Kafka 4.3.1 and 3.9.1 in `make conformance`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from tests.conformance.brokers import PROPERTIES, RunningBroker, new_broker
from tools.apache_kafka import ApacheKafka, ApacheKafkaUnavailable, fetch

from groupkeeper import Admin, NewTopic, TopicPartition

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
KINDS = [
    "groupkeeper",
    pytest.param("4.3.1", marks=pytest.mark.conformance),
    pytest.param("3.9.1", marks=pytest.mark.conformance),
]


@pytest.fixture(scope="session", params=KINDS)
def target(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker that everybody may change, with an authorizer."""
    kind: str = request.param
    broker: RunningBroker
    if kind == "groupkeeper":
        broker = new_broker(kind, RIGHTS)
    else:
        request.getfixturevalue("apache_jars")
        try:
            fetch(kind)
        except ApacheKafkaUnavailable as unavailable:
            pytest.skip(str(unavailable))
        broker = ApacheKafka(PROPERTIES | RIGHTS, version=kind)
    broker.start()
    yield broker
    broker.stop()


@pytest_asyncio.fixture
async def own(target: RunningBroker) -> AsyncIterator[Admin]:
    async with Admin(target.bootstrap_servers) as admin:
        yield admin


@pytest_asyncio.fixture
async def place(own: Admin, name: str) -> TopicPartition:
    """The only partition of a new topic."""
    (await own.create_topics([NewTopic(name, 1, 1)])).all()
    return TopicPartition(name, 0)
