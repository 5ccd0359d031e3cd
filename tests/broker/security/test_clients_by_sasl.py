"""Other people's clients log in by their own configuration, and produce and consume."""

from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest
from confluent_kafka.admin import AdminClient
from tests.broker.security.logins import of_librdkafka
from tests.patience import until

from groupkeeper.testing.background import BackgroundBroker

USERS = {"alice": "alice-secret", "bob": 'b"=,\\ \u20ac'}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def broker() -> Iterator[BackgroundBroker]:
    properties = {"group.initial.rebalance.delay.ms": "0", "connection.failed.authentication.delay.ms": "1"}
    with BackgroundBroker(properties=properties, users=USERS) as started:
        yield started


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("username", USERS)
def test_librdkafka(broker: BackgroundBroker, mechanism: str, username: str) -> None:
    topic = f"rd-{mechanism}-{username}"
    settings = of_librdkafka(broker.bootstrap_servers, username, USERS[username], mechanism)
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"value")
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_is_refused(broker: BackgroundBroker, mechanism: str) -> None:
    reasons: list[str] = []
    settings = of_librdkafka(broker.bootstrap_servers, "alice", "guess", mechanism)
    settings["error_cb"] = lambda error: reasons.append(error.name())
    admin = AdminClient(settings)
    with pytest.raises(confluent_kafka.KafkaException):
        admin.list_topics(timeout=0.5)
    until(lambda: admin.poll(0.1) >= 0 and "_AUTHENTICATION" in reasons)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker: BackgroundBroker, mechanism: str) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": USERS["alice"],
    }
    producer = kafka.KafkaProducer(**settings)
    assert producer.send(f"python-{mechanism}", b"value").get(20).offset == 0
    producer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(broker: BackgroundBroker, mechanism: str) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=USERS["alice"],
    )
    await producer.start()
    assert (await producer.send_and_wait(f"aio-{mechanism}", b"value")).offset == 0
    await producer.stop()
