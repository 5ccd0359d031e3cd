"""Open pages of a running server: what they are told, how soon, how many there may be, and what they hold up."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path

from tests.live.stage import commit
from tests.web.serving import Served, serving

from groupkeeper.client.admin import Admin
from groupkeeper.testing.background import BackgroundBroker
from groupkeeper.web.news import MOST_STREAMS

PAGES = 200
HEAD = "GET /events?cluster=prod HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"


class Page:
    """A connection with a stream. `polls`: when it was told of one, by the clock of this process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.polls: list[float] = []
        self._reader = reader
        self._writer = writer

    @classmethod
    async def opened(cls, served: Served) -> Page:
        page = cls(*await asyncio.open_connection("127.0.0.1", served.port))
        page._writer.write(HEAD.encode())
        head = await page._reader.readuntil(b"retry: 3000\n\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
        assert b"content-type: text/event-stream; charset=utf-8\r\n" in head
        return page

    async def poll(self) -> float:
        await self._reader.readuntil(b'event: poll\ndata: "prod"\n\n')
        self.polls.append(time.monotonic())
        return self.polls[-1]

    async def rest(self) -> bytes:
        return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


async def test_two_hundred_open_pages_are_told_at_once_and_hold_up_nothing(broker: BackgroundBroker) -> None:
    where = ("--bootstrap-server", f"prod={broker.bootstrap_servers}")
    with serving(*where, "--interval", "1s") as served:
        await asyncio.to_thread(served.until_ready)
        status = Path(f"/proc/{served.process.pid}/status")
        pages = await asyncio.gather(*(Page.opened(served) for _ in range(PAGES)))
        assert (await asyncio.to_thread(served.get, "/healthz")).status == 200
        told = await asyncio.gather(*(page.poll() for page in pages))
        assert max(told) - min(told) < 10  # not one after the other
        async with Admin(broker.bootstrap_servers) as admin:
            await commit(admin, "search", "orders", 6)
        # The poll after which they are told has seen it: the page has it by then.
        for _ in range(3):
            await asyncio.gather(*(page.poll() for page in pages))
            text = (await asyncio.to_thread(served.get, "/group?cluster=prod&group=search")).text
            if '<td class="n">6</td>' in text:
                break
        else:
            raise AssertionError(text)
        if status.exists():
            resident_kb = int(status.read_text().split("VmRSS:")[1].split()[0])
            assert resident_kb < 150 * 1024
        for page in pages[1:]:
            page.close()
        served.process.send_signal(signal.SIGTERM)
        assert (await pages[0].rest()).endswith(b"0\r\n\r\n")  # ended, not broken off
        await asyncio.to_thread(served.process.wait, 60)
        assert served.process.returncode == 0
        pages[0].close()


async def test_a_stream_of_what_is_not_there_is_none(broker: BackgroundBroker) -> None:
    with serving("--bootstrap-server", f"prod={broker.bootstrap_servers}") as served:
        answer = await asyncio.to_thread(served.get, "/events?cluster=nowhere")
        assert answer.status == 404
        assert "EventSource" in (await asyncio.to_thread(served.get, "/live.js")).text


async def test_as_many_pages_as_may_be_open_get_their_content_at_once(broker: BackgroundBroker) -> None:
    """A page has a connection for its stream, and one for its content, which browsers keep for a while."""
    async with AsyncExitStack() as opened:
        with serving("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "1h") as served:
            await asyncio.to_thread(served.until_ready)
            for page in await asyncio.gather(*(Page.opened(served) for _ in range(MOST_STREAMS))):
                opened.callback(page.close)
            contents = await asyncio.gather(
                *(asyncio.open_connection("127.0.0.1", served.port) for _ in range(MOST_STREAMS))
            )
            for _, writer in contents:
                opened.callback(writer.close)
                writer.write(b"GET /cluster?cluster=prod HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = await asyncio.gather(*(reader.readline() for reader, _ in contents))
            assert set(said) == {b"HTTP/1.1 200 OK\r\n"}
            assert (await asyncio.to_thread(served.get, "/events?cluster=prod")).status == 503  # one more page
            assert (await asyncio.to_thread(served.get, "/metrics")).status == 200


async def test_a_burst_of_pages_gets_as_many_streams_as_there_are(broker: BackgroundBroker) -> None:
    async with AsyncExitStack() as opened:
        with serving("--bootstrap-server", f"prod={broker.bootstrap_servers}", "--interval", "1h") as served:
            await asyncio.to_thread(served.until_ready)
            pages = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(MOST_STREAMS + 44)]
            for _, writer in pages:
                opened.callback(writer.close)
                writer.write(HEAD.encode())
            said = await asyncio.gather(*(reader.readline() for reader, _ in pages))
            assert [
                said.count(b"HTTP/1.1 %d %s\r\n" % each) for each in ((200, b"OK"), (503, b"Service Unavailable"))
            ] == [MOST_STREAMS, 44]
