"""Who doesn't read what is sent, or sends no whole request, is hung up on, costs nobody else a place, is no trouble at
the end, and is not worth a word. A part of the server that ends is.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from groupkeeper.live.collector import Told
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.web import answers, http_server
from groupkeeper.web.answers import Streamed

READERS = 5


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await Streamed(itertools.repeat(b"x" * 65536))(scope, receive, send)


async def long(scope: Scope, receive: Receive, send: Send) -> None:
    await Streamed(itertools.repeat(b"x" * 65536, 1000))(scope, receive, send)


async def greeting(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await PlainTextResponse("hello")(scope, receive, send)


async def take(snapshot: ClusterSnapshot) -> None:
    pass


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[uvicorn.Server]:
    """Those that are started."""
    started: list[uvicorn.Server] = []

    class Started(http_server._PageServer):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            started.append(self)

    monkeypatch.setattr(http_server, "_PageServer", Started)
    return started


@asynccontextmanager
async def served(app: ASGIApp = endless) -> AsyncIterator[int]:
    """The port of a server."""
    listening = socket.create_server(("127.0.0.1", 0))
    port, stop = listening.getsockname()[1], asyncio.Event()
    running = asyncio.create_task(http_server.serve([], app, listening, stop, Told(take, take)))
    yield port
    stop.set()
    async with asyncio.timeout(20):
        await running


def asked(port: int) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


async def test_after_its_time_a_reader_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, servers: list[uvicorn.Server]
) -> None:
    monkeypatch.setattr(answers, "_LONGEST_S", 0.2)
    monkeypatch.setattr(http_server, "_GRACE_S", 0.2)
    caplog.set_level(logging.WARNING)
    async with served() as port:
        readers = [await asyncio.to_thread(asked, port) for _ in range(READERS)]
        [server] = servers
        async with asyncio.timeout(20):
            while server.server_state.connections:  # noqa: ASYNC110 a server tells nobody
                await asyncio.sleep(0.05)  # nobody reads
    for reader in readers:
        reader.close()
    assert caplog.records == []


async def test_the_server_ends_though_nobody_reads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "_GRACE_S", 0.3)
    caplog.set_level(logging.WARNING)
    async with served() as port:
        readers = [await asyncio.to_thread(asked, port) for _ in range(READERS)]
    for reader in readers:
        reader.close()
    assert caplog.records == []


SILENT = (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na")
"""Nothing, half of a head, and half of a body."""


async def test_who_waits_makes_room_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 20)
    async with served(greeting) as port, AsyncExitStack() as opened:
        for number in range(90):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            opened.callback(writer.close)
            writer.write(SILENT[number % 3])
            if number % 9 == 0:
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" * (number % 3 == 0))
                assert (await reader.read()).endswith(b"hello")


async def test_readers_who_do_not_read_make_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", READERS)
    monkeypatch.setattr(http_server, "_GRACE_S", 0.3)
    async with served(long) as port:
        readers = [await asyncio.to_thread(asked, port) for _ in range(3 * READERS)]  # each gets the first of it
    for reader in readers:
        reader.close()


@pytest.mark.parametrize("sent", SILENT)
async def test_a_request_that_does_not_come_ends_its_connection(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_SLOWEST_REQUEST_S", 0.2)
    monkeypatch.setattr(http_server, "_GRACE_S", 0.05)
    async with served(greeting) as port, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)  # the second request of a connection
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + sent)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read()).endswith(b"hello")
        writer.close()


async def ends() -> None:
    """Like a part that ought to run as long as the server."""


async def breaks() -> None:
    raise RuntimeError("a mistake")


@pytest.mark.parametrize(("part", "error"), [(ends, "a part of the server has ended: ends"), (breaks, "a mistake")])
async def test_a_part_that_ends_is_an_error(part: Callable[[], Coroutine[None, None, None]], error: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    async with asyncio.timeout(20):
        with pytest.raises((AssertionError, RuntimeError), match=error):
            await http_server.serve([], greeting, listening, asyncio.Event(), Told(take, take), part())
