"""Signed tokens on Apache Kafka 4.4.0 and on our broker: who is let in, and what the others get."""

import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import jwt
import pytest
from tests.apache_kafka import require as require_apache_kafka
from tests.broker.security.test_signed_tokens import EC, KEYS, OTHER_RSA, RSA, SECRET
from tests.differential.pair import FIRST_SEED, seeds
from tests.differential.wire import Connection
from tools.apache_kafka import JVM, ApacheKafka, free_port

from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

TOKENS = len(seeds(400))
LISTENERS = ("STRICT", "LOOSE")
KEYS_BY_ALGORITHM: dict[str, list[tuple[Any, str]]] = {
    "RS256": [(RSA, "one"), (OTHER_RSA, "one"), (RSA, "two"), (OTHER_RSA, "encrypts")],
    "RS512": [(RSA, "one"), (OTHER_RSA, "one")],
    "PS256": [(RSA, "one")],
    "ES256": [(EC, "two"), (EC, "one")],
    "HS256": [(jwt.utils.base64url_decode(SECRET), "shared"), (b"x" * 40, "shared")],
    "none": [(None, "one")],
}
ODD: dict[str, list[Any]] = {
    "sub": [None, "", " ", " bob ", 7, ["bob"], "Ünï:=,/*"],
    "iat": [None, -7, 0, "now", 29, 3000, 1e15, 0.5],
    "exp": [None, 0, -20, -29, -31, -1000, "later", 60.25, True],
    "nbf": [0, 20, 40, -100, "now", 3000],
    "iss": [None, "them", "", 7, ["us"]],
    "aud": [None, "kafka", ["kafka"], ["web", "a"], ["web"], [], [7], 7, "", "KAFKA"],
    # Kafka stumbles over the scope [7].
    "scope": [None, "a b", ["a", "b"], ["a", "a"], ["a", " a"], "", " ", [], [""], 7, {"a": 1}],
    "jti": ["x", 7],
}


def settings(url: str) -> dict[str, str]:
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    given = {"connection.failed.authentication.delay.ms": "0"}
    for name in LISTENERS:
        prefix = f"listener.name.{name.lower()}."
        given |= {
            f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}oauthbearer.sasl.jaas.config": module,
            f"{prefix}oauthbearer.sasl.server.callback.handler.class": handler,
            f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
        }
    strict = "listener.name.strict.oauthbearer.sasl.oauthbearer."
    loose = "listener.name.loose.oauthbearer.sasl.oauthbearer.allow.unverified."
    given |= {f"{loose}audience": "true", f"{loose}issuer": "true"}
    return given | {f"{strict}expected.audience": "kafka,a", f"{strict}expected.issuer": "us"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    require_apache_kafka()
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_text(KEYS)
    given, protocols = settings(path.as_uri()), dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={path.as_uri()}"
    own_ports = {name: free_port() for name in LISTENERS}
    ours_only = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in own_ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in LISTENERS),
    }
    with (
        ApacheKafka(given, listeners=protocols, jvm=(*JVM, allowed)) as reference,
        BackgroundBroker(properties=given | ours_only),
    ):
        yield {name: (reference.address(name), f"127.0.0.1:{port}") for name, port in own_ports.items()}


def log_in(address: str, token: str) -> list[tuple[Any, ...]]:
    with closing(Connection(address)) as connection:
        connection.send(m.SaslHandshakeRequest("OAUTHBEARER"), 1)
        answer: Any = connection.receive(30)
        said: list[tuple[Any, ...]] = [(answer.error_code,)]
        for message in (f"n,,\x01auth=Bearer {token}\x01\x01".encode(), b"\x01"):
            connection.send(m.SaslAuthenticateRequest(message), 1)
            try:
                answer = connection.receive(30)
            except EOFError:
                return [*said, ("closed",)]
            said.append((answer.error_code, answer.error_message, answer.auth_bytes, answer.session_lifetime_ms > 0))
            if answer.error_code or not answer.auth_bytes:
                return said
        return said


def drawn(rng: random.Random) -> tuple[str, dict[str, Any]]:
    now_s = int(time.time())
    claims: dict[str, Any] = {"sub": "alice", "iat": now_s, "exp": now_s + 60, "iss": "us"}
    if rng.random() < 0.6:
        claims["aud"] = "kafka"
    for name in rng.sample(sorted(ODD), rng.choice((0, 1, 1, 1, 2))):
        value = rng.choice(ODD[name])
        if name in ("iat", "exp", "nbf") and isinstance(value, int | float) and value is not True:
            value += now_s
        claims[name] = value
        if value is None:
            del claims[name]
    algorithm = rng.choice(("RS256",) * 6 + tuple(KEYS_BY_ALGORITHM))
    key, key_id = rng.choice(KEYS_BY_ALGORITHM[algorithm] if rng.random() < 0.3 else KEYS_BY_ALGORITHM[algorithm][:1])
    header: dict[str, Any] = {"kid": key_id}
    odd: Literal[0, 1, 2, 3, 4] = rng.choice((0,) * 12 + (1, 2, 3, 4))
    if odd == 1:
        del header["kid"]
    elif odd == 2:
        header |= {"crit": ["b"], "b": 1}
    elif odd == 3:
        header["typ"] = "at+jwt"
    payload = json.dumps(claims).encode()
    token = jwt.PyJWS().encode(payload, key, algorithm, header)
    if odd == 4:
        token = token[:-6] + "AAAAAA"
    return token, {"header": header, "claims": claims, "algorithm": algorithm, "odd": odd}


def test_signed_tokens(sides: dict[str, tuple[str, str]]) -> None:
    rng = random.Random(FIRST_SEED)
    let_in = 0
    different = []
    for _ in range(TOKENS):
        token, what = drawn(rng)
        for name, (theirs, ours) in sides.items():
            expected, found = log_in(theirs, token), log_in(ours, token)
            let_in += expected[-1][0] == 0 and not expected[-1][2]
            if expected != found:
                different.append((name, what, expected, found))
    assert not different, "\n".join(map(repr, [len(different), *different[:20]]))
    assert TOKENS // 5 < let_in < TOKENS * 2 * 4 // 5
