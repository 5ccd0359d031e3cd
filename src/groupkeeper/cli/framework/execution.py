"""The rule of all commands that change offsets or groups: without `--execute`, they only show the change."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence

from groupkeeper.cli.framework import context_files, values
from groupkeeper.cli.framework.clusters import ClusterSession
from groupkeeper.cli.framework.commands import ArgumentParser
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.framework.render import WIDTH, TableWriter, note_text, problem_text
from groupkeeper.cli.framework.reports import Page, Problem, Row, Schema
from groupkeeper.cli.framework.terminal import columns_of, has_colour, is_terminal
from groupkeeper.client.addresses import Address
from groupkeeper.client.admin.types import GroupState
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.model import Plan
from groupkeeper.operations.reporting.plan_rows import ALREADY
from groupkeeper.rules.words import counted

WOULD_BE = "would be "
"""The beginning of results that are not yet made."""

_MOST_ROWS = 40


class NotConfirmed(ClientError):
    """The confirmed number of groups is wrong, or missing."""


_CONFIRM_SEVERAL = (
    "the number of groups that you expect to change: if it differs, nothing is changed; required with --execute for "
    "several groups unless each is named (at a terminal the command asks instead)"
)
_CONFIRM_ONE = (
    "the number of groups that you expect to change, which is 1: with any other number nothing is changed; never needed"
)


def add_executing(command: ArgumentParser, deed: str, *, is_for_one: bool = False, counts_groups: bool = True) -> None:
    """Adds the options to execute and confirm. `deed`: the change, for the help. `is_for_one`: the command changes
    one group only. `counts_groups` False: it changes no groups.
    """
    does = command.add_mutually_exclusive_group()
    does.add_argument("--execute", action="store_true", help=f"{deed}; without it, only show what would be done")
    does.add_argument("--dry-run", action="store_true", help="only show what would be done; the default")
    if counts_groups:
        command.add_argument(
            "--confirm", type=values.count, metavar="GROUPS", help=_CONFIRM_ONE if is_for_one else _CONFIRM_SEVERAL
        )
    command.add_argument(
        "--confirm-context",
        metavar="NAME",
        help="the name of the context that you expect: in any other context nothing is done; required with --execute "
        "in a protected context (at a terminal the command asks instead)",
    )


def add_creating(command: ArgumentParser, deed: str) -> None:
    """Adds the option to create groups."""
    command.add_argument("--create", action="store_true", help=f"also {deed} groups that don't exist")


async def check_confirmed(
    session: ClusterSession,
    count: int,
    *,
    of: int | None = None,
    are_named: bool = False,
    show: Callable[[], None] | None = None,
) -> bool:
    """Raises NotConfirmed unless the number of groups and the context are confirmed, by option or at a terminal prompt.

    True: there was a prompt, so an earlier comparison with the cluster may be out of date. `are_named`: every group
    was named on the command line, so their number needs no confirmation. `of`: the number of groups in the plan, some
    of which may be changed already: --confirm accepts it, too, so that an interrupted command can be repeated. `show`
    is called before the prompt. If no group is left to change, nothing has to be confirmed.
    """
    if not count:
        return False
    confirmed = session.options.confirm
    if confirmed is not None and confirmed not in (count, of):
        text = f"argument --confirm: the number of groups is {count}, not {confirmed}; nothing was changed"
        raise NotConfirmed(text)
    is_shown = confirmed is None and await _check_count(session, count, are_named, show)
    return await check_context(session, None if is_shown else show) or is_shown


async def _check_count(session: ClusterSession, count: int, are_named: bool, show: Callable[[], None] | None) -> bool:
    options = session.options
    if not options.execute or count < 2 or are_named:
        return False
    if not can_ask():
        raise NotConfirmed(f"{count} groups would be changed: add --confirm {count}; nothing was changed")
    if show is not None:
        show()
    await ask(session, count)
    return True


async def check_context(session: ClusterSession, show: Callable[[], None] | None = None) -> bool:
    """Raise NotConfirmed unless a protected context is confirmed before anything is changed. True: there was a prompt.

    There is at most one prompt. `show` is called before it.
    """
    options = session.options
    confirmed, name = options.confirm_context, session.protected or await _protecting(session)
    if confirmed is not None and confirmed != (name or session.context):
        where = f"the context is {name or session.context}" if name or session.context else "no context is used"
        raise NotConfirmed(f"argument --confirm-context: {confirmed} does not match: {where}; nothing was changed")
    if not options.execute or name is None or confirmed == name:
        return False
    if not can_ask():
        raise NotConfirmed(f"context {name} is protected: add --confirm-context {name}; nothing was changed")
    if show is not None:
        show()
    await _ask(session, f"Context {name} is protected. Type its name to make the change", name)
    options.confirm_context = name
    return True


async def _protecting(session: ClusterSession) -> str | None:
    """The protected context that has one of the cluster's brokers, by whatever address the cluster was reached."""
    if not session.options.execute or not context_files.names():
        return None
    return context_files.protecting(
        str(Address(node.host, node.port)) for node in (await session.admin.describe_cluster()).nodes
    )


