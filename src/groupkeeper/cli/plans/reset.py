"""`groupkeeper plan reset`: the result of a reset, as a table and as a file for `groupkeeper apply`. `groups reset` has
the options for target and partitions from here, and the request that is made of them.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterReport, ClusterSession, add_cluster, run_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, UsageMistake
from groupkeeper.cli.framework.execution import add_creating
from groupkeeper.cli.framework.group_arguments import add_filters, add_groups, names_of, passed_over, selected
from groupkeeper.cli.framework.reports import Page
from groupkeeper.cli.framework.typed import words_of
from groupkeeper.cli.plans.plan_options import (
    add_policies,
    add_saving,
    add_scope,
    is_plain,
    policies_of,
    shown,
    topics_of,
)
from groupkeeper.cli.plans.schemas import CHANGES
from groupkeeper.operations import plan_csv
from groupkeeper.operations.plans import reset as resets
from groupkeeper.operations.plans.builder import Request, make_reset
from groupkeeper.operations.plans.recorder import without_secrets
from groupkeeper.rules.words import counted


def add_scenario(command: ArgumentParser) -> None:
    """Adds the options for the target of a reset, exactly one of which is required."""
    command.checks += [_check_scope, plans_of]
    to = command.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="the oldest record")
    to.add_argument("--to-latest", action="store_true", help="the end")
    to.add_argument("--to-current", action="store_true", help="the committed offset, moved into the log")
    to.add_argument("--to-offset", type=int, metavar="N", help="this offset")
    to.add_argument("--shift-by", type=int, metavar="N", help="N records forward, or back when negative")
    to.add_argument(
        "--to-datetime",
        type=values.datetime_ms,
        help="the first record at or after this time: 2026-01-31T23:59:59[.999][Z], UTC unless it names a zone",
    )
    to.add_argument(
        "--by-duration",
        type=values.duration,
        help="the first record at or after the time this long ago: 30m, 12h, 7d, P1DT2H3M4.5S",
    )
    to.add_argument(
        "--from-file",
        type=values.plan_file,
        help="the offsets in a CSV file of [group,]topic,partition,offset; not with --topic or --all-topics",
    )


def _check_scope(options: Namespace) -> None:
    """Raise UsageMistake unless the partitions are named, in one way."""
    if options.from_file is None:
        if not options.all_topics and not options.topic:
            raise UsageMistake("name the partitions to reset: --all-topics or --topic")
    elif options.all_topics or options.topic:
        name = "--all-topics" if options.all_topics else "--topic"
        raise UsageMistake(f"argument {name}: not allowed with argument --from-file, which names the partitions")


def only_group(options: Namespace) -> str | None:
    """The only group of the command, whose id need not be in the file; None when there are several."""
    names = names_of(options, "groups")
    return names.exact[0] if len(names.exact) == 1 and not names.patterns else None


def plans_of(options: Namespace) -> plan_csv.Plans | None:
    """The offsets of --from-file, None without it. Raises UsageMistake."""
    if options.from_file is None:
        return None
    try:
        return plan_csv.read(options.from_file.text, only_group(options))
    except plan_csv.BadPlan as problem:
        raise UsageMistake(f"argument --from-file: {options.from_file.path}, {problem}") from None


def request_of(options: Namespace, group_ids: Sequence[str]) -> Request:
    """The reset of these groups. Raises UsageMistake."""
    return Request(
        group_ids,
        topics_of(options),
        _scenario_of(options),
        from_file=plans_of(options),
        file_name="" if options.from_file is None else options.from_file.path,
        creates=options.create,
    )


def _scenario_of(options: Namespace) -> resets.Scenario | None:
    """The target of the reset; None: it is in a file."""
    if options.from_file is not None:
        return None
    if options.to_earliest:
        return resets.ToEarliest()
    if options.to_latest:
        return resets.ToLatest()
    if options.to_current:
        return resets.ToCurrent()
    if options.to_offset is not None:
        return resets.ToOffset(options.to_offset)
    if options.shift_by is not None:
        return resets.ShiftBy(options.shift_by)
    if options.to_datetime is not None:
        return resets.ToTime(options.to_datetime)
    return resets.ToTime(options.by_duration.before_ms(time.time_ns()))


def _add_arguments(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    add_scope(command)
    add_scenario(command)
    add_policies(command)
    add_creating(command, "plan for")
    add_saving(command)
    add_cluster(command)


async def _pages(session: ClusterSession) -> AsyncIterator[Page]:
    options = session.options
    selection, overall = await selected(session)
    request = request_of(options, selection.group_ids)._replace(
        policies=policies_of(options), command=without_secrets(words_of(options)), made_ms=time.time_ns() // 10**6
    )
    yield overall._replace(
        notes=[*overall.notes, *passed_over(options.from_file, request.from_file or (), selection.group_ids)]
    )
    session.progress.say(f"planning {counted(len(selection.group_ids), 'group')}")
    made = await make_reset(session.admin, request)
    has_adjustments = any(group.adjustments for group in made.plan.groups) or options.if_no_record == "skip"
    for page in await shown(session, made, None if has_adjustments else request.scenario):
        yield page


RESET = Command(
    _add_arguments,
    lambda options: run_report(options, lambda options: ClusterReport(CHANGES, _pages, is_plain=is_plain(options))),
    "Plan new committed offsets. Nothing is changed. The table shows, for each partition, the offset before and "
    "after, how many offsets are skipped or read again, and the times of the records there.",
    """\
  groupkeeper plan reset billing --topic orders --by-duration 1h --save plan.json
  groupkeeper plan reset 'billing-*' --all-topics --to-earliest --save plan.json
  groupkeeper apply plan.json --execute""",
)
