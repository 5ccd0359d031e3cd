"""``groupkeeper groups …``: each command asks operations and reports rows, with what failed beside the rest."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack

from groupkeeper.cli.output import complain, say
from groupkeeper.cli.reports import Place, Problem, Report, Row, as_json, as_table, problems_text
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    GroupType,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError, IllegalArgument
from groupkeeper.operations import plan_csv
from groupkeeper.operations import reset as resets
from groupkeeper.operations.delete import delete_committed, delete_groups
from groupkeeper.operations.describe import GroupOffsets, describe_offsets
from groupkeeper.operations.errors import NoPlan
from groupkeeper.operations.reach import Reach, try_addresses
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import KafkaError

Command = Callable[[Admin, Namespace], Awaitable[Report]]

CONSUMER_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)
CONSUMER_PROTOCOLS = ("", "consumer")

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


PATIENCE_S = 1.0
"""After so long without a connection, it is said what the brokers' addresses answer."""


class TopicFailure(Exception):
    """A topic of a reset cannot be described."""

    def __init__(self, topic: str, failure: Failure) -> None:
        super().__init__(str(failure))
        self.topic = topic
        self.failure = failure


class UsageMistake(Exception):
    """The arguments make no sense together, or for the client."""


def run(options: Namespace) -> int:
    """Carry out the command of the options, print its report, and give the exit status."""
    try:
        _check(options)
        report = asyncio.run(_run(options))
    except UsageMistake as mistake:
        options.refuse(str(mistake))
    if options.output == "json":
        say(as_json(report, encoding=sys.stdout.encoding))
    else:
        say(as_table(report) if report.plain is None else report.plain)
        complain(problems_text(report))
    return report.exit_status


def _check(options: Namespace) -> None:
    """Refuse what doesn't go together, and a plan that isn't one."""
    if options.command is not reset:
        return
    if options.from_file is None:
        if not options.all_topics and not options.topic:
            raise UsageMistake("name the partitions to reset: --all-topics or --topic")
    elif options.all_topics or options.topic:
        name = "--all-topics" if options.all_topics else "--topic"
        raise UsageMistake(f"argument {name}: not allowed with argument --from-file, which names the partitions")
    else:
        _read_plans(options)
    if options.export and options.output == "json":
        raise UsageMistake("argument --export: not allowed with --output json")


async def _run(options: Namespace) -> Report:
    try:
        admin = Admin(options.bootstrap_server, properties=options.command_config, default_timeout_ms=options.timeout)
    except IllegalArgument as problem:
        raise UsageMistake(f"argument --command-config: {problem}") from None
    command: Command = options.command
    try:
        async with AsyncExitStack() as stack:
            watch = asyncio.create_task(_tell_of_refusals(options))
            try:
                await stack.enter_async_context(admin)
            finally:
                watch.cancel()
            return await command(admin, options)
    except (KafkaError, ClientError) as problem:
        return _failed(options, problem)


async def _tell_of_refusals(options: Namespace) -> None:
    """Say what the brokers' addresses answer when none has let the client in for a while: it goes on trying."""
    await asyncio.sleep(PATIENCE_S)
    answers = await try_addresses(options.bootstrap_server, timeout_s=PATIENCE_S)
    if all(reach is not Reach.OPEN for _, reach in answers):
        texts = ", ".join(f"{reach.value} {address}" for address, reach in answers)
        complain(f"note: {texts}; trying until {options.timeout / 1000:g} s have passed\n")


def _failed(options: Namespace, problem: KafkaError | ClientError) -> Report:
    """The report of a command that failed as a whole: programs find the same keys in it."""
    if options.command is describe and options.view != "state":
        kind = str(options.view)
    else:
        kind = {list_groups: "groups", describe: "groups", reset: "offsets"}.get(options.command, "deleted")
    group_id = options.group if options.command is delete_offsets and isinstance(problem, KafkaError) else None
    more = {"executed": False} if options.command is reset else {}
    plain = "" if options.command is reset and options.export else None
    return Report(kind, [], [], [_problem(group_id, problem)], more=more, plain=plain)


async def list_groups(admin: Admin, options: Namespace) -> Report:
    """Groups by id. A broker that cannot be asked is a problem, and the others' groups are shown (K518-33)."""
    listings = await admin.list_groups(
        states=options.state or (),
        types=options.type or CONSUMER_TYPES,
        protocol_types=CONSUMER_PROTOCOLS,
    )
    rows: list[Row] = [
        {
            "group": group.group_id,
            "type": _text(group.group_type),
            "state": _text(group.group_state),
        }
        for group in sorted(listings.groups.values(), key=lambda group: group.group_id)
    ]
    problems = [_problem(None, failure)._replace(broker=node.id) for node, failure in listings.failed.items()]
    filtered = " in these states or of these types" if options.state or options.type else ""
    remarks = [] if rows or problems else [f"no groups{filtered}"]
    return Report("groups", ["group", "type", "state"], rows, problems, remarks)


