"""OAUTHBEARER with signed tokens: which are good, by which keys, and where the keys come from."""

import asyncio
import json
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.broker.conftest import Wire
from tests.broker.security.logins import brokers_by_token, handshake, token
from tests.web_server import Asked, Reply, answering

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.security.jwks import Intervals, KeySource
from groupkeeper.broker.security.signed_tokens import Expected, SignedTokens
from groupkeeper.protocol import messages as m
from groupkeeper.security.mechanisms.mechanism import BadToken
from groupkeeper.testing.background import BackgroundBroker

NOW_S = 1_800_000_000
GOOD = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SHORT_RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC = ec.generate_private_key(ec.SECP256R1())
SECRET = "c2VjcmV0" * 6
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ANYTHING = Expected()
HOUR = Intervals(3600, 0.1, 10)


def key_set(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def public(key: Any, **more: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), **more}


KEYS = key_set(
    public(RSA, kid="one", use="sig", alg="RS256"),
    public(EC, kid="two"),
    public(OTHER_RSA, kid="encrypts", use="enc"),
    public(SHORT_RSA, kid="short"),
    {"kty": "oct", "kid": "shared", "k": SECRET},
)


def signed(claims: dict[str, Any], key: Any = RSA, algorithm: str = "RS256", **header: Any) -> str:
    headers = {name: value for name, value in {"kid": "one", **header}.items() if value}
    with warnings.catch_warnings(action="ignore"):  # a short key
        return jwt.encode(claims, key, algorithm, headers)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    path.write_text(KEYS)
    return path


def judge(path: Path, expected: Expected = ANYTHING) -> SignedTokens:
    return SignedTokens(KeySource(path.as_uri(), HOUR), expected, lambda: NOW_S * 1000)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (signed(GOOD), Expected()),
        (signed(GOOD, kid=None), Expected()),
        (signed(GOOD, RSA, "PS512"), Expected()),
        (signed(GOOD, EC, "ES256", kid="two"), Expected()),
        (signed(GOOD, jwt.utils.base64url_decode(SECRET), "HS256", kid="shared"), Expected()),
        (signed({**GOOD, "exp": NOW_S - 29, "iat": NOW_S - 90}), Expected()),
        (signed({**GOOD, "nbf": NOW_S + 29}), Expected()),
        (signed({**GOOD, "iat": NOW_S + 50}), Expected()),
        (signed({**GOOD, "iss": "us", "aud": ["kafka", "web"]}), Expected("us", ("a", "kafka"))),
        (signed({**GOOD, "aud": "kafka"}), Expected(audiences=("kafka",))),
        (signed({**GOOD, "iss": "anyone"}), Expected()),
        (signed({**GOOD, "aud": "anyone"}), Expected(is_for_anyone=True)),
        (signed({**GOOD, "aud": [7]}), Expected(is_for_anyone=True)),
        (signed({**without("sub"), "who": " alice "}), Expected(subject_claim="who")),
        (signed({**GOOD, "scope": ["a", "b"]}), Expected()),
        (signed({**GOOD, "scope": 7}), Expected()),
    ],
    ids=map(str, count()),  # the texts of tokens differ from process to process
)
async def test_good_tokens(path: Path, given: str, expected: Expected) -> None:
    assert (await judge(path, expected).subject_of(given)).name == "alice"


