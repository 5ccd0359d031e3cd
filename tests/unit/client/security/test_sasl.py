"""Each SASL mechanism over TCP, with a scripted broker that checks what it is told."""

import asyncio
import json

import pytest
from tests.unit.client.sasl_broker import SaslBroker, Start, start
from tests.unit.client.scripted_broker import Silence, in_turn
from tests.unit.security.logins import PASSWORD, SAMPLES, login_module, properties

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import (
    AuthenticationFailed,
    BrokersNotFound,
    CallTimedOut,
    ConnectionFailed,
    IllegalArgument,
    UnsupportedSecurity,
)
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.security.sasl import SaslSecurity
from groupkeeper.client.security.tokens import from_callback
from groupkeeper.protocol.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import MechanismFailed, TokenSource
from groupkeeper.security.mechanisms.oauthbearer import BearerClient
from groupkeeper.security.mechanisms.plain import PlainClient
from groupkeeper.security.mechanisms.scram import new_credential

USERS_MECHANISMS = [each.name for each in MECHANISMS.values() if each.has_users]
SCRAM = "SCRAM-SHA-256"


def steps(password: str = PASSWORD) -> dict[str, Start]:
    return {name: start(name, password) for name in USERS_MECHANISMS}


def admin_of(broker: SaslBroker, mechanism: str = "PLAIN", **more: str) -> Admin:
    given = {
        **properties(mechanism),
        "default.api.timeout.ms": "20000",
        "retry.backoff.ms": "5",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Admin(broker.bootstrap_servers, properties={name: value for name, value in given.items() if value})


async def fails(broker: SaslBroker, mechanism: str = "PLAIN") -> AuthenticationFailed:
    """Why the client gives up; it must not take a second."""
    async with broker, asyncio.timeout(30):
        with pytest.raises(AuthenticationFailed) as caught:
            async with admin_of(broker, mechanism):
                pass
    text = str(caught.value)
    assert "\n" not in text
    assert PASSWORD not in text
    assert PASSWORD not in repr(caught.value)
    return caught.value


@pytest.mark.parametrize("mechanism", USERS_MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
async def test_passwords(mechanism: str, version: int) -> None:
    broker = SaslBroker(steps(), versions={"SaslAuthenticate": (0, version)})
    async with broker, admin_of(broker, mechanism) as admin:
        assert list((await admin.list_groups()).groups) == ["g"]
    assert {each.version for each in broker.seen if each.api == "SaslAuthenticate"} == {version}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_bare_tokens_of_brokers_before_1_0(mechanism: str) -> None:
    versions = {"SaslHandshake": (0, 0), "SaslAuthenticate": None}
    broker = SaslBroker(steps(), versions=versions)
    async with broker, admin_of(broker, mechanism) as admin:
        assert list((await admin.list_groups()).groups) == ["g"]
    failure = await fails(SaslBroker(steps("other"), versions=versions), mechanism)
    assert "closed the connection, which is how old brokers refuse" in str(failure)


@pytest.mark.parametrize("mechanism", USERS_MECHANISMS)
async def test_a_wrong_password_ends_the_call_at_once(mechanism: str) -> None:
    failure = await fails(SaslBroker(steps("other")), mechanism)
    assert f"SASL {mechanism} failed: Authentication failed" in str(failure)
    assert "check username and password in sasl.jaas.config" in str(failure)
    assert isinstance(failure.refusal, SaslAuthenticationFailed)


async def test_calls_without_entering_fail_at_once_too() -> None:
    async with SaslBroker(steps("other")) as broker, asyncio.timeout(30):
        admin = admin_of(broker)
        with pytest.raises(BrokersNotFound) as caught:
            await admin.list_groups()
        assert isinstance(caught.value.__cause__, AuthenticationFailed)
        batch = await admin.describe_consumer_groups(["a", "b"])
        assert [type(each) for each in batch.failed.values()] == [AuthenticationFailed] * 2
        await admin.close()


async def test_an_impostor_is_found_out() -> None:
    own = new_credential(SCRAM, PASSWORD)
    guessed = new_credential(SCRAM, "guess", salt=own.salt)
    impostor = {SCRAM: start(SCRAM, credential=own._replace(server_key=guessed.server_key))}
    assert "did not prove that it has the password" in str(await fails(SaslBroker(impostor), SCRAM))
    weak = {SCRAM: start(SCRAM, credential=new_credential(SCRAM, PASSWORD, 1))}
    assert "asks for 1 SCRAM iterations" in str(await fails(SaslBroker(weak), SCRAM))


async def test_a_mechanism_that_is_not_enabled() -> None:
    failure = await fails(SaslBroker({"PLAIN": start("PLAIN", "b")}), "SCRAM-SHA-512")
    assert "sasl.mechanism=SCRAM-SHA-512 is not enabled there: the broker offers PLAIN" in str(failure)
    assert isinstance(failure.refusal, UnsupportedSaslMechanism)


async def test_a_listener_without_sasl() -> None:
    failure = await fails(SaslBroker(steps(), handshake_error=34))
    assert "does not use SASL: set security.protocol=PLAINTEXT (or SSL)" in str(failure)
    assert isinstance(failure.refusal, IllegalSaslState)


@pytest.mark.parametrize("versions", [{}, {"DescribeCluster": None}])
async def test_a_client_without_sasl(versions: dict[str, tuple[int, int] | None]) -> None:
    broker = SaslBroker(steps(), versions=versions)
    async with broker, asyncio.timeout(30), Admin(broker.bootstrap_servers) as admin:
        with pytest.raises(BrokersNotFound, match=r"requires SASL: set .*sasl.mechanism to one of PLAIN, "):
            await admin.list_groups()


async def test_a_broker_that_hangs_is_no_refusal() -> None:
    broker = SaslBroker(steps())
    broker.handlers["SaslAuthenticate"] = in_turn(Silence)
    async with asyncio.timeout(10), broker:
        admin = admin_of(broker, default_api_timeout_ms="3000", socket_connection_setup_timeout_ms="500")
        with pytest.raises((ConnectionFailed, CallTimedOut), match="no SASL PLAIN reply in time"):
            async with admin:
                pass


async def test_sessions_are_renewed_on_the_same_connection() -> None:
    broker = SaslBroker(steps(), lifetime_ms=100)
    async with broker, admin_of(broker, "SCRAM-SHA-256") as admin, asyncio.timeout(20):
        while broker.authentications < 4:
            assert list((await admin.list_groups()).groups) == ["g"]
            await asyncio.sleep(0.01)
        assert broker.connections == 1
        # Many calls at once wait for the renewal, or use further connections: none is refused.
        answers = await asyncio.gather(*(admin.list_groups() for _ in range(50)))
        assert all(list(each.groups) == ["g"] for each in answers)


async def test_a_renewal_that_is_refused_ends_the_call() -> None:
    known = steps()
    broker = SaslBroker(known, lifetime_ms=50)
    async with broker, admin_of(broker) as admin, asyncio.timeout(20):
        known["PLAIN"] = start("PLAIN", "changed")

        async def list_for_ever() -> None:
            while True:
                await admin.list_groups()
                await asyncio.sleep(0.01)

        with pytest.raises(BrokersNotFound, match="SASL PLAIN failed"):
            await list_for_ever()


async def test_tokens_of_a_callback() -> None:
    given = iter(["first", "second"])

    async def provide() -> str:
        return next(given)

    broker = SaslBroker({"OAUTHBEARER": start("OAUTHBEARER", tokens=("first",))}, lifetime_ms=0)
    bare = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    async with broker, Admin(broker.bootstrap_servers, properties=bare, token_provider=provide) as admin:
        assert list((await admin.list_groups()).groups) == ["g"]
    async with broker, asyncio.timeout(30):
        with pytest.raises(AuthenticationFailed, match=r"invalid_token.*: check the token") as caught:
            async with Admin(broker.bootstrap_servers, properties=bare, token_provider=provide):
                pass
        assert "second" not in str(caught.value)


async def test_the_unsecured_token() -> None:
    login = security_of(properties("OAUTHBEARER", f'{SAMPLES["OAUTHBEARER"].client} extension_traceId="7"'))
    assert isinstance(login, SaslSecurity)
    message = await login.begin().first()
    assert message.startswith(b"n,,\x01auth=Bearer ey")
    assert message.endswith(b".\x01traceId=7\x01\x01")


def source_of(token: str) -> TokenSource:
    async def provide() -> str:
        return token

    return from_callback(provide)


async def test_conversations_refuse_what_has_no_form() -> None:
    for username, password in (("u\0", "p"), ("u", "p\0")):
        with pytest.raises(MechanismFailed):
            await PlainClient(username, password).first()
    for token in ("", "a b", "a\x01b", "é"):
        with pytest.raises(MechanismFailed):
            await BearerClient(source_of(token)).first()
    for challenge in (b"x", b"[]", json.dumps({"status": "why"}).encode()):
        conversation = BearerClient(source_of("token"))
        assert conversation.answer(challenge) == b"\x01"
        with pytest.raises(MechanismFailed, match="refuses the token"):
            conversation.answer(b"")


@pytest.mark.parametrize(
    ("properties", "kind", "says"),
    [
        ({"security.protocol": "TLS"}, IllegalArgument, "security.protocol=TLS is not known: use one of PLAINTEXT"),
        ({}, UnsupportedSecurity, "GSSAPI (Kerberos, the default) is not supported: set one of PLAIN, "),
        ({"sasl.mechanism": "DIGEST-MD5"}, UnsupportedSecurity, "DIGEST-MD5 is not supported: set one of PLAIN"),
        ({"sasl.mechanism": "PLAIN"}, IllegalArgument, "sasl.jaas.config is not set: sasl.mechanism=PLAIN needs it"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": login_module(SCRAM, "")},
            IllegalArgument,
            "is for ScramLoginModule, but sasl.mechanism=PLAIN needs PlainLoginModule",
        ),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'PlainLoginModule required username="a";'},
            IllegalArgument,
            "PlainLoginModule has no password",
        ),
        (
            {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": "OAuthBearerLoginModule required;"},
            IllegalArgument,
            "has no unsecuredLoginStringClaim_sub, nor is sasl.oauthbearer.token.endpoint.url set",
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": "OAuthBearerLoginModule required;",
                "sasl.oauthbearer.token.endpoint.url": "ftp://user:hush@x",
            },
            IllegalArgument,
            "url=ftp://…@x: a URL with https:, http: or file: is needed",
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": 'OAuthBearerLoginModule required clientId="i";',
                "sasl.oauthbearer.token.endpoint.url": "https://x",
            },
            IllegalArgument,
            "needs sasl.oauthbearer.client.credentials.client.secret",
        ),
    ],
)
def test_what_the_properties_lack_is_said_before_connecting(
    properties: dict[str, str], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind) as caught:
        security_of({"security.protocol": "SASL_PLAINTEXT", **properties})
    assert says in str(caught.value)
