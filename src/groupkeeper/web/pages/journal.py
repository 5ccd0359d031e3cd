"""The pages of the journal, of one change, and of the plans in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape

from groupkeeper import shell
from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.operations.plans.changes import ApplyResult, ChangeSummary, Recorded, maker_of
from groupkeeper.operations.plans.model import Change
from groupkeeper.rules import words
from groupkeeper.web.actions import why_left_out
from groupkeeper.web.changes.desk import DeskEntry, DeskStage
from groupkeeper.web.changes.record import ChangeRecord
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.order import ROWS, Order
from groupkeeper.web.pages.parts import Viewer
from groupkeeper.web.pages.plan import COLUMNS, PartitionOutcome, subject_of

_MOST_NAMES = 3
_MOST_ROWS = 2000
_LONGEST_TEXT = 300

_TOP = [("Consumer groups", "/")]


def journal_page(
    record: ChangeRecord, changes: Sequence[ChangeSummary], parameters: Mapping[str, str], viewer: Viewer
) -> str:
    """The page of the journal. `parameters`: of the URL, with any text."""
    group = parameters.get("group", "")[:_LONGEST_TEXT]
    order = Order.of(parameters)
    wanted = [each for each in changes if not group or group in each.groups]

    link = partial(parts.url, "/journal", group=group)
    form = (
        f'<form method="get" action="/journal"><label>group<input type="search" name="group" value="{escape(group)}"/>'
        '</label><button type="submit">Show</button></form>'
    )
    told = record.said_to(viewer.person)
    problem = f'<p class="banner bad">{markup.sentence(told)}</p>' if told else ""
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


_CHANGES: Sequence[PageColumn[tuple[ChangeRecord, ChangeSummary]]] = [
    PageColumn("when", lambda of: _link_to(of[1].head.id, words.moment(of[1].head.time_ms)), "t"),
    PageColumn("what", lambda of: markup.text(of[1].head.kind), "t"),
    PageColumn("names", lambda of: words.several([*map(markup.text, of[1].names)], _MOST_NAMES), "name"),
    PageColumn("cluster", lambda of: markup.text(of[0].cluster(of[1].head) or of[1].head.cluster_id), "t"),
    PageColumn("by", lambda of: markup.text(of[1].head.user), "name"),
    PageColumn("result", lambda of: str(of[1].result), "t"),
    PageColumn("undone by", lambda of: "" if of[1].undone_by is None else _link_to(of[1].undone_by), "t"),
    number_column("partitions", lambda of: of[1].partition_count),
]


def changes_table(record: ChangeRecord, changes: Sequence[ChangeSummary]) -> str:
    """Changes as a table."""
    return markup.table(_CHANGES, [(record, each) for each in changes[:ROWS]], "changes")


def _link_to(change_id: str, name: str = "") -> str:
    """The link to a change; `name` "": its id."""
    return f'<a href="{parts.url("/journal/change", id=change_id)}">{markup.text(name or change_id)}</a>'


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
    """The page of a change. `may_undo`: whether this person may undo it. `unseen`: a group of it that this server
    leaves out; then it can only be undone by `command`.
    """
    head = recorded.head
    tone, summary = _OUTCOMES[recorded.result]
    broken = f" {words.counted(recorded.broken, 'line')} about it cannot be read." if recorded.broken else ""
    cluster = record.cluster(head)
    pairs = [
        ("what", markup.text(head.kind)),
        ("when", words.moment(head.time_ms)),
        ("cluster", markup.text(cluster or head.cluster_id)),
        (f"{head.subject}s", words.number(len(recorded.groups))),
    ]
    undo = ""
    if unseen:
        undo = (
            f"<p>{markup.sentence(why_left_out(unseen))} The undo is a command: "
            f"<code>{escape(shell.text(command))}</code></p>"
        )
    elif may_undo and cluster is not None:
        undo = parts.undo_form(viewer, cluster, head.id)
    earlier = "" if head.undoes is None else f"<p>It undoes {_link_to(head.undoes)}.</p>"
    body = (
        f'<p class="banner {tone}">{summary}{broken}</p><div class="card">{markup.numbers(pairs)}'
        f'<p class="note">By {markup.sentence(maker_of(head))}. As a command: '
        f"<code>{escape(shell.text(head.command))}</code></p></div>{earlier}"
        f'<div class="actions">{undo}</div><h2>Partitions</h2>{_partitions(recorded)}'
    )
    return parts.page(f"Change {head.id}", body, [*_TOP, ("journal", "/journal")], viewer)


_PARTITIONS: Sequence[PageColumn[PartitionOutcome]] = [
    *COLUMNS[:5],
    PageColumn("problem", lambda each: markup.sentence(each.result), "why"),
]


def _partitions(recorded: Recorded) -> str:
    errors = {(one.group_id, one.topic, one.partition): f"{one.error}: {one.message}" for one in recorded.lost}
    rows = [
        PartitionOutcome(name, tp, Change(*pair), errors.get((name, *tp)) or errors.get((name, None, None)) or " ")
        for name, pairs in recorded.groups.items()
        for tp, pair in pairs.items()
    ]
    columns = [_PARTITIONS[0]._replace(title=str(recorded.head.subject)), *_PARTITIONS[1:]]
    return markup.table(columns, rows, "partitions", most=_MOST_ROWS)


_PLANS: Sequence[PageColumn[DeskEntry]] = [
    PageColumn("made", lambda each: f'<a href="{parts.url("/plan", id=each.id)}">{words.moment(each.plan.made_ms)}</a>',
               "t"),
    PageColumn("what", lambda each: str(each.plan.kind), "t"),
    PageColumn("group", lambda each: markup.text(subject_of(each)), "name"),
    PageColumn("cluster", lambda each: markup.text(each.cluster), "t"),
    PageColumn("by", lambda each: markup.text(each.made_by), "name"),
    PageColumn("how far", lambda each: _how_far(each), "t"),
    PageColumn("change", lambda each: _link_to(each.change_id) if each.change_id else "", "t"),
]  # fmt: skip


def plans_page(entries: Sequence[DeskEntry], viewer: Viewer) -> str:
    """The page of the plans in memory, the latest first."""
    note = (
        '<p class="soft">Plans that were made from pages since the server was started, the latest first. '
        '<a href="/journal">The journal</a> has all changes.</p>'
    )
    table = markup.table(_PLANS, entries, "plans", none="There are none.")
    return parts.page("Plans", note + table, _TOP, viewer)


def _how_far(entry: DeskEntry) -> str:
    if entry.stage is not DeskStage.PLANNED:
        return "applied in part" if entry.applied is not None and entry.applied.troubles else str(entry.stage)
    return "fits" if entry.can_be_applied else "does not fit"
