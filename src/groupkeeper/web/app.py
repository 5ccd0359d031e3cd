"""The HTTP routes. Pages are made from the last snapshots: viewing a page sends no request to a cluster.

Pages load two scripts, for live updates and for the values of plots; their Content-Security-Policy forbids all others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from importlib import resources
from typing import Literal
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from groupkeeper.html.plot_script import PLOT_SCRIPT
from groupkeeper.live.archive import Archive
from groupkeeper.live.history import HistoryFailed
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.rules import words
from groupkeeper.shell import NO_WAYS, Ways
from groupkeeper.web.access.oidc import BEGUN_S, DONE, OidcFailed, OidcLogin
from groupkeeper.web.access.people import SESSION_S, Access, cookie_name
from groupkeeper.web.actions import Actions, Snapshots, why_down
from groupkeeper.web.answers import HEADERS, Chunked, Streamed, html_answer
from groupkeeper.web.change_routes import Answer, Changes, read_form
from groupkeeper.web.changes.change_request import first
from groupkeeper.web.changes.desk import Desk
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.exporter import Exporter
from groupkeeper.web.exposition import qualities, wanted_format
from groupkeeper.web.news import News
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.alerts import AlertsNow, alerts_page
from groupkeeper.web.pages.cluster import Wish, cluster_page, groups_csv
from groupkeeper.web.pages.fleet import fleet_page
from groupkeeper.web.pages.glossary import glossary_page
from groupkeeper.web.pages.group import group_page
from groupkeeper.web.pages.judged import Firing, Judge, KeptRows, with_alerts
from groupkeeper.web.pages.partitions import order_of, partitions_csv
from groupkeeper.web.pages.parts import Viewer
from groupkeeper.web.pages.search import search_page
from groupkeeper.web.pages.topics import LONGEST_TEXT, topic_page, topics_of, topics_page
from groupkeeper.web.refusals import ActionRefused

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

FILES = {"grafana-dashboard.json": "application/json", "prometheus-rules.yaml": "application/yaml"}
"""Files of the package for Prometheus and Grafana, by name with their types."""

_KEPT_S = 2.0
_MOST_KEPT = 64

_OF_ADDRESSES = "/?&=%;+~,:@!$'()*-._"
_LONGEST_TARGET = 1000
_HISTORY_MS = 24 * 3600 * 1000


class Site:
    """The handlers of the routes. `desk` None: nothing can be changed here; `record` None: there is no journal."""

    def __init__(
        self,
        exporter: Exporter,
        snapshots: Snapshots,
        archive: Archive,
        access: Access,
        desk: Desk | None = None,
        record: ChangeRecord | None = None,
        news: News | None = None,
        notes: Callable[[], Sequence[str]] = tuple,
        alerts: Callable[[], AlertsNow] = AlertsNow,
        oidc: OidcLogin | None = None,
        ways: Ways = NO_WAYS,
    ) -> None:
        """`notes`: about the rules, for users who see everything; `alerts`: of the rules now; `ways`: for
        commands.
        """
        self._exporter = exporter
        self._snapshots = snapshots
        self._archive = archive
        self._access = access
        self._oidc = oidc
        self._news = news or News()
        self._notes = notes
        self._alerts = alerts
        self._ways = ways
        self._kept: dict[tuple[object, ...], tuple[float, str]] = {}
        self._rows = KeptRows()
        self._searching = asyncio.Lock()
        self._actions = Actions(snapshots, desk, record)
        self._changes = Changes(access, self._actions, self._ways_for)

    def routes(self) -> list[BaseRoute]:
        """All routes; most of them require a role."""
        pages = {
            "/": self.fleet,
            "/cluster": self.cluster,
            "/groups.csv": self.csv,
            "/group": self.group,
            "/partitions.csv": self.partitions,
            "/topics": self.topics,
            "/topic": self.topic,
            "/search": self.search,
            "/alerts": self.alerts,
            "/events": self.events,
            "/metrics": self.metrics,
            **{f"/{name}": self.file for name in FILES},
        }
        return [
            *(Route(path, self._for_known(self._changes.telling(answer))) for path, answer in pages.items()),
            Route("/style.css", _fixed(parts.STYLE, "text/css")),
            Route("/words", self.words),
            Route("/live.js", _fixed(_file("live.js"), "text/javascript")),
            Route("/plots.js", _fixed(PLOT_SCRIPT, "text/javascript")),
            Route("/healthz", _fixed("ok\n", "text/plain")),
            Route("/readyz", self.readiness),
            Route("/login", self.login, methods=["GET", "POST"]),
            *((Route("/login/oidc", self.begin_oidc), Route(DONE, self.end_oidc)) if self._oidc else ()),
            Route("/logout", self._changes.telling(self.logout), methods=["POST"]),
            *(
                Route(path, self._for_known(answer), methods=[method])
                for method, path, answer in self._changes.answers()
            ),
            self._api(),
        ]

    def _api(self) -> BaseRoute:
        """The route of the HTTP API, if its library is installed."""
        try:
            from groupkeeper.web.api.answers import Answers
            from groupkeeper.web.api.routes import PREFIX, api_of
        except ImportError as missing:
            reason = f"The API needs {missing.name}: pip install '.[api]' in a checkout brings it.\n"
            return Route("/api/{path:path}", lambda _: PlainTextResponse(reason, 501, HEADERS))
        return Mount(PREFIX, api_of(Answers(self._actions, self._rows.rows_of, self._alerts), self._access))

    def forget(self, cluster: str) -> None:
        """Drops everything made of a cluster's earlier snapshot."""
        self._access.forget_views()
        self._rows.forget(cluster)

    def _for_known(self, answer: Answer) -> Answer:
        async def answered(request: Request) -> Response:
            if self._access.person(request) is not None:
                return await answer(request)
            headers = {"WWW-Authenticate": "Bearer"}
            if not self._access.has_login:
                reason = "The proxy in front of this server did not name a user."
                return html_answer(parts.refusal_page(reason, 401, self._nobody()), 401, headers)
            target = f"{request.url.path}?{request.url.query}" if request.method == "GET" else "/"
            return html_answer(self._login_page("", target), 401, headers)

        return answered

    async def login(self, request: Request) -> Response:
        if not self._access.has_login:
            return html_answer(parts.refusal_page("This server has no login.", 404, self._viewer(request)), 404)
        if request.method != "POST":
            return html_answer(self._login_page("", "/"))
        try:
            form = await read_form(request)
        except ActionRefused as refused:
            return html_answer(self._login_page(refused.reason, "/"), refused.status)
        target = first(form, "target")
        session = self._access.log_in(first(form, "token").strip())
        if session is None:
            return html_answer(self._login_page("This server does not know the token.", target), 403)
        answer = RedirectResponse(_own(target), 303, HEADERS)
        _set_cookie(answer, request, cookie_name(request), session, SESSION_S)
        return answer

    async def begin_oidc(self, request: Request) -> Response:
        """Redirects to the provider, which sends the browser back to `end_oidc`."""
        assert self._oidc is not None
        target = _own(request.query_params.get("target", "/"))
        try:
            url, cookie = await self._oidc.begin(request, target)
        except OidcFailed as failed:
            return html_answer(self._login_page(f"{failed}.", target), failed.status)
        answer = RedirectResponse(url, 303, HEADERS)
        _set_cookie(answer, request, f"{cookie_name(request)}-login", cookie, BEGUN_S, from_elsewhere=True)
        return answer

    async def end_oidc(self, request: Request) -> Response:
        assert self._oidc is not None
        try:
            user = await self._oidc.end(request, request.cookies.get(f"{cookie_name(request)}-login", ""))
        except OidcFailed as failed:
            return html_answer(self._login_page(f"{failed}.", "/"), failed.status)
        # A redirect would still count as from the other site, and the browser would not send the session's cookie.
        refresh = {"Refresh": f"0;url={quote(user.target, safe=_OF_ADDRESSES)}"}
        answer = html_answer(parts.logged_in_page(user.target, self._nobody()), more=refresh)
        session = self._access.begin(user.name, user.teams)
        _set_cookie(answer, request, cookie_name(request), session, SESSION_S)
        answer.delete_cookie(f"{cookie_name(request)}-login")
        return answer

    def _login_page(self, reason: str, target: str) -> str:
        issuer = "" if self._oidc is None else self._oidc.issuer
        return parts.login_page(
            reason, target, issuer, has_tokens=self._access.has_tokens, changes=self._access.changes
        )

    def _nobody(self) -> Viewer:
        """The viewer of a page without content about clusters."""
        return Viewer(changes=self._access.changes)

    async def missing(self, request: Request, _: Exception) -> Response:
        """The answer to an unknown path."""
        return html_answer(parts.refusal_page("There is no such page.", 404, self._nobody()), 404)

    async def logout(self, request: Request) -> Response:
        form, person = await read_form(request), self._viewer(request).person
        if self._access.is_sealed(person, first(form, "seal")):
            self._access.log_out(person)
        answer = RedirectResponse("/", 303, HEADERS)
        answer.delete_cookie(cookie_name(request))
        return answer

    async def metrics(self, request: Request) -> Response:
        if not self._viewer(request).person.rights.sees_all:
            reason = "Metrics require the right to see all groups of all clusters.\n"
            return PlainTextResponse(reason, 403, HEADERS)
        form = wanted_format(request.headers.get("accept", ""))
        headers = {**HEADERS, "Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
        if not qualities(request.headers.get("accept-encoding", "")).get("gzip"):
            return Streamed(self._exporter.text(form), headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Chunked(await asyncio.to_thread(self._exporter.gzipped, form), headers=headers)

    async def readiness(self, request: Request) -> Response:
        found = self._snapshots()
        is_ready = all(snapshot.polls.done for snapshot in found)
        sees_all = self._viewer(request).person.rights.sees_all
        lines = "".join(f"{each.cluster}: {state_of(each)}\n" for each in found) if sees_all else ""
        if lines and self._archive.problem is not None:
            lines += f"the history cannot be written: {self._archive.problem}\n"
        record = self._actions.record
        problem = [record.problem] if record is not None and record.problem else []
        lines += "".join(f"{each}\n" for each in (*problem, *self._notes())) if lines else ""
        return PlainTextResponse(lines or f"{'' if is_ready else 'not '}ready\n", 200 if is_ready else 503, HEADERS)

    async def file(self, request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        return Response(_file(name), media_type=FILES[name], headers=HEADERS)

    async def words(self, request: Request) -> Response:
        return html_answer(glossary_page(self._viewer(request)))

    async def events(self, request: Request) -> Response:
        """The stream of polls of a cluster, or of all, while the viewer may see them."""
        only = request.query_params.get("cluster")

        def seen() -> list[str]:
            viewer = self._viewer(request)
            clusters = [each.cluster for each in self._snapshots() if viewer.person.rights.sees(each.cluster)]
            return [each for each in clusters if only in (None, each)]

        if only is not None and not seen():
            raise ActionRefused(404, f"There is no cluster {only!r} here.")
        return self._news.stream(seen)

    def _shared(
        self, request: Request, snapshots: Sequence[ClusterSnapshot], write: Callable[[], str], *more: Hashable
    ) -> Response:
        """A page of snapshots, alerts and `more`, kept for this viewer: each open window requests it after a poll."""
        key = self._key(request, snapshots, *more)
        page = self._fresh(key)
        if page is None:
            page = write()
            self._keep(key, page)
        return html_answer(page)

    def _key(self, request: Request, snapshots: Sequence[ClusterSnapshot], *more: Hashable) -> tuple[object, ...]:
        viewer = self._viewer(request)
        alerts = ((place, *names) for place, names in self._firing(viewer).items())
        polls = ((each.cluster, each.polls.done) for each in snapshots)
        return str(request.url), viewer, self._archive.problem, *more, *alerts, *polls

    def _fresh(self, key: tuple[object, ...]) -> str | None:
        kept = self._kept.get(key)
        return None if kept is None or time.monotonic() - kept[0] > _KEPT_S else kept[1]

    def _keep(self, key: tuple[object, ...], page: str) -> None:
        now_s = time.monotonic()
        self._kept = {key: kept for key, kept in self._kept.items() if now_s - kept[0] <= _KEPT_S}
        if len(self._kept) < _MOST_KEPT:
            self._kept[key] = (now_s, page)

    async def fleet(self, request: Request) -> Response:
        viewer = self._viewer(request)
        seen = self._actions.clusters(viewer.person)
        note = self._notes_of_rules(viewer) + self._note() + self._changes.note_of_journal(viewer)
        judge = self._rows.rows_of
        ways = self._ways_for(viewer)

        def write() -> str:
            return fleet_page(seen, _now_ms(), viewer, note, judge, self._firing(viewer), ways)

        return self._shared(request, seen, write, note)

    def _firing(self, viewer: Viewer) -> Firing:
        return self._alerts().seen_by(viewer.person).by_group()

    def _judge(self, viewer: Viewer) -> Judge:
        return with_alerts(self._rows.rows_of, self._firing(viewer))

    async def alerts(self, request: Request) -> Response:
        viewer = self._viewer(request)
        found = self._alerts().seen_by(viewer.person)
        judge = with_alerts(self._rows.rows_of, found.by_group())
        seen = [each for each in self._actions.clusters(viewer.person) if found.firing]
        urgencies = {(one.cluster, row.group.group_id): row.urgency for one in seen for row in judge(one.known)}
        return html_answer(alerts_page(found, _now_ms(), viewer, self._notes_of_rules(viewer), urgencies))

    def _notes_of_rules(self, viewer: Viewer) -> str:
        """Notes about the rules, for viewers who see everything: they have names of groups."""
        return "".join(map(parts.note, self._notes())) if viewer.person.rights.sees_all else ""

    def _ways_for(self, viewer: Viewer) -> Ways:
        """The ways to clusters, with brokers and a file: for viewers who see all, or where changes need them."""
        return self._ways if viewer.changes or viewer.person.rights.sees_all else NO_WAYS

    def _note(self) -> str:
        """A note about the server itself, without the reason, which names a path."""
        if self._archive.problem is None:
            return ""
        since = words.moment(self._archive.since_ms)
        return parts.note(
            f"Since {since} the history cannot be written: later curves and changes are missing, or will be. "
            "All other numbers are current. The server's log and /readyz have the reason."
        )

    async def cluster(self, request: Request) -> Response:
        viewer = self._viewer(request)
        snapshot = self._cluster(viewer, request)
        wish = Wish.of(request.query_params)
        return self._shared(
            request, [snapshot], lambda: cluster_page(snapshot, wish, _now_ms(), viewer, self._judge(viewer))
        )

    async def csv(self, request: Request) -> Response:
        viewer = self._viewer(request)
        snapshot = self._cluster(viewer, request)
        if not snapshot.is_up:  # a table without rows would say that there are no groups
            return PlainTextResponse(f"{why_down(snapshot)}\n", 503, HEADERS)
        text = groups_csv(snapshot, Wish.of(request.query_params), self._judge(viewer))
        answer = _csv("groups.csv", text)
        answer.headers["X-Groups-Left-Out"] = str(len(snapshot.scope.left_out))
        return answer

    async def group(self, request: Request) -> Response:
        wish, viewer = request.query_params, self._viewer(request)
        snapshot, group = self._actions.known_group(viewer.person, wish.get("cluster", ""), wish.get("group", ""))
        now_ms, note = _now_ms(), self._note()
        try:
            which = (snapshot.cluster, group.group_id, now_ms - _HISTORY_MS, now_ms)
            past = await self._archive.of_group(*which)
        except HistoryFailed:
            past, note = ([], []), parts.note("The history cannot be read now, so the past is missing here.")
        made = await self._changes.made_table(viewer, snapshot.cluster, group.group_id)
        ways = self._ways_for(viewer)
        return html_answer(group_page(snapshot, group, *past, now_ms, viewer, made=made, note=note, ways=ways,
                                      order=order_of(wish)))  # fmt: skip

    async def partitions(self, request: Request) -> Response:
        wish, person = request.query_params, self._viewer(request).person
        snapshot, group = self._actions.group(person, wish.get("cluster", ""), wish.get("group", ""))
        return _csv("partitions.csv", partitions_csv(snapshot, group, order_of(wish)))

    async def topics(self, request: Request) -> Response:
        viewer, wish = self._viewer(request), request.query_params
        snapshot = self._cluster(viewer, request)
        return self._shared(request, [snapshot], lambda: topics_page(snapshot, wish, _now_ms(), viewer))

    async def topic(self, request: Request) -> Response:
        viewer, wish = self._viewer(request), request.query_params
        name = wish.get("topic", "")
        snapshot = self._actions.known_cluster(viewer.person, wish.get("cluster", ""))
        found = [each for each in topics_of(snapshot.known, name.lower()) if each.name == name]
        if not found and snapshot.known.is_partial:
            raise ActionRefused(503, why_down(snapshot))
        if not found:
            raise ActionRefused(404, "No group that you may see has offsets of this topic, or a member that reads it.")
        return html_answer(topic_page(snapshot, found[0], wish, _now_ms(), viewer))

    async def search(self, request: Request) -> Response:
        viewer, text = self._viewer(request), request.query_params.get("q", "").strip()[:LONGEST_TEXT]
        if not text:
            return RedirectResponse("/", 303, HEADERS)
        seen = self._actions.clusters(viewer.person)
        key = self._key(request, seen)
        async with self._searching:  # one after the other, so that many leave the loop its turns
            page = self._fresh(key)
            if page is None:
                page = await asyncio.to_thread(search_page, seen, text, viewer, self._judge(viewer))
                self._keep(key, page)
        return html_answer(page)

    def _viewer(self, request: Request) -> Viewer:
        return self._changes.viewer(request)

    def _cluster(self, viewer: Viewer, request: Request) -> ClusterSnapshot:
        return self._actions.cluster(viewer.person, request.query_params.get("cluster", ""))


def application(site: Site, hosts: frozenset[str] | None = None) -> ASGIApp:
    """The application, for any server. `hosts`: host names that requests may have; None: any. Without this check a
    web page could reach a local server through a DNS name of its own.
    """
    routed = Starlette(routes=site.routes(), exception_handlers={404: site.missing})
    if hosts is None:
        return routed
    allowed = hosts

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope.get("headers", ())).get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if scope["type"] == "http" and name not in allowed:
            refused = PlainTextResponse(
                "This host name is not allowed: start the server with --allowed-host NAME.\n", 421, HEADERS
            )
            await refused(scope, receive, send)
        else:
            await routed(scope, receive, send)

    return guarded


def _file(name: str) -> bytes:
    return resources.files("groupkeeper.web").joinpath("files", name).read_bytes()


def _fixed(content: str | bytes, kind: str) -> Answer:
    async def answered(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return answered


def _csv(name: str, text: str) -> Response:
    headers = {**HEADERS, "Content-Type": "text/csv; charset=utf-8"}
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return Chunked(text.encode("utf-8", "replace"), headers=headers)


def _own(target: str) -> str:
    """The path to open after a login: one of this site, and short enough for a cookie; else "/"."""
    is_own = (
        len(target) <= _LONGEST_TARGET
        and target.startswith("/")
        and not target.startswith(("//", "/\\"))
        and target.isprintable()
    )
    return target if is_own else "/"


def _set_cookie(
    answer: Response, request: Request, name: str, value: str, age_s: int, *, from_elsewhere: bool = False
) -> None:
    """Sets a cookie that scripts cannot read; over TLS only if this request was. `from_elsewhere`: it is also sent
    with requests that pages of other sites lead to.
    """
    secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
    same_site: Literal["lax", "strict"] = "lax" if from_elsewhere else "strict"
    answer.set_cookie(name, value, max_age=age_s, httponly=True, samesite=same_site, secure=secure)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _iso(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms / 1000))


def state_of(snapshot: ClusterSnapshot) -> str:
    """The state of a cluster, in one line."""
    if not snapshot.polls.done:
        return "not polled yet"
    if snapshot.measured_ms is None:
        problem = snapshot.problems[0] if snapshot.problems else None
        reason = "not known" if problem is None else f"down: {problem.error}: {' '.join(problem.message.split())}"
        since = "" if snapshot.polls.failing_ms is None else f"; since {_iso(snapshot.polls.failing_ms)}"
        known_ms = snapshot.known.measured_ms
        return reason + since + ("" if known_ms is None else f", last known at {_iso(known_ms)}")
    at = _iso(snapshot.measured_ms)
    left_out = f", {len(snapshot.scope.left_out)} more left out" if snapshot.scope.left_out else ""
    unmatched = "".join(f"; nothing matches {each}" for each in snapshot.scope.unmatched)
    return f"up, {len(snapshot.groups)} groups at {at}{left_out}{unmatched}"
