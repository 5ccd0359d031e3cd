"""Our Admin on the embedded broker in `make test`, and on Apache Kafka 4.4.0, 4.3.1 and 3.9.1 in `make conformance`."""

from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import pytest
import pytest_asyncio
from tests.apache_kafka import require as require_apache_kafka
from tests.conformance.brokers import PROPERTIES
from tools.apache_kafka import ApacheKafka, free_port

from groupkeeper import Admin, NewTopic, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
}
LISTENER = "SASL_PLAINTEXT"
KINDS = [
    "groupkeeper",
    pytest.param("4.4.0", marks=pytest.mark.conformance),
    pytest.param("4.3.1", marks=pytest.mark.conformance),
    pytest.param("3.9.1", marks=pytest.mark.conformance),
]


class Target(NamedTuple):
    """A broker that everybody may change, with an authorizer; `logins` is where passwords are asked for."""

    bootstrap_servers: str
    logins: str


@pytest.fixture(scope="session", params=KINDS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    kind: str = request.param
    if kind == "groupkeeper":
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        listeners = {"listeners": f"PLAINTEXT://{addresses[0]},{LISTENER}://{addresses[1]}"}
        with BackgroundBroker(properties=PROPERTIES | SETTINGS | listeners):
            yield Target(*addresses)
        return
    request.getfixturevalue("apache_jars")
    require_apache_kafka(kind)
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    mechanisms = ("scram-sha-256", "scram-sha-512")
    logins = {f"listener.name.{LISTENER.lower()}.{each}.sasl.jaas.config": module for each in mechanisms}
    with ApacheKafka(PROPERTIES | SETTINGS | logins, version=kind, listeners={LISTENER: LISTENER}) as broker:
        yield Target(broker.bootstrap_servers, broker.address(LISTENER))


@pytest_asyncio.fixture
async def own(target: Target) -> AsyncIterator[Admin]:
    async with Admin(target.bootstrap_servers) as admin:
        yield admin


@pytest_asyncio.fixture
async def tp(own: Admin, name: str) -> TopicPartition:
    """The only partition of a new topic."""
    (await own.create_topics([NewTopic(name, 1, 1)])).all()
    return TopicPartition(name, 0)
