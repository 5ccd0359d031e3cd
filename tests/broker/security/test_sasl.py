"""What a SASL listener answers at each step of a login, by raw requests: as SaslServerAuthenticator of Kafka 4.3.1."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from tests.broker.conftest import Connect, Wire
from tests.broker.security.logins import handshake, log_in, log_in_by_scram, plain, token
from tests.unit.security import logins
from tests.unit.security.logins import SAMPLES

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import AuthenticationFailed
from groupkeeper.client.security.sasl import sasl_security
from groupkeeper.client.security.transport import Security
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import encode_request
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import ClientLogin, MechanismFailed
from groupkeeper.security.mechanisms.scram import HASH_BY_MECHANISM

# GA: who the client is comes before what it may do.
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="b";'
SETTINGS = {
    "listeners": "SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "listener.name.secure.sasl.enabled.mechanisms": ",".join(["PLAIN", *HASH_BY_MECHANISM]),
    "listener.name.secure.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "0",
}
USERS = {"carol": "carol-secret"}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(properties=SETTINGS, users=USERS) as started:
        yield started


async def is_closed(wire: Wire) -> bool:
    async with asyncio.timeout(10):  # less than a login may take
        return not await wire.reader.read(1)


async def may_ask(wire: Wire) -> bool:
    return (await wire.call(m.ListGroupsRequest(), 4)).error_code == 0


@pytest.mark.parametrize(
    "message",
    [plain("alice", "alice-secret"), plain("carol", "carol-secret"), plain("alice", "alice-secret", "alice")],
    ids=["of the settings", "given", "with its own name as authorization id"],
)
async def test_plain(wire: Wire, message: bytes) -> None:
    await handshake(wire, "PLAIN")
    answer = await token(wire, message)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert await may_ask(wire)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_our_client(mechanism: str) -> None:
    sample = SAMPLES[mechanism]
    async with Broker(properties=logins.settings(), users=logins.USERS) as broker:
        async with Admin(broker.bootstrap_servers, properties=logins.properties(mechanism)) as admin:
            assert not (await admin.list_groups()).failed
            assert {one.identity.principal for one in broker.server.connections} == {sample.principal}
        said = set()
        for options in sample.wrong:
            with pytest.raises(AuthenticationFailed, match=MECHANISMS[mechanism].way_out) as caught:
                await Admin.connect(broker.bootstrap_servers, properties=logins.properties(mechanism, options))
            assert logins.PASSWORD not in str(caught.value)
            said.add(str(caught.value))
        assert len(said) <= 1, "a refusal tells nobody whether it is the user or the password that is wrong"


class TestEachMechanism:
    @pytest.fixture
    async def broker(self) -> AsyncIterator[Broker]:
        async with Broker(properties=logins.settings(), users=logins.USERS) as started:
            yield started

    @pytest.mark.parametrize("mechanism", [name for name, sample in SAMPLES.items() if sample.foreign])
    async def test_nobody_acts_as_somebody_else(self, wire: Wire, mechanism: str) -> None:
        own, foreign = SAMPLES[mechanism].foreign or (b"", b"")
        first = await sasl_security(Security(), logins.properties(mechanism), None).begin().first()
        assert first.startswith(own), "`foreign` of its sample in tests/unit/security/logins.py"
        await handshake(wire, mechanism)
        answer = await token(wire, first.replace(own, foreign, 1))
        assert answer.error_code == errors.SaslAuthenticationFailed.code
        assert "Client requested an authorization id" in (answer.error_message or "")
        assert await is_closed(wire)

    @pytest.mark.parametrize("message", [b"\xff", b"\0" * 9, "\u20ac\0\u20ac".encode()])
    @pytest.mark.parametrize("mechanism", MECHANISMS)
    async def test_bytes_that_are_no_login_are_refused(self, wire: Wire, mechanism: str, message: bytes) -> None:
        await handshake(wire, mechanism)
        with suppress(asyncio.IncompleteReadError):
            answer = await token(wire, message)
            assert answer.error_code == errors.SaslAuthenticationFailed.code
            return
        pytest.fail("raise LoginFailed, no other error")

    @pytest.mark.parametrize("mechanism", [each.name for each in MECHANISMS.values() if each.has_users])
    async def test_no_password_is_not_nobodys(
        self, wire: Wire, mechanism: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody = {"username": "nobody"}
        monkeypatch.setattr(ClientLogin, "needed", lambda login: [nobody.get(one, "") for one in login.mechanism.needs])
        conversation = sasl_security(Security(), logins.properties(mechanism), None).begin()
        await handshake(wire, mechanism)
        answer = await token(wire, await conversation.first())  # `needed` refuses an empty option, nothing else does
        with suppress(MechanismFailed):
            while not answer.error_code and (message := conversation.answer(answer.auth_bytes)) is not None:
                answer = await token(wire, message)
            assert answer.error_code, "the broker lets in an unknown user without a password"

    @pytest.mark.parametrize("mechanism", MECHANISMS)
    async def test_what_answers_a_challenge_logs_in_once(
        self, broker: Broker, connect: Connect, mechanism: str
    ) -> None:
        conversation = sasl_security(Security(), logins.properties(mechanism), None).begin()
        wire, said, challenges = await connect(broker), [await conversation.first()], list[bytes]()
        await handshake(wire, mechanism)
        while len(said) > len(challenges):
            challenges.append((await token(wire, said[-1])).auth_bytes)
            if (message := conversation.answer(challenges[-1])) is not None:
                said.append(message)
        assert await may_ask(wire)
        wire = await connect(broker)
        await handshake(wire, mechanism)
        is_in = [await token(wire, message) for message in said][-1].error_code == 0
        is_clear = logins.PASSWORD.encode() in said  # who reads it can log in, too
        assert len(said) == 1 or is_clear or not is_in, (
            "what answered one challenge answers another: each needs a nonce of its own"
        )
        assert len(said) > 1 or is_in, "the client's only message logs in once: if it shall, except the mechanism here"


@pytest.mark.parametrize("username", ["carol", "nobody"])
async def test_scram_tells_a_wrong_password_from_an_unknown_user_by_nothing_said(wire: Wire, username: str) -> None:
    answer = await log_in_by_scram(wire, "SCRAM-SHA-256", username, "guess")
    assert answer.error_code == errors.SaslAuthenticationFailed.code
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert await is_closed(wire)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (plain("alice", "guess"), "Authentication failed: Invalid username or password"),
        (plain("nobody", "guess"), "Authentication failed: Invalid username or password"),
        (plain("", "x"), "due to invalid credentials with SASL mechanism PLAIN"),
        (plain("alice", ""), "due to invalid credentials with SASL mechanism PLAIN"),
        (b"alice", "due to invalid credentials with SASL mechanism PLAIN"),
        (b"\0\xff\0x", "due to invalid credentials with SASL mechanism PLAIN"),
        (b"\0alice\0alice-secret\0", "due to invalid credentials with SASL mechanism PLAIN"),
    ],
)
async def test_plain_is_refused(wire: Wire, message: bytes, says: str, caplog: pytest.LogCaptureFixture) -> None:
    await handshake(wire, "PLAIN")
    answer = await token(wire, message)
    assert answer.error_code == errors.SaslAuthenticationFailed.code
    assert says in (answer.error_message or "")
    assert await is_closed(wire)
    assert "secret" not in caplog.text
    assert "guess" not in caplog.text


async def test_versions_may_be_asked_once_before(wire: Wire) -> None:
    unknown = bytearray(encode_request(5, "c", m.ApiVersionsRequest("c", "1"), 4))
    unknown[6:8] = (99).to_bytes(2)
    wire.writer.write(unknown)
    assert (await wire.receive(m.ApiVersionsResponse, 0))[1].error_code == errors.UnsupportedVersion.code
    answer = await wire.call(m.ApiVersionsRequest("c", "1"), 4)
    assert {17, 36} <= {one.api_key for one in answer.api_keys}
    assert (await log_in(wire, "alice", "alice-secret")).error_code == 0
    assert (await wire.call(m.ApiVersionsRequest("c", "1"), 4)).error_code == 0


async def test_versions_twice_are_too_much(wire: Wire) -> None:
    await wire.call(m.ApiVersionsRequest(), 0)
    wire.send(m.ApiVersionsRequest(), 0)
    assert await is_closed(wire)


async def test_versions_in_the_middle_of_a_login(wire: Wire) -> None:
    await handshake(wire, "PLAIN")
    answer = await wire.call(m.ApiVersionsRequest(), 0)
    assert answer.error_code == errors.IllegalSaslState.code
    assert await is_closed(wire)


@pytest.mark.parametrize(
    ("request_", "version"),
    [(m.MetadataRequest(), 9), (m.SaslAuthenticateRequest(plain("alice", "alice-secret")), 2)],
    ids=["a request before the login", "a login without handshake"],
)
async def test_what_gets_no_answer(wire: Wire, request_: RootMessage, version: int) -> None:
    wire.send(request_, version)
    assert await is_closed(wire)


async def test_a_request_in_the_middle_of_a_login(wire: Wire) -> None:
    await handshake(wire, "PLAIN")
    answer = await wire.call(m.MetadataRequest([]), 9)
    assert not answer.brokers
    assert await is_closed(wire)


@pytest.mark.parametrize("name", ["", "GSSAPI", "plain", "SCRAM-SHA-1"])
async def test_a_mechanism_that_is_not_enabled(wire: Wire, name: str) -> None:
    answer = await handshake(wire, name)
    assert answer.error_code == errors.UnsupportedSaslMechanism.code
    assert sorted(answer.mechanisms) == sorted(["PLAIN", *HASH_BY_MECHANISM])
    assert await is_closed(wire)


async def test_tokens_without_headers(wire: Wire) -> None:
    # Before KIP-152: what follows SaslHandshake version 0 are the mechanism's own messages.
    assert (await handshake(wire, "PLAIN", version=0)).error_code == 0
    message = plain("alice", "alice-secret")
    wire.writer.write(len(message).to_bytes(4) + message)
    assert await wire.reader.readexactly(4) == bytes(4)
    assert await may_ask(wire)


async def test_tokens_without_headers_are_refused_by_hanging_up(wire: Wire) -> None:
    await handshake(wire, "PLAIN", version=0)
    message = plain("alice", "guess")
    wire.writer.write(len(message).to_bytes(4) + message)
    assert await is_closed(wire)


async def test_a_second_login_is_out_of_place(wire: Wire) -> None:
    await log_in(wire, "alice", "alice-secret")
    assert (await handshake(wire, "PLAIN")).error_code == errors.IllegalSaslState.code
    assert (await token(wire, plain("bob", "b"))).error_code == errors.IllegalSaslState.code
    assert await may_ask(wire)


async def test_large_requests_come_after_the_login(broker: Broker, wire: Wire, connect: Connect) -> None:
    wire.writer.write((524289).to_bytes(4))
    assert await is_closed(wire)
    again = await connect(broker)
    await log_in(again, "alice", "alice-secret")
    large = encode_request(1, "c" * 30000, m.MetadataRequest([]), 9) + bytes(600_000)
    again.writer.write((len(large) - 4).to_bytes(4) + large[4:])
    assert (await again.receive(m.MetadataResponse, 9))[0] == 1


async def test_how_large_a_message_of_a_login_may_be(connect: Connect) -> None:
    async with Broker(properties={**SETTINGS, "sasl.server.max.receive.size": "1000"}, users=USERS) as broker:
        small, large = await connect(broker), await connect(broker)
        assert (await log_in(small, "alice", "alice-secret")).error_code == 0
        large.writer.write((1001).to_bytes(4))
        assert await is_closed(large)


async def test_a_login_that_takes_too_long(connect: Connect) -> None:
    async with Broker(properties={**SETTINGS, "groupkeeper.authentication.timeout.ms": "50"}, users=USERS) as broker:
        silent = await connect(broker)
        half = await connect(broker)
        quick = await connect(broker)
        await handshake(half, "PLAIN")
        await log_in(quick, "alice", "alice-secret")
        assert await is_closed(silent)
        assert await is_closed(half)
        assert await may_ask(quick)


async def test_the_answer_to_a_guess_waits() -> None:
    properties = {**SETTINGS, "connection.failed.authentication.delay.ms": "150"}
    async with Broker(properties=properties, users=USERS) as broker:
        loop = asyncio.get_running_loop()
        for mechanism in ("PLAIN", "NONE"):
            wire = await Wire.open(broker.bootstrap_servers)
            began = loop.time()
            answer = await handshake(wire, mechanism)
            if not answer.error_code:
                assert (await token(wire, plain("alice", "guess"))).error_code == errors.SaslAuthenticationFailed.code
            assert loop.time() - began > 0.14
            assert await is_closed(wire)


class TestAgain:
    """KIP-368."""

    @pytest.fixture
    async def broker(self) -> AsyncIterator[Broker]:
        more = {"listener.name.secure.plain.connections.max.reauth.ms": "1500"}
        async with Broker(properties={**SETTINGS, **more}, users=USERS) as started:
            yield started

    async def test_the_lifetime_is_told(self, wire: Wire) -> None:
        assert (await log_in(wire, "alice", "alice-secret")).session_lifetime_ms == 1500

    async def test_other_mechanisms_have_their_own(self, wire: Wire) -> None:
        answer = await log_in_by_scram(wire, "SCRAM-SHA-256", "carol", "carol-secret")
        assert answer.session_lifetime_ms == 0

    async def test_the_same_again(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        assert (await log_in(wire, "alice", "alice-secret")).session_lifetime_ms == 1500
        assert await may_ask(wire)

    async def test_a_password_that_was_taken_away(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        name, changed = "listener.name.secure.plain.sasl.jaas.config", JAAS.replace("alice-secret", "new")
        assert await wire.alter(4, "1", name, changed) == (0, None)
        assert (await log_in(wire, "alice", "alice-secret")).error_code == errors.SaslAuthenticationFailed.code
        assert await is_closed(wire)

    async def test_not_twice_within_a_second(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        await log_in(wire, "alice", "alice-secret")
        assert (await handshake(wire, "PLAIN")).error_code == errors.IllegalSaslState.code

    async def test_another_user(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        answer = await log_in(wire, "bob", "b")
        assert answer.error_code == errors.SaslAuthenticationFailed.code
        said = "Cannot change principals during re-authentication from User.alice: User.bob"
        assert answer.error_message == said
        assert await is_closed(wire)

    async def test_another_mechanism(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        assert (await handshake(wire, "SCRAM-SHA-256")).error_code == 0
        wire.send(m.SaslAuthenticateRequest(b"n,,n=alice,r=x"), 2)
        assert await is_closed(wire)


class TestShortSessions:
    @pytest.fixture
    async def broker(self) -> AsyncIterator[Broker]:
        async with Broker(properties={**SETTINGS, "connections.max.reauth.ms": "100"}, users=USERS) as started:
            yield started

    async def test_a_session_ends(self, wire: Wire) -> None:
        await log_in(wire, "alice", "alice-secret")
        async with asyncio.timeout(20):
            while await may_ask_or_is_closed(wire):
                pass

    async def test_a_login_again_may_come_late(self, wire: Wire) -> None:
        answer = await log_in(wire, "alice", "alice-secret")
        await asyncio.sleep(answer.session_lifetime_ms / 1000 + 0.01)
        assert (await log_in(wire, "alice", "alice-secret")).session_lifetime_ms == 100


async def may_ask_or_is_closed(wire: Wire) -> bool:
    try:
        return await may_ask(wire)
    except asyncio.IncompleteReadError:
        return False


async def test_who_asks(broker: Broker, wire: Wire) -> None:
    await log_in(wire, "alice", "alice-secret")
    (connection,) = broker.server.connections
    assert connection.identity.principal == "User:alice"
    assert connection.security_protocol == "SASL_PLAINTEXT"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"listener.name.secure.sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI (Kerberos, the default) is not offered"),
        ({"listener.name.secure.sasl.enabled.mechanisms": "PLAIN,X"}, "listener SECURE: mechanism X is not offered"),
        ({"listener.name.secure.plain.sasl.jaas.config": 'Plain user_alice="alice-secret"'}, "plain.sasl.jaas.config"),
        (
            {"listener.name.secure.plain.sasl.jaas.config": 'ScramLoginModule required user_alice="alice-secret";'},
            "PLAIN needs PlainLoginModule, not ScramLoginModule",
        ),
        ({"java.security.auth.login.config": "none.conf", "listener.name.secure.plain.sasl.jaas.config": ""}, "none"),
        ({"listener.name.secure.connections.max.reauth.ms": "x"}, "listener.name.secure.connections.max.reauth.ms"),
    ],
)
async def test_settings_that_make_no_sense(changes: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        await Broker(properties={**SETTINGS, **changes}).start()
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_plain_without_users_is_refused() -> None:
    settings = {name: text for name, text in SETTINGS.items() if "jaas" not in name}
    with pytest.raises(InvalidSetting, match=r"PLAIN has no users: set listener.name.secure.plain.sasl.jaas.config"):
        await Broker(properties=settings).start()


async def test_a_jaas_file(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture, connect: Connect
) -> None:
    path = tmp_path_factory.mktemp("jaas") / "server.conf"
    path.write_text(
        """
        // as Kafka's documentation has it
        KafkaServer {
            org.apache.kafka.common.security.scram.ScramLoginModule required;
            org.apache.kafka.common.security.plain.PlainLoginModule required
                username="admin" password="admin-secret"
                user_dave="dave-secret";
        };
        Client { org.example.Other required; };
        """
    )
    settings = {name: text for name, text in SETTINGS.items() if "jaas" not in name}
    async with Broker(properties={**settings, "java.security.auth.login.config": str(path)}) as broker:
        wire = await connect(broker)
        assert (await log_in(wire, "dave", "dave-secret")).error_code == 0
    assert "unknown setting" not in caplog.text


async def test_users_alone_make_a_listener_that_asks_for_them(connect: Connect) -> None:
    async with Broker(users=USERS) as broker:
        wire = await connect(broker)
        assert sorted((await handshake(wire, "X")).mechanisms) == sorted(
            each.name for each in MECHANISMS.values() if each.has_users
        )
        other = await connect(broker)
        assert (await log_in(other, "carol", "carol-secret")).error_code == 0


async def test_nothing_is_logged_of_a_login(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await log_in(wire, "alice", "alice-secret")
    assert "secret" not in caplog.text


async def test_handshakes_in_two_versions_only(wire: Wire) -> None:
    frame = bytearray(encode_request(5, "c", m.SaslHandshakeRequest("PLAIN"), 1))
    frame[6:8] = (2).to_bytes(2)
    wire.writer.write(frame)
    assert await is_closed(wire)


async def test_java_code_is_said_to_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    mine = {
        "listener.name.secure.plain.sasl.server.callback.handler.class": "com.example.Ldap",
        "principal.builder.class": "com.example.Names",
    }
    kafkas = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    async with Broker(properties={**SETTINGS, **mine, "ssl.engine.factory.class": kafkas}):
        said = [one.getMessage() for one in caplog.records if "is ignored" in one.getMessage()]
    assert said == [f"{name}={text} is ignored: Java code cannot run here" for name, text in mine.items()]


async def test_passwords_that_stand_elsewhere(monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    jaas = "listener.name.secure.plain.sasl.jaas.config"
    providers = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        jaas: 'org.apache.kafka.common.security.plain.PlainLoginModule required user_erin="${env:ERIN_PASSWORD}";',
    }
    monkeypatch.setenv("ERIN_PASSWORD", "erin-secret")
    async with Broker(properties={**SETTINGS, **providers}) as broker:
        wire = await connect(broker)
        assert (await log_in(wire, "erin", "erin-secret")).error_code == 0
    monkeypatch.delenv("ERIN_PASSWORD")
    with pytest.raises(InvalidSetting, match=r"ERIN_PASSWORD\} cannot be had: there is no such environment variable"):
        Broker(properties={**SETTINGS, **providers})
