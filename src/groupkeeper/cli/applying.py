"""What ``groupkeeper apply`` and ``groupkeeper undo`` have in common: asking back, waiting, the report."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from groupkeeper.cli import values
from groupkeeper.cli.clusters import Asking, UsageMistake
from groupkeeper.cli.journalling import VARIABLE, journal, way_back
from groupkeeper.cli.output import complain
from groupkeeper.cli.plan_shapes import already_rows, outcome_rows, trouble_problem
from groupkeeper.cli.plan_writing import ROWS_PER_PAGE, counted, sized
from groupkeeper.cli.reports import Page
from groupkeeper.cli.terminal import is_terminal
from groupkeeper.cli.typed import words_of
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import GroupIsActive, StalePlan
from groupkeeper.operations.plans.applying import Applied, apply_plan, wait_until_inactive
from groupkeeper.operations.plans.guard import Verdict, check
from groupkeeper.operations.plans.journal import JournalUnwritable
from groupkeeper.operations.plans.model import Plan
from groupkeeper.operations.plans.recording import UNANSWERED, Recorder
from groupkeeper.operations.times import BadDuration, parse_length

if TYPE_CHECKING:
    from groupkeeper.cli.commands import ArgumentParser


class NotJournalled(ClientError):
    """The change could not be written to the journal before it is made, so it isn't made."""


class NotConfirmed(ClientError):
    """The plan is about several groups, and nobody has confirmed how many."""


def add_applying(command: ArgumentParser) -> None:
    """The arguments that say how a plan is applied."""
    command.add_argument(
        "--confirm",
        type=values.count,
        metavar="GROUPS",
        help="how many groups are changed; needed when it is more than one, and asked for on a terminal",
    )
    command.add_argument(
        "--wait",
        type=seconds,
        metavar="TIME",
        help="wait so long until the groups have no members: seconds, or a duration such as 5m",
    )
    command.add_argument(
        "--skip-refused",
        action="store_true",
        help="apply to the groups that still fit, and leave out the others; default: all or none",
    )
    command.add_argument("--dry-run", action="store_true", help="only compare with the cluster, and show what would be")
    command.add_argument("--no-journal", action="store_true", help="don't write the change down; it cannot be undone")


def seconds(text: str) -> float:
    """A number of seconds, or a duration."""
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        duration = parse_length(text)
    except BadDuration:
        duration = None
    if duration is None or duration.seconds < 0:
        raise ArgumentTypeError(f"{text!r}: expected seconds, for example 300, or a duration such as 5m or PT5M")
    return duration.seconds + duration.nanos / 1e9


def check_confirmed(options: Namespace, plan: Plan) -> None:
    """Raise UsageMistake unless the number of groups is confirmed, or can be asked for."""
    count = len(plan.groups)
    if options.dry_run:
        return
    if options.confirm is not None and options.confirm != count:
        raise UsageMistake(f"argument --confirm: {options.confirm} is not the number of groups, which is {count}")
    if options.confirm is None and count > 1 and not _can_ask():
        raise UsageMistake(f"{count} groups would be changed: add --confirm {count}")


def ask_back(options: Namespace, plan: Plan) -> None:
    """Let the person at the terminal type how many groups are changed. Raises NotConfirmed."""
    count = len(plan.groups)
    if options.dry_run or options.confirm is not None or count < 2:
        return
    if not _can_ask():
        raise NotConfirmed(f"{count} groups would be changed: add --confirm {count}")
    complain(f"{sized(plan)}. Type the number of groups to change them: ")
    if sys.stdin.readline().strip() != str(count):
        raise NotConfirmed("nothing was changed")


def _can_ask() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


