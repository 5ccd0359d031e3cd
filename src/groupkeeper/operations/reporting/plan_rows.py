"""Plans, their outcomes, and the changes of the journal as rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupkeeper import shell
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.changes import ChangeSummary, Recorded
from groupkeeper.operations.plans.model import Change, GroupPlan, Subject
from groupkeeper.operations.reporting.group_rows import Row
from groupkeeper.operations.selection import Names
from groupkeeper.operations.times import utc_text
from groupkeeper.rules.words import several

ALREADY = "already"
"""The result where there is nothing to change."""

_NAMED_GROUPS = 3


def change_rows(groups: Iterable[GroupPlan]) -> Iterable[Row]:
    """A plan as rows of CHANGES."""
    for group in groups:
        for tp, change in group.changes.items():
            yield {
                **_outcome(group.group_id, tp, change.before, change.after),
                **_meaning(change),
                "log_start_offset": change.log_start_offset,
                "log_end_offset": change.log_end_offset,
                "state": group.state,
                "certainty": change.certainty or None,
                "why": change.why,
            }


def reset_row(group: GroupPlan, tp: TopicPartition, note: str | None, result: str) -> Row:
    """A row of NEW_OFFSETS."""
    change = group.changes[tp]
    return {
        "group": group.group_id,
        "topic": tp.topic,
        "partition": tp.partition,
        "committed_offset": _offset(change.before),
        "new_offset": _offset(change.after),
        "note": note,
        **_meaning(change),
        "result": result,
    }


def _meaning(change: Change) -> Row:
    """How many records a change skips and reads again, and the times of the records at both offsets."""
    return {
        "skipped": change.skipped,
        "replayed": change.replayed,
        "before_time": _time(change.before_ms),
        "after_time": _time(change.after_ms),
    }


def outcome_rows(groups: Iterable[GroupPlan]) -> Iterable[Row]:
    """Changes that were made, as rows of OUTCOMES."""
    for group in groups:
        for tp, change in group.changes.items():
            yield {**_outcome(group.group_id, tp, change.before, change.after), "result": "applied"}


def already_rows(planned: Iterable[GroupPlan], already: Sequence[tuple[str, TopicPartition]]) -> Iterable[Row]:
    """Partitions that were already as planned, as rows of OUTCOMES."""
    changes = {group.group_id: group.changes for group in planned}
    for group_id, tp in already:
        now = changes[group_id][tp].after
        yield {**_outcome(group_id, tp, now, now), "result": ALREADY}


def history_row(summary: ChangeSummary) -> Row:
    """A change as a row of HISTORY."""
    head = summary.head
    return {
        "id": head.id,
        "time": utc_text(head.time_ms),
        "user": head.user,
        "host": head.host,
        "principal": head.principal or None,
        "cluster_id": head.cluster_id,
        "kind": head.kind,
        "groups": len(summary.groups),
        "partitions": summary.partition_count,
        "names": several(summary.names, _NAMED_GROUPS),
        "result": str(summary.result) if summary.undone_by is None else "undone",
        "undone_by": summary.undone_by,
        "command": shell.text(head.command),
        "cluster": None,
    }


def recorded_rows(recorded: Recorded, only: Names) -> Iterable[Row]:
    """A change in full, as rows of RECORDED. `only`: the groups to show."""
    errors = {(one.group_id, one.topic, one.partition): one.error for one in recorded.lost}
    is_group = recorded.head.subject is Subject.GROUP
    for group_id, pairs in recorded.groups.items():
        if only and not (is_group and only.matches(group_id)):
            continue
        for tp, (before, after) in pairs.items():
            error = errors.get((group_id, *tp), errors.get((group_id, None, None)))
            yield {
                **_outcome(group_id if is_group else None, tp, before, after),
                "transaction": None if is_group else group_id,
                "error": error,
            }


def _outcome(
    group_id: str | None, tp: TopicPartition, before: OffsetAndMetadata | None, after: OffsetAndMetadata | None
) -> Row:
    offsets = {"before": _offset(before), "after": _offset(after)}
    return {"group": group_id, "topic": tp.topic, "partition": tp.partition, **offsets}


def _offset(commit: OffsetAndMetadata | None) -> int | None:
    return None if commit is None else commit.offset


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else utc_text(time_ms)
