"""Raw requests of a login."""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.admin import AdminClient
from tests.broker.conftest import Connect, Wire

from groupkeeper.broker import Broker
from groupkeeper.protocol import messages as m
from groupkeeper.security.mechanisms.scram import ScramClient

USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}


def plain(username: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{username}\0{password}".encode()


async def handshake(wire: Wire, mechanism: str, version: int = 1) -> m.SaslHandshakeResponse:
    return await wire.call(m.SaslHandshakeRequest(mechanism), version)


async def token(wire: Wire, message: bytes, version: int = 2) -> m.SaslAuthenticateResponse:
    return await wire.call(m.SaslAuthenticateRequest(message), version)


async def log_in(wire: Wire, username: str, password: str) -> m.SaslAuthenticateResponse:
    """By PLAIN."""
    assert (await handshake(wire, "PLAIN")).error_code == 0
    return await token(wire, plain(username, password))


async def logged_in(connect: Connect, broker: Broker, user: str) -> Wire:
    """A connection of one of the `USERS`."""
    wire = await connect(broker)
    assert (await log_in(wire, user, USERS[user])).error_code == 0
    return wire


async def log_in_by_scram(
    wire: Wire, mechanism: str, username: str, password: str, extensions: tuple[tuple[str, str], ...] = ()
) -> m.SaslAuthenticateResponse:
    """The last answer; the broker's proof is checked."""
    assert (await handshake(wire, mechanism)).error_code == 0
    client = ScramClient(mechanism, username, password, "client-nonce", extensions)
    answer = await token(wire, await client.first())
    if answer.error_code:
        return answer
    final = client.answer(answer.auth_bytes)
    assert final is not None
    answer = await token(wire, final)
    if not answer.error_code:
        assert client.answer(answer.auth_bytes) is None
    return answer


def of_librdkafka(servers: str, username: str, password: str, mechanism: str = "PLAIN") -> dict[str, Any]:
    """The settings of a client."""
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": username,
        "sasl.password": password,
    }


def brokers_by_token(servers: str, fresh: Callable[[], str]) -> list[int]:
    """The ids that librdkafka sees after a login by OAUTHBEARER."""
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (fresh(), time.time() + 60),
    }
    client = AdminClient(settings)
    client.poll(0)
    return list(client.list_topics(timeout=20).brokers)