async def apply_pages(asking: Asking, plan: Plan, verdict: Verdict | None = None) -> AsyncIterator[Page]:
    """Apply a plan as the options say, and report what was done and what wasn't.

    ``verdict``: how the plan was found to fit just now, None: not looked at yet.
    """
    options = asking.options
    if options.wait is not None:
        await wait_until_inactive(asking.admin, plan, options.wait, _Waiting(asking).tell)
        verdict = None
    if options.dry_run:
        asking.progress.say("comparing with the cluster")
        verdict = verdict or await check(asking.admin, plan)
        applied = Applied(verdict.ready, verdict.already, verdict.troubles)
    else:
        asking.progress.say(f"comparing {counted(len(plan.groups), 'group')} with the cluster")
        recorder = _recorder(options)
        if recorder is not None:
            options.interrupted = ": some of it may be done; 'groupkeeper history' shows what was under way"

        def tell(done: int) -> None:
            asking.progress.count("applying to groups", done, len(plan.groups))

        try:
            applied = await apply_plan(
                asking.admin, plan, recorder, verdict=verdict, skips_refused=options.skip_refused, tell=tell
            )
        except JournalUnwritable as problem:
            raise NotJournalled(
                f"nothing was changed, as the journal cannot be written: {problem}; set {VARIABLE} to another file, "
                "or add --no-journal"
            ) from None
        if recorder is not None and recorder.failure:
            yield Page(remarks=[f"the journal lacks the outcome, so the change looks unfinished: {recorder.failure}"])
        if recorder is not None and applied.done:
            yield Page(remarks=[way_back(recorder, options)])
    for page in _report(plan, applied, options):
        yield page


def _recorder(options: Namespace) -> Recorder | None:
    where = None if options.no_journal else journal()
    return None if where is None else Recorder(where, words_of(options), None)


def _report(plan: Plan, applied: Applied, options: Namespace) -> Sequence[Page]:
    rows = [*outcome_rows(applied.done), *already_rows(plan.groups, applied.already)]
    problems = [trouble_problem(trouble) for trouble in applied.troubles]
    remarks = []
    is_stale = any(isinstance(trouble.failure, StalePlan) for trouble in applied.troubles)
    is_active = any(isinstance(trouble.failure, GroupIsActive) for trouble in applied.troubles)
    if options.dry_run:
        rows = [{**row, "result": "would be applied" if row["result"] == "applied" else row["result"]} for row in rows]
        remarks.append("nothing is changed: this was a dry run")
    elif (is_stale or is_active) and not applied.done:
        hint = "nothing was changed; "
        hint += _way_out(options, plan) if is_stale else "end the members first, or let --wait TIME wait for it"
        can_skip = len(plan.groups) > 1 and not options.skip_refused
        remarks.append(f"{hint}; --skip-refused leaves out the groups that don't fit" if can_skip else hint)
    elif any(isinstance(trouble.failure, UNANSWERED) for trouble in applied.troubles):
        remarks.append("where no answer came, it may be done or not: the same command again looks, and does the rest")
    elif not applied.done and not problems:
        remarks.append("there was nothing to do")
    pages = [Page(rows[start : start + ROWS_PER_PAGE]) for start in range(0, len(rows), ROWS_PER_PAGE)]
    return [*pages, Page(problems=problems, remarks=remarks)]


def _way_out(options: Namespace, plan: Plan) -> str:
    """What to do when the cluster isn't as the plan has it. ``undo`` makes its plan itself, each time."""
    policy = getattr(options, "if_out_of_range", None)
    if policy is None:
        return f"make the plan again: {shlex.join(plan.command)}" if plan.command else "make the plan again"
    if policy == "fail":
        return "--if-out-of-range clamp goes to the log's nearer end where the log doesn't hold the earlier offset"
    return "take back first what was changed since"


class _Waiting:
    """Says who is waited for: in the progress line of a terminal, elsewhere in a line whenever it changes."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._told = ""

    def tell(self, active: Sequence[GroupIsActive], left_s: float) -> None:
        first = f"{active[0].group_id}: {active[0]}" if active else "the brokers"
        more = f", and {counted(len(active) - 1, 'more group')}" if len(active) > 1 else ""
        text = f"waiting for {first}{more}"
        if is_terminal(sys.stderr):
            self._asking.progress.say(f"{text}; {left_s:.0f} s left")
        elif text != self._told:
            complain(f"note: {text}; {left_s:.0f} s left\n")
        self._told = text
