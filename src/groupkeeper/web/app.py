"""What is answered over HTTP. Everything is there before it is asked for: no request makes a cluster be asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.web.exporter import Exporter
from groupkeeper.web.exposition import wanted_format

_CHUNK = 65536
_LONGEST_S = 60.0
"""A client that doesn't take its answer within that is hung up on."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Snapshots = Callable[[], Sequence[ClusterSnapshot]]
"""The latest of each cluster, in the order in which they were named."""

FILES = {"grafana-dashboard.json": "application/json", "prometheus-rules.yaml": "application/yaml"}
"""What comes with the package for Prometheus and Grafana, by name with its type."""

START_PAGE = f"""groupkeeper

/metrics for Prometheus
/healthz, /readyz
{"".join(f"/{name}{chr(10)}" for name in FILES)}"""


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


def application(exporter: Exporter, snapshots: Snapshots) -> Starlette:
    """The application, for any server."""

    async def metrics(request: Request) -> Response:
        form = wanted_format(request.headers.get("accept", ""))
        is_compressed = takes_gzip(request.headers.get("accept-encoding", ""))
        headers = {**HEADERS, "Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        return Chunked(exporter.text(form, is_compressed=is_compressed), headers=headers)

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=HEADERS)

    async def readiness(request: Request) -> Response:
        found = snapshots()
        is_ready = all(snapshot.polls.done for snapshot in found)
        lines = "".join(f"{each.cluster}: {state_of(each)}\n" for each in found)
        return PlainTextResponse(lines, 200 if is_ready else 503, HEADERS)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        content = resources.files("groupkeeper.web").joinpath("files", name).read_bytes()
        return Response(content, media_type=FILES[name], headers=HEADERS)

    async def start(request: Request) -> Response:
        return PlainTextResponse(START_PAGE, headers=HEADERS)

    return Starlette(
        routes=[
            Route("/", start),
            Route("/metrics", metrics),
            Route("/healthz", health),
            Route("/readyz", readiness),
            *(Route(f"/{name}", file) for name in FILES),
        ]
    )


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes gzip, by its header Accept-Encoding."""
    for part in accepted.lower().split(","):
        coding, *parameters = (each.strip() for each in part.split(";"))
        if coding == "gzip":
            return not any(each.removeprefix("q=").strip("0.") == "" for each in parameters if each.startswith("q="))
    return False


def state_of(snapshot: ClusterSnapshot) -> str:
    """How a cluster is, in one line."""
    if not snapshot.polls.done:
        return "not polled yet"
    if snapshot.measured_ms is None:
        problem = snapshot.problems[0] if snapshot.problems else None
        return "not known" if problem is None else f"down: {problem.error}: {' '.join(problem.message.split())}"
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(snapshot.measured_ms / 1000))
    return f"up, {len(snapshot.groups)} groups at {at}"
