"""The page of a plan: each partition before and after, problems that prevent applying it, and its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from groupkeeper import shell
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.operations.plans.consequences import consequences, trouble_problem
from groupkeeper.operations.plans.model import Change, Kind, PlanTrouble
from groupkeeper.operations.plans.recorder import UNANSWERED
from groupkeeper.operations.problems import Attempt, Problem
from groupkeeper.rules import words
from groupkeeper.web.changes.desk import DeskEntry, DeskStage
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.parts import Viewer

_MOST_ROWS = 2000
_DEEDS = {Kind.DELETE: Attempt.DELETE_OFFSETS, Kind.DELETE_GROUPS: Attempt.DELETE}
_TITLES = {
    Kind.DELETE: "delete offsets of",
    Kind.DELETE_GROUPS: "delete",
    Kind.UNDO: "undo a change of",
    Kind.CLONE: "clone to",
    Kind.SWEEP: "sweep",
}


class PartitionOutcome(NamedTuple):
    """The change of a partition, and its outcome."""

    group_id: str
    tp: TopicPartition
    change: Change
    result: str


COLUMNS: Sequence[PageColumn[PartitionOutcome]] = [
    PageColumn("group", lambda each: markup.text(each.group_id), "name"),
    PageColumn("topic", lambda each: markup.text(each.tp.topic), "name"),
    PageColumn("partition", lambda each: str(each.tp.partition), "n"),
    PageColumn("before", lambda each: parts.offset(each.change.before, "none"), "n"),
    PageColumn("after", lambda each: parts.offset(each.change.after, "deleted"), "n"),
    number_column("skipped", lambda each: each.change.skipped),
    number_column("read again", lambda each: each.change.replayed),
    PageColumn("record before", lambda each: words.moment(each.change.before_ms), "t"),
    PageColumn("record after", lambda each: words.moment(each.change.after_ms), "t"),
    number_column("log start", lambda each: each.change.log_start_offset),
    number_column("log end", lambda each: each.change.log_end_offset),
    PageColumn("certainty", lambda each: markup.text(each.change.certainty), "t"),
    PageColumn("why", lambda each: markup.sentence(each.change.why), "why"),
    PageColumn("result", lambda each: each.result, "t"),
]


def plan_page(entry: DeskEntry, viewer: Viewer, *, may_change: bool) -> str:
    """The whole page. `may_change`: whether this person may apply it."""
    groups = entry.group_ids
    of = subject_of(entry)
    crumbs = parts.way_to(entry.cluster)
    if len(groups) == 1:
        crumbs.append((of, parts.url("/group", cluster=entry.cluster, group=of)))
    problems, notes = problems_of(entry), notes_of(entry)
    body = (
        f"{_headline(entry, problems)}{parts.problems(problems, 50, 'why', with_group=True)}{_facts(entry)}"
        f"{_list(notes)}{_actions(entry, viewer, may_change=may_change)}<h2>Partitions</h2>{_table(entry)}"
    )
    return parts.page(f"Plan: {_TITLES.get(entry.plan.kind, str(entry.plan.kind))} {of}", body, crumbs, viewer)


def subject_of(entry: DeskEntry) -> str:
    """The group of a plan, or their number."""
    groups = entry.group_ids
    return groups[0] if len(groups) == 1 else words.counted(len(groups), "group")


def problems_of(entry: DeskEntry) -> list[Problem]:
    """The problems that keep parts of a plan from being made or applied."""
    return [trouble_problem(each, _DEEDS.get(entry.plan.kind, Attempt.COMMIT)) for each in _troubles(entry)]


def notes_of(entry: DeskEntry) -> list[str]:
    """The consequences of a plan, and the notes of its making and applying."""
    return [*consequences(entry.plan.groups, is_share=entry.is_of_share_groups), *entry.notes]


def _troubles(entry: DeskEntry) -> Sequence[PlanTrouble]:
    if entry.applied is not None:
        return entry.applied.troubles
    return (*entry.made.troubles, *entry.fit.troubles)


def _headline(entry: DeskEntry, problems: Sequence[Problem]) -> str:
    tone, text = outcome_of(entry, problems)
    return f'<p class="banner {tone}" role="status">{markup.sentence(text)}</p>'


def outcome_of(entry: DeskEntry, problems: Sequence[Problem]) -> tuple[str, str]:
    """The state of a plan: good, bad or none, and a sentence."""
    applied = entry.applied
    if entry.stage is DeskStage.APPLYING:
        return "none", "The plan is being applied. Load the page again to see the outcome."
    if entry.stage is DeskStage.APPLIED and applied is None:
        return (
            "bad",
            "The outcome is not known: some, all or none of the plan may be applied. The journal has the change.",
        )
    if applied is not None:
        done = sum(len(group.changes) for group in applied.done)
        what = f"Applied by {entry.applied_by} and read back: {words.counted(done, 'partition')}"
        what += f"; {len(applied.already)} needed no change" if applied.already else ""
        if entry.is_deletion_of_group and not applied.troubles:
            return "good", f"Deleted by {entry.applied_by}, with {words.counted(done, 'offset')}."
        if not applied.troubles:
            return "good", f"{what}."
        if any(isinstance(trouble.failure, UNANSWERED) for trouble in applied.troubles):
            unknown = "No reply came for a part of the change: it may or may not have been made."
            return "bad", f"{unknown} An undo checks, and restores the offsets."
        if not done:
            return "bad", f"Refused: nothing was changed for {entry.applied_by}."
        return "bad", f"{what}. Not all of the plan succeeded."
    if entry.made.is_refused:
        return "bad", "No plan is made, as the form demands in this case."
    if entry.can_be_applied:
        return ("none" if problems else "good"), "Nothing is changed yet. The plan fits the cluster."
    if entry.fit.troubles:
        return "bad", "Nothing is changed, and the plan cannot be applied now."
    return ("bad", "There is nothing that can be changed.") if problems else ("none", "There is nothing to do.")


def _list(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{markup.sentence(note)}</li>" for note in notes)
    return f'<ul class="problems">{items}</ul>' if items else ""


def _facts(entry: DeskEntry) -> str:
    pairs = [
        ("kind", str(entry.plan.kind)),
        ("made by", markup.text(entry.made_by)),
        ("made", words.moment(entry.plan.made_ms)),
        ("compared", words.moment(entry.compared_ms)),
    ]
    if entry.change_id:
        pairs.append(("change in the journal", markup.text(entry.change_id)))
    command = escape(shell.text(entry.plan.command))
    shown = f'<p class="note">As a command: <code>{command}</code></p>' if command else ""
    return f'<div class="card">{markup.numbers(pairs)}{shown}</div>'


def _actions(entry: DeskEntry, viewer: Viewer, *, may_change: bool) -> str:
    file = ""
    if not entry.is_deletion_of_group and not entry.is_of_share_groups and entry.plan.groups:
        file = f'<a href="{parts.url("/plan.json", id=entry.id)}">the plan as a file</a>'
    if not may_change:
        who = viewer.person.name or "You"
        return f'<p class="soft">{markup.text(who)} may not apply the plan. {file}</p>'
    hidden = {"id": entry.id}
    if entry.stage is not DeskStage.PLANNED:
        undo = ""
        if entry.change_id and entry.stage is DeskStage.APPLIED:
            undo = parts.undo_form(viewer, entry.cluster, entry.change_id)
        return f'<div class="actions">{undo}{file}</div>'
    confirm = ""
    if len(entry.group_ids) > 1:
        label = f"how many groups are changed ({len(entry.group_ids)})"
        confirm = f'<label>{label}<input type="text" name="confirm" inputmode="numeric" size="6" required/></label>'
    state = "" if entry.can_be_applied else ' disabled aria-describedby="why"'
    name = "Delete the group" if entry.is_deletion_of_group else "Apply"
    return (
        f'<div class="actions"><form method="post" action="/plan/apply">{viewer.sealed(hidden)}{confirm}'
        f'<button type="submit" class="main"{state}>{name}</button></form>'
        f'<form method="post" action="/plan/compare">{viewer.sealed(hidden)}'
        f'<button type="submit">Compare again</button></form>{file}</div>'
    )


def _table(entry: DeskEntry) -> str:
    results = results_of(entry)
    rows = [
        PartitionOutcome(group.group_id, tp, change, results.get((group.group_id, tp), ""))
        for group in entry.plan.groups
        for tp, change in group.changes.items()
    ]
    left_out = [] if len(entry.group_ids) > 1 else ["group"]
    left_out += [] if any(each.change.certainty for each in rows) else ["certainty"]
    columns = [each for each in COLUMNS if each.title not in left_out]
    none = "No partition with a committed offset is affected."
    return markup.table(columns, rows, "partitions", most=_MOST_ROWS, rest="; the file has all", none=none)


def results_of(entry: DeskEntry) -> dict[tuple[str, TopicPartition], str]:
    """The outcome for each partition, or its state before the plan is applied."""
    applied = entry.applied
    already = entry.fit.already if applied is None else applied.already
    found = dict.fromkeys(already, "is so already")
    for trouble in _troubles(entry):
        if trouble.group_id is not None and isinstance(trouble.topic_partition, TopicPartition):
            found[(trouble.group_id, trouble.topic_partition)] = "not done" if applied else "does not fit"
    for group in () if applied is None else applied.done:
        found |= {(group.group_id, tp): "applied" for tp in group.changes}
    return found
