"""`groupkeeper history` and `groupkeeper undo`: changes made from here, and their undo."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from itertools import takewhile

from groupkeeper import shell
from groupkeeper.cli.framework import clusters
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake, refusing
from groupkeeper.cli.framework.execution import ask, can_ask, check_confirmed, check_context, show_first
from groupkeeper.cli.framework.journals import OFF, VARIABLE, journal
from groupkeeper.cli.framework.reports import Page, problem_of
from groupkeeper.cli.framework.several_clusters import run_reports
from groupkeeper.cli.framework.typed import follow_up, words_of
from groupkeeper.cli.plans.outcome import add_applying, apply_pages, compared, foreseen, rows_of
from groupkeeper.cli.plans.schemas import HISTORY, OUTCOMES, RECORDED
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.builder import Otherwise
from groupkeeper.operations.plans.changes import ApplyResult, ChangeSummary, Recorded, maker_of
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.journal import ChangeJournal, JournalUnreadable
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.plans.recorder import cluster_id_of, without_secrets
from groupkeeper.operations.plans.undo import make_undo, undo_of, undone_text
from groupkeeper.operations.reporting.plan_rows import history_row, recorded_rows
from groupkeeper.operations.selection import Names
from groupkeeper.operations.share_changes import ShareAdmin, is_of_share_groups
from groupkeeper.operations.times import utc_text
from groupkeeper.rules.words import counted


class NothingToUndo(ClientError):
    """The journal has no change that can be taken back."""


class NoSuchChange(ClientError):
    """The journal doesn't have the change."""


def _opened(options: Namespace) -> ChangeJournal:
    """The journal. Raises UsageMistake when it is turned off."""
    where = journal(options)
    if where is None:
        raise UsageMistake(f"the journal is turned off: {VARIABLE}={OFF}")
    return where


def _add_history(command: ArgumentParser) -> None:
    command.add_argument("id", nargs="?", help="one change, with everything in it")
    command.add_argument("--group", action="append", help="only changes of this group; a name or a glob")
    clusters.add_cluster(command, may_be_several=True)


def _history(options: Namespace) -> int:
    try:
        with refusing(options):
            where = _opened(options)
        if options.id is None and (options.context or options.bootstrap_server):
            return run_reports(options, lambda _: clusters.ClusterReport(HISTORY, _pages_of_cluster))
        if options.id is None:
            page = _page(options, where, *where.summaries(Names(options.group)))
            return clusters.print_report(options, HISTORY, page)
        return _one(options, _loaded(where, options.id))
    except (NoSuchChange, JournalUnreadable) as problem:
        return clusters.print_report(options, HISTORY, Page(problems=[problem_of(problem)]))


async def _pages_of_cluster(session: clusters.ClusterSession) -> AsyncIterator[Page]:
    """The changes of one cluster, selected by the cluster id that its brokers report."""
    cluster_id = await cluster_id_of(session.admin)
    where = _opened(session.options)
    summaries, broken = where.summaries(Names(session.options.group))
    own = [one for one in summaries if cluster_id is not None and one.head.cluster_id == cluster_id]
    yield _page(session.options, where, own, broken, session.context)


def _page(
    options: Namespace,
    where: ChangeJournal,
    summaries: Sequence[ChangeSummary],
    broken: int,
    context: str | None = None,
) -> Page:
    whose = f" of group {', '.join(options.group)}" if options.group else ""
    notes = [] if summaries else [f"no changes{whose} in {where.name}"]
    if broken:
        notes.append(f"{where.name}: skipped {counted(broken, 'line')} that cannot be read")
    unfinished = [
        one.head.id for one in summaries if one.moves and one.result is ApplyResult.UNFINISHED and one.undone_by is None
    ]
    notes += [f"{change_id}: {_unfinished(options, change_id, context)}" for change_id in unfinished[-1:]]
    return Page([history_row(one) for one in summaries], (), notes)


def _one(options: Namespace, recorded: Recorded) -> int:
    head = recorded.head
    notes = [f"{head.id}: {recorded.result}, by {maker_of(head)}: {shell.text(head.command)}"]
    if recorded.result is ApplyResult.UNFINISHED:
        notes.append(_unfinished(options, head.id))
    notes += _lacking(recorded)
    rows = list(recorded_rows(recorded, Names(options.group)))
    return clusters.print_report(options, RECORDED, Page(rows, (), notes))


def _unfinished(options: Namespace, change_id: str, context: str | None = None) -> str:
    """The note about a change without an outcome. `context`: that of its cluster, as of `follow_up`."""
    return (
        "no outcome is recorded: the command was killed, or is still running. Some, all or none of it may be "
        f"committed; '{follow_up(options, 'undo', change_id, '--dry-run', context=context)}' compares it with the "
        "cluster"
    )


def _lacking(recorded: Recorded) -> list[str]:
    """The note about a change with unreadable lines in the journal."""
    if not recorded.broken:
        return []
    lines = counted(recorded.broken, "line")
    return [f"{recorded.head.id}: {lines} of the journal about it cannot be read: a part of it may be missing here"]


def _add_undo(command: ArgumentParser) -> None:
    command.add_argument(
        "id",
        nargs="?",
        help="the id of the change (groupkeeper history shows it); default: the last change that isn't undone",
    )
    command.add_argument(
        "--if-out-of-range",
        choices=["fail", "clamp", "skip", "exact"],
        default="fail",
        help="if the earlier offset is outside of the log now: refuse (default), use the log's nearer end, "
        "leave the partition unchanged, or commit exactly that offset",
    )
    add_applying(command, "undo the change")
    clusters.add_cluster(command)


