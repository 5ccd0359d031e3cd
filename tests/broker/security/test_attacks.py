"""Logins that are none: mutated conversations, floods of wrong passwords, handshakes that nobody ends."""

import asyncio
import json
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.broker.conftest import Wire
from tests.broker.security.logins import log_in
from tests.patience import becomes
from tests.unit.client.sasl_broker import start
from tests.unit.security import logins

from groupkeeper.broker import Broker
from groupkeeper.client.security.choice import security_of
from groupkeeper.client.security.sasl import SaslSecurity
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import encode_request
from groupkeeper.security.mechanisms.mechanism import LoginFailed
from groupkeeper.security.mechanisms.plain import PlainServer

CONVERSATIONS = 150
MODULE = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredValidatorRequiredScope="none has";'
)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {
        "groupkeeper.audit.file": str(tmp_path / "audit.jsonl"),
        "groupkeeper.authentication.timeout.ms": "2000",
        "delegation.token.secret.key": "secret",
        **logins.settings(),
        "listener.name.secure.oauthbearer.sasl.jaas.config": MODULE,
    }
    async with Broker(properties=settings, users={"alice": "alice-secret"}) as started:
        yield started


async def conversation(rng: random.Random) -> list[bytes]:
    """The frames of a login that is refused, as long as nothing in it becomes right by chance."""
    mechanism = rng.choice([name for name, sample in logins.SAMPLES.items() if sample.wrong])
    login = security_of(logins.properties(mechanism, rng.choice(logins.SAMPLES[mechanism].wrong)))
    assert isinstance(login, SaslSecurity)
    client, server = login.begin(), start(mechanism, "another")()
    tokens = []
    message: bytes | None = await client.first()
    with suppress(LoginFailed):
        while message is not None:
            tokens.append(message)
            message = client.answer(await server.answer(message))
    version = rng.choice((0, 1, 1, 1))
    frames = [encode_request(1, None, m.SaslHandshakeRequest(mechanism), version)]
    if rng.random() < 0.5:
        frames.insert(0, encode_request(0, "c", m.ApiVersionsRequest("n", "1"), 3))
    for one in tokens:
        if version:
            frames.append(encode_request(2, "c", m.SaslAuthenticateRequest(one), rng.choice((0, 1, 2))))
        else:
            frames.append(len(one).to_bytes(4) + one)
    return [*frames, encode_request(9, "c", m.ListGroupsRequest(), 4)]


def mutated(frames: list[bytes], rng: random.Random) -> bytes:
    frames = [*frames]
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.randrange(len(frames))
        frame = bytearray(frames[at])
        match rng.randrange(6):
            case 0:
                frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            case 1:
                begin = rng.randrange(4, len(frame) + 1)
                frame[begin:] = rng.randbytes(len(frame) - begin)
            case 2:
                begin = rng.randrange(4, len(frame) + 1)
                frame[begin:begin] = rng.choice((b"\0", b",", b"=2C", b"\xff\xff", b"\x01", b"m=x,"))
            case 3:
                del frame[rng.randrange(4, len(frame) + 1) :]
            case 4:
                frames.insert(rng.randrange(len(frames)), bytes(frame))
                continue
            case 5:
                rng.shuffle(frames)
                continue
        if rng.random() < 0.8:
            frame[:4] = (len(frame) - 4).to_bytes(4)
        frames[at] = bytes(frame)
    return b"".join(frames)


