"""The routes under `/api/v1/`. The OpenAPI document is made of them and of the types in `documents`.

A token in the header, or a trusted proxy, identifies the user; cookies do not count, so that no page of another site
acts for a reader. Names are in the query, as Kafka allows any character in group names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groupkeeper import __version__
from groupkeeper.client.admin.types import GroupState, GroupType
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.problems import Problem
from groupkeeper.rules.status import Status
from groupkeeper.web.access.people import Access, Person
from groupkeeper.web.answers import HEADERS
from groupkeeper.web.api import documents as d
from groupkeeper.web.api.answers import Answers, problem_rows
from groupkeeper.web.api.cursors import MOST, USUAL, WantedPage
from groupkeeper.web.change_routes import read_body
from groupkeeper.web.changes.change_request import BadForm
from groupkeeper.web.changes.desk import DeskEntry, DeskStage
from groupkeeper.web.pages.cluster import Wish
from groupkeeper.web.pages.plan import outcome_of, problems_of
from groupkeeper.web.refusals import ActionRefused, Concern

PREFIX = "/api/v1"
_LONGEST = 2000
_PROBLEM = "application/problem+json"
_TITLES = {400: "Not understood", 401: "Not logged in", 403: "Not allowed", 404: "Not found", 405: "Not allowed here",
           408: "Too slow", 409: "Not done", 413: "Too large", 415: "Not JSON", 422: "Not understood",
           502: "No answer", 503: "Not known now"}  # fmt: skip
_HELP = {
    Concern.CLUSTER: f"GET {PREFIX}/clusters lists the clusters that you may see, with why one cannot be reached.",
    Concern.GROUP: f"GET {PREFIX}/groups?cluster=CLUSTER lists the groups that you may see.",
    Concern.TOPIC: f"GET {PREFIX}/topics?cluster=CLUSTER lists the topics of groups that you may see.",
    Concern.PLAN: f"GET {PREFIX}/plans lists the plans; POST {PREFIX}/plans makes a new one.",
    Concern.CHANGE: f"GET {PREFIX}/changes lists the changes that you may see.",
    Concern.JOURNAL: "Start the server with a journal, and see that its file or topic can be read and written.",
    Concern.SERVER: "Ask whoever runs the server for its options, or use the command lines.",
    Concern.LOGIN: "Send the header Authorization: Bearer TOKEN, with a token of the server's --token-file.",
    Concern.ROLE: "Ask whoever runs the server for a role in the file of --roles.",
    Concern.REQUEST: f"GET {PREFIX}/openapi.json describes all requests.",
}

_token = HTTPBearer(auto_error=False, description="A token of the server's --token-file.")


class _Unfit(ActionRefused):
    """A plan was not applied because it no longer fits the cluster."""

    def __init__(self, entry: DeskEntry) -> None:
        self.problems = problems_of(entry)
        is_active = any(isinstance(each.failure, GroupIsActive) for each in entry.troubles)
        self.help = "Stop the members of the group, and apply the plan again." if is_active else ""
        super().__init__(409, outcome_of(entry, self.problems)[1], Concern.PLAN)


class Asking(NamedTuple):
    """The person who asks, and the source of answers."""

    person: Person
    answers: Answers


def _asking(request: Request, _: Annotated[object, Depends(_token)]) -> Asking:
    access: Access = request.app.state.access
    person = access.person(request, has_session=False)
    if person is None:
        raise ActionRefused(401, "The request has no token that this server knows.", Concern.LOGIN)
    taken = get_flat_params(request.scope["route"].dependant)
    known = {each.alias for each in taken if isinstance(each.field_info, params.Query)}
    if unknown := request.query_params.keys() - known:  # a wrong name would be taken for all rows
        names = ", ".join(sorted(unknown))
        text = f"{names}: not known here; known: {', '.join(sorted(known)) or 'none'}."
        raise ActionRefused(422, text, Concern.REQUEST)
    answers: Answers = request.app.state.answers
    return Asking(person, answers)


def _page(
    limit: Annotated[int, Query(ge=1, le=MOST, description="The most rows.")] = USUAL,
    cursor: Annotated[str | None, Query(max_length=4000, description="`next` of the page before.")] = None,
) -> WantedPage:
    return WantedPage(limit, cursor)


AskedBy = Annotated[Asking, Depends(_asking)]
APage = Annotated[WantedPage, Depends(_page)]
Name = Annotated[str, Query(max_length=1000)]

router = APIRouter()
"""The API's routes. Functions that are no coroutines look through all groups, on threads."""