@pytest.mark.parametrize(
    ("given", "expected", "says"),
    [
        (signed(GOOD, OTHER_RSA), Expected(), "signature is wrong"),
        (signed({**GOOD, "aud": "b"}), Expected(audiences=("a",), is_for_anyone=True), "audience is not an expected"),
        (signed(GOOD)[:-4] + "AAAA", Expected(), "signature is wrong"),
        (signed(GOOD, OTHER_RSA, kid="encrypts"), Expected(), "no key for it"),
        (signed(GOOD, RSA, "PS256", kid="two"), Expected(), "no key for it"),
        (signed(GOOD, kid="three"), Expected(), "no key for it"),
        (signed(GOOD, kid="x" * 2000), Expected(), "no key for it"),
        (signed(GOOD, SHORT_RSA, kid="short"), Expected(), "signature is wrong"),
        # The public key of others is no secret: who signs with it as if it were one proves nothing.
        (signed(GOOD, public(RSA)["n"].encode(), "HS256"), Expected(), "no key for it"),
        (jwt.encode(GOOD, "", "none", headers={"kid": "one"}), Expected(), "not signed"),
        (signed(GOOD, crit=["exp"]), Expected(), "critical"),
        (signed(without("exp")), Expected(), "exp is missing"),
        (signed(without("iat")), Expected(), "iat is missing"),
        (signed(without("sub")), Expected(), "sub is missing"),
        (signed({**GOOD, "exp": NOW_S - 30, "iat": NOW_S - 90}), Expected(), "expired"),
        (signed({**GOOD, "nbf": NOW_S + 31}), Expected(), "not valid yet"),
        (signed({**GOOD, "iat": NOW_S + 61}), Expected(), "ends before"),
        (signed({**GOOD, "iss": "them"}), Expected("us"), "issuer"),
        (signed(GOOD), Expected("us"), "issuer"),
        (signed(GOOD), Expected(audiences=("kafka",)), "audience"),
        (signed({**GOOD, "aud": ["web"]}), Expected(audiences=("kafka",)), "audience"),
        (signed({**GOOD, "aud": "web"}), Expected(), "audience"),
        (signed({**GOOD, "scope": ["a", "a"]}), Expected(), "scope"),
        (signed({**GOOD, "jti": 7}), Expected(), "jti is no text"),
        (signed({**GOOD, "scope": " "}), Expected(), "scope"),
    ],
    ids=map(str, count()),
)
async def test_bad_tokens(path: Path, given: str, expected: Expected, says: str) -> None:
    with pytest.raises(BadToken, match=says):
        await judge(path, expected).subject_of(given)


async def test_a_key_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{"kty": "oct", "kid": "one"}]}))
    with pytest.raises(BadToken, match="signature is wrong"):
        await judge(path, Expected()).subject_of(signed(GOOD, b"a secret of thirty-two bytes, no less", "HS256"))


class Issuer:
    """Serves a key set."""

    def __init__(self) -> None:
        self.keys, self.status, self.asked = KEYS, 200, 0
        self.url = ""

    def reply_to(self, _: Asked) -> Reply:
        self.asked += 1
        return Reply(self.status, self.keys.encode())


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    with answering(issuer.reply_to) as address:
        issuer.url = f"{address}/keys"
        yield issuer


async def test_keys_are_read_again_for_one_that_is_missing_once_a_minute_each(issuer: Issuer) -> None:
    tokens = SignedTokens(KeySource(issuer.url, HOUR), Expected(), lambda: NOW_S * 1000)
    await asyncio.gather(*(tokens.subject_of(signed(GOOD)) for _ in range(5)))
    assert issuer.asked == 1
    issuer.keys = key_set(public(RSA, kid="next"))
    await tokens.subject_of(signed(GOOD, kid="next"))
    assert issuer.asked == 2
    for _ in range(3):
        with pytest.raises(BadToken):
            await tokens.subject_of(signed(GOOD, kid="one"))
    assert issuer.asked == 3


async def test_what_is_known_stays_while_the_address_cannot_be_read(issuer: Issuer) -> None:
    tokens = SignedTokens(KeySource(issuer.url, Intervals(0, 0.05, 0.1)), Expected(), lambda: NOW_S * 1000)
    issuer.status = 500
    with pytest.raises(BadToken, match="no key for it"):
        await tokens.subject_of(signed(GOOD))
    issuer.status = 200
    await answers(tokens, signed(GOOD), refusal=None)
    issuer.keys, asked = "no JSON", issuer.asked
    while issuer.asked < asked + 3:
        await tokens.subject_of(signed(GOOD))
        await asyncio.sleep(0.02)
    issuer.keys = key_set()
    await answers(tokens, signed(GOOD), refusal="the key set has no key for it")  # reads in the background


async def answers(tokens: SignedTokens, token: str, *, refusal: str | None) -> None:
    """Waits until the token is refused so; None: until it is accepted."""
    deadline = time.monotonic() + 30
    while True:
        try:
            await tokens.subject_of(token)
            found = None
        except BadToken as error:
            found = str(error)
        if found == refusal:
            return
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.01)


def settings(url: str, **more: str) -> dict[str, str]:
    oauth = "listener.name.open.oauthbearer."
    return {
        "listeners": "OPEN://127.0.0.1:0",
        "listener.security.protocol.map": "OPEN:SASL_PLAINTEXT",
        "listener.name.open.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{oauth}sasl.oauthbearer.jwks.endpoint.url": url,
        f"{oauth}sasl.oauthbearer.expected.audience": "kafka",
        f"{oauth}sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerValidatorCallbackHandler",
        "connection.failed.authentication.delay.ms": "0",
        **{f"{oauth}{name}": text for name, text in more.items()},
    }


def fresh(**more: Any) -> str:
    now_s = int(time.time())
    return signed({"sub": "alice", "iat": now_s, "exp": now_s + 60, "aud": "kafka", **more})