def _report(options: Namespace) -> clusters.ClusterReport:
    _opened(options)
    return clusters.ClusterReport(OUTCOMES, _pages, more={"executed": False})


async def _pages(session: clusters.ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    cluster_id = await cluster_id_of(session.admin)
    summaries, _ = _opened(options).summaries()
    recorded = _chosen(_opened(options), options.id, [one for one in summaries if _is_open(one, cluster_id)])
    session.progress.say(f"comparing {counted(len(recorded.groups), 'group')}")
    is_share = is_of_share_groups(_opened(options), recorded)
    if is_share:
        session = session._replace(admin=ShareAdmin(session.admin))
    undo = undo_of(summaries, recorded.head.id)
    plan, fit = await make_undo(
        session.admin,
        recorded,
        without_secrets(words_of(options)),
        time.time_ns() // 10**6,
        undo=undo,
        if_out_of_range=Otherwise(options.if_out_of_range),
    )
    if options.wait is not None:
        fit = await compared(session, plan)
    would_be = foreseen(options, fit)
    count = len(would_be.done)
    notes = [] if undo is None else [undone_text(recorded.head.id, undo)]
    notes += [*_told_of(recorded, is_share=is_share), *consequences(would_be.done, is_share=is_share)]
    await check_confirmed(session, count, of=len(plan.groups), are_named=can_ask())
    is_decided = options.dry_run or (options.execute and options.confirm is not None) or not would_be.done
    if not is_decided and can_ask():
        known = map(trouble_problem, would_be.troubles)
        show_first(session, OUTCOMES, rows_of(plan, would_be, is_done=False), notes, known)
        await ask(session, count)
        options.execute = True
        await check_context(session)
        fit = await compared(session, plan)
    if is_decided or not can_ask() or options.output == "json":
        yield Page(notes=notes)
    before = takewhile(lambda one: one.head.id != recorded.head.id, summaries)
    earlier = _how_to_undo_earlier(options, [one.head.id for one in before if _is_open(one, cluster_id)])
    async for page in apply_pages(session, plan, fit, earlier):
        yield page


def _how_to_undo_earlier(options: Namespace, change_ids: Sequence[str]) -> str:
    """The advice where a change cannot be undone. `change_ids`: earlier ones that aren't undone, oldest first."""
    if not change_ids:
        return "no earlier change is left to undo"
    return (
        "to undo an earlier change, name its id, which 'groupkeeper history' shows; the last before this one: "
        f"'{follow_up(options, 'undo', change_ids[-1])}'"
    )


def _told_of(recorded: Recorded, *, is_share: bool) -> list[str]:
    """The change that is undone: its kind, author, time and cluster."""
    head = recorded.head
    notes = _lacking(recorded)
    if recorded.result is ApplyResult.UNFINISHED:
        notes.append(f"{head.id}: no outcome is recorded; offsets that it did not commit stay as they are")
    who, when = maker_of(head), utc_text(head.time_ms)
    cluster = f"cluster {head.cluster_id}" if head.cluster_id else "a cluster that did not report its id"
    notes.append(
        f"this undoes {head.id}, {head.kind} by {who} at {when} on {cluster}, made with: {shell.text(head.command)}"
    )
    if is_share:
        notes.append("the start offsets are restored; records that were acknowledged above them are delivered again")
    return notes


def _chosen(where: ChangeJournal, change_id: str | None, open_to_undo: Sequence[ChangeSummary]) -> Recorded:
    """The change to undo. Raises NoSuchChange, NothingToUndo."""
    if change_id is None:
        if not open_to_undo:
            raise NothingToUndo(
                f"{where.name} has no change of this cluster that isn't undone; 'groupkeeper history' shows all, and "
                "'groupkeeper undo ID' undoes an undo"
            )
        change_id = open_to_undo[-1].head.id
    return _loaded(where, change_id)


def _loaded(where: ChangeJournal, change_id: str) -> Recorded:
    recorded = where.load(change_id)
    if recorded is None:
        raise NoSuchChange(f"{where.name} has no change {change_id}: see 'groupkeeper history'")
    return recorded


def _is_open(summary: ChangeSummary, cluster_id: str | None) -> bool:
    head = summary.head
    is_here = None in (cluster_id, head.cluster_id) or head.cluster_id == cluster_id
    is_done = summary.moves and summary.result is not ApplyResult.REFUSED
    return is_here and is_done and head.kind != Kind.UNDO and summary.undone_by is None


HISTORY_COMMAND = Command(
    _add_history,
    _history,
    "Show the changes in the journal, oldest first. Without --context or --bootstrap-server no cluster is contacted. "
    "With one of them only changes of these clusters are shown, with their names; those of a cluster that can't be "
    "reached are left out.",
    """\
  groupkeeper history
  groupkeeper history --context '*' --group billing
  groupkeeper history 20261121T093416-4f2a""",
)

UNDO = Command(
    _add_undo,
    lambda options: clusters.run_report(options, _report),
    "Undo a change: commit the earlier offsets again, and delete those that did not exist before. The command shows "
    "the change, who made it, when, and on which cluster. A terminal asks for confirmation; elsewhere nothing is done "
    "without --execute. Like any plan, it is refused where the group has committed since.",
    """\
  groupkeeper undo
  groupkeeper undo 20261121T093416-4f2a --execute""",
)