@router.get("/clusters")
async def list_clusters(asking: AskedBy) -> d.ClusterList:
    """The clusters, each with the sums of the groups that you may see."""
    return asking.answers.clusters(asking.person)


@router.get("/groups")
def list_groups(
    asking: AskedBy,
    page: APage,
    cluster: Name,
    q: Annotated[str, Query(max_length=300, description="Only groups with this text in their name.")] = "",
    status: Status | None = None,
    type: GroupType | None = None,  # noqa: A002
    state: GroupState | None = None,
) -> d.GroupList:
    """The groups of a cluster by their names, with status, lag, trend and reason."""
    wish = Wish(q, status or "", type or "", state or "")
    return asking.answers.groups(asking.person, cluster, wish, page)


@router.get("/group")
async def describe_group(asking: AskedBy, cluster: Name, group: Name) -> d.GroupDetail:
    """One group."""
    return asking.answers.group(asking.person, cluster, group)


@router.get("/offsets")
async def list_offsets(asking: AskedBy, page: APage, cluster: Name, group: Name) -> d.OffsetList:
    """The partitions of a group."""
    return asking.answers.offsets(asking.person, cluster, group, page)


@router.get("/members")
async def list_members(asking: AskedBy, page: APage, cluster: Name, group: Name) -> d.MemberList:
    """The members of a group."""
    return asking.answers.members(asking.person, cluster, group, page)


@router.get("/topics")
def list_topics(
    asking: AskedBy, page: APage, cluster: Name, q: Annotated[str, Query(max_length=300)] = ""
) -> d.TopicList:
    """The topics that groups have committed offsets for, or that members read."""
    return asking.answers.topics(asking.person, cluster, q, page)


@router.get("/alerts")
async def list_alerts(asking: AskedBy, page: APage) -> d.AlertList:
    """The alerts that fire."""
    return asking.answers.alerts(asking.person, page)


@router.get("/changes")
async def list_changes(
    asking: AskedBy, page: APage, group: Annotated[str, Query(max_length=1000, description="Only of this group.")] = ""
) -> d.HistoryList:
    """The journal: changes that were made, the latest first."""
    return await asking.answers.history(asking.person, group, page)


@router.get("/changes/{change_id}")
async def show_change(asking: AskedBy, page: APage, change_id: str) -> d.RecordedDetail:
    """One change with its partitions."""
    return await asking.answers.change(asking.person, change_id, page)


@router.post("/changes/{change_id}/undo", status_code=201)
async def plan_undo(asking: AskedBy, page: APage, change_id: str, wanted: d.UndoRequest) -> d.PlanDetail:
    """Plan the undo of a change. Nothing is changed before that plan is applied."""
    return asking.answers.plan(await asking.answers.actions.undo(asking.person, wanted.cluster, change_id), page)


@router.get("/plans")
async def list_plans(asking: AskedBy, page: APage) -> d.PlanList:
    """The plans on the server, the latest first. They are lost when it ends; the journal is not."""
    return asking.answers.plans(asking.person, page)


@router.post("/plans", status_code=201)
async def make_plan(asking: AskedBy, page: APage, wanted: d.PlanRequest) -> d.PlanDetail:
    """Plan a change of a group. Nothing is changed."""
    return asking.answers.plan(await asking.answers.actions.plan(asking.person, wanted.form()), page)


@router.post("/sweeps", status_code=201)
async def plan_sweep(asking: AskedBy, page: APage, wanted: d.SweepRequest) -> d.PlanDetail:
    """Plan to delete unused offsets, or to keep those that would expire. Nothing is changed."""
    return asking.answers.plan(await asking.answers.actions.sweep(asking.person, wanted.form()), page)


