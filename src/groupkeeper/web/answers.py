"""Forms of responses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_CHUNK = 65536
_LONGEST_S = 60.0
"""The connection of a client that doesn't read its response within this time is closed."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Streamed(Response):
    """A long response, sent as fast as its reader takes it: each part is made when it is its turn."""

    def __init__(self, parts: Iterable[bytes], status: int = 200, headers: Mapping[str, str] = {}) -> None:
        super().__init__(None, status, headers)
        self._parts = parts
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # The connection of an unfinished response is closed: it is late, or the server ends.
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(_LONGEST_S):
                for part in self._parts:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})


class Chunked(Streamed):
    """A long response with a known length; parts not sent yet are held once for all readers."""

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        whole = memoryview(body)
        parts = (bytes(whole[start : start + _CHUNK]) for start in range(0, len(whole), _CHUNK))
        super().__init__(parts, status, headers)
        self.headers["content-length"] = str(len(body))


def html_answer(html: str, status: int = 200, more: Mapping[str, str] = {}) -> Response:
    """A response with a page. `more`: its additional headers."""
    headers = {**HEADERS, **more, "Content-Type": "text/html; charset=utf-8"}
    return Chunked(html.encode("utf-8", "replace"), status, headers)