async def describe(admin: Admin, options: Namespace) -> Report:
    """Offsets, members or states of groups. A group that cannot be described is a problem beside the others."""
    described = await admin.describe_consumer_groups(await _group_ids(admin, options))
    groups = sorted(described.done.values(), key=lambda group: group.group_id)
    problems = [_problem(group_id, failure) for group_id, failure in sorted(described.failed.items())]
    nobody = [] if groups or problems else ["no groups"]
    if options.view == "state":
        return Report("groups", STATE_COLUMNS, [_state_row(group) for group in groups], problems, nobody)
    remarks = nobody + [f"group {group.group_id} has no members" for group in groups if not group.members]
    if options.view == "members":
        rows = [row for group in groups for row in _member_rows(group)]
        return Report("members", MEMBER_COLUMNS, rows, problems, remarks)
    offsets = await describe_offsets(admin, groups)
    problems += [_problem(group_id, failure) for group_id, failure in offsets.failed.items()]
    rows = []
    for group in groups:
        if group.group_id in offsets.done:
            rows += _offset_rows(offsets.done[group.group_id])
            problems += _row_problems(offsets.done[group.group_id])
            if not offsets.done[group.group_id].rows:
                remarks.append(f"group {group.group_id} has no committed offsets")
    return Report("offsets", OFFSET_COLUMNS, rows, problems, remarks)


STATE_COLUMNS = ["group", "type", "state", "members", "assignor", "coordinator", "group_epoch", "target_epoch"]
MEMBER_COLUMNS = ["group", "member_id", "instance_id", "client_id", "host", "epoch", "assignment", "target_assignment"]
OFFSET_COLUMNS = ["group", "topic", "partition", "current_offset", "log_end_offset", "lag", "member_id", "client_id"]
RESET_COLUMNS = ["group", "topic", "partition", "current_offset", "new_offset", "note"]


def _state_row(group: ConsumerGroupDescription) -> Row:
    return {
        "group": group.group_id,
        "type": _text(group.group_type),
        "state": _text(group.group_state),
        "members": len(group.members),
        "assignor": group.partition_assignor or None,
        "coordinator": f"{group.coordinator.host}:{group.coordinator.port}",
        "group_epoch": group.group_epoch,
        "target_epoch": group.target_assignment_epoch,
    }


def _member_rows(group: ConsumerGroupDescription) -> Iterable[Row]:
    for member in sorted(group.members, key=lambda member: (member.client_id, member.member_id)):
        yield {
            "group": group.group_id,
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.client_host,
            "epoch": member.member_epoch,
            "assignment": _places(member.assignment),
            "target_assignment": None if member.target_assignment is None else _places(member.target_assignment),
        }


def _places(partitions: Iterable[TopicPartition]) -> list[Place]:
    return [{"topic": topic, "partition": partition} for topic, partition in sorted(partitions)]


def _offset_rows(offsets: GroupOffsets) -> Iterable[Row]:
    for row in sorted(offsets.rows, key=lambda row: (row.topic, row.partition)):
        yield {
            "group": offsets.description.group_id,
            "topic": row.topic,
            "partition": row.partition,
            "current_offset": row.current_offset,
            "log_end_offset": row.log_end_offset,
            "lag": row.lag,
            "member_id": row.member.member_id if row.member else None,
            "client_id": row.member.client_id if row.member else None,
        }


def _row_problems(offsets: GroupOffsets) -> Iterable[Problem]:
    for row in offsets.rows:
        if row.failure is not None:
            partition = TopicPartition(row.topic, row.partition)
            yield _problem(offsets.description.group_id, row.failure, partition)


async def reset(admin: Admin, options: Namespace) -> Report:
    """New offsets of groups, committed with --execute. What is refused for one group doesn't keep the others."""
    group_ids = await _group_ids(admin, options)
    described = await admin.describe_consumer_groups(group_ids)
    plan_file = _read_plans(options)
    rows: list[Row] = []
    problems: list[Problem] = []
    remarks = [] if group_ids else ["no groups"]
    exported: list[tuple[str, dict[TopicPartition, int]]] = []
    for group_id in sorted(set(group_ids)):
        try:
            resets.refuse_active(group_id, described)
            plan = await _plan(admin, options, group_id, plan_file)
            refused: Batch[TopicPartition, None] = await resets.apply(admin, plan) if options.execute else Batch()
        except TopicFailure as refusal:
            problems.append(_problem(group_id, refusal.failure, refusal.topic))
            continue
        except (KafkaError, ClientError) as failure:
            problems.append(_problem(group_id, failure))
            continue
        if not plan.offsets:
            remarks.append(f"{group_id} has no committed offsets: nothing to reset")
        problems += [_problem(group_id, failure, partition) for partition, failure in refused.failed.items()]
        done = {tp: plan.offsets[tp].offset for tp in sorted(plan.offsets) if tp not in refused.failed}
        rows += [row for row in _reset_rows(plan) if (row["topic"], row["partition"]) in done]
        exported.append((group_id, done))
    if rows and not options.execute:
        remarks.append("nothing is changed yet: add --execute to commit the new offsets")
    plain = plan_csv.write(exported, with_group=_only_group(options) is None) if options.export else None
    return Report("offsets", RESET_COLUMNS, rows, problems, remarks, {"executed": options.execute}, plain)


