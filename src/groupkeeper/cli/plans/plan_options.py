"""Common parts of the commands that make plans: the partitions, the file, and how a plan is shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence

from groupkeeper.cli.framework import values
from groupkeeper.cli.framework.clusters import ClusterSession, cluster_of
from groupkeeper.cli.framework.commands import ArgumentParser, UsageMistake, similar
from groupkeeper.cli.framework.execution import words_to_apply
from groupkeeper.cli.framework.files import Unsaved, check_writable, save
from groupkeeper.cli.framework.group_arguments import named, names_of, suggested
from groupkeeper.cli.framework.reports import Page, Problem, Row, problem_of
from groupkeeper.cli.framework.typed import follow_up, way_of
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans import document, official
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, Otherwise, PlanTopics, Policies
from groupkeeper.operations.plans.cluster_state import will_be_made
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.model import Kind, Plan
from groupkeeper.operations.plans.reset import Scenario, parse_topic_argument
from groupkeeper.operations.reporting.plan_rows import change_rows
from groupkeeper.operations.selection import Names
from groupkeeper.operations.share_changes import SHARE_KINDS
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError, UnknownTopicOrPartition
from groupkeeper.rules.words import counted

_ROWS_PER_PAGE = 1000
STANDARD_OUTPUT = "-"


TOPIC_HELP = "all partitions of a topic, or some; a glob stands for topics with committed offsets"


class NotSaved(ClientError):
    """The plan could not be written to its file."""


_NAMING = (Kind.RESET, Kind.CLONE)
"""Kinds of plans for which an error about an unknown group suggests a similar name; deletions are not among them."""


def add_scope(command: ArgumentParser) -> None:
    """Adds the options for partitions: --topic, or --all-topics."""
    command.checks.append(topics_of)
    scope = command.add_mutually_exclusive_group()
    scope.add_argument("--all-topics", action="store_true", help="every partition with a committed offset")
    scope.add_argument("--topic", action="append", type=values.topic, help=TOPIC_HELP)


def add_policies(command: ArgumentParser, no_record: str = "no record is at or after that time") -> None:
    """The options for partitions without a matching record, or with an offset outside the log."""
    command.add_argument(
        "--if-no-record",
        choices=["end", "skip", "fail"],
        default="end",
        help=f"where {no_record}: use the end of the log (default), leave the partition unchanged, or make no plan",
    )
    command.add_argument(
        "--if-out-of-range",
        choices=["clamp", "skip", "fail"],
        default="clamp",
        help="if the offset is outside of the log: use its nearer end (default), leave the partition unchanged, "
        "or make no plan",
    )


def policies_of(options: Namespace) -> Policies:
    """The policies that --if-no-record and --if-out-of-range select."""
    return Policies(Otherwise(options.if_no_record), Otherwise(options.if_out_of_range))


def add_saving(command: ArgumentParser) -> None:
    """Adds the options for the plan's file and form."""
    command.add_argument(
        "--save",
        metavar="FILE",
        help="write the plan to a file for groupkeeper apply; -: to standard output, and nothing else",
    )
    command.add_argument(
        "--show-command", action="store_true", help="only print the official tool's commands that do the same"
    )


def is_plain(options: Namespace) -> bool:
    """Whether only the plan or commands are printed. Raises UsageMistake for options that exclude this, and for a file
    that cannot be written.
    """
    plain = options.show_command or options.save == STANDARD_OUTPUT
    if plain and options.output != "table":
        name = "--show-command" if options.show_command else "--save -"
        raise UsageMistake(f"argument {name}: not allowed with --output {options.output}")
    if options.show_command and options.save == STANDARD_OUTPUT:
        raise UsageMistake("argument --show-command: not allowed with --save -")
    if options.save not in (None, STANDARD_OUTPUT):
        try:
            check_writable(options.save)
        except Unsaved as problem:
            raise UsageMistake(f"argument --save: {problem}") from None
    return bool(plain)


async def shown(session: ClusterSession, made: Made, scenario: Scenario | None = None) -> list[Page]:
    """The report of a plan; writes the plan to the file of --save. `scenario`: the one that all its groups share."""
    options = session.options
    rows = list(change_rows(made.plan.groups))
    absent, notes = await note_absent(session, made, suggests=made.plan.kind in _NAMING)
    problems = [*absent, *await with_topics(session, [trouble_problem(trouble) for trouble in made.troubles])]
    notes = [*notes, *made.notes, *consequences(made.plan.groups, is_share=made.plan.kind in SHARE_KINDS)]
    plain = ""
    if options.show_command and not made.is_refused:
        plain, lacking = official_commands(options, made.plan, scenario)
        notes += lacking
    if made.is_refused:
        notes.append("no plan is made, because an option is 'fail'")
    elif not rows:
        notes.append("there is nothing to plan")
    elif options.save is None:
        if not options.show_command:
            command = follow_up(options, "apply", "FILE", "--execute")
            notes.append(f"nothing is changed: add --save FILE, and apply the file with '{command}'")
    elif options.save == STANDARD_OUTPUT:
        plain = "".join(document.write(made.plan))
    else:
        try:
            save(options.save, document.write(made.plan), is_private=True)
        except Unsaved as problem:
            raise NotSaved(str(problem)) from None
        command = follow_up(options, "apply", options.save, *words_to_apply(made.plan))
        notes.append(f"{sized(made.plan)}: apply the plan with '{command}'")
    return [*pages_with(rows), Page(problems=problems, notes=notes, plain=plain)]


