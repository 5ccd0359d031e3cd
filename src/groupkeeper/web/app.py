"""What is answered over HTTP. Everything is there before it is asked for: no request makes a cluster be asked.

Pages have no scripts, and their policy lets none run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from groupkeeper.live.archive import Archive
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.web.exporter import Exporter
from groupkeeper.web.exposition import wanted_format
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.cluster import Wish, cluster_page, groups_csv
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.group import group_page

_CHUNK = 65536
_LONGEST_S = 60.0
"""A client that doesn't take its answer within that is hung up on."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

Snapshots = Callable[[], Sequence[ClusterSnapshot]]
"""The latest of each cluster, in the order in which they were named."""

FILES = {"grafana-dashboard.json": "application/json", "prometheus-rules.yaml": "application/yaml"}
"""What comes with the package for Prometheus and Grafana, by name with its type."""

_HISTORY_MS = 24 * 3600 * 1000


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


class Site:
    """What the routes answer."""

    def __init__(self, exporter: Exporter, snapshots: Snapshots, archive: Archive) -> None:
        self._exporter = exporter
        self._snapshots = snapshots
        self._archive = archive

    async def metrics(self, request: Request) -> Response:
        form = wanted_format(request.headers.get("accept", ""))
        is_compressed = takes_gzip(request.headers.get("accept-encoding", ""))
        headers = {**HEADERS, "Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        text = await asyncio.to_thread(self._exporter.text, form, is_compressed=is_compressed)
        return Chunked(text, headers=headers)

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=HEADERS)

    async def readiness(self, request: Request) -> Response:
        found = self._snapshots()
        is_ready = all(snapshot.polls.done for snapshot in found)
        lines = "".join(f"{each.cluster}: {state_of(each)}\n" for each in found)
        return PlainTextResponse(lines, 200 if is_ready else 503, HEADERS)

    async def file(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        content = resources.files("groupkeeper.web").joinpath("files", name).read_bytes()
        return Response(content, media_type=FILES[name], headers=HEADERS)

    async def style(self, request: Request) -> Response:
        return Response(parts.STYLE, media_type="text/css", headers=HEADERS)

    async def fleet(self, request: Request) -> Response:
        return _page(fleet_page(self._snapshots(), _now_ms()))

    async def cluster(self, request: Request) -> Response:
        snapshot = self._asked_for(request)
        if snapshot is None:
            return _nowhere("There is no such cluster here.")
        return _page(cluster_page(snapshot, Wish.of(request.query_params), _now_ms()))

    async def csv(self, request: Request) -> Response:
        snapshot = self._asked_for(request)
        if snapshot is None:
            return _nowhere("There is no such cluster here.")
        text = groups_csv(snapshot, Wish.of(request.query_params), _now_ms())
        headers = {**HEADERS, "Content-Type": "text/csv; charset=utf-8"}
        headers["Content-Disposition"] = 'attachment; filename="groups.csv"'
        return Chunked(text.encode("utf-8", "replace"), headers=headers)

    async def group(self, request: Request) -> Response:
        snapshot = self._asked_for(request)
        group = None if snapshot is None else snapshot.groups.get(request.query_params.get("group", ""))
        if snapshot is None or group is None:
            return _nowhere("There is no such group now, or its cluster cannot be asked.")
        now_ms = _now_ms()
        samples, changes = await self._archive.of_group(snapshot.cluster, group.group_id, now_ms - _HISTORY_MS)
        return _page(group_page(snapshot, group, samples, changes, now_ms))

    def _asked_for(self, request: Request) -> ClusterSnapshot | None:
        name = request.query_params.get("cluster", "")
        return next((each for each in self._snapshots() if each.cluster == name), None)


def application(
    exporter: Exporter, snapshots: Snapshots, archive: Archive, *, hosts: frozenset[str] | None = None
) -> ASGIApp:
    """The application, for any server. ``hosts``: names by which it may be asked for; None: any. A page in somebody's
    browser could otherwise reach a server on the same machine by a name of its own.
    """
    site = Site(exporter, snapshots, archive)
    routed = Starlette(
        routes=[
            Route("/", site.fleet),
            Route("/cluster", site.cluster),
            Route("/groups.csv", site.csv),
            Route("/group", site.group),
            Route("/style.css", site.style),
            Route("/metrics", site.metrics),
            Route("/healthz", site.health),
            Route("/readyz", site.readiness),
            *(Route(f"/{name}", site.file) for name in FILES),
        ]
    )
    if hosts is None:
        return routed
    allowed = hosts

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope.get("headers", ())).get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if scope["type"] == "http" and name not in allowed:
            refused = PlainTextResponse("This host name is not answered to: --allowed-host NAME.\n", 421, HEADERS)
            await refused(scope, receive, send)
        else:
            await routed(scope, receive, send)

    return guarded


def _page(html: str) -> Response:
    return Chunked(html.encode("utf-8", "replace"), headers={**HEADERS, "Content-Type": "text/html; charset=utf-8"})


def _nowhere(said: str) -> Response:
    html = parts.page("Not found", f'<p class="soft">{said}</p>', [("Consumer groups", "/")])
    return Response(html, 404, HEADERS, "text/html")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


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
