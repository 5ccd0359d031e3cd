"""OAUTHBEARER with unsecured tokens: what is a good one, and clients that log in with it."""

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.broker.conftest import Wire
from tests.broker.security.logins import brokers_by_token, handshake, token

from groupkeeper.broker import Broker
from groupkeeper.broker.security.oauth import UnsecuredTokens
from groupkeeper.client.admin import Admin
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.security.mechanisms.mechanism import BadToken
from groupkeeper.testing.background import BackgroundBroker

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SETTINGS = {
    "listeners": "OPEN://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:SASL_PLAINTEXT",
    "listener.name.open.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.open.oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredValidatorRequiredScope="read";',
    "connection.failed.authentication.delay.ms": "0",
}
NOW_S = 1_800_000_000.0
GOOD = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S}


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(claims: object, header: object = {"alg": "none"}, signature: str = "") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{signature}"


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (GOOD, {}),
        (without("iat"), {}),
        ({**GOOD, "exp": NOW_S - 1, "iat": NOW_S - 9}, {"unsecuredValidatorAllowableClockSkewMs": "1001"}),
        ({**without("sub"), "who": "alice"}, {"unsecuredValidatorPrincipalClaimName": "who"}),
        ({**GOOD, "scope": ["write", "read"]}, {"unsecuredValidatorRequiredScope": "read write"}),
        ({**GOOD, "scope": "read"}, {"unsecuredValidatorRequiredScope": "read"}),
    ],
)
async def test_good_tokens(given: dict[str, Any], options: dict[str, str]) -> None:
    subject = await UnsecuredTokens(options, lambda: int(NOW_S * 1000)).subject_of(jwt(given))
    assert subject == ("alice", given["exp"] * 1000)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (jwt(without("sub")), "sub is missing"),
        (jwt({**GOOD, "sub": " "}), "sub is missing"),
        (jwt({**GOOD, "sub": 7}), "sub is missing"),
        (jwt(without("exp")), "exp is missing"),
        (jwt({**GOOD, "exp": "soon"}), "exp is no time"),
        (jwt({**GOOD, "exp": True}), "exp is no time"),
        (jwt({**GOOD, "exp": 1e400}), "exp is no time"),
        (jwt({**GOOD, "exp": NOW_S}), "expired"),
        (jwt({**GOOD, "iat": NOW_S + 1}), "future"),
        (jwt(GOOD, {"alg": "HS256"}), "algorithm"),
        (jwt(GOOD, {}), "algorithm"),
        (jwt(GOOD, {"alg": "None"}), "algorithm"),
        (jwt(GOOD, signature="c2ln"), "no signature"),
        (jwt([]), "no JSON object"),
        ("a.b.", "no JSON in base64"),
        ("..", "three parts"),
        ("abc", "three parts"),
        (f"{encoded({'alg': 'none'})}.{base64.b64encode(b'[' * 100_000).decode()}.", "no JSON in base64"),
    ],
)
async def test_bad_tokens(bad: str, says: str) -> None:
    with pytest.raises(BadToken, match=says):
        await UnsecuredTokens({}, lambda: int(NOW_S * 1000)).subject_of(bad)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(properties=SETTINGS) as started:
        yield started


@pytest.fixture
async def wire(wire: Wire) -> Wire:
    assert (await handshake(wire, "OAUTHBEARER")).error_code == 0
    return wire


def fresh(**claims: Any) -> str:
    return jwt({"sub": "alice", "exp": time.time() + 60, "scope": "read", **claims})


async def test_a_login(broker: Broker, wire: Wire) -> None:
    answer = await token(wire, f"n,a=alice,\x01auth=Bearer {fresh()}\x01more=x y\x01\x01".encode())
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    assert 0 < answer.session_lifetime_ms <= 60_001  # the end is rounded, the clock is cut off
    assert (await wire.call(ListGroupsRequest(), 4)).error_code == 0
    (connection,) = broker.server.connections
    assert connection.identity.principal == "User:alice"


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"exp": 1}, '{"status":"invalid_token"}'),
        ({"scope": "write"}, '{"status":"insufficient_scope", "scope":"[read]"}'),
    ],
)
async def test_a_token_that_is_refused(wire: Wire, claims: dict[str, Any], status: str) -> None:
    answer = await token(wire, f"n,,\x01auth=Bearer {fresh(**claims)}\x01\x01".encode())
    assert (answer.error_code, answer.auth_bytes.decode()) == (0, status)
    answer = await token(wire, b"\x01")
    assert (answer.error_code, answer.error_message) == (58, status)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"\xff",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"y,,\x01auth=Bearer a.b.\x01\x01",
        b"n,a=bob,\x01auth=Bearer " + fresh(exp=4e9).encode() + b"\x01\x01",
    ],
)
async def test_messages_that_are_none(wire: Wire, message: bytes) -> None:
    assert (await token(wire, message)).error_code == 58


async def test_librdkafka_and_our_own_client() -> None:
    with BackgroundBroker(properties=SETTINGS) as broker:
        assert brokers_by_token(broker.bootstrap_servers, fresh) == [1]
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="alice" '
            'unsecuredLoginStringClaim_scope="read";',
        }
        async with Admin(broker.bootstrap_servers, properties=properties) as admin:
            assert not (await admin.list_groups()).failed
