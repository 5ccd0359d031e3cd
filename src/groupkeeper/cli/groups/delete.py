"""`groupkeeper groups delete` and `delete-offsets`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command
from groupkeeper.cli.framework.execution import add_executing, check_confirmed, not_yet, show_first
from groupkeeper.cli.framework.group_arguments import add_filters, add_groups, are_typed, problems_of, selected
from groupkeeper.cli.framework.journals import own_recorder, way_back
from groupkeeper.cli.framework.reports import Page, Row
from groupkeeper.cli.groups.schemas import DELETED_GROUPS, DELETED_OFFSETS
from groupkeeper.cli.plans.plan_options import TOPIC_HELP, note_absent, topics_of
from groupkeeper.operations.delete import delete_any_groups, find_deletion
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.deletions import make_deletion
from groupkeeper.operations.plans.execution import Applied, apply_plan
from groupkeeper.operations.plans.fit import check
from groupkeeper.operations.problems import Attempt

_GROUPS_AT_A_TIME = 500
_WOULD_BE = "would be deleted"


def _add_delete_offsets(command: ArgumentParser) -> None:
    command.add_argument("group", help="the group")
    command.add_argument("--topic", action="append", required=True, type=values.topic, help=TOPIC_HELP)
    command.checks.append(topics_of)
    add_executing(command, "delete the offsets", is_for_one=True)
    add_cluster(command)


async def _offset_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """The committed offsets to delete; partitions without one are a problem."""
    options = session.options
    made = await make_deletion(session.admin, [options.group], topics_of(options), time.time_ns() // 10**6)
    problems, _ = await note_absent(session, made, suggests=False)
    if not problems:
        problems = [trouble_problem(trouble, Attempt.DELETE_OFFSETS) for trouble in made.troubles]
    fit = await check(session.admin, made.plan)
    applied = Applied(fit.ready, fit.already, fit.troubles)
    await check_confirmed(session, len(made.plan.groups))
    notes = consequences(fit.ready)
    if options.execute and fit.ready:
        recorder = own_recorder(options, notes)
        applied = await apply_plan(session.admin, made.plan, recorder, fit=fit)
        notes += way_back(recorder, options, has_changed=bool(applied.done))
    elif fit.ready:
        notes.append(not_yet(1))
    if any(isinstance(trouble.failure, GroupIsActive) for trouble in applied.troubles):
        notes.append("while a group has members, only offsets of topics that no member reads can be deleted")
    problems += (trouble_problem(trouble, Attempt.DELETE_OFFSETS) for trouble in applied.troubles)
    rows: list[Row] = [
        {
            "group": group.group_id,
            "topic": tp.topic,
            "partition": tp.partition,
            "deleted_offset": change.before.offset if change.before else None,
            "result": "deleted" if options.execute else _WOULD_BE,
        }
        for group in applied.done
        for tp, change in sorted(group.changes.items())
    ]
    yield Page(rows, problems, notes, {"executed": options.execute})


def _add_delete(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    add_executing(command, "delete the groups with their offsets")
    add_cluster(command)


async def _group_pages(session: ClusterSession) -> AsyncIterator[Page]:
    """The groups to delete. Only consumer groups are deleted."""
    options = session.options
    selection, overall = await selected(session)
    notes = list(overall.notes)
    session.progress.say("reading the groups")
    found = await find_deletion(session.admin, selection.group_ids)
    failed = problems_of(options, found.failed, Attempt.DELETE)
    yield Page(problems=failed)
    would_be = [{"group": key, "offsets": count, "result": _WOULD_BE} for key, count in sorted(found.done.items())]
    known = [*failed, *overall.problems]
    show = partial(show_first, session, DELETED_GROUPS, would_be, notes, known)
    await check_confirmed(session, len(would_be), are_named=are_typed(options), show=show)
    recorder = own_recorder(options, notes) if options.execute else None
    if not options.execute:
        yield Page(would_be)
        notes += [not_yet(len(would_be), are_named=are_typed(options))] if would_be else []
    group_ids = sorted(found.done) if options.execute else []
    has_deleted = False
    for start in range(0, len(group_ids), _GROUPS_AT_A_TIME):
        some = group_ids[start : start + _GROUPS_AT_A_TIME]
        session.progress.say(f"deleting groups: {start} of {len(group_ids)}")
        batch = await delete_any_groups(session.admin, some, recorder)
        has_deleted = has_deleted or bool(batch.done)
        rows = [{"group": key, "offsets": found.done[key], "result": "deleted"} for key in sorted(batch.done)]
        yield Page(rows, problems_of(options, batch.failed, Attempt.DELETE))
    notes += way_back(recorder, options, has_changed=has_deleted)
    yield Page(problems=overall.problems, notes=notes, more={"executed": options.execute})


DELETE_OFFSETS = Command(
    _add_delete_offsets,
    lambda options: run_report(
        options, lambda _: ClusterReport(DELETED_OFFSETS, _offset_pages, more={"executed": False})
    ),
    "Show committed offsets of a group that would be deleted, and with --execute delete them. Topics that no longer "
    "exist may be named, too.",
    """\
  groupkeeper groups delete-offsets billing --topic orders:0
  groupkeeper groups delete-offsets billing --topic 'old-*' --execute""",
)

DELETE = Command(
    _add_delete,
    lambda options: run_report(
        options, lambda _: ClusterReport(DELETED_GROUPS, _group_pages, more={"executed": False})
    ),
    "Show the groups without members that would be deleted with their offsets, and with --execute delete them. "
    "'groupkeeper undo' brings their offsets back.",
    """\
  groupkeeper groups delete 'old-*'
  groupkeeper groups delete old-1 old-2 --execute""",
)
