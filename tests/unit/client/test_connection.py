"""One connection, and the handshake on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.client.scripted_broker import Handler, HangUp, ScriptedBroker, Silence, in_turn, raw_answer, raw_frame

from groupkeeper.client.addresses import Address
from groupkeeper.client.connection import Connection
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import (
    AuthenticationFailed,
    CallTimedOut,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    ResponseTooLarge,
    UnexpectedResponse,
    UnsupportedVersion,
)
from groupkeeper.client.opener import open_connection
from groupkeeper.client.peer import Peer
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage


def listing(*group_ids: str) -> m.ListGroupsResponse:
    return m.ListGroupsResponse(groups=[m.ListedGroup(group_id) for group_id in group_ids])


async def connection_to(broker: ScriptedBroker, **settings: int) -> Connection:
    address = Address(broker.host, broker.port)
    return await open_connection(address, Settings(**settings), Security(), 5)  # type: ignore[arg-type]


@asynccontextmanager
async def connected(handler: Handler, **settings: int) -> AsyncIterator[tuple[ScriptedBroker, Connection]]:
    """A broker with this answer to ListGroups, and a connection to it."""
    async with ScriptedBroker(handlers={"ListGroups": handler}) as broker:
        connection = await connection_to(broker, **settings)
        yield broker, connection
        connection.abort()
        await connection.wait_closed()


async def test_a_large_answer_in_many_pieces() -> None:
    group_ids = [f"group-{index:0200}" for index in range(5000)]
    async with connected(lambda *_: listing(*group_ids)) as (_, connection):
        answer = await connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 5)
        assert [group.group_id for group in answer.groups] == group_ids


async def test_a_late_answer_is_dropped() -> None:
    gate = asyncio.Event()

    async def late(message: RootMessage, version: int) -> RootMessage:
        await gate.wait()
        return listing("late")

    async with connected(in_turn(late, listing("next"))) as (_, connection):
        with pytest.raises(CallTimedOut):
            await connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 0.02)
        cancelled = asyncio.create_task(connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 5))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        gate.set()
        answer = await connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 5)
        assert answer.groups[0].group_id == "next"


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x28", UnexpectedResponse, "answers with TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", UnexpectedResponse, "an HTTP server"),
        (b"\x7f\xff\xff\xff1234", ResponseTooLarge, "over the limit of 1000000"),
        (b"\xff\xff\xff\xff1234", ResponseTooLarge, "over the limit"),
        (b"\x00\x00\x00\x02ab", UnexpectedResponse, "not a Kafka broker"),
        (raw_answer(77, listing(), 5), UnexpectedResponse, "a request that was not sent"),
        (raw_frame(b"\x00\x00\x00\x00\x00garbage"), UnexpectedResponse, "malformed reply"),
    ],
)
async def test_what_is_no_answer_ends_the_connection(answer: bytes, kind: type[ClientError], says: str) -> None:
    async with connected(lambda *_: answer, max_answer_bytes=1_000_000) as (_, connection):
        with pytest.raises(kind) as caught:
            await connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 5)
        assert says in str(caught.value)
        assert not connection.is_open
        with pytest.raises(ConnectionFailed):
            await connection.ask(m.ListGroupsRequest(), 5, m.ListGroupsResponse, 5)


async def test_a_lost_connection_fails_all_that_wait() -> None:
    def second_hangs_up(message: m.ListGroupsRequest, version: int) -> RootMessage:
        raise HangUp if message.states_filter else Silence

    async with connected(second_hangs_up) as (_, connection):
        results = await asyncio.gather(
            connection.ask(m.ListGroupsRequest(), 4, m.ListGroupsResponse, 5),
            connection.ask(m.ListGroupsRequest(["x"]), 4, m.ListGroupsResponse, 5),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [ConnectionFailed, ConnectionFailed]
        assert "closed the connection" in str(results[0])


# An exception collects a traceback and a context wherever it is raised: each that waits gets one of its own.
async def test_each_that_waits_gets_a_failure_of_its_own() -> None:
    async with connected(in_turn(Silence, Silence, Silence)) as (broker, connection):
        asked = [asyncio.create_task(connection.exchange(m.ListGroupsRequest(), 0, 5)) for _ in range(3)]
        await broker.until("ListGroups", 3)
        connection.abort(AuthenticationFailed("no", ValueError("said so")))
        failures = await asyncio.gather(*asked, return_exceptions=True)
        assert len({id(each) for each in failures}) == 3
        assert {(type(each), str(each)) for each in failures} == {(AuthenticationFailed, "no")}
        assert all(isinstance(each, AuthenticationFailed) and str(each.refusal) == "said so" for each in failures)
        await connection.wait_closed()


async def test_each_call_of_a_peer_gets_a_failure_of_its_own() -> None:
    broker = ScriptedBroker()
    await broker.start()
    peer = peer_of(broker)
    await broker.stop()
    refused = await asyncio.gather(*(ask_listing(peer) for _ in range(3)), return_exceptions=True)
    await peer.close(ConnectionFailed("it has moved"))
    closed = await asyncio.gather(*(ask_listing(peer) for _ in range(3)), return_exceptions=True)
    for failures in (refused, closed):
        assert {type(each) for each in failures} == {ConnectionFailed}
        assert len({id(each) for each in failures}) == 3


def peer_of(broker: ScriptedBroker, **settings: int) -> Peer:
    return Peer(Address(broker.host, broker.port), Settings(**settings), Security())  # type: ignore[arg-type]


@asynccontextmanager
async def peered(broker: ScriptedBroker, **settings: int) -> AsyncIterator[Peer]:
    """The peer for a broker, which it starts."""
    async with broker:
        peer = peer_of(broker, **settings)
        yield peer
        await peer.close()


async def ask_listing(peer: Peer, timeout_ms: int = 5000) -> m.ListGroupsResponse:
    deadline = Deadline("test", timeout_ms)
    return await peer.ask(m.ListGroupsResponse, m.ListGroupsRequest(), deadline)


@pytest.mark.parametrize(
    ("highest", "style", "asked", "connections"),
    [
        (5, "new", [5], 1),
        (4, "new", [5, 4], 1),
        (2, "new", [5, 2], 1),
        (0, "new", [5, 0], 1),
        (3, "old", [5, 0], 1),
        (0, "hangs up", [5, 0], 2),
    ],
)
async def test_api_versions_falls_back(highest: int, style: str, asked: list[int], connections: int) -> None:
    # GW-04, KIP-511: an unknown version is answered with error 35 in the form of version 0.
    handlers = {"ListGroups": lambda *_: listing("g")}
    broker = ScriptedBroker(ranges={"ApiVersions": (0, highest)}, handlers=handlers, api_versions=style)
    async with peered(broker) as peer:
        assert len((await ask_listing(peer)).groups) == 1
        assert [version for version, _ in broker.asked("ApiVersions")] == asked
        assert broker.connections == connections


@pytest.mark.parametrize(
    ("handler", "kind", "says"),
    [
        (in_turn(HangUp), ConnectionFailed, "closed the connection on the first request: it may want TLS"),
        (in_turn(Silence), ConnectionFailed, "accepts connections but does not answer"),
        (in_turn(lambda *_: b"HTTP/1.1 400 Bad Request\r\n"), UnexpectedResponse, "HTTP server"),
    ],
)
async def test_what_is_no_plain_kafka_is_named(handler: Handler, kind: type[ClientError], says: str) -> None:
    broker = ScriptedBroker(handlers={"ApiVersions": handler})
    async with peered(broker, socket_connection_setup_timeout_ms=1000) as peer:
        with pytest.raises(kind) as caught:
            await ask_listing(peer)
        assert says in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (raw_frame(b"\x00\x00\x00\x00\x00\x00garbage"), "malformed reply"),
        (raw_answer(0, m.ApiVersionsResponse(58), 4), "the reply to ApiVersions has error 58"),
    ],
)
async def test_a_broken_handshake(answer: bytes, says: str) -> None:
    async with peered(ScriptedBroker(handlers={"ApiVersions": in_turn(lambda *_: answer)})) as peer:
        with pytest.raises(UnexpectedResponse) as caught:
            await ask_listing(peer)
        assert says in str(caught.value)


async def test_a_refusal_without_a_body() -> None:
    # Version 0 of an error 35 that isn't even followed by an empty array.
    refusal = in_turn(lambda *_: raw_frame(b"\x00\x00\x00\x00\x00\x23"))
    broker = ScriptedBroker(handlers={"ListGroups": lambda *_: listing("g")})
    broker.handlers["ApiVersions"] = in_turn(refusal, broker.handlers["ApiVersions"])
    async with peered(broker) as peer:
        assert len((await ask_listing(peer)).groups) == 1
        assert [version for version, _ in broker.asked("ApiVersions")] == [5, 0]


async def test_a_connection_that_takes_too_long() -> None:
    async with peered(ScriptedBroker(handlers={"ApiVersions": in_turn(Silence)})) as peer:
        calls = await asyncio.gather(ask_listing(peer, 50), ask_listing(peer, 60), return_exceptions=True)
        assert [type(call) for call in calls] == [CallTimedOut, CallTimedOut]


async def test_unsupported_apis_are_named() -> None:
    async with peered(ScriptedBroker(ranges={"ListGroups": None})) as peer:
        with pytest.raises(UnsupportedVersion, match="The node does not support LIST_GROUPS"):
            await ask_listing(peer)
    async with peered(ScriptedBroker(ranges={"ListGroups": (97, 99)})) as peer:
        with pytest.raises(UnsupportedVersion) as caught:
            await ask_listing(peer)
        ours = f"[0,{m.ListGroupsRequest.MAX_VERSION}]"
        assert f"LIST_GROUPS with version in range {ours}. The supported range is [97,99]." in str(caught.value)


async def test_connections_are_shared_and_bounded() -> None:
    gate = asyncio.Event()

    async def held(message: RootMessage, version: int) -> RootMessage:
        await gate.wait()
        return listing()

    broker = ScriptedBroker(handlers={"ListGroups": held})
    async with peered(broker, connections_per_broker=3) as peer:
        asking = [asyncio.create_task(ask_listing(peer)) for _ in range(12)]
        await broker.until("ListGroups", 3)
        gate.set()
        await asyncio.gather(*asking)
        assert broker.connections == 3
        assert broker.count("ApiVersions") == 1  # the versions of a broker are asked once
        await ask_listing(peer)
        assert broker.connections == 3


async def test_reconnects_and_negotiates_again() -> None:
    broker = ScriptedBroker(handlers={"ListGroups": in_turn(listing("a"), HangUp, listing("b"))})
    async with peered(broker) as peer:
        await ask_listing(peer)
        with pytest.raises(ConnectionFailed):
            await ask_listing(peer)
        assert peer.failures == 1
        assert len((await ask_listing(peer)).groups) == 1
        assert peer.failures == 0
        assert broker.count("ApiVersions") == 2


async def test_a_hanging_request_ends_its_connection() -> None:
    broker = ScriptedBroker(handlers={"ListGroups": in_turn(Silence, listing("b"))})
    async with peered(broker, request_timeout_ms=500) as peer:
        with pytest.raises(CallTimedOut):
            await ask_listing(peer)
        assert len((await ask_listing(peer)).groups) == 1
        assert broker.connections == 2


@pytest.mark.parametrize("waits_for", ["ListGroups", "ApiVersions"], ids=["answer", "connection"])
async def test_closing_fails_what_waits(waits_for: str) -> None:
    broker = ScriptedBroker(handlers={waits_for: in_turn(Silence)})
    async with peered(broker) as peer:
        asking = asyncio.create_task(ask_listing(peer))
        await broker.until(waits_for)
        await peer.close()
        with pytest.raises(ClientClosed):
            await asking
        with pytest.raises(ClientClosed):
            await ask_listing(peer)
