"""Streams of news: what each is told, and when it ends."""

import asyncio
from collections.abc import Collection

import pytest
from starlette.types import Message

from groupkeeper.web import news as module
from groupkeeper.web.news import News


class Reader:
    """A stream's reader. It takes what comes unless it is `slow`: then nothing after the first."""

    def __init__(self, news: News, clusters: Collection[str] = ("a", "b"), *, is_slow: bool = False) -> None:
        self.texts: list[str] = []
        self.clusters = list(clusters)
        self._gone = asyncio.Event()
        self._more = asyncio.Event()
        self._is_slow = is_slow
        self.task = asyncio.create_task(news.stream(lambda: self.clusters)({}, self._receive, self._send))

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            if self._is_slow and self.texts:
                await asyncio.Event().wait()
            self.texts.append(message["body"].decode())
            self._more.set()

    def leave(self) -> None:
        self._gone.set()

    async def until(self, count: int) -> list[str]:
        while len(self.texts) < count:
            self._more.clear()
            await self._more.wait()
        return self.texts[1:]


def poll(cluster: str) -> str:
    return f'event: poll\ndata: "{cluster}"\n\n'


async def test_a_poll_while_the_header_is_sent_is_told() -> None:
    news = News()
    reader = Reader(news)
    await asyncio.sleep(0)
    news.tell("a")
    assert await reader.until(2) == [poll("a")]
    reader.leave()
    await reader.task


async def test_each_is_told_of_the_clusters_that_it_may_know() -> None:
    news = News()
    both, one = Reader(news), Reader(news, ["b"])
    await asyncio.gather(both.until(1), one.until(1))
    news.tell("a")
    await both.until(2)
    news.tell("b")
    assert await both.until(3) == [poll("a"), poll("b")]
    assert await one.until(2) == [poll("b")]
    for reader in (both, one):
        reader.leave()
        await reader.task
    assert news.streams == 0


async def test_what_is_not_taken_is_told_once() -> None:
    news = News()
    reader = Reader(news)
    await reader.until(1)
    for _ in range(1000):
        news.tell("a")
    news.tell("b")
    assert await reader.until(2) == [poll("a") + poll("b")]
    reader.leave()
    await reader.task


async def test_streams_end_with_the_server_and_with_the_right_to_know() -> None:
    news = News()
    running = asyncio.create_task(news.run())
    reader, other = Reader(news), Reader(news)
    await asyncio.gather(reader.until(1), other.until(1))
    other.clusters.clear()
    news.tell("a")
    await asyncio.wait_for(other.task, 30)
    assert other.texts[-1] == ""
    running.cancel()
    await asyncio.wait_for(reader.task, 30)
    assert (news.streams, reader.texts[1:]) == (0, [poll("a"), ""])


async def test_who_takes_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_S", 0.02)
    monkeypatch.setattr(module, "_PING_S", 0.01)
    news = News()
    slow, well = Reader(news, is_slow=True), Reader(news)
    await asyncio.wait_for(slow.task, 30)
    assert ": still here\n\n" in await well.until(3)
    assert not well.task.done()
    well.leave()
    await well.task
    assert news.streams == 0


async def test_there_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STREAMS", 2)
    news = News()
    readers = [Reader(news), Reader(news)]
    assert news.stream(lambda: ["a"]).status_code == 503  # a stream counts from its admission
    await asyncio.gather(*(each.until(1) for each in readers))
    for reader in readers:
        reader.leave()
        await reader.task
    assert news.stream(lambda: ["a"]).status_code == 200
