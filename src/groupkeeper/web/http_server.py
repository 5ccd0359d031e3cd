"""The server: collectors and HTTP in one event loop, from the first poll until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from groupkeeper.live.collector import Collector, Told

_MOST_CONNECTIONS = 768
"""Two for each of `news.MOST_STREAMS` pages, and some for scrapes; below 1024, the usual limit of files."""

_ACCEPTED_TOGETHER = 128
"""The most new connections before those that make room for them are closed."""

_SLOWEST_REQUEST_S = 20
"""A connection without a whole request for this time is closed."""

_LARGEST_HEADER = 16 * 1024
_GRACE_S = 5
"""The time for open responses to end."""


class _Connection(H11Protocol):
    """A connection. If there are too many, a new one closes the one that has waited for its peer for longest."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since_s = self.loop.time()
        others: Any = self.connections
        if len(others) >= _MOST_CONNECTIONS and (waiting := [each for each in others if each.waits_s() > 0]):
            oldest = max(waiting, key=_Connection.waits_s)
            oldest.transport.abort()
            others.discard(oldest)

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._since_s = self.loop.time()
        super().pause_writing()

    @property
    def has_request(self) -> bool:
        """Whether a whole request came that isn't answered yet."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def waits_s(self) -> float:
        """How long it has waited for a whole request, or for its peer to read; 0: it does not wait."""
        return 0 if self.has_request and not self.flow.write_paused else self.loop.time() - self._since_s


class _PageServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the program."""
        yield

    async def hang_up(self) -> None:
        """Aborts, without end, connections that send no whole request in time, and closing ones whose readers don't
        read the rest of their response.
        """
        closing: set[Any] = set()
        while True:
            await asyncio.sleep(_GRACE_S)
            connections: list[Any] = list(self.server_state.connections)
            now = {each for each in connections if each.transport.is_closing()}
            late = {each for each in connections if not each.has_request and each.waits_s() >= _SLOWEST_REQUEST_S}
            for connection in (now & closing) | late:
                connection.transport.abort()
            closing = now


class _Known(logging.Filter):
    """Filters uvicorn's messages about responses that were ended on purpose."""

    _TEXTS = ("ASGI callable returned without completing response.", "Cancel %s running task(s), timeout graceful")

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith(self._TEXTS)


_ABOUT_ENDED = _Known()


async def serve(
    collectors: Sequence[Collector],
    app: ASGIApp,
    listening: socket.socket,
    stop: asyncio.Event,
    told: Told,
    *beside: Coroutine[Any, Any, None],
) -> None:
    """Collects and serves until `stop` is set; then ends open work. `told` is called with each snapshot; `beside`
    runs meanwhile.

    Raises the exception of any part, and AssertionError if a part ends before `stop` is set: that is a bug of ours,
    and a supervisor must see it rather than old numbers for ever.
    """
    config = uvicorn.Config(
        app,
        http=_Connection,
        log_config=None,
        backlog=_ACCEPTED_TOGETHER,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # a peer's address is never taken from its headers
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_LARGEST_HEADER,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _PageServer(config)
    logging.getLogger("uvicorn.error").addFilter(_ABOUT_ENDED)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    beside = (server.hang_up(), *beside)
    working = [asyncio.create_task(each) for each in (*(collector.run(told) for collector in collectors), *beside)]
    working.append(asyncio.create_task(server.serve(sockets=[listening])))
    stopping = asyncio.create_task(stop.wait())
    try:
        ended, _ = await asyncio.wait([*working, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        for task in (stopping, *working[:-1]):
            task.cancel()
        outcomes = await asyncio.gather(*working, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    if not stop.is_set():
        names = (getattr(each.get_coro(), "__qualname__", each.get_name()) for each in ended)
        raise AssertionError(f"a part of the server has ended: {', '.join(names)}")
