"""`groupkeeper apply`: applies a plan if the state from which it was made has not changed."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import AsyncIterator
from functools import partial

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.execution import add_creating, can_ask, check_confirmed, show_first
from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.plans import outcome
from groupkeeper.cli.plans.plan_options import STANDARD_OUTPUT, official_commands
from groupkeeper.cli.plans.schemas import OUTCOMES
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.document import BadPlanFile
from groupkeeper.operations.plans.model import Plan
from groupkeeper.operations.share_changes import SHARE_KINDS, ShareAdmin


def plan_of(path: str) -> Plan:
    """The plan in a file; `-` is standard input."""
    try:
        return document.read(values.text_of(path, is_standard_input=path == STANDARD_OUTPUT))
    except BadPlanFile as problem:
        raise ArgumentTypeError(f"{path!r}: {problem}") from None


def _add_arguments(command: ArgumentParser) -> None:
    command.add_argument("plan", type=plan_of, metavar="FILE", help="the plan; -: standard input")
    outcome.add_applying(command, "carry the plan out")
    add_creating(command, "let the plan make")
    command.add_argument(
        "--show-command", action="store_true", help="only print the official tool's commands that do the same"
    )
    add_cluster(command)


def _report(options: Namespace) -> ClusterReport:
    if options.show_command:
        if options.output != "table":
            raise UsageMistake(f"argument --show-command: not allowed with --output {options.output}")
        return ClusterReport(OUTCOMES, _commands, is_plain=True)
    return ClusterReport(OUTCOMES, _pages, more={"executed": False})


async def _commands(session: ClusterSession) -> AsyncIterator[Page]:
    plain, lacking = official_commands(session.options, session.options.plan)
    yield Page(plain=plain, notes=lacking)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options, plan = session.options, session.options.plan
    if plan.kind in SHARE_KINDS:
        session = session._replace(admin=ShareAdmin(session.admin))
    fit = await outcome.compared_now(session, plan)
    if options.confirm is not None or not can_ask():
        count = outcome.left_to_change(plan, fit)
        await check_confirmed(session, count, of=len(plan.groups))  # before it waits for members
    if options.wait is not None:
        fit = await outcome.compared(session, plan)
    would_be = outcome.foreseen(options, fit)
    notes = consequences(would_be.done, is_share=plan.kind in SHARE_KINDS)
    if would_be.done:
        rows = outcome.rows_of(plan, would_be, is_done=False)
        count = len(would_be.done)
        show = partial(show_first, session, OUTCOMES, rows, notes, map(trouble_problem, would_be.troubles))
        if await check_confirmed(session, count, of=len(plan.groups), show=show):
            fit = await outcome.compared(session, plan)
    yield Page(notes=notes)
    async for page in outcome.apply_pages(session, plan, fit):
        yield page


APPLY = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    "Compare a plan with the cluster, and with --execute carry it out. It is refused when offsets or partitions "
    "have changed since the plan was made, logs lack a new offset, or a group has members. The change is written to "
    "the journal before it is made, and read back afterwards.",
    """\
  groupkeeper apply plan.json
  groupkeeper apply plan.json --execute
  groupkeeper apply plan.json --execute --wait 5m --confirm 12""",
)
