"""The rows that the commands on plans and the journal report, column by column, and how they are made."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from groupkeeper.cli.framework.reports import CLUSTER, Column, Row, Shape
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.journal import Recorded, Summary
from groupkeeper.operations.plans.model import Change, GroupPlan, Subject
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import utc_text

_NAMED_GROUPS = 3

_PLACE = (Column("group", "the group's id"), Column("topic", ""), Column("partition", ""))

CHANGES = Shape(
    "plan",
    "changes",
    [
        *_PLACE,
        Column("before", "the committed offset; null: nothing is committed"),
        Column("after", "the planned offset; null: it is deleted"),
        Column(
            "skipped",
            "the number of offsets skipped, counted from the offset before; in a clone from another cluster, the "
            "greatest possible number of skipped records that the source group has not read; null: not known",
            goes=1,
        ),
        Column("replayed", "the number of offsets read again, counted likewise; null: not known", goes=1),
        Column("before_time", "of the record at the offset before; null: there is none, or it isn't known", goes=5),
        Column("after_time", "of the record at the planned offset; null: there is none, or it isn't known", goes=4),
        Column("log_start_offset", "where the log begins", goes=6),
        Column("log_end_offset", "where the log ends", goes=7),
        Column("state", "of the group", in_table=False),
        Column(
            "certainty",
            "how the offset was translated from another log: `identity`, `header`, `sync`, `content` (exact), "
            "`bounded`, or `time`; "
            "null: it is not from another log",
            goes=2,
        ),
        Column("why", "", goes=3),
    ],
)

OUTCOMES = Shape(
    "outcome",
    "changes",
    [
        *_PLACE,
        Column("before", "what was committed before; null: nothing"),
        Column("after", "what is committed now, read back, or would be; null: nothing"),
        Column("result", "`applied`, `would be applied`, or `already`: there was nothing to change"),
    ],
)

HISTORY = Shape(
    "history",
    "changes",
    [
        Column("id", "of the change: `groupkeeper undo ID` takes it back"),
        Column("time", ""),
        Column("user", "who made it", goes=2),
        Column("host", "on which machine", in_table=False),
        Column("principal", "the principal of that user for the brokers; null: not known", in_table=False),
        Column("cluster_id", "of the cluster; null: not known", goes=4),
        Column("kind", "`reset`, `undo`, `delete-offsets`, ..."),
        Column("groups", "how many"),
        Column("partitions", "of all groups together", goes=3),
        Column("names", "of the first groups, or of the transaction"),
        Column("result", "`applied`, `partly`, `refused`, or `unfinished`: no outcome is known"),
        Column("undone_by", "the id of the change that took it back; null: none did", goes=1),
        Column("command", "how it was made, without secrets", in_table=False),
        CLUSTER,
    ],
)

RECORDED = Shape(
    "recorded",
    "changes",
    [
        Column("group", "the group's id; null: it is of a transaction"),
        Column("transaction", "the name of the aborted transaction; null: it is of a group", goes=1),
        *_PLACE[1:],
        Column("before", "what was committed before; null: nothing"),
        Column("after", "what was to be committed; null: nothing"),
        Column("error", "why that failed; null: no failure is known"),
    ],
)


def change_rows(groups: Iterable[GroupPlan]) -> Iterable[Row]:
    """A plan as rows of CHANGES."""
    for group in groups:
        for place, change in group.changes.items():
            yield {
                "group": group.group_id,
                "topic": place.topic,
                "partition": place.partition,
                "before": _offset(change.before),
                "after": _offset(change.after),
                **_meaning(change),
                "log_start_offset": change.log_start_offset,
                "log_end_offset": change.log_end_offset,
                "state": group.state,
                "certainty": change.certainty or None,
                "why": change.why,
            }


def reset_row(group: GroupPlan, place: TopicPartition, note: str | None, result: str) -> Row:
    """A row of NEW_OFFSETS."""
    change = group.changes[place]
    return {
        "group": group.group_id,
        "topic": place.topic,
        "partition": place.partition,
        "committed_offset": _offset(change.before),
        "new_offset": _offset(change.after),
        "note": note,
        **_meaning(change),
        "result": result,
    }


def _meaning(change: Change) -> Row:
    """How much a change skips and reads again, and the times that it leads from and to."""
    return {
        "skipped": change.skipped,
        "replayed": change.replayed,
        "before_time": _time(change.before_ms),
        "after_time": _time(change.after_ms),
    }


def outcome_rows(groups: Iterable[GroupPlan]) -> Iterable[Row]:
    """Changes that were made, as rows of OUTCOMES."""
    for group in groups:
        for place, change in group.changes.items():
            offsets = {"before": _offset(change.before), "after": _offset(change.after)}
            yield {
                "group": group.group_id,
                "topic": place.topic,
                "partition": place.partition,
                **offsets,
                "result": "applied",
            }


def already_rows(planned: Iterable[GroupPlan], places: Sequence[tuple[str, TopicPartition]]) -> Iterable[Row]:
    """Places that were as planned before, as rows of OUTCOMES."""
    changes = {group.group_id: group.changes for group in planned}
    for group_id, place in places:
        now = _offset(changes[group_id][place].after)
        row: Row = {"group": group_id, "topic": place.topic, "partition": place.partition}
        yield {**row, "before": now, "after": now, "result": "already"}


def history_row(summary: Summary) -> Row:
    """A change as a row of HISTORY."""
    head = summary.head
    names = ", ".join(summary.names[:_NAMED_GROUPS])
    more = len(summary.names) - _NAMED_GROUPS
    return {
        "id": head.id,
        "time": utc_text(head.time_ms),
        "user": head.user,
        "host": head.host,
        "principal": head.principal or None,
        "cluster_id": head.cluster_id,
        "kind": head.kind,
        "groups": summary.group_count,
        "partitions": summary.partition_count,
        "names": f"{names} and {more} more" if more > 0 else names,
        "result": str(summary.result),
        "undone_by": summary.undone_by,
        "command": shlex.join(head.command),
        "cluster": None,
    }


def recorded_rows(recorded: Recorded, only: Names) -> Iterable[Row]:
    """A change with everything in it, as rows of RECORDED. ``only``: of these groups."""
    errors = {(one.group_id, one.topic, one.partition): one.error for one in recorded.lost}
    is_group = recorded.head.subject is Subject.GROUP
    for group_id, pairs in recorded.groups.items():
        if only and not (is_group and only.matches(group_id)):
            continue
        for place, (before, after) in pairs.items():
            error = errors.get((group_id, *place), errors.get((group_id, None, None)))
            yield {
                "group": group_id if is_group else None,
                "transaction": None if is_group else group_id,
                "topic": place.topic,
                "partition": place.partition,
                "before": _offset(before),
                "after": _offset(after),
                "error": error,
            }


def _offset(commit: OffsetAndMetadata | None) -> int | None:
    return None if commit is None else commit.offset


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else utc_text(time_ms)
