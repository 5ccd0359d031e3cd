"""The tools of `groupkeeper mcp`: the HTTP API for a model that a person watches.

Tools that read and plan change nothing. A plan is applied once a person, asked by the client, confirms it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from groupkeeper import __version__
from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.causes.facts import explain
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.rules.status import Status
from groupkeeper.shell import Ways, command, text, way_to
from groupkeeper.web.access.people import Person
from groupkeeper.web.actions import Actions
from groupkeeper.web.api import documents as d
from groupkeeper.web.api.answers import Answers, problem_rows
from groupkeeper.web.api.cursors import WantedPage
from groupkeeper.web.changes.change_request import BadForm
from groupkeeper.web.changes.desk import DeskStage
from groupkeeper.web.pages.cluster import Wish
from groupkeeper.web.pages.plan import notes_of, outcome_of, problems_of
from groupkeeper.web.refusals import ActionRefused, Concern

_MOST = 100
_MOST_FACTS = 50
_LONGEST_S = 30
_JOURNAL_S = 3.0
_HELP = {
    Concern.CLUSTER: "list_clusters has the clusters.",
    Concern.GROUP: "list_groups has the groups of a cluster.",
    Concern.PLAN: "list_plans has the plans; make_plan makes a new one.",
    Concern.CHANGE: "list_changes has the changes.",
}

P = ParamSpec("P")
T = TypeVar("T")


class Toolbox(NamedTuple):
    """The tools' context."""

    answers: Answers
    person: Callable[[Any], Person]
    """The user of the connection."""
    look: Callable[[str | None], Awaitable[None]]
    """Polls a cluster, or all (None), unless just polled."""
    open_admins: Mapping[str, Callable[[], Admin]]
    ways: Ways
    allows_apply: bool
    """Whether plans are applied without asking a person."""

    @property
    def actions(self) -> Actions:
        return self.answers.actions


Asked = Context[Toolbox, Any]
Limit = Annotated[int, Field(ge=1, le=_MOST, description="The most rows.")]
Cursor = Annotated[str | None, Field(max_length=4000, description="`next` of the page before.")]


class DescribedGroup(d.GroupDetail):
    """A group with its first partitions and members."""

    offsets: list[d.OffsetRow]
    offsets_in_all: int
    assigned_to: list[d.MemberRow]


class CauseRow(d.Document):
    """A row of `groups why`."""

    cause: str
    topic: str | None
    partition: int | None
    fact: str
    command: str
    offset: int | None


class Causes(d.Document):
    """The first cause is the reason."""

    group: str
    waiting: int
    """Records that wait."""
    facts: list[CauseRow]
    problems: list[d.ProblemRow]


class Confirmation(d.Document):
    """A person's answer to the question whether to apply a plan."""

    apply: bool = Field(description="Apply the plan now")


