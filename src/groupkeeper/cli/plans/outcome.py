"""Common parts of `groupkeeper apply` and `groupkeeper undo`: confirming, waiting, the report."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence

from groupkeeper import shell
from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterSession
from groupkeeper.cli.framework.commands import ArgumentParser
from groupkeeper.cli.framework.execution import WOULD_BE, add_executing, not_yet
from groupkeeper.cli.framework.journals import VARIABLE, journal, way_back
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.reports import Page, Row
from groupkeeper.cli.framework.terminal import is_terminal
from groupkeeper.cli.framework.typed import words_of
from groupkeeper.cli.plans.plan_options import pages_with
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import GroupIsActive, StalePlan
from groupkeeper.operations.plans.consequences import trouble_problem
from groupkeeper.operations.plans.execution import Applied, apply_plan, wait_until_inactive
from groupkeeper.operations.plans.fit import PlanFit, check
from groupkeeper.operations.plans.journal import JournalUnwritable
from groupkeeper.operations.plans.model import Plan
from groupkeeper.operations.plans.recorder import UNANSWERED, Recorder
from groupkeeper.operations.reporting.plan_rows import already_rows, outcome_rows
from groupkeeper.rules.words import counted

_UNCHANGED = "undo restores only offsets that are still as the change left them"
_OUTSIDE = (
    "where the earlier offset is outside of the log, --if-out-of-range clamp uses the log's nearer end, and "
    "--if-out-of-range exact commits that offset anyway"
)
_MEMBERS_FIRST = "stop the members first, or add --wait TIME to wait until they have left"

_NOTHING = {
    (False, False): "there was nothing to do",
    (False, True): "there was nothing to do",
    (True, False): "nothing of the change is there: --execute writes to the journal that it is undone",
    (True, True): "nothing of the change was there: the journal has it as undone now",
}


class NotJournalled(ClientError):
    """The coming change could not be journalled, so it isn't made."""


def add_applying(command: ArgumentParser, deed: str) -> None:
    """Adds the options for applying a plan. `deed`: what applying does, for the help."""
    add_executing(command, deed)
    command.add_argument(
        "--wait", type=values.wait_s, help="wait at most this long until the groups have no members: 5m"
    )
    command.add_argument(
        "--skip-refused",
        action="store_true",
        help="apply to the groups that still fit, and leave out the others; default: all or none",
    )
    command.add_argument(
        "--no-journal", action="store_true", help="don't write the change to the journal; it cannot be undone"
    )


async def compared(session: ClusterSession, plan: Plan) -> PlanFit:
    """Compares a plan with the cluster, after waiting for groups to become empty if --wait is given."""
    if session.options.wait is not None:
        await wait_until_inactive(session.admin, plan, session.options.wait, _WaitingLine(session).tell)
    return await compared_now(session, plan)


async def compared_now(session: ClusterSession, plan: Plan) -> PlanFit:
    """Compares a plan with the cluster now, without waiting for members to leave."""
    options = session.options
    session.progress.say(f"comparing {counted(len(plan.groups), 'group')} with the cluster")
    is_exact = getattr(options, "if_out_of_range", None) == "exact"
    return await check(session.admin, plan, creates=getattr(options, "create", True), takes_any=is_exact)


def foreseen(options: Namespace, fit: PlanFit) -> Applied:
    """The changes that would be applied: none if a group doesn't fit, unless --skip-refused leaves such groups out."""
    ready = () if fit.troubles and not options.skip_refused else fit.ready
    return Applied(ready, fit.already, fit.troubles)


def left_to_change(plan: Plan, fit: PlanFit) -> int:
    """The number of groups that are not as planned, including those that the plan doesn't fit now."""
    already = set(fit.already)
    return sum(any((group.group_id, tp) not in already for tp in group.changes) for group in plan.groups)


def rows_of(plan: Plan, applied: Applied, *, is_done: bool) -> list[Row]:
    """The changes that were made, or would be, as rows of OUTCOMES."""
    rows = list(outcome_rows(applied.done))
    if not is_done:
        rows = [{**row, "result": f"{WOULD_BE}{row['result']}"} for row in rows]
    return [*rows, *already_rows(plan.groups, applied.already)]


