"""The journal, one change of it, and the plans in memory."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape

from groupkeeper.operations.plans.changes import ApplyResult, ChangeSummary, Recorded, maker_of
from groupkeeper.pipeline.report import words
from groupkeeper.web.changes.desk import DeskEntry, DeskStage
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.order import ROWS, Order
from groupkeeper.web.pages.parts import PageCell, Viewer

_MOST_NAMES = 3
_MOST_ROWS = 2000
_LONGEST_TEXT = 300

_TOP = [("Consumer groups", "/")]


def journal_page(
    record: ChangeRecord, changes: Sequence[ChangeSummary], parameters: Mapping[str, str], viewer: Viewer
) -> str:
    """The list. ``parameters``: of the address; anything may be in them."""
    group = parameters.get("group", "")[:_LONGEST_TEXT]
    order = Order.of(parameters, (), "")
    wanted = [each for each in changes if not group or group in each.groups]

    def link(other: Mapping[str, str | int]) -> str:
        return parts.url("/journal", **{"group": group, **other})

    form = (
        f'<form method="get" action="/journal"><label>group<input type="search" name="group" value="{escape(group)}"/>'
        '</label><button type="submit">Show</button></form>'
    )
    told = "" if viewer.person is None else record.said_to(viewer.person)
    problem = f'<p class="verdict bad">{parts.sentence(told)}</p>' if told else ""
    broken = f" {words.counted(record.broken, 'line')} of it cannot be read." if record.broken else ""
    older = ""
    if record.left_out:
        older = f" {words.counted(record.left_out, 'older change')} not shown: the command groupkeeper history has all."
    summary = (
        f"{words.counted(len(wanted), 'change')} in the journal, by commands and from pages, the latest first."
        f"{older}{broken}"
    )
    table = changes_table(record, order.cut(wanted)) if wanted else ""
    body = f'{problem}{form}<p class="soft">{summary}</p>{table}{order.turning(len(wanted), link)}'
    return parts.page("Journal of changes", body, _TOP, viewer)


def changes_table(record: ChangeRecord, changes: Sequence[ChangeSummary]) -> str:
    """Changes as a table."""
    heads = [
        *map(parts.head, ("when", "what", "names", "cluster", "by", "result", "undone by")),
        parts.head("partitions", "n"),
    ]
    return parts.table(heads, (_change_cells(record, each) for each in changes[:ROWS]), "changes")


def _change_cells(record: ChangeRecord, change: ChangeSummary) -> Sequence[PageCell]:
    head = change.head
    more = len(change.names) - _MOST_NAMES
    names = ", ".join(map(parts.text, change.names[:_MOST_NAMES]))
    undone = "" if change.undone_by is None else _link_to(change.undone_by)
    return (
        PageCell(f'<a href="{parts.url("/journal/change", id=head.id)}">{parts.moment(head.time_ms)}</a>', "t"),
        PageCell(parts.text(head.kind), "t"),
        PageCell(f"{names} and {more:,} more" if more > 0 else names, "name"),
        PageCell(parts.text(record.cluster(head) or head.cluster_id), "t"),
        PageCell(parts.text(head.user), "name"),
        PageCell(str(change.result), "t"),
        PageCell(undone, "t"),
        parts.number(change.partition_count),
    )


def _link_to(change_id: str) -> str:
    return f'<a href="{parts.url("/journal/change", id=change_id)}">{parts.text(change_id)}</a>'


_UNFINISHED = (
    "No outcome is recorded: the program ended, or is still running. Some, all or none of it may be committed; an undo "
    "compares it with the cluster."
)
_OUTCOMES = {
    ApplyResult.APPLIED: ("good", "Applied."),
    ApplyResult.PARTLY: ("bad", "Not all of the change succeeded, or no reply came for a part of it."),
    ApplyResult.REFUSED: ("bad", "Refused: nothing was changed."),
    ApplyResult.UNFINISHED: ("bad", _UNFINISHED),
}


def change_made_page(
    record: ChangeRecord,
    recorded: Recorded,
    viewer: Viewer,
    *,
    may_undo: bool,
    unseen: str = "",
    command: Sequence[str] = (),
) -> str:
    """A change with everything in it. ``may_undo``: whether this person may take it back. ``unseen``: a group of it
    that this server leaves out, so that it is not taken back from here, but by this command.
    """
    head = recorded.head
    tone, summary = _OUTCOMES[recorded.result]
    broken = f" {words.counted(recorded.broken, 'line')} about it cannot be read." if recorded.broken else ""
    cluster = record.cluster(head)
    pairs = [
        ("what", parts.text(head.kind)),
        ("when", parts.moment(head.time_ms)),
        ("cluster", parts.text(cluster or head.cluster_id)),
        (f"{head.subject}s", words.number(len(recorded.groups))),
    ]
    undo = ""
    if unseen:
        undo = (
            f"<p>{parts.sentence(scope.is_left_out(unseen))} The undo is a command: "
            f"<code>{escape(shlex.join(command))}</code></p>"
        )
    elif may_undo and cluster is not None:
        fields = viewer.sealed({"cluster": cluster, "change": head.id})
        undo = f'<form method="post" action="/undo">{fields}<button type="submit">Plan the undo</button></form>'
    earlier = "" if head.undoes is None else f"<p>It undoes {_link_to(head.undoes)}.</p>"
    body = (
        f'<p class="verdict {tone}">{summary}{broken}</p><div class="card">{parts.numbers(pairs)}'
        f'<p class="note">By {parts.sentence(maker_of(head))}. As a command: '
        f"<code>{escape(shlex.join(head.command))}</code></p></div>{earlier}"
        f'<div class="actions">{undo}</div><h2>Partitions</h2>{_places(recorded)}'
    )
    return parts.page(f"Change {head.id}", body, [*_TOP, ("journal", "/journal")], viewer)


def _places(recorded: Recorded) -> str:
    errors = {(one.group_id, one.topic, one.partition): f"{one.error}: {one.message}" for one in recorded.lost}
    rows = [
        (
            PageCell(parts.text(group_id), "name"),
            PageCell(parts.text(place.topic), "name"),
            PageCell(str(place.partition), "n"),
            PageCell("none" if before is None else words.number(before.offset), "n"),
            PageCell("deleted" if after is None else words.number(after.offset), "n"),
            PageCell(
                parts.sentence(errors.get((group_id, *place)) or errors.get((group_id, None, None)) or " "), "why"
            ),
        )
        for group_id, pairs in recorded.groups.items()
        for place, (before, after) in pairs.items()
    ]
    heads = [
        *map(parts.head, (recorded.head.subject, "topic")),
        *(parts.head(name, "n") for name in ("partition", "before", "after")),
        parts.head("problem"),
    ]
    left = len(rows) - _MOST_ROWS
    more = f'<p class="note">The first {_MOST_ROWS:,} of {len(rows):,}.</p>' if left > 0 else ""
    return more + parts.table(heads, rows[:_MOST_ROWS], "partitions")


def plans_page(entries: Sequence[DeskEntry], viewer: Viewer) -> str:
    """The plans that are held, the latest first."""
    heads = [parts.head(name) for name in ("made", "what", "group", "cluster", "by", "how far", "change")]
    rows = [
        (
            PageCell(f'<a href="{parts.url("/plan", id=each.id)}">{parts.moment(each.plan.made_ms)}</a>', "t"),
            PageCell(str(each.plan.kind), "t"),
            PageCell(
                parts.text(each.group_ids[0]) if len(each.group_ids) == 1
                else words.counted(len(each.group_ids), "group"),
                "name",
            ),
            PageCell(parts.text(each.cluster), "t"),
            PageCell(parts.text(each.made_by), "name"),
            PageCell(_how_far(each), "t"),
            PageCell(_link_to(each.change_id) if each.change_id else "", "t"),
        )
        for each in entries
    ]  # fmt: skip
    note = (
        '<p class="soft">Plans that were made from pages since the server was started, the latest first. '
        '<a href="/journal">The journal</a> has all changes.</p>'
    )
    table = parts.table(heads, rows, "plans") if rows else '<p class="soft">There are none.</p>'
    return parts.page("Plans", note + table, _TOP, viewer)


def _how_far(entry: DeskEntry) -> str:
    if entry.stage is not DeskStage.PLANNED:
        return "applied in part" if entry.applied is not None and entry.applied.troubles else str(entry.stage)
    return "fits" if entry.can_be_applied else "does not fit"