def _answering_errors(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Wraps a tool, so that it answers errors with their reason, and what to do instead."""

    @functools.wraps(tool)
    async def answered(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return await tool(*arguments, **named)
        except ActionRefused as refused:
            raise ToolError(f"{refused.reason} {_HELP.get(refused.about, '')}".strip()) from None
        except (BadForm, KafkaError, ClientError) as problem:
            raise ToolError(f"{type(problem).__name__}: {problem}") from None

    return answered


def _of(asked: Asked) -> tuple[Toolbox, Person]:
    toolbox = asked.request_context.lifespan_context
    return toolbox, toolbox.person(asked.request_context.request)


async def _looked(asked: Asked, cluster: str | None) -> tuple[Toolbox, Person]:
    toolbox, person = _of(asked)
    await toolbox.look(cluster)
    return toolbox, person


@_answering_errors
async def list_clusters(asked: Asked) -> d.ClusterList:
    """The clusters: how many groups have which status, with the sums of lag."""
    toolbox, person = await _looked(asked, None)
    return toolbox.answers.clusters(person)


@_answering_errors
async def list_groups(
    asked: Asked, cluster: str, q: str = "", status: Status | None = None, limit: Limit = 50, cursor: Cursor = None
) -> d.GroupList:
    """The groups of a cluster by name, with status, reason, lag and trend. `q`: a part of the name."""
    toolbox, person = await _looked(asked, cluster)
    wish, page = Wish(q, status or ""), WantedPage(limit, cursor)
    return await asyncio.to_thread(toolbox.answers.groups, person, cluster, wish, page)


@_answering_errors
async def describe_group(asked: Asked, cluster: str, group: str, limit: Limit = 20) -> DescribedGroup:
    """A group with its first partitions (offsets, lag, status of each) and members."""
    toolbox, person = await _looked(asked, cluster)
    answers, page = toolbox.answers, WantedPage(limit)
    found = answers.group(person, cluster, group)
    members = answers.members(person, cluster, group, page).members
    offsets = answers.offsets(person, cluster, group, page).offsets
    return DescribedGroup(**found.model_dump(), offsets=offsets, offsets_in_all=found.partitions, assigned_to=members)


@_answering_errors
async def explain_group(
    asked: Asked, cluster: str, group: str, interval_s: Annotated[float, Field(ge=0.1, le=_LONGEST_S)] = 10
) -> Causes:
    """Why a group does not move: two looks at the cluster, and facts, the reason first, each with a command that
    helps. Values of records are never shown.
    """
    toolbox, person = await _looked(asked, cluster)
    toolbox.answers.actions.group(person, cluster, group)
    async with toolbox.open_admins[cluster]() as admin:
        found = await explain(admin, group, interval_s=interval_s)
    facts = [
        CauseRow(
            cause=str(fact.cause),
            topic=fact.tp and fact.tp.topic,
            partition=fact.tp and fact.tp.partition,
            fact=fact.text,
            command=text(command(way_to(cluster, toolbox.ways), fact.words, fact.names)),
            offset=fact.offset,
        )
        for fact in found.facts[:_MOST_FACTS]
    ]
    return Causes(group=group, waiting=found.waiting, facts=facts, problems=problem_rows(found.problems))


@_answering_errors
async def make_plan(asked: Asked, wanted: d.PlanRequest, limit: Limit = 50) -> d.PlanDetail:
    """Plan to reset, clone or delete a group's offsets: before and after of each partition. Nothing is changed."""
    toolbox, person = await _looked(asked, wanted.cluster)
    return toolbox.answers.plan(await toolbox.actions.plan(person, wanted.form()), WantedPage(limit))


@_answering_errors
async def plan_undo(asked: Asked, cluster: str, change_id: str, limit: Limit = 50) -> d.PlanDetail:
    """Plan the undo of a change; `apply_plan` applies it. Nothing is changed."""
    toolbox, person = await _looked(asked, cluster)
    return toolbox.answers.plan(await toolbox.actions.undo(person, cluster, change_id), WantedPage(limit))


@_answering_errors
async def list_plans(asked: Asked, limit: Limit = 20, cursor: Cursor = None) -> d.PlanList:
    """The plans that were made here, the latest first."""
    toolbox, person = _of(asked)
    return toolbox.answers.plans(person, WantedPage(limit, cursor))


@_answering_errors
async def show_plan(asked: Asked, plan_id: str, limit: Limit = 50, cursor: Cursor = None) -> d.PlanDetail:
    """A plan with its partitions, and its outcome once it was applied."""
    toolbox, person = _of(asked)
    return toolbox.answers.plan(toolbox.actions.entry(person, plan_id), WantedPage(limit, cursor))


@_answering_errors
async def list_changes(asked: Asked, group: str = "", limit: Limit = 20, cursor: Cursor = None) -> d.HistoryList:
    """The journal: changes that were made, the latest first. Their ids are for `plan_undo`."""
    toolbox, person = await _looked(asked, None)
    await toolbox.actions.journal().refresh(_JOURNAL_S)
    return await toolbox.answers.history(person, group, WantedPage(limit, cursor))


@_answering_errors
async def _confirmed(asked: Asked, plan_id: str) -> Confirmation | Elicit[Confirmation]:
    toolbox, person = _of(asked)
    entry = toolbox.actions.entry(person, plan_id)
    if toolbox.allows_apply:
        return Confirmation(apply=True)
    known = asked.client_capabilities
    if known is None or known.elicitation is None:
        raise ToolError(
            "Nothing was changed: this client cannot ask a person to confirm (elicitation). A person can run "
            f"{text(entry.plan.command)!r} and apply that plan, or start groupkeeper mcp with --allow-apply."
        )
    names = ", ".join(entry.group_ids[:3]) + (" …" if len(entry.group_ids) > 3 else "")
    changes = sum(len(group.changes) for group in entry.plan.groups)
    question = f"Apply the plan {entry.id} ({entry.plan.kind}) of {names} on {entry.cluster}: {changes} partitions?"
    return Elicit(" ".join([question, *notes_of(entry)]), Confirmation)


@_answering_errors
async def apply_plan(
    asked: Asked, plan_id: str, answer: Annotated[ElicitationResult[Confirmation], Resolve(_confirmed)]
) -> d.PlanDetail:
    """Apply a plan, if all of it still fits the cluster, at most once. A person is asked first."""
    toolbox, person = _of(asked)
    if not (isinstance(answer, AcceptedElicitation) and answer.data.apply):
        raise ToolError("Nothing was changed: the person did not confirm. show_plan has the plan, to talk about it.")
    entry = toolbox.actions.entry(person, plan_id)
    entry = await toolbox.actions.apply(person, plan_id, str(len(entry.group_ids)))
    if entry.stage is DeskStage.PLANNED:
        problems = problems_of(entry)
        why = "; ".join(f"{each.group}: {each.message}" for each in problems[:5])
        raise ToolError(f"{outcome_of(entry, problems)[1]} {why} make_plan makes a new plan.")
    return toolbox.answers.plan(entry, WantedPage(50))


def server_of(toolbox: Toolbox) -> MCPServer[Toolbox]:
    """The server, for any transport."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[Toolbox]) -> AsyncIterator[Toolbox]:
        yield toolbox

    server = MCPServer[Toolbox](
        "groupkeeper",
        version=__version__,
        instructions="Kafka consumer groups. Look (list_groups), explain (explain_group), plan (make_plan), show the "
        "plan to the person, then apply_plan. A change is taken back with plan_undo and apply_plan.",
        lifespan=lifespan,
        log_level="WARNING",
    )
    looking = (list_clusters, list_groups, describe_group, explain_group, list_plans, show_plan, list_changes)
    for tool in (*looking, make_plan, plan_undo):
        server.add_tool(tool, annotations=ToolAnnotations(read_only_hint=tool in looking, destructive_hint=False))
    server.add_tool(apply_plan, annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
    return server