async def apply_pages(session: ClusterSession, plan: Plan, fit: PlanFit, earlier: str = "") -> AsyncIterator[Page]:
    """Apply a plan with --execute, and report applied and other changes; without it, those that would be applied.
    `earlier`: of an undo, how to undo an earlier change.
    """
    options = session.options
    applied = foreseen(options, fit)
    if options.execute:
        where = None if options.no_journal else journal(options)
        recorder = None if where is None else Recorder(where, words_of(options), None)
        if recorder is not None:
            options.interrupted = ": some of the change may be made; 'groupkeeper history' shows the change"

        def tell(done: int) -> None:
            session.progress.count("applying to groups", done, len(fit.ready))

        try:
            applied = await apply_plan(
                session.admin, plan, recorder, fit=fit, skips_refused=options.skip_refused, tell=tell
            )
        except JournalUnwritable as problem:
            raise NotJournalled(
                f"nothing was changed, as the journal cannot be written: {problem}; set {VARIABLE} to another file, "
                "or add --no-journal"
            ) from None
        if recorder is not None and recorder.failure:
            yield Page(notes=[f"the journal lacks the outcome, so the change looks unfinished: {recorder.failure}"])
        yield Page(notes=way_back(recorder, options, has_changed=bool(applied.done)))
    for page in _report(plan, applied, options, earlier):
        yield page


def _report(plan: Plan, applied: Applied, options: Namespace, earlier: str) -> Sequence[Page]:
    rows = rows_of(plan, applied, is_done=options.execute)
    problems = [trouble_problem(trouble) for trouble in applied.troubles]
    notes = []
    stale = [trouble.failure for trouble in applied.troubles if isinstance(trouble.failure, StalePlan)]
    is_active = any(isinstance(trouble.failure, GroupIsActive) for trouble in applied.troubles)
    if (stale or is_active) and not applied.done:
        hint = "nothing was changed; "
        hint += _way_out(options, plan, stale, earlier) if stale else _MEMBERS_FIRST
        can_skip = len(plan.groups) > 1 and not options.skip_refused
        notes.append(f"{hint}; --skip-refused leaves out the groups that don't fit" if can_skip else hint)
    elif not options.execute and applied.done:
        notes.append(not_yet(len(applied.done)))
    elif any(isinstance(trouble.failure, UNANSWERED) for trouble in applied.troubles):
        notes.append(
            "where no reply came, the change may or may not have been made: "
            "run the same command again; it compares, and makes the rest"
        )
    elif not applied.done and not problems:
        notes.append(_nothing(options, plan, applied, earlier))
    return [*pages_with(rows), Page(problems=problems, notes=notes, more={"executed": options.execute})]


def _nothing(options: Namespace, plan: Plan, applied: Applied, earlier: str) -> str:
    """The note where no offset is to change. Of an undo it names an earlier change: this one stays as it is in the
    journal, and so the next `undo` without an id would choose it again.
    """
    said = _NOTHING[plan.settles, options.execute]
    if not earlier or plan.settles:
        return said
    if applied.already and options.if_out_of_range in ("fail", "exact"):  # else some are left out, or clamped
        said = f"{said}: all that {plan.undoes} changed is as before it already"
    return f"{said}; {earlier}"


def _way_out(options: Namespace, plan: Plan, stale: Sequence[StalePlan], earlier: str) -> str:
    """The advice if the plan no longer fits the cluster. `undo` makes its own plan each time."""
    if not earlier:
        return f"make the plan again: {shell.text(plan.command)}" if plan.command else "make the plan again"
    ways = [_OUTSIDE] if any(one.is_outside for one in stale) else []
    if not all(one.is_outside for one in stale):
        # Without an id it is the last change that isn't undone.
        later = ": if later changes moved them, undo those first" if options.id else ""
        ways += [f"{_UNCHANGED}{later}", earlier]
    return "; ".join(ways)


class _WaitingLine:
    """Shows which groups are waited for: in the progress line of a terminal, elsewhere in a new line at each change."""

    def __init__(self, session: ClusterSession) -> None:
        self._asking = session
        self._shown = ""

    def tell(self, active: Sequence[GroupIsActive], left_s: float) -> None:
        first = f"{active[0].group_id}: {active[0]}" if active else "the brokers"
        more = f", and {counted(len(active) - 1, 'more group')}" if len(active) > 1 else ""
        text = f"waiting for {first}{more}"
        if is_terminal(sys.stderr):
            self._asking.progress.say(f"{text}; {left_s:.0f} s left")
        elif text != self._shown:
            complain(f"note: {text}; {left_s:.0f} s left\n")
        self._shown = text