@router.get("/plans/{plan_id}")
async def show_plan(asking: AskedBy, page: APage, plan_id: str) -> d.PlanDetail:
    """A plan with its partitions, and its outcome once it was applied."""
    return asking.answers.plan(asking.answers.actions.entry(asking.person, plan_id), page)


@router.post("/plans/{plan_id}/apply")
async def apply_plan(asking: AskedBy, page: APage, plan_id: str, wanted: d.ApplyRequest) -> d.PlanDetail:
    """Apply a plan if all of it fits, at most once however often it is requested. 409: nothing was changed."""
    confirmed = "" if wanted.confirm is None else str(wanted.confirm)
    entry = await asking.answers.actions.apply(asking.person, plan_id, confirmed)
    if entry.stage is DeskStage.PLANNED:
        raise _Unfit(entry)
    return asking.answers.plan(entry, page)


def api_of(answers: Answers, access: Access) -> FastAPI:
    """The application, to be mounted at `PREFIX`."""
    app = FastAPI(
        title="groupkeeper",
        summary="Kafka consumer groups: what the pages of `groupkeeper serve` show, and plans to change them.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        root_path_in_servers=False,
        servers=[{"url": PREFIX}],
        responses={"default": {"model": d.ProblemDetail, "description": "Refused; RFC 9457."}},
        generate_unique_id_function=lambda route: route.name,
    )
    described = app.openapi

    def openapi() -> dict[str, Any]:
        document = described()
        for methods in document["paths"].values():
            for operation in methods.values():
                content = operation["responses"]["default"]["content"]
                content |= {_PROBLEM: content.pop("application/json", content.get(_PROBLEM))}
        return document

    app.openapi = openapi  # type: ignore[method-assign]
    app.state.answers, app.state.access = answers, access
    app.include_router(router)
    app.add_middleware(_Bounded)
    for failure, handler in {
        ActionRefused: _refused,
        BadForm: _bad_form,
        RequestValidationError: _invalid,
        HTTPException: _missing,
    }.items():
        app.add_exception_handler(failure, handler)
    return app


class _Bounded:
    """Checks bodies as those of forms: from this site only, JSON, not too long, and not too slow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        if scope["type"] != "http" or scope["method"] != "POST":
            return await self._app(scope, receive, with_headers)
        request = Request(scope, receive)
        try:
            unread = [await read_body(request, "application/json", "JSON")]
        except ActionRefused as refused:
            return await (await _refused(request, refused))(scope, receive, with_headers)

        async def again() -> Message:
            if not unread:
                return await receive()
            return {"type": "http.request", "body": unread.pop(), "more_body": False}

        return await self._app(scope, again, with_headers)


async def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, ActionRefused)
    problems, help_ = (refused.problems, refused.help) if isinstance(refused, _Unfit) else ((), "")
    return _refusal(request, refused.status, refused.reason, refused.about, problems, help_=help_)


async def _bad_form(request: Request, problem: Exception) -> Response:
    return _refusal(request, 422, str(problem), Concern.REQUEST)


async def _invalid(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    for each in problem.errors():
        if each["type"] == "json_invalid":
            text = f"The body is no JSON: {each['ctx']['error']} at character {each['loc'][1]}"
            return _refusal(request, 400, text, Concern.REQUEST)
    texts = (f"{'.'.join(map(str, each['loc'][1:])) or each['loc'][0]}: {each['msg']}" for each in problem.errors())
    return _refusal(request, 422, "; ".join(texts), Concern.REQUEST)


async def _missing(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    path = f"{request.method} {request.url.path}"
    reason = {404: f"There is no {path}.", 405: f"{path} is not possible."}.get(problem.status_code, problem.detail)
    return _refusal(request, problem.status_code, reason, Concern.REQUEST, headers=problem.headers)


def _refusal(
    request: Request,
    status: int,
    reason: str,
    about: Concern,
    problems: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
    help_: str = "",
) -> Response:
    told = d.ProblemDetail(
        title=_TITLES.get(status, "Refused"),
        status=status,
        detail=reason.encode("utf-8", "replace").decode()[:_LONGEST],
        about=about.value,
        help=help_ or _HELP[about],
        problems=problem_rows(problems),
    )
    login = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response(told.model_dump_json(), status, {**login, **(headers or {})}, _PROBLEM)