def can_ask() -> bool:
    """Whether a prompt is possible: standard input and standard error are terminals."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


async def ask(session: ClusterSession, count: int) -> None:
    """Asks at the terminal how many groups are changed. Raises NotConfirmed for another answer."""
    await _ask(session, f"Type the number of groups, {count}, to change them", str(count))


async def _ask(session: ClusterSession, question: str, answer: str) -> None:
    """Raise NotConfirmed unless the answer is typed."""
    with session.progress.paused():
        complain(f"{question}, anything else to cancel: ")
        if (await _typed()).strip() != answer:
            raise NotConfirmed("nothing was changed")


async def _typed() -> str:
    """The next line typed at the terminal. Waiting in the event loop lets Ctrl-C end the command at once."""
    loop = asyncio.get_running_loop()
    is_there = asyncio.Event()
    with contextlib.suppress(NotImplementedError):  # on Windows
        loop.add_reader(sys.stdin, is_there.set)
        try:
            await is_there.wait()
        finally:
            loop.remove_reader(sys.stdin)
    return sys.stdin.readline()


def show_first(
    session: ClusterSession,
    schema: Schema,
    rows: Sequence[Row],
    notes: Iterable[str] = (),
    problems: Iterable[Problem] = (),
) -> None:
    """Show the rows to confirm at the terminal as a table, whatever the report's format is, and what is known yet."""
    session.progress.clear()
    writer = TableWriter(schema, limit=columns_of(sys.stderr) or WIDTH, encoding=sys.stderr.encoding)
    complain(writer.begin() + writer.page(Page(rows[:_MOST_ROWS])) + writer.end())
    if len(rows) > _MOST_ROWS:
        complain(f"... and {counted(len(rows) - _MOST_ROWS, 'more row')}\n")
    complain("".join(map(note_text, [*notes, *_unlike_the_rows(rows)])))
    is_coloured = has_colour(sys.stderr, session.options.color)
    complain("".join(problem_text(problem, has_colour=is_coloured) for problem in problems))


def _unlike_the_rows(rows: Sequence[Row]) -> list[str]:
    """The note that the table has more groups than change."""
    already = {row["group"] for row in rows if row["result"] == ALREADY}
    changed = {row["group"] for row in rows if row["result"] != ALREADY} if already else set()
    if already <= changed:
        return []
    of_these = f"{len(changed)} of these {counted(len(already | changed), 'group')}"
    return [f"{of_these} would change; the others have these offsets already"]


def not_yet(count: int, *, are_named: bool = False) -> str:
    """The text about how to make the shown change."""
    confirm = f" --confirm {count}" if count > 1 and not are_named else ""
    return f"nothing is changed yet: add --execute{confirm}"


def words_to_apply(plan: Plan) -> list[str]:
    """The options with which `groupkeeper apply` carries out a plan as it is now."""
    count = len(plan.groups)
    makes = any(group.state == GroupState.DEAD and group.offsets for group in plan.groups)
    return ["--execute", *(["--confirm", str(count)] if count > 1 else []), *(["--create"] if makes else [])]
