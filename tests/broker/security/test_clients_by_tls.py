"""Real clients over TLS: with certificates of their own, and with tokens."""

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.net.sasl.oauth
import pytest
from tests.conformance.broker.security.every_login import unsigned

from groupkeeper.testing.background import BackgroundBroker


class Door(BackgroundBroker):
    """A broker of one TLS listener, with the files that its clients need."""

    def __init__(self, folder: Path, **given: str) -> None:
        self.ca, self.own = str(folder / "tls" / "ca.pem"), str(folder / "tls" / "client.pem")
        is_open = "ssl.client.auth" in given
        super().__init__(directory=folder, properties=given, tls=True, users=None if is_open else {"alice": "secret"})

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python 3.13 and later do
        context.load_cert_chain(self.own)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with Door(tmp_path_factory.mktemp("certificates"), **{"ssl.client.auth": "required"}) as door:
        yield door


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with Door(tmp_path_factory.mktemp("tokens"), **{"sasl.enabled.mechanisms": "OAUTHBEARER"}) as door:
        yield door


def fresh() -> str:
    return unsigned("alice", time.time() + 600)


class AioToken(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return fresh()


class PythonToken(kafka.net.sasl.oauth.AbstractTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return fresh()


def test_librdkafka_by_certificate(certificates: Door) -> None:
    own = {"ssl.certificate.location": certificates.own, "ssl.key.location": certificates.own}
    produce(certificates, {"security.protocol": "SSL", **own})


def test_librdkafka_by_token(tokens: Door) -> None:
    oauth = {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (fresh(), time.time() + 600)}
    produce(tokens, {"security.protocol": "SASL_SSL", **oauth})


def produce(door: Door, more: dict[str, object]) -> None:
    settings = {"bootstrap.servers": door.bootstrap_servers, "ssl.ca.location": door.ca, **more}
    producer = confluent_kafka.Producer(settings)
    producer.produce("rd", b"value")
    assert producer.flush(20) == 0


def test_kafka_python_by_certificate(certificates: Door) -> None:
    settings = {"security_protocol": "SSL", "ssl_context": certificates.context()}
    producer = kafka.KafkaProducer(bootstrap_servers=certificates.bootstrap_servers, **settings)
    assert producer.send("python", b"value").get(20).offset == 0
    producer.close()


def test_kafka_python_by_token(tokens: Door) -> None:
    settings = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "ssl_cafile": tokens.ca}
    servers = tokens.bootstrap_servers
    producer = kafka.KafkaProducer(bootstrap_servers=servers, sasl_oauth_token_provider=PythonToken(), **settings)
    assert producer.send("python", b"value").get(20).offset == 0
    producer.close()


async def test_aiokafka_by_certificate(certificates: Door) -> None:
    await send(certificates, security_protocol="SSL", ssl_context=certificates.context())


async def test_aiokafka_by_token(tokens: Door) -> None:
    oauth = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": AioToken()}
    await send(tokens, security_protocol="SASL_SSL", ssl_context=ssl.create_default_context(cafile=tokens.ca), **oauth)


async def send(door: Door, **settings: object) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=door.bootstrap_servers, **settings)
    await producer.start()
    assert (await producer.send_and_wait("aio", b"value")).offset == 0
    await producer.stop()
