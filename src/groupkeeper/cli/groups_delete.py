"""``groupkeeper groups delete`` and ``delete-offsets``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from groupkeeper.cli import values
from groupkeeper.cli.clusters import Asking, Report, add_cluster, run_report
from groupkeeper.cli.commands import Command
from groupkeeper.cli.groups_arguments import add_filters, add_groups, names_of, selected, with_suggestions
from groupkeeper.cli.groups_shapes import DELETED_GROUPS, DELETED_OFFSETS
from groupkeeper.cli.journalling import own_recorder
from groupkeeper.cli.reports import Page, Row, problem_of
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.authorization import Deed
from groupkeeper.operations.delete import delete_committed, delete_groups
from groupkeeper.protocol.errors import GroupIdNotFound, KafkaError

if TYPE_CHECKING:
    from groupkeeper.cli.commands import ArgumentParser

_GROUPS_AT_A_TIME = 500


def _add_delete_offsets(command: ArgumentParser) -> None:
    command.add_argument("group", metavar="GROUP", help="the group")
    command.add_argument(
        "--topic", action="append", required=True, type=values.topic, metavar="TOPIC[:0,1]", help="repeat for several"
    )
    add_cluster(command)


async def _offset_pages(asking: Asking) -> AsyncIterator[Page]:
    """Committed offsets that are gone now; partitions without one are a problem."""
    group_id = asking.options.group
    remarks: list[str] = []
    try:
        recorder = own_recorder(asking.options, remarks)
        batch = await delete_committed(asking.admin, group_id, asking.options.topic, recorder)
    except GroupIdNotFound as failure:
        yield Page(problems=await with_suggestions(asking, {group_id: failure}))
        return
    except KafkaError as failure:
        yield Page(problems=[problem_of(failure, Deed.DELETE_OFFSETS, group=group_id)])
        return
    rows: list[Row] = [
        {"group": group_id, "topic": topic, "partition": partition, "deleted_offset": offset}
        for (topic, partition), offset in sorted(batch.done.items())
    ]
    problems = []
    for place, why in batch.failed.items():
        topic, partition = place if isinstance(place, TopicPartition) else (place, None)
        problems.append(problem_of(why, Deed.DELETE_OFFSETS, group=group_id, topic=topic, partition=partition))
    yield Page(rows, problems, remarks)


def _add_delete(command: ArgumentParser) -> None:
    add_groups(command)
    add_filters(command)
    command.add_argument(
        "--execute", action="store_true", help="delete also what is not named exactly, but by a pattern or --all-groups"
    )
    add_cluster(command)


def _is_executed(options: Namespace) -> bool:
    names = names_of(options, "groups")
    return bool(options.execute or (names.exact and not names.patterns))


async def _group_pages(asking: Asking) -> AsyncIterator[Page]:
    """Groups that are gone now. Only consumer groups are deleted."""
    selection, said = await selected(asking)
    if not _is_executed(asking.options):
        if selection.group_ids:
            hint = "nothing is deleted yet: add --execute to delete these groups with their offsets"
            said = said._replace(remarks=[*said.remarks, hint])
        yield said._replace(rows=[{"group": group_id} for group_id in selection.group_ids])
        return
    remarks = list(said.remarks)
    recorder = own_recorder(asking.options, remarks)
    for start in range(0, len(selection.group_ids), _GROUPS_AT_A_TIME):
        asking.progress.say(f"deleting groups: {start} of {len(selection.group_ids)}")
        some = selection.group_ids[start : start + _GROUPS_AT_A_TIME]
        batch = await delete_groups(asking.admin, some, recorder)
        problems = await with_suggestions(asking, batch.failed, Deed.DELETE)
        yield Page([{"group": group_id} for group_id in sorted(batch.done)], problems)
    yield said._replace(remarks=remarks, more={"executed": True})


DELETE_OFFSETS = Command(
    _add_delete_offsets, lambda options: run_report(options, lambda _: Report(DELETED_OFFSETS, _offset_pages))
)

DELETE = Command(
    _add_delete,
    lambda options: run_report(options, lambda _: Report(DELETED_GROUPS, _group_pages, more={"executed": False})),
    "Delete groups without members, with their offsets. Groups named exactly are deleted at once; what a pattern or "
    "--all-groups stands for is only shown, unless --execute is given.",
)