@pytest.mark.parametrize("seed", range(4))
async def test_mutated_logins(broker: Broker, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)

    async def attack(sent: bytes) -> None:
        wire = await Wire.open(broker.bootstrap_servers)
        wire.writer.write(sent)
        wire.writer.write_eof()
        with suppress(ConnectionError):
            await wire.reader.read()
        wire.writer.close()

    for _ in range(CONVERSATIONS // 15):
        await asyncio.gather(*[attack(mutated(await conversation(rng), rng)) for _ in range(15)])
    logins = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert len(logins) > CONVERSATIONS // 3
    assert not [one for one in logins if one["allowed"]]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    wire = await Wire.open(broker.bootstrap_servers)
    assert not (await log_in(wire, "alice", "alice-secret")).error_code
    wire.writer.close()


async def test_a_flood_of_wrong_passwords(tmp_path: Path) -> None:
    settings = {"connection.failed.authentication.delay.ms": "3000"}
    async with Broker(properties=settings, users={"alice": "alice-secret"}) as broker:
        good = await Wire.open(broker.bootstrap_servers)
        assert not (await log_in(good, "alice", "alice-secret")).error_code
        before = len(asyncio.all_tasks())
        wires = [await Wire.open(broker.bootstrap_servers) for _ in range(300)]
        guesses = [asyncio.create_task(log_in(wire, "alice", f"guess {n}")) for n, wire in enumerate(wires)]
        began = time.monotonic()
        await asyncio.sleep(0.1)
        assert (await good.call(m.ListGroupsRequest(), 4)).error_code == 0
        assert not any(guess.done() for guess in guesses)
        answers = await asyncio.gather(*guesses)
        assert {answer.error_code for answer in answers} == {58}
        assert time.monotonic() - began >= 2.95
        for wire in wires:
            assert await wire.is_closed()
            wire.writer.close()
        await becomes(lambda: len(broker.server.connections) == 1 and len(asyncio.all_tasks()) <= before)


async def test_handshakes_that_do_not_go_on(broker: Broker) -> None:
    wires = [await Wire.open(broker.bootstrap_servers) for _ in range(200)]
    for number, wire in enumerate(wires):
        if number % 2:
            wire.writer.write(encode_request(1, None, m.SaslHandshakeRequest("SCRAM-SHA-256"), 1)[: number % 28])
    good = await Wire.open(broker.bootstrap_servers)
    assert not (await log_in(good, "alice", "alice-secret")).error_code
    for wire in wires:
        assert await asyncio.wait_for(wire.is_closed(), 10)
        wire.writer.close()
    assert (await good.call(m.ListGroupsRequest(), 4)).error_code == 0
    await becomes(lambda: len(broker.server.connections) == 1)


async def test_tls_handshakes_that_do_not_go_on() -> None:
    settings = {"groupkeeper.authentication.timeout.ms": "1500"}
    async with Broker(properties=settings, tls=True) as broker:
        wires = [await Wire.open(broker.bootstrap_servers) for _ in range(100)]
        for number, wire in enumerate(wires):
            wire.writer.write((b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 50)[number % 3])
        for wire in wires:
            assert len(await asyncio.wait_for(wire.reader.read(), 10)) < 20  # an alert at most
            wire.writer.close()
        await becomes(lambda: not broker.server.connections)


@pytest.mark.parametrize("has_more", [False, True])
async def test_who_does_not_hear_the_end_of_tls_sees_that_of_the_connection(*, has_more: bool) -> None:
    """Java's client may read it along with an answer and leave it at that."""
    settings = {"groupkeeper.authentication.timeout.ms": "1000"}
    async with Broker(properties=settings, users={"alice": "alice-secret"}, tls=True) as broker:
        wire = await Wire.open(broker.bootstrap_servers)
        sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=broker.client_properties()["ssl.truststore.location"])
        channel = context.wrap_bio(received, sent, server_hostname="127.0.0.1")
        while True:
            try:
                channel.do_handshake()
                break
            except ssl.SSLWantReadError:
                wire.writer.write(sent.read())
                received.write(await wire.reader.read(1 << 16))
        channel.write(encode_request(1, "c", m.SaslHandshakeRequest("PLAIN"), 1))
        wire.writer.write(sent.read())
        await wire.reader.read(1 << 16)
        if has_more:
            await asyncio.sleep(1.2)
            channel.write(b"xx")
            wire.writer.write(sent.read())
        with suppress(ConnectionError):
            while await asyncio.wait_for(wire.reader.read(1 << 16), 30):
                pass
        wire.writer.close()


async def test_a_login_that_fails_by_a_defect_is_logged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(self: PlainServer, message: bytes) -> bytes:
        raise RuntimeError("a defect")

    monkeypatch.setattr(PlainServer, "answer", answer)
    wire = await Wire.open(broker.bootstrap_servers)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await log_in(wire, "alice", "alice-secret")
    (record,) = [one for one in caplog.records if one.exc_info]
    assert record.getMessage() == "serving /127.0.0.1 failed, its connection is closed"
    assert "alice-secret" not in caplog.text
