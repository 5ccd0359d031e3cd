"""`groupkeeper groups reset`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Sequence

from groupkeeper.cli.framework import group_arguments
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.execution import add_creating, add_executing, check_confirmed, not_yet, show_first
from groupkeeper.cli.framework.journals import own_recorder, way_back
from groupkeeper.cli.framework.reports import Page, Problem
from groupkeeper.cli.framework.typed import follow_up
from groupkeeper.cli.groups.schemas import NEW_OFFSETS
from groupkeeper.cli.plans.plan_options import add_scope, note_absent, with_topics
from groupkeeper.cli.plans.reset import add_scenario, only_group, plans_of, request_of
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations import plan_csv
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.plans import reset as resets
from groupkeeper.operations.plans.builder import Made, aim, make_reset
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.execution import Applied, apply_plan
from groupkeeper.operations.plans.fit import check
from groupkeeper.operations.plans.model import Adjustment, AdjustmentKind, GroupPlan, PlanTrouble
from groupkeeper.operations.reporting.plan_rows import ALREADY, reset_row
from groupkeeper.protocol.errors import GroupAuthorizationFailed
from groupkeeper.rules.words import counted


def _add_arguments(command: ArgumentParser) -> None:
    group_arguments.add_groups(command)
    group_arguments.add_filters(command)
    add_scope(command)
    add_scenario(command)
    add_executing(command, "commit the new offsets")
    add_creating(command, "commit offsets for")
    command.add_argument(
        "--export", action="store_true", help="print the new offsets as the CSV that --from-file reads, nothing else"
    )
    add_cluster(command)


def _report(options: Namespace) -> ClusterReport:
    if options.export and options.output != "table":
        raise UsageMistake(f"argument --export: not allowed with --output {options.output}")
    return ClusterReport(NEW_OFFSETS, _pages, more={"executed": False}, is_plain=options.export)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    """New offsets of groups, committed with --execute. A refused group doesn't stop the others."""
    options = session.options
    selection, overall = await group_arguments.selected(session)
    notes = [
        *overall.notes,
        *group_arguments.passed_over(options.from_file, plans_of(options) or (), selection.group_ids),
    ]
    session.progress.say(f"planning {counted(len(selection.group_ids), 'group')}")
    made, problems = await _made(session, selection.group_ids, notes)
    plan = made.plan
    fit = await check(session.admin, plan, creates=options.create)
    applied = Applied(fit.ready, fit.already, fit.troubles)
    notes += consequences(fit.ready)

    def show() -> None:
        rows = [row for page in _rows(plan.groups, applied, "would be applied", has_group=True) for row in page.rows]
        show_first(session, NEW_OFFSETS, rows, notes, [*overall.problems, *problems, *_problems_of(applied)])

    if await check_confirmed(session, len(fit.ready), are_named=group_arguments.are_typed(options), show=show):
        fit = await check(session.admin, plan, creates=options.create)
        applied = Applied(fit.ready, fit.already, fit.troubles)
    if options.execute and fit.ready:

        def tell(done: int) -> None:
            session.progress.count("resetting groups", done, len(fit.ready))

        recorder = own_recorder(options, notes)
        applied = await apply_plan(session.admin, plan, recorder, fit=fit, skips_refused=True, tell=tell)
        notes += way_back(recorder, options, has_changed=bool(applied.done))
    elif fit.ready:
        notes.append(not_yet(len(fit.ready), are_named=group_arguments.are_typed(options)))
    elif fit.already:
        notes.append("there is nothing to do: these offsets are committed already")
    if any(isinstance(trouble.failure, GroupIsActive) for trouble in applied.troubles):
        notes.append(
            "'groupkeeper plan reset' plans the same for groups with members, and "
            f"'{follow_up(options, 'apply', 'FILE', '--execute', '--wait', '5m')}' carries it out when they have left"
        )
    problems += _problems_of(applied)
    yield Page(problems=problems)
    result = "applied" if options.execute else "would be applied"
    for page in _rows(plan.groups, applied, result, has_group=only_group(options) is None):
        yield page
    yield Page(problems=overall.problems, notes=notes, more={"executed": options.execute})


async def _made(session: ClusterSession, group_ids: Sequence[str], notes: list[str]) -> tuple[Made, list[Problem]]:
    """The plan, only with groups without problems; and the problems."""
    options = session.options
    request = request_of(options, group_ids)
    made = await make_reset(session.admin, request)
    problems, absent = await note_absent(session, made, suggests=True)
    notes += [*absent, *made.notes]
    if isinstance(request.scenario, resets.ToTime):
        notes.append(f"to {aim(request.scenario)}")
    here = [group_id for group_id in group_ids if options.create or group_id not in made.absent]
    for trouble in made.troubles:
        concerned = here if trouble.group_id is None else [trouble.group_id]
        problems += (_problem_of(trouble._replace(group_id=group_id)) for group_id in concerned)
    refused = {one.group for one in problems}
    kept = tuple(group for group in made.plan.groups if group.group_id not in refused)
    return made._replace(plan=made.plan._replace(groups=kept)), await with_topics(session, problems)


def _problems_of(applied: Applied) -> Iterable[Problem]:
    """The problems of the troubles; the same problem is shown once."""
    return dict.fromkeys(map(_problem_of, applied.troubles))


def _problem_of(trouble: PlanTrouble) -> Problem:
    if isinstance(trouble.failure, GroupAuthorizationFailed):
        trouble = trouble._replace(topic_partition=None)  # the partitions have nothing to do with it
    return trouble_problem(trouble)


def _rows(groups: Iterable[GroupPlan], applied: Applied, result: str, *, has_group: bool) -> Iterable[Page]:
    """The outcome of each group, or the expected one, as in `result`."""
    done = {group.group_id: group.changes for group in applied.done}
    already = set(applied.already)
    for group in groups:
        results: dict[TopicPartition, str] = dict.fromkeys(done.get(group.group_id, ()), result)
        results |= {tp: ALREADY for tp in group.changes if (group.group_id, tp) in already}
        adjustments = {each.tp: each for each in group.adjustments}
        rows = [reset_row(group, tp, _note(adjustments.get(tp)), results[tp]) for tp in sorted(results)]
        planned = group.offsets
        offsets = {tp: planned[tp].offset for tp in sorted(results)}
        yield Page(rows, plain=plan_csv.write([(group.group_id, offsets)], with_group=has_group))


def _note(adjustment: Adjustment | None) -> str | None:
    if adjustment is None or adjustment.kind is AdjustmentKind.NOTHING_LATER:
        return adjustment.kind.value if adjustment else None
    return f"{adjustment.asked} is {adjustment.kind.value}"


RESET = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    examples="""\
  groupkeeper groups reset billing --all-topics --by-duration 1h
  groupkeeper groups reset billing --topic orders:0,1 --to-earliest --execute""",
)
