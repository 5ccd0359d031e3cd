"""The routes for changes. Only these send requests to a cluster, and only when a form is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from groupkeeper.operations.plans import document
from groupkeeper.rules.words import capitalized
from groupkeeper.shell import Ways, way_to
from groupkeeper.web.access.people import NOBODY, Access, Person
from groupkeeper.web.actions import Actions
from groupkeeper.web.answers import HEADERS, html_answer
from groupkeeper.web.changes.change_request import BadForm, Form, first
from groupkeeper.web.changes.desk import DeskEntry
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.change import change_page, sweep_page
from groupkeeper.web.pages.journal import change_made_page, changes_table, journal_page, plans_page
from groupkeeper.web.pages.parts import Viewer, refusal_page
from groupkeeper.web.pages.plan import plan_page
from groupkeeper.web.refusals import ActionRefused

_LARGEST_BODY = 64 * 1024
_MOST_FIELDS = 1000
_SLOWEST_BODY_S = 10.0
_MOST_MADE = 10

Answer = Callable[[Request], Awaitable[Response]]


class Changes:
    """The routes for changes. If nothing can be changed, pages say so."""

    def __init__(self, access: Access, actions: Actions, ways_for: Callable[[Viewer], Ways]) -> None:
        """`ways_for`: the ways to clusters that a viewer's commands may name."""
        self._access = access
        self._actions = actions
        self._ways_for = ways_for

    def answers(self) -> list[tuple[str, str, Answer]]:
        """All routes: method, path and handler."""
        does = self._actions
        return [
            (method, path, self.telling(answer))
            for method, path, answer in (
                ("GET", "/change", self.choose),
                ("GET", "/sweep", self.choose_sweep),
                ("POST", "/sweep", self._planned(does.sweep)),
                ("GET", "/plan", self.show),
                ("GET", "/plan.json", self.file),
                ("POST", "/plan", self._planned(does.plan)),
                ("POST", "/plan/compare", self._planned(lambda who, form: does.compare(who, first(form, "id")))),
                ("POST", "/plan/apply", self._planned(
                    lambda who, form: does.apply(who, first(form, "id"), first(form, "confirm").strip()))),
                ("POST", "/undo", self._planned(
                    lambda who, form: does.undo(who, first(form, "cluster"), first(form, "change")))),
                ("GET", "/plans", self.plans),
                ("GET", "/journal", self.journal),
                ("GET", "/journal/change", self.change_made),
            )
        ]  # fmt: skip

    def telling(self, answer: Answer) -> Answer:
        """The handler, with a page for refusals."""

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except ActionRefused as refused:
                status, reason = refused.status, refused.reason
            except BadForm as problem:
                status, reason = 400, str(problem)
            return html_answer(refusal_page(reason, status, self.viewer(request)), status)

        return answered

    def viewer(self, request: Request) -> Viewer:
        """The viewer of a page, with the rights that the page depends on."""
        person = self._access.person(request) or NOBODY
        seal = self._access.seal(person) if person.is_known else ""
        return Viewer(
            person,
            seal,
            has_login=self._access.has_login,
            changes=self._access.changes,
            has_journal=self._actions.record is not None,
        )

    async def choose(self, request: Request) -> Response:
        wanted, actions = request.query_params, self._actions
        viewer = self.viewer(request)
        person = viewer.person
        snapshot, group = actions.group(person, wanted.get("cluster", ""), wanted.get("group", ""))
        clusters = [each.cluster for each in actions.clusters(person)]
        why_not = actions.why_not(person, snapshot.cluster, group.group_id)
        is_chosen = actions.desk is not None and bool(actions.desk.watched)
        way = way_to(snapshot.cluster, self._ways_for(viewer))
        return html_answer(change_page(snapshot, group, viewer, why_not, clusters, way, is_chosen=is_chosen))

    async def choose_sweep(self, request: Request) -> Response:
        viewer = self.viewer(request)
        snapshot = self._actions.cluster(viewer.person, request.query_params.get("cluster", ""))
        return html_answer(sweep_page(snapshot.cluster, viewer, self._actions.why_nothing(viewer.person)))

    async def show(self, request: Request) -> Response:
        viewer = self.viewer(request)
        entry = self._actions.entry(viewer.person, request.query_params.get("id", ""))
        may = self._actions.may(viewer.person, entry.cluster, entry.group_ids)
        return html_answer(plan_page(entry, viewer, may_change=may))

    async def file(self, request: Request) -> Response:
        entry = self._actions.entry(self.viewer(request).person, request.query_params.get("id", ""))
        if entry.is_deletion_of_group or entry.is_of_share_groups:
            raise ActionRefused(404, "A plan of this kind has no file.")
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="plan.json"'}
        return Response("".join(document.write(entry.plan)), 200, headers, "application/json")

    def _planned(self, deed: Callable[[Person, Form], Awaitable[DeskEntry]]) -> Answer:
        """A handler that does with a form what `deed` does to a plan, and redirects to the page of the plan."""

        async def answered(request: Request) -> Response:
            entry = await deed(*await self._posted(request))
            return RedirectResponse(f"/plan?{urlencode({'id': entry.id})}", 303, HEADERS)

        return answered

    async def plans(self, request: Request) -> Response:
        viewer = self.viewer(request)
        return html_answer(plans_page(self._actions.entries(viewer.person), viewer))

    async def journal(self, request: Request) -> Response:
        viewer, record = self.viewer(request), self._actions.journal()
        changes = await record.changes(viewer.person)
        return html_answer(journal_page(record, changes, request.query_params, viewer))

    async def change_made(self, request: Request) -> Response:
        viewer, actions = self.viewer(request), self._actions
        recorded = await actions.change(viewer.person, request.query_params.get("id", ""))
        may = actions.where_to_undo(viewer.person, recorded) is not None
        unseen = actions.unseen(tuple(recorded.groups)) if may else ""
        record, command = actions.journal(), tuple[str, ...]()
        cluster = record.cluster(recorded.head)
        if actions.desk is not None and cluster is not None:
            command = actions.desk.undo_command(cluster, recorded.head.id)
        return html_answer(change_made_page(record, recorded, viewer, may_undo=may, unseen=unseen, command=command))

    def note_of_journal(self, viewer: Viewer) -> str:
        """A note that the last reading of the journal failed, for the first page; "": it did not."""
        record = self._actions.record
        if record is None or not record.is_failing:
            return ""
        return parts.note(f"{capitalized(record.said_to(viewer.person))}. Changes since then are not shown.")

    async def made_table(self, viewer: Viewer, cluster: str, group_id: str) -> str:
        """The journal's changes of a group, for its page, with a note if some may be missing; "": neither."""
        if self._actions.record is None:
            return ""
        record = self._actions.journal()
        made = await record.changes(viewer.person, group_id)
        changes = [each for each in made if record.cluster(each.head) == cluster]
        told = record.said_to(viewer.person)
        problem = parts.note(told) if told else ""
        if not changes:
            return problem
        table = changes_table(record, changes[:_MOST_MADE])
        link = parts.url("/journal", group=group_id)
        return f'<h2>Resets and deletions</h2>{problem}{table}<p class="note"><a href="{link}">all changes</a></p>'

    async def _posted(self, request: Request) -> tuple[Person, Form]:
        """The sender and the fields of a form. Raises ActionRefused unless it is from one of the sender's own pages."""
        person = self._access.person(request) or NOBODY
        self._actions.open_desk(person)
        form = await read_form(request)
        if not self._access.is_sealed(person, first(form, "seal")):
            raise ActionRefused(403, "Nothing was changed: the form is not from a page of this session. Load it again.")
        return person, form


async def read_form(request: Request) -> Form:
    """The fields of a sent form. Raises ActionRefused if no page of this server sends such a body."""
    body = await read_body(request, "application/x-www-form-urlencoded", "a form")
    try:
        return parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise ActionRefused(400, "That is no form.") from None


async def read_body(request: Request, kind: str, what: str) -> bytes:
    """The body of a request. Raises ActionRefused unless it is `kind`, is from this site, and comes in time.
    `what`: the kind in words.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ActionRefused(403, f"Nothing was changed: {what} was sent from another site.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise ActionRefused(415, f"Expected {what} ({kind}).")
    body = b""
    try:
        async with asyncio.timeout(_SLOWEST_BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > _LARGEST_BODY:
                    raise ActionRefused(413, f"The body is too large: at most {_LARGEST_BODY // 1024} KiB are read.")
    except TimeoutError:
        raise ActionRefused(408, "The body was sent too slowly.") from None
    return body