@pytest.fixture
async def broker(issuer: Issuer) -> AsyncIterator[Broker]:
    async with Broker(properties=settings(issuer.url)) as started:
        yield started


async def log_in_by(text: str, broker: Broker) -> tuple[Wire, m.SaslAuthenticateResponse]:
    wire = await Wire.open(broker.bootstrap_servers)
    await handshake(wire, "OAUTHBEARER")
    return wire, await token(wire, f"n,,\x01auth=Bearer {text}\x01\x01".encode())


async def test_logins(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    wire, answer = await log_in_by(fresh(), broker)
    assert (answer.error_code, answer.auth_bytes) == (0, b"")
    (connection,) = broker.server.connections
    assert connection.identity.principal == "User:alice"
    wire.writer.close()
    bad = fresh(aud="web")
    wire, _ = await log_in_by(bad, broker)
    assert (await token(wire, b"\x01")).error_message == '{"status":"invalid_token"}'
    wire.writer.close()
    assert "its audience is not an expected one" in caplog.text
    assert bad not in caplog.text


AUDIENCE = "sasl.oauthbearer.expected.audience"
LONG_AGO_S = int(time.time()) - 5000


@pytest.mark.parametrize(
    ("more", "claims", "principal"),
    [
        ({"sasl.oauthbearer.expected.issuer": "us"}, {"iss": "us"}, "User:alice"),
        ({"sasl.oauthbearer.expected.issuer": "us"}, {"iss": "them"}, "User:ANONYMOUS"),
        ({AUDIENCE: "", "sasl.oauthbearer.allow.unverified.audience": "true"}, {"aud": "web"}, "User:alice"),
        ({"sasl.oauthbearer.clock.skew.seconds": "90000"}, {"iat": LONG_AGO_S, "exp": LONG_AGO_S + 9}, "User:alice"),
        ({"sasl.oauthbearer.sub.claim.name": "who"}, {"who": "bob"}, "User:bob"),
        ({"sasl.oauthbearer.scope.claim.name": "roles"}, {"scope": " ", "roles": "a"}, "User:alice"),
    ],
    ids=map(str, count()),
)
async def test_settings_of_the_listener(
    issuer: Issuer, more: dict[str, str], claims: dict[str, Any], principal: str
) -> None:
    async with Broker(properties=settings(issuer.url, **more)) as broker:
        wire, _ = await log_in_by(fresh(**claims), broker)
        (connection,) = broker.server.connections
        assert connection.identity.principal == principal
        await wire.close()


async def test_when_keys_are_read_again(issuer: Issuer) -> None:
    given = {
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "7200000",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "2500",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "60000",
    }
    async with Broker(properties=settings(issuer.url, **given)) as broker:
        (source,) = broker.security._key_sources.values()
        assert source._intervals == Intervals(7200, 2.5, 60)


async def test_known_keys_outlive_a_change_of_other_settings(broker: Broker, issuer: Issuer) -> None:
    async def answer() -> int:
        wire, found = await log_in_by(fresh(), broker)
        wire.writer.close()
        return len(found.auth_bytes)  # none, or what is wrong

    assert await answer() == 0
    issuer.status = 500
    broker.dynamic_config.configure("", {"min.insync.replicas": "1", "max.connections": "1000"})
    assert await answer() == 0
    assert issuer.asked == 1


def test_librdkafka(issuer: Issuer) -> None:
    with BackgroundBroker(properties=settings(issuer.url)) as broker:
        assert brokers_by_token(broker.bootstrap_servers, fresh) == [1]


@pytest.mark.parametrize(
    ("url", "more", "says"),
    [
        ("file:///no/keys.json", {}, "jwks.endpoint.url: file:///no/keys.json: No such file"),
        ("keys.json", {}, "expected the URL of a key set"),
        ("", {}, "jwks.endpoint.url is missing"),
        ("http://h", {"sasl.server.callback.handler.class": "our.Handler"}, "our.Handler is Java code"),
        ("http://h", {"sasl.oauthbearer.clock.skew.seconds": "-1"}, "clock.skew.seconds"),
        (
            "https://h",
            {"sasl.jaas.config": 'OAuthBearerLoginModule required ssl.truststore.location="/no/t.jks";'},
            "/no/t",
        ),
    ],
)
async def test_settings_that_do_not_work(url: str, more: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        await Broker(properties=settings(url, **more)).start()


async def test_a_file_without_keys(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("[]")
    with pytest.raises(InvalidSetting, match="has no key set"):
        await Broker(properties=settings((tmp_path / "keys.json").as_uri())).start()