def pages_with(rows: Sequence[Row]) -> list[Page]:
    """Pages that are not too long, with these rows."""
    return [Page(rows[start : start + _ROWS_PER_PAGE]) for start in range(0, len(rows), _ROWS_PER_PAGE)]


async def note_absent(session: ClusterSession, made: Made, *, suggests: bool) -> tuple[list[Problem], list[str]]:
    """Problems for groups that don't exist (`suggests`: with a similar existing name), and notes for those that
    --create plans for. A group matched by a pattern that was deleted meanwhile is no problem.
    """
    planned = {group.group_id for group in made.plan.groups}
    typed = names_of(session.options, "groups").exact if hasattr(session.options, "groups") else made.absent
    is_meant = getattr(session.options, "create", False)
    unknown = [] if is_meant else [key for key in made.absent if key not in planned and key in typed]
    meant = await suggested(session, unknown) if suggests else {}
    does = "makes it" if hasattr(session.options, "execute") else "plans for it"
    hint = f" (--create {does})" if hasattr(session.options, "create") else ""
    problems = [
        problem_of(GroupIdNotFound(f"there is no group {key}{hint}{meant.get(key, '')}"), group=key) for key in unknown
    ]
    return problems, [_making(session.options, key) for key in made.absent if key in planned]


def _making(options: Namespace, group_id: str) -> str:
    """The note about a group that doesn't exist: commands that only plan leave its creation to `apply`."""
    if not hasattr(options, "execute"):
        return will_be_made(group_id)
    return f"there is no group {group_id}: it {'is' if options.execute else 'would be'} created"


async def with_topics(session: ClusterSession, problems: Sequence[Problem]) -> list[Problem]:
    """The problems; a missing topic has a similar existing name, if there is one."""
    unknown = {one.topic for one in problems if one.topic and one.error == UnknownTopicOrPartition.name}
    if not unknown:
        return list(problems)
    try:
        known = [each.name for each in await session.admin.list_topics()]
    except (KafkaError, ClientError):
        return list(problems)
    return [
        one._replace(message=one.message.removesuffix(".") + similar(one.topic, known))
        if one.topic in unknown and one.topic not in known
        else one
        for one in problems
    ]


def sized(plan: Plan) -> str:
    """`1 group, 12 partitions`"""
    return f"{counted(len(plan.groups), 'group')}, {counted(plan.size, 'partition')}"


def topics_of(options: Namespace) -> PlanTopics:
    """The selected partitions. Raises UsageMistake."""
    if getattr(options, "all_topics", False):
        return ALL_COMMITTED
    names: list[str] = []
    partitions: list[TopicPartition] = []
    accepts: list[Callable[[TopicPartition], bool]] = []
    for argument in options.topic or ():
        topic, numbers = parse_topic_argument(argument)
        pattern = named([topic], regex=getattr(options, "regex", False), argument="--topic")
        if pattern.patterns:
            accepts.append(_accepting(pattern, numbers))
        elif numbers is None:
            names.append(topic)
        else:
            partitions += (TopicPartition(topic, number) for number in numbers)
    if not accepts:
        return PlanTopics(names, partitions)
    return PlanTopics(names, partitions, lambda tp: any(accept(tp) for accept in accepts), is_whole=True)


def _accepting(pattern: Names, numbers: list[int] | None) -> Callable[[TopicPartition], bool]:
    return lambda tp: pattern.matches(tp.topic) and (numbers is None or tp.partition in numbers)


def official_commands(options: Namespace, plan: Plan, scenario: Scenario | None = None) -> tuple[str, list[str]]:
    """The lines of the official tool that do the same, and a note about properties that they lack."""
    cluster = cluster_of(options)
    way = way_of(options, cluster)
    text = "".join(f"{line}\n" for line in official.commands(plan, way, scenario))
    there = values.properties(way.config) if way.config else {}
    lacking = [name for name, value in cluster.properties.items() if there.get(name) != value]
    if not lacking:
        return text, []
    return text, [f"{official.TOOL} takes properties from one file only: put these into it, too: {', '.join(lacking)}"]