def _only_group(options: Namespace) -> str | None:
    """The group whose id a plan need not name, None when there are several."""
    return options.groups[0] if len(options.groups) == 1 else None


def _read_plans(options: Namespace) -> plan_csv.Plans:
    if options.from_file is None:
        return {}
    try:
        return plan_csv.read(options.from_file.text, _only_group(options))
    except plan_csv.BadPlan as problem:
        raise UsageMistake(f"argument --from-file: {options.from_file.path}, {problem}") from None


async def _plan(admin: Admin, options: Namespace, group_id: str, plan_file: plan_csv.Plans) -> resets.Plan:
    scenario = _scenario(options, group_id, plan_file)
    if isinstance(scenario, resets.ToPlan):
        partitions = list(scenario.offsets)
    elif options.all_topics:
        partitions = list(await resets.committed_offsets(admin, group_id))
    else:
        await _refuse_topics(admin, [resets.parse_topic_argument(argument)[0] for argument in options.topic])
        partitions = await resets.partitions_of(admin, options.topic)
    await _refuse_topics(admin, [partition.topic for partition in partitions])
    await resets.check_partitions(admin, partitions)
    return await resets.resolve(admin, group_id, partitions, scenario)


async def _refuse_topics(admin: Admin, topics: Iterable[str]) -> None:
    """Raise TopicFailure, which names the topic, for the first that cannot be described."""
    names = list(dict.fromkeys(topics))
    described = await describe_topics(admin, names) if names else Batch()
    for topic, failure in described.failed.items():
        raise TopicFailure(topic, failure)


def _scenario(options: Namespace, group_id: str, plan_file: plan_csv.Plans) -> resets.Scenario:
    if options.from_file is not None:
        if group_id not in plan_file:
            raise NoPlan(group_id, options.from_file.path)
        return resets.ToPlan(plan_file[group_id])
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


def _reset_rows(plan: resets.Plan) -> Iterable[Row]:
    notes = {note.partition: note for note in plan.notes}
    for partition in sorted(plan.offsets):
        commit = plan.committed.get(partition)
        yield {
            "group": plan.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": commit.offset if commit else None,
            "new_offset": plan.offsets[partition].offset,
            "note": _note(notes.get(partition)),
        }


def _note(note: resets.Note | None) -> str | None:
    if note is None or note.kind is resets.NoteKind.NOTHING_LATER:
        return note.kind.value if note else None
    return f"{note.asked} is {note.kind.value}"


async def delete_offsets(admin: Admin, options: Namespace) -> Report:
    """Committed offsets that are gone now; partitions without one are a problem."""
    batch = await delete_committed(admin, options.group, options.topic)
    rows: list[Row] = [
        {"group": options.group, "topic": topic, "partition": partition, "deleted_offset": offset}
        for (topic, partition), offset in sorted(batch.done.items())
    ]
    problems = [_problem(options.group, failure, place) for place, failure in batch.failed.items()]
    return Report("deleted", ["group", "topic", "partition", "deleted_offset"], rows, problems)


async def delete(admin: Admin, options: Namespace) -> Report:
    """Groups that are gone now. Only consumer groups are deleted."""
    batch = await delete_groups(admin, options.groups)
    rows: list[Row] = [{"group": group_id} for group_id in sorted(batch.done)]
    return Report("deleted", ["group"], rows, [_problem(group_id, why) for group_id, why in batch.failed.items()])


async def _group_ids(admin: Admin, options: Namespace) -> list[str]:
    if not options.all_groups:
        return list(options.groups)
    listings = await admin.list_groups(types=CONSUMER_TYPES, protocol_types=CONSUMER_PROTOCOLS)
    return sorted(listings.all())


def _problem(
    group_id: str | None, failure: Failure | ClientError, place: TopicPartition | str | None = None
) -> Problem:
    name = failure.name if isinstance(failure, KafkaError) else _CAPITAL.sub("_", type(failure).__name__).upper()
    topic, partition = place if isinstance(place, TopicPartition) else (place, None)
    return Problem(name, str(failure), group_id, topic, partition)


def _text(value: GroupState | GroupType | None) -> str | None:
    return None if value is None else str(value)
