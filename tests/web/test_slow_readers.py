"""Who doesn't read what is sent is hung up on, is no trouble at the end, and is not worth a word."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.web import answers, serving
from groupkeeper.web.answers import Streamed

READERS = 5


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await Streamed(itertools.repeat(b"x" * 65536))(scope, receive, send)


async def take(snapshot: ClusterSnapshot) -> None:
    pass


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[uvicorn.Server]:
    """Those that are started."""
    started: list[uvicorn.Server] = []

    class Started(serving._Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            started.append(self)

    monkeypatch.setattr(serving, "_Server", Started)
    return started


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """The port of a server that sends without end."""
    listening = socket.create_server(("127.0.0.1", 0))
    port, stop = listening.getsockname()[1], asyncio.Event()
    running = asyncio.create_task(serving.serve([], endless, listening, stop, take))
    yield port
    stop.set()
    async with asyncio.timeout(20):
        await running


def asked(port: int) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port))
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert reader.recv(1)
    return reader


async def test_after_its_time_a_reader_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, servers: list[uvicorn.Server]
) -> None:
    monkeypatch.setattr(answers, "_LONGEST_S", 0.2)
    monkeypatch.setattr(serving, "_GRACE_S", 0.2)
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
    monkeypatch.setattr(serving, "_GRACE_S", 0.3)
    caplog.set_level(logging.WARNING)
    async with served() as port:
        readers = [await asyncio.to_thread(asked, port) for _ in range(READERS)]
    for reader in readers:
        reader.close()
    assert caplog.records == []
