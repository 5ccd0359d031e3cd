"""How answers are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_CHUNK = 65536
_LONGEST_S = 60.0
"""A client that doesn't take its answer within that is hung up on."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Chunked(Response):
    """A long answer, sent as fast as its reader takes it: what isn't sent yet is held once for all readers."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        async with asyncio.timeout(_LONGEST_S):
            for start in range(0, len(body), _CHUNK):
                chunk = bytes(body[start : start + _CHUNK])
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def html_answer(html: str, status: int = 200, more: Mapping[str, str] = {}) -> Response:
    """A page. ``more``: headers of its own."""
    headers = {**HEADERS, **more, "Content-Type": "text/html; charset=utf-8"}
    return Chunked(html.encode("utf-8", "replace"), status, headers)
