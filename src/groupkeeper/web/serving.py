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

from groupkeeper.live.collector import Collector, Told

_MOST_CONNECTIONS = 768
"""Two for each of ``news.MOST_STREAMS`` pages, and some for scrapes; below 1024, the usual limit of files."""

_LARGEST_HEADER = 16 * 1024
_GRACE_S = 5
"""The time for open responses to end."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's matter."""
        yield

    async def hang_up(self) -> None:
        """Run forever, and abort closing connections with readers that don't read the rest of their response."""
        closing: set[Any] = set()
        while True:
            await asyncio.sleep(_GRACE_S)
            now = {each for each in self.server_state.connections if each.transport.is_closing()}
            for connection in now & closing:
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
    """Collect and answer until ``stop`` is set; then end what is under way. ``told`` is called with each snapshot,
    ``beside`` is what runs as long.

    Raises what a collector raises: that is a mistake of ours, and old numbers must not be served for ever.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,  # a peer's address is never taken from its headers
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_LARGEST_HEADER,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config)
    logging.getLogger("uvicorn.error").addFilter(_ABOUT_ENDED)
    beside = (server.hang_up(), *beside)
    working = [asyncio.create_task(each) for each in (*(collector.run(told) for collector in collectors), *beside)]
    answering = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([*working, answering, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stopping.cancel()
        for task in working:
            task.cancel()
        ended = await asyncio.gather(*working, answering, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome
