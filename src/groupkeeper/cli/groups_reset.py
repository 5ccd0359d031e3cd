"""``groupkeeper groups reset``."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING

from groupkeeper.cli import values
from groupkeeper.cli.clusters import Asking, Report, UsageMistake, add_cluster, run_report
from groupkeeper.cli.commands import Command
from groupkeeper.cli.groups_arguments import add_groups, names_of, passed_over, selected
from groupkeeper.cli.groups_shapes import NEW_OFFSETS
from groupkeeper.cli.journalling import own_recorder, way_back
from groupkeeper.cli.reports import Page, Problem, Row, problem_of
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations import plan_csv
from groupkeeper.operations import reset as resets
from groupkeeper.operations.authorization import Deed
from groupkeeper.operations.plans.making import ALL_COMMITTED, Made, Request, Topics, make_reset
from groupkeeper.operations.plans.model import GroupPlan
from groupkeeper.operations.plans.recording import Outcome, commit
from groupkeeper.operations.topics import HIDDEN, hides_topics
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError

if TYPE_CHECKING:
    from groupkeeper.cli.commands import ArgumentParser


def _add_arguments(command: ArgumentParser) -> None:
    add_groups(command)
    _add_scope(command)
    add_scenario(command)
    command.add_argument("--execute", action="store_true", help="commit the new offsets")
    command.add_argument(
        "--export", action="store_true", help="print the new offsets as the CSV that --from-file reads, nothing else"
    )
    add_cluster(command)


def _add_scope(command: ArgumentParser) -> None:
    scope = command.add_mutually_exclusive_group()
    scope.add_argument("--all-topics", action="store_true", help="every partition with a committed offset")
    scope.add_argument("--topic", action="append", type=values.topic, metavar="TOPIC[:0,1]", help="repeat for several")


def add_scenario(command: ArgumentParser) -> None:
    """Where to: exactly one of several."""
    to = command.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="the oldest record")
    to.add_argument("--to-latest", action="store_true", help="the end")
    to.add_argument("--to-current", action="store_true", help="the committed offset, moved into the log")
    to.add_argument("--to-offset", type=int, metavar="N", help="this offset")
    to.add_argument("--shift-by", type=int, metavar="N", help="N records on, or back when negative")
    to.add_argument(
        "--to-datetime",
        type=values.datetime_ms,
        metavar="TIME",
        help="the first record from then on: 2026-01-31T23:59:59[.999][Z], UTC unless it names a zone",
    )
    to.add_argument(
        "--by-duration",
        type=values.duration,
        metavar="DURATION",
        help="the first record from so long ago on: P1DT2H3M4.5S",
    )
    to.add_argument(
        "--from-file",
        type=values.plan_file,
        metavar="FILE",
        help="the offsets in a CSV file of [group,]topic,partition,offset; not with --topic or --all-topics",
    )


def _report(options: Namespace) -> Report:
    """Refuses what doesn't go together, and a plan that isn't one."""
    check_scope(options)
    names_of(options, "groups")
    plans_of(options)
    if options.export and options.output != "table":
        raise UsageMistake(f"argument --export: not allowed with --output {options.output}")
    return Report(NEW_OFFSETS, _pages, more={"executed": False}, is_plain=options.export)


def check_scope(options: Namespace) -> None:
    """Raise UsageMistake unless the partitions are named, in one way."""
    if options.from_file is None:
        if not options.all_topics and not options.topic:
            raise UsageMistake("name the partitions to reset: --all-topics or --topic")
    elif options.all_topics or options.topic:
        name = "--all-topics" if options.all_topics else "--topic"
        raise UsageMistake(f"argument {name}: not allowed with argument --from-file, which names the partitions")


async def _pages(asking: Asking) -> AsyncIterator[Page]:
    """New offsets of groups, committed with --execute. What is refused for one group doesn't keep the others."""
    options = asking.options
    selection, said = await selected(asking)
    remarks = [*said.remarks, *passed_over(options.from_file, plans_of(options) or (), selection.group_ids)]
    asking.progress.say(f"planning {len(selection.group_ids)} groups")
    made, problems = await _made(asking.admin, options, selection.group_ids)
    plan = made.plan
    outcome: Batch[str, Outcome] = Batch({group.group_id: Batch() for group in plan.groups})
    if options.execute and plan.groups:

        def tell(done: int) -> None:
            asking.progress.count("resetting groups", done, len(plan.groups))

        recorder = own_recorder(options, remarks)
        outcome = await commit(asking.admin, plan, recorder, tell=tell)
        is_any_new = any(
            len(outcome.done[group.group_id].failed) < len(group.offsets)
            for group in plan.groups
            if group.group_id in outcome.done
        )
        if recorder is not None and recorder.id and is_any_new:
            remarks.append(way_back(recorder, options))
    refused = {one.group for one in problems}
    planned = {group.group_id for group in plan.groups}
    if options.from_file is None and options.all_topics:
        empty = [key for key in selection.group_ids if key not in refused and key not in planned]
        hidden = [HIDDEN] if empty and await hides_topics(asking.admin) else []
        what = "no committed offsets" + " that may be seen" * len(hidden)
        remarks += (*(f"{group_id} has {what}: nothing to reset" for group_id in empty), *hidden)
    yield Page(problems=problems)
    has_group = _only_group(options) is None
    for group in plan.groups:
        failure = outcome.failed.get(group.group_id)
        if failure is not None:
            yield Page(problems=[_problem(group.group_id, failure)])
        else:
            yield _page(group, outcome.done[group.group_id], has_group=has_group)
    if plan.groups and not options.execute:
        remarks.append("nothing is changed yet: add --execute to commit the new offsets")
    yield Page(problems=said.problems, remarks=remarks, more={"executed": options.execute})


async def _made(admin: Admin, options: Namespace, group_ids: Sequence[str]) -> tuple[Made, list[Problem]]:
    """The plan of the groups of which all can be planned, and what is in the way of the others."""
    described = await admin.describe_consumer_groups(group_ids)
    problems: list[Problem] = []
    inactive: list[str] = []
    for group_id in group_ids:
        try:
            resets.refuse_active(group_id, described)
            inactive.append(group_id)
        except (KafkaError, ClientError) as failure:
            problems.append(_problem(group_id, failure))
    request = Request(
        inactive,
        _topics(options),
        None if options.from_file is not None else scenario_of(options),
        from_file=plans_of(options),
        file_name="" if options.from_file is None else options.from_file.path,
        has_times=False,
    )
    made = await make_reset(admin, request)
    for trouble in made.troubles:
        concerned = inactive if trouble.group_id is None else [trouble.group_id]
        topic, partition = trouble.place if isinstance(trouble.place, TopicPartition) else (trouble.place, None)
        problems += (_problem(group_id, trouble.failure, topic, partition) for group_id in concerned)
    refused = {one.group for one in problems}
    kept = tuple(group for group in made.plan.groups if group.group_id not in refused)
    return made._replace(plan=made.plan._replace(groups=kept)), problems


def _topics(options: Namespace) -> Topics:
    if options.from_file is not None:
        return Topics()
    if options.all_topics:
        return ALL_COMMITTED
    parsed = [resets.parse_topic_argument(argument) for argument in options.topic]
    partitions = [TopicPartition(topic, number) for topic, numbers in parsed for number in numbers or ()]
    return Topics([topic for topic, numbers in parsed if numbers is None], partitions)


def _page(plan: GroupPlan, refused: Outcome, *, has_group: bool) -> Page:
    # What is said of the group is said once, although every partition has it.
    problems = dict.fromkeys(
        _problem(plan.group_id, failure)
        if isinstance(failure, GroupAuthorizationFailed)
        else _problem(plan.group_id, failure, partition.topic, partition.partition)
        for partition, failure in refused.failed.items()
    )
    offsets = plan.offsets
    done = {tp: offsets[tp].offset for tp in sorted(offsets) if tp not in refused.failed}
    rows = [row for row in _reset_rows(plan) if (row["topic"], row["partition"]) in done]
    return Page(rows, list(problems), plain=plan_csv.write([(plan.group_id, done)], with_group=has_group))


def _problem(group_id: str, failure: Failure, topic: str | None = None, partition: int | None = None) -> Problem:
    return problem_of(failure, Deed.COMMIT, group=group_id, topic=topic, partition=partition)


def _only_group(options: Namespace) -> str | None:
    """The group whose id a plan need not name, None when there are several."""
    names = names_of(options, "groups")
    return names.exact[0] if len(names.exact) == 1 and not names.patterns else None


def plans_of(options: Namespace) -> plan_csv.Plans | None:
    """The offsets of --from-file, None without it. Raises UsageMistake."""
    if options.from_file is None:
        return None
    try:
        return plan_csv.read(options.from_file.text, _only_group(options))
    except plan_csv.BadPlan as problem:
        raise UsageMistake(f"argument --from-file: {options.from_file.path}, {problem}") from None


def scenario_of(options: Namespace) -> resets.Scenario:
    """Where to, when it isn't in a file."""
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


def _reset_rows(plan: GroupPlan) -> Iterable[Row]:
    notes = {note.partition: note for note in plan.notes}
    for partition, change in sorted(plan.changes.items()):
        assert change.after is not None
        yield {
            "group": plan.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": change.before.offset if change.before else None,
            "new_offset": change.after.offset,
            "note": _note(notes.get(partition)),
        }


def _note(note: resets.Note | None) -> str | None:
    if note is None or note.kind is resets.NoteKind.NOTHING_LATER:
        return note.kind.value if note else None
    return f"{note.asked} is {note.kind.value}"


RESET = Command(
    _add_arguments,
    lambda options: run_report(options, _report),
    examples="""\
examples:
  groupkeeper groups reset billing --all-topics --by-duration 1h
  groupkeeper groups reset billing --topic orders:0,1 --to-earliest --execute""",
)
