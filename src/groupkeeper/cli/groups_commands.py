"""``groupkeeper groups …``: each command asks operations and reports rows, with what failed beside the rest."""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from groupkeeper.cli.output import complain, say
from groupkeeper.cli.properties import BadEscape, read_properties
from groupkeeper.cli.reports import Problem, Report, Row, as_json, as_table, problems_text
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
from groupkeeper.operations.times import parse_datetime, parse_duration
from groupkeeper.protocol.errors import KafkaError

Command = Callable[[Admin, Namespace], Awaitable[Report]]

CONSUMER_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)
CONSUMER_PROTOCOLS = ("", "consumer")


def run(options: Namespace) -> int:
    """Carry out the command of the options, print its report, and give the exit status."""
    try:
        report = asyncio.run(_run(options))
    except (KafkaError, ClientError, OSError, ValueError) as problem:
        complain(f"error: {problem}\n")
        return 1
    if options.output == "json":
        say(as_json(report, encoding=sys.stdout.encoding))
    else:
        say(as_table(report))
        complain(problems_text(report))
    return report.exit_status


async def _run(options: Namespace) -> Report:
    properties = {}
    if options.command_config:
        try:
            properties = read_properties(options.command_config)
        except (OSError, BadEscape) as problem:
            raise IllegalArgument(f"cannot read --command-config {options.command_config}: {problem}") from None
    admin = Admin(options.bootstrap_server, properties=properties, default_timeout_ms=options.timeout)
    command: Command = options.command
    async with admin:
        return await command(admin, options)


async def list_groups(admin: Admin, options: Namespace) -> Report:
    """Groups by id. A broker that cannot be asked is a problem, and the others' groups are shown (K518-33)."""
    listings = await admin.list_groups(
        states=_parsed(options.state, GroupState),
        types=_parsed(options.type, GroupType) or CONSUMER_TYPES,
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
    problems = [_problem(f"broker {node.id}", failure) for node, failure in listings.failed.items()]
    return Report("groups", ["group", "type", "state"], rows, problems)


async def describe(admin: Admin, options: Namespace) -> Report:
    """Offsets, members or states of groups. A group that cannot be described is a problem beside the others."""
    described = await admin.describe_consumer_groups(await _group_ids(admin, options))
    groups = sorted(described.done.values(), key=lambda group: group.group_id)
    problems = [_problem(group_id, failure) for group_id, failure in sorted(described.failed.items())]
    if options.view == "state":
        return Report("groups", STATE_COLUMNS, [_state_row(group) for group in groups], problems)
    if options.view == "members":
        rows = [row for group in groups for row in _member_rows(group)]
        return Report("members", MEMBER_COLUMNS, rows, problems, _without_members(groups))
    offsets = await describe_offsets(admin, groups)
    problems += [_problem(group_id, failure) for group_id, failure in offsets.failed.items()]
    rows = []
    for group in groups:
        if group.group_id in offsets.done:
            rows += _offset_rows(offsets.done[group.group_id])
            problems += _row_problems(offsets.done[group.group_id])
    return Report("offsets", OFFSET_COLUMNS, rows, problems, _without_members(groups))


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
        "assignor": group.partition_assignor,
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
            "assignment": [str(partition) for partition in sorted(member.assignment)],
            "target_assignment": [str(partition) for partition in sorted(member.target_assignment or ())],
        }


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


def _without_members(groups: Sequence[ConsumerGroupDescription]) -> list[str]:
    return [f"group {group.group_id} has no members" for group in groups if not group.members]


async def reset(admin: Admin, options: Namespace) -> Report:
    """New offsets of groups, committed with --execute. What is refused for one group doesn't keep the others."""
    group_ids = await _group_ids(admin, options)
    described = await admin.describe_consumer_groups(group_ids)
    plan_file = _read_plans(options, group_ids)
    rows: list[Row] = []
    problems: list[Problem] = []
    for group_id in sorted(set(group_ids)):
        try:
            resets.refuse_active(group_id, described)
            plan = await _plan(admin, options, group_id, plan_file)
            refused: Batch[TopicPartition, None] = await resets.apply(admin, plan) if options.execute else Batch()
        except (KafkaError, ClientError) as failure:
            problems.append(_problem(group_id, failure))
            continue
        problems += [_problem(group_id, failure, partition) for partition, failure in refused.failed.items()]
        rows += [row for row in _reset_rows(plan) if (row["topic"], row["partition"]) not in refused.failed]
    remarks = [] if options.execute else ["nothing is changed yet: add --execute to commit the new offsets"]
    return Report("offsets", RESET_COLUMNS, rows, problems, remarks)


def _read_plans(options: Namespace, group_ids: Sequence[str]) -> plan_csv.Plans:
    if options.from_file is None:
        if not options.all_topics and not options.topic:
            raise IllegalArgument("name the partitions to reset: --all-topics or --topic")
        return {}
    text = Path(options.from_file).read_text("utf-8")
    return plan_csv.read(text, group_ids[0] if len(group_ids) == 1 else None)


async def _plan(admin: Admin, options: Namespace, group_id: str, plan_file: plan_csv.Plans) -> resets.Plan:
    scenario = _scenario(options, group_id, plan_file)
    if isinstance(scenario, resets.ToPlan):
        partitions = list(scenario.offsets)
    elif options.all_topics:
        partitions = list(await resets.committed_offsets(admin, group_id))
    else:
        partitions = await resets.partitions_of(admin, options.topic)
    await resets.check_partitions(admin, partitions)
    return await resets.resolve(admin, group_id, partitions, scenario)


def _scenario(options: Namespace, group_id: str, plan_file: plan_csv.Plans) -> resets.Scenario:
    if options.from_file is not None:
        if group_id not in plan_file:
            raise NoPlan(group_id)
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
        return resets.ToTime(parse_datetime(options.to_datetime))
    return resets.ToTime(parse_duration(options.by_duration).before_ms(time.time_ns()))


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


def _parsed(text: str | None, kind: type[GroupState] | type[GroupType]) -> list[GroupState | GroupType]:
    parsed = [kind.parse(part.strip()) for part in text.split(",")] if text else []
    if kind.UNKNOWN in parsed:
        known = ", ".join(str(each) for each in kind if each is not kind.UNKNOWN)
        raise IllegalArgument(f"{text!r}: expected some of {known}")
    return parsed


def _problem(group_id: str, failure: Failure | ClientError, place: TopicPartition | str = "") -> Problem:
    name = failure.name if isinstance(failure, KafkaError) else type(failure).__name__
    return Problem(group_id, str(place), name, str(failure))


def _text(value: GroupState | GroupType | None) -> str | None:
    return None if value is None else str(value)
