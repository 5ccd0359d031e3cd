"""The routes for changes. Only these send requests to a cluster, and only when a form is sent."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from groupkeeper.client.admin.types import GroupType
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.journal import JournalUnreadable
from groupkeeper.operations.plans.model import Subject
from groupkeeper.shell import way_to
from groupkeeper.web.access.people import Access, Person
from groupkeeper.web.access.roles import Role
from groupkeeper.web.answers import HEADERS, html_answer
from groupkeeper.web.changes.change_request import BadForm, Form, Target, change_request_of, first, swept_of
from groupkeeper.web.changes.desk import Desk, DeskEntry, NotDone
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.change import change_page, sweep_page
from groupkeeper.web.pages.journal import change_made_page, changes_table, journal_page, plans_page
from groupkeeper.web.pages.parts import Viewer, refusal_page
from groupkeeper.web.pages.plan import plan_page

_LARGEST_FORM = 64 * 1024
_MOST_FIELDS = 1000
_SLOWEST_FORM_S = 10.0
_MOST_MADE = 10

Snapshots = Callable[[], Sequence[ClusterSnapshot]]
Answer = Callable[[Request], Awaitable[Response]]


class ChangeRefused(Exception):
    """The request is refused. ``reason``: for a page."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Changes:
    """The routes. ``desk`` None: the server is read-only, and pages show that. ``record`` None: no journal."""

    def __init__(self, access: Access, snapshots: Snapshots, desk: Desk | None, record: ChangeRecord | None) -> None:
        self._access = access
        self._snapshots = snapshots
        self._desk = desk
        self._record = record

    def answers(self) -> list[tuple[str, str, Answer]]:
        """All of them, with their methods and paths."""
        return [
            (method, path, self._answering(answer))
            for method, path, answer in (
                ("GET", "/change", self.choose),
                ("GET", "/sweep", self.choose_sweep),
                ("POST", "/sweep", self.sweep),
                ("GET", "/plan", self.show),
                ("GET", "/plan.json", self.file),
                ("POST", "/plan", self.make),
                ("POST", "/plan/compare", self.compare),
                ("POST", "/plan/apply", self.apply),
                ("POST", "/undo", self.undo),
                ("GET", "/plans", self.plans),
                ("GET", "/journal", self.journal),
                ("GET", "/journal/change", self.change_made),
            )
        ]

    def _answering(self, answer: Answer) -> Answer:
        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except ChangeRefused as refused:
                status, reason = refused.status, refused.reason
            except BadForm as problem:
                status, reason = 400, str(problem)
            except (NotDone, JournalUnreadable) as problem:
                status, reason = 502, str(problem)
            return html_answer(refusal_page(reason, status, self.viewer(request)), status)

        return answered

    def viewer(self, request: Request) -> Viewer:
        """The viewer of a page, with the rights that the page depends on."""
        person = self._access.person(request)
        seal = "" if person is None or not person.is_known else self._access.seal(person)
        return Viewer(
            person,
            seal,
            has_login=self._access.has_login,
            changes=self._access.changes,
            has_journal=self._record is not None,
            can_search=person is not None,
        )

    async def choose(self, request: Request) -> Response:
        wanted = request.query_params
        snapshot, group = self._group(wanted.get("cluster", ""), wanted.get("group", ""), request)
        viewer = self.viewer(request)
        clusters = [each.cluster for each in viewer.seen(self._snapshots())]
        why_not = self.why_not(viewer, snapshot.cluster, group)
        is_chosen = self._desk is not None and bool(self._desk.watched)
        way = way_to(snapshot.cluster, {} if self._desk is None else self._desk.ways)
        return html_answer(change_page(snapshot, group, viewer, why_not, clusters, way, is_chosen=is_chosen))

    def why_not(self, viewer: Viewer, cluster: str, group: GroupView) -> str:
        """Why a person cannot plan a change of a group, "" when that is possible."""
        if why := self._why_nothing(viewer):
            return why
        if not _known(viewer).rights.may(Role.CHANGE, cluster, group.group_id):
            return f"{viewer.name} has no role that may change this group (change, in the file of --roles)."
        return ""

    def _why_nothing(self, viewer: Viewer) -> str:
        if self._desk is None:
            return "This server is read-only: it was started without --allow-changes."
        return "" if _known(viewer).is_known else "Log in to change something."

    async def make(self, request: Request) -> Response:
        desk, person, form = await self._posted(request)
        snapshot, group = self._group(first(form, "cluster"), first(form, "group"), request)
        is_share = group.group_type is GroupType.SHARE
        wanted = change_request_of(form, snapshot.cluster, group.group_id, desk.ways, is_share=is_share)
        target = wanted.target or Target(snapshot.cluster, group.group_id)
        self._cluster(target.cluster, request)
        self._may_change(person, target.cluster, (target.group_id,), wanted.command)
        entry = await desk.make(snapshot.cluster, wanted, person)
        return _seen_at("/plan", id=entry.id)

    async def choose_sweep(self, request: Request) -> Response:
        snapshot = self._cluster(request.query_params.get("cluster", ""), request)
        viewer = self.viewer(request)
        return html_answer(sweep_page(snapshot.cluster, viewer, self._why_nothing(viewer)))

    async def sweep(self, request: Request) -> Response:
        desk, person, form = await self._posted(request)
        snapshot = self._cluster(first(form, "cluster"), request)
        swept = swept_of(form)
        group_ids = [
            group_id
            for group_id, group in snapshot.groups.items()
            if swept.groups.matches(group_id)
            and group.group_type is not GroupType.SHARE
            and person.rights.may(Role.CHANGE, snapshot.cluster, group_id)
        ]
        if not group_ids:
            raise ChangeRefused(400, "There is no such group that you may change.")
        entry = await desk.sweep(snapshot.cluster, swept, group_ids, person)
        return _seen_at("/plan", id=entry.id)

    async def show(self, request: Request) -> Response:
        entry = self._entry(request.query_params.get("id", ""), request)
        viewer = self.viewer(request)
        may = self._is_allowed(_known(viewer), entry.cluster, entry.group_ids)
        return html_answer(plan_page(entry, viewer, may_change=may))

    async def file(self, request: Request) -> Response:
        entry = self._entry(request.query_params.get("id", ""), request)
        if entry.is_deletion_of_group or entry.is_of_share_groups:
            raise ChangeRefused(404, "A plan of this kind has no file.")
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="plan.json"'}
        return Response("".join(document.write(entry.plan)), 200, headers, "application/json")

    async def compare(self, request: Request) -> Response:
        desk, person, form = await self._posted(request)
        entry = self._entry(first(form, "id"), request)
        self._may_change(person, entry.cluster, entry.group_ids)
        await desk.compare(entry)
        return _seen_at("/plan", id=entry.id)

    async def apply(self, request: Request) -> Response:
        desk, person, form = await self._posted(request)
        entry = self._entry(first(form, "id"), request)
        self._may_change(person, entry.cluster, entry.group_ids)
        if len(entry.group_ids) > 1 and first(form, "confirm").strip() != str(len(entry.group_ids)):
            raise ChangeRefused(
                400, f"Nothing was changed: type the number of groups, {len(entry.group_ids)}, to confirm."
            )
        if entry.made.is_refused or not (entry.plan.groups or entry.is_deletion_of_group):
            raise ChangeRefused(409, "Nothing was changed: the plan has nothing that can be done.")
        await desk.apply(entry, person)
        return _seen_at("/plan", id=entry.id)

    async def undo(self, request: Request) -> Response:
        desk, person, form = await self._posted(request)
        change_id = first(form, "change")
        recorded = await desk.recorded(change_id)
        if recorded is None or not self._known_record().is_seen(person, recorded.head, tuple(recorded.groups)):
            raise ChangeRefused(404, "The journal has no such change.")
        cluster = first(form, "cluster")
        self._may_change(person, cluster, tuple(recorded.groups), desk.undo_command(cluster, change_id))
        if cluster not in (each.cluster for each in self._snapshots()):
            raise ChangeRefused(404, "There is no such cluster here.")
        entry = await desk.undo(cluster, change_id, recorded, person)
        return _seen_at("/plan", id=entry.id)

    async def plans(self, request: Request) -> Response:
        viewer = self.viewer(request)
        entries = [] if self._desk is None else self._desk.entries()
        return html_answer(plans_page([each for each in entries if self._sees(_known(viewer), each)], viewer))

    async def journal(self, request: Request) -> Response:
        viewer, record = self.viewer(request), self._known_record()
        changes = await record.changes(_known(viewer))
        return html_answer(journal_page(record, changes, request.query_params, viewer))

    async def change_made(self, request: Request) -> Response:
        viewer, record = self.viewer(request), self._known_record()
        person = _known(viewer)
        recorded = await record.load(request.query_params.get("id", ""))
        if recorded is None or not record.is_seen(person, recorded.head, tuple(recorded.groups)):
            raise ChangeRefused(404, "The journal has no such change.")
        cluster = record.cluster(recorded.head)
        is_final = recorded.head.subject is Subject.TRANSACTION
        may = cluster is not None and not is_final and self._is_allowed(person, cluster, tuple(recorded.groups))
        unseen = self._unseen(tuple(recorded.groups)) if may else ""
        command: Sequence[str] = ()
        if self._desk is not None and cluster is not None:
            command = self._desk.undo_command(cluster, recorded.head.id)
        return html_answer(change_made_page(record, recorded, viewer, may_undo=may, unseen=unseen, command=command))

    async def made_table(self, viewer: Viewer, cluster: str, group_id: str) -> str:
        """What the journal has of a group, for its page; "" when that is nothing."""
        if self._record is None:
            return ""
        self._record.know(self._snapshots())
        changes = [
            each
            for each in await self._record.changes(_known(viewer))
            if group_id in each.groups and self._record.cluster(each.head) == cluster
        ]
        if not changes:
            return ""
        table = changes_table(self._record, changes[:_MOST_MADE])
        link = parts.url("/journal", group=group_id)
        return f'<h2>Resets and deletions</h2>{table}<p class="note"><a href="{link}">all changes</a></p>'

    def _known_record(self) -> ChangeRecord:
        if self._record is None:
            raise ChangeRefused(404, "This server has no journal: it is turned off.")
        self._record.know(self._snapshots())
        return self._record

    async def _posted(self, request: Request) -> tuple[Desk, Person, Form]:
        """The sender and the fields of a form. Raises Refused unless it is from one of the sender's own pages."""
        if self._desk is None:
            raise ChangeRefused(403, "This server is read-only: it was started without --allow-changes.")
        form = await read_form(request)
        person = self._access.person(request)
        if person is None or not person.is_known:
            raise ChangeRefused(403, "Nothing was changed: log in first.")
        if not self._access.is_sealed(person, first(form, "seal")):
            raise ChangeRefused(403, "Nothing was changed: the form is not from a page of this session. Load it again.")
        return self._desk, person, form

    def _cluster(self, cluster: str, request: Request) -> ClusterSnapshot:
        for snapshot in self.viewer(request).seen(self._snapshots()):
            if snapshot.cluster == cluster:
                return snapshot
        raise ChangeRefused(404, "There is no such cluster here.")

    def _group(self, cluster: str, group_id: str, request: Request) -> tuple[ClusterSnapshot, GroupView]:
        viewer = self.viewer(request)
        for snapshot in viewer.seen(self._snapshots()):
            if snapshot.cluster == cluster and group_id in snapshot.groups:
                return snapshot, snapshot.groups[group_id]
        raise ChangeRefused(404, "There is no such group now, or its cluster cannot be reached.")

    def _entry(self, entry_id: str, request: Request) -> DeskEntry:
        entry = None if self._desk is None else self._desk.entry(entry_id)
        person = self._access.person(request)
        if entry is None or person is None or not self._sees(person, entry):
            raise ChangeRefused(404, "There is no such plan (any more).")
        return entry

    @staticmethod
    def _sees(person: Person, entry: DeskEntry) -> bool:
        """A plan without groups may still name some in its problems."""
        may = all(person.rights.may(Role.VIEW, entry.cluster, group_id) for group_id in entry.group_ids)
        return may and (bool(entry.group_ids) or entry.made_by == person.name)

    @staticmethod
    def _is_allowed(person: Person, cluster: str, group_ids: Sequence[str]) -> bool:
        return person.is_known and all(person.rights.may(Role.CHANGE, cluster, group_id) for group_id in group_ids)

    def _may_change(self, person: Person, cluster: str, group_ids: Sequence[str], command: Sequence[str] = ()) -> None:
        """Raises Refused. ``command``: what does it in a shell."""
        if not self._is_allowed(person, cluster, group_ids):
            raise ChangeRefused(
                403, f"Nothing was changed: {person.name} has no role that may change all of these groups."
            )
        if unseen := self._unseen(group_ids):
            raise ChangeRefused(
                403,
                f"Nothing was changed: this server leaves out {unseen} ({scope.OPTIONS}), so it neither shows nor "
                f"changes it. As a command: {shlex.join(command)}",
            )

    def _unseen(self, group_ids: Sequence[str]) -> str:
        """A group that is not watched here; "" when all are."""
        return "" if self._desk is None else next((key for key in group_ids if not self._desk.watched.matches(key)), "")


def _known(viewer: Viewer) -> Person:
    """The viewer: these routes require the right to see something."""
    assert viewer.person is not None
    return viewer.person


async def read_form(request: Request) -> Form:
    """The fields of a form that was sent. Raises Refused for what no page of this server sends."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ChangeRefused(403, "Nothing was changed: the form is from another site.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise ChangeRefused(415, "Expected a form.")
    body = b""
    try:
        async with asyncio.timeout(_SLOWEST_FORM_S):
            async for piece in request.stream():
                body += piece
                if len(body) > _LARGEST_FORM:
                    raise ChangeRefused(413, "The form is too large.")
    except TimeoutError:
        raise ChangeRefused(408, "The form was sent too slowly.") from None
    try:
        return parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise ChangeRefused(400, "That is no form.") from None


def _seen_at(path: str, **parameters: str) -> Response:
    return RedirectResponse(f"{path}?{urlencode(parameters)}", 303, HEADERS)
