"""News of polls for open pages: a stream of events for each (Server-Sent Events). The pages then request their new
content.

A stream buffers nothing for its reader: it has one number for each cluster, and sends the latest only.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection

from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from groupkeeper.web.answers import HEADERS

MOST_STREAMS = 256
_PING_S = 15.0
"""The interval of pings, by which a lost peer is detected, and which keep proxies from closing the connection."""

_LONGEST_S = 20.0
"""The connection of a reader that reads nothing for this time is closed."""


class News:
    """Counts the polls of clusters, and tells streams. Streams end when it is closed."""

    def __init__(self) -> None:
        self._polls: Counter[str] = Counter()
        self._waiting: set[asyncio.Event] = set()
        self._is_closed = False

    @property
    def streams(self) -> int:
        """The number of streams."""
        return len(self._waiting)

    def tell(self, cluster: str) -> None:
        """Notes a poll of a cluster."""
        self._polls[cluster] += 1
        self._wake()

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    async def run(self) -> None:
        """Waits until it is cancelled, and then ends the streams, which nothing else would."""
        try:
            await asyncio.Event().wait()
        finally:
            self._is_closed = True
            self._wake()

    def stream(self, clusters: Callable[[], Collection[str]]) -> Response:
        """A stream of polls from now on, which counts at once, so it has to be sent. `clusters`: those that its
        reader may see; empty: the stream ends.
        """
        if self.streams >= MOST_STREAMS:
            return PlainTextResponse("Too many pages are open.\n", 503, HEADERS)
        event = asyncio.Event()
        self._waiting.add(event)
        return _Stream(self, event, clusters)

    async def _follow(
        self, event: asyncio.Event, announced: Counter[str], clusters: Callable[[], Collection[str]], send: Send
    ) -> None:
        await _say(send, "retry: 3000\n\n")
        while not self._is_closed and (known := clusters()):
            news = [cluster for cluster in known if self._polls[cluster] != announced[cluster]]
            announced = Counter(self._polls)
            if news:
                await _say(send, "".join(f"event: poll\ndata: {json.dumps(cluster)}\n\n" for cluster in news))
                continue
            event.clear()
            try:
                async with asyncio.timeout(_PING_S):
                    await event.wait()
            except TimeoutError:
                await _say(send, ": still here\n\n")


async def _say(send: Send, text: str) -> None:
    async with asyncio.timeout(_LONGEST_S):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


class _Stream(Response):
    """A stream of news; it ends with the news, or when its reader leaves."""

    def __init__(self, news: News, event: asyncio.Event, clusters: Callable[[], Collection[str]]) -> None:
        super().__init__(None, 200, HEADERS, "text/event-stream")
        del self.headers["content-length"]
        self.headers["x-accel-buffering"] = "no"  # nginx would hold events back
        self._news = news
        self._event = event
        self._announced = Counter(news._polls)  # what is polled once the page has the header is told
        self._clusters = clusters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._follow(receive, send)
        finally:
            self._news._waiting.discard(self._event)

    async def _follow(self, receive: Receive, send: Send) -> None:
        following = asyncio.create_task(self._news._follow(self._event, self._announced, self._clusters, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait([following, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = following.done() and not following.cancelled() and following.exception() is None
            for task in (following, leaving):
                task.cancel()
            await asyncio.gather(following, leaving, return_exceptions=True)
        if ended:
            await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    """Waits until the reader has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass
