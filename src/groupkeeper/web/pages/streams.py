"""What a streams group has beside others: the parts of its topology, and the tasks of its members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupkeeper.client.admin.streams_types import StreamsGroupDescription, StreamsMemberDescription, StreamsTask
from groupkeeper.pipeline.report import words
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.parts import PageCell

_MOST_ROWS = 500
_MOST_NAMES = 40


def topology(group: StreamsGroupDescription) -> str:
    """Its parts, with the topics that each reads and writes."""
    if not group.subtopologies:
        return '<p class="soft">No member has sent its topology yet.</p>'
    heads = [
        parts.head(name)
        for name in ("part", "reads", "reads after repartitioning", "writes to repartition", "changelogs")
    ]
    rows = [
        (
            PageCell(parts.text(each.subtopology_id), "t"),
            _names(each.source_topics),
            _names(topic.name for topic in each.repartition_source_topics),
            _names(each.repartition_sink_topics),
            _names(topic.name for topic in each.state_changelog_topics),
        )
        for each in group.subtopologies[:_MOST_ROWS]
    ]
    return parts.table(heads, rows, "parts of the topology")


def members(group: StreamsGroupDescription) -> str:
    """The members with their tasks and target tasks."""
    if not group.members:
        return '<p class="soft">There are none.</p>'
    names = (
        "member",
        "client",
        "host",
        "process",
        "member epoch",
        "active tasks",
        "standby tasks",
        "warm-up tasks",
        "target tasks",
    )
    rows = [
        (
            PageCell(parts.text(each.instance_id or each.member_id), "name"),
            PageCell(parts.text(each.client_id), "name"),
            PageCell(parts.text(each.host), "t"),
            PageCell(parts.text(each.process_id), "name"),
            parts.number(each.member_epoch),
            *(PageCell(_tasks(some), "name") for some in each.assignment),
            PageCell(_target(each), "name"),
        )
        for each in group.members[:_MOST_ROWS]
    ]  # fmt: skip
    left = len(group.members) - _MOST_ROWS
    more = f'<p class="note">The first {_MOST_ROWS:,} of {len(group.members):,}.</p>' if left > 0 else ""
    return more + parts.table([parts.head(name) for name in names], rows, "members")


def _target(member: StreamsMemberDescription) -> str:
    target = member.target_assignment
    if all(set(some) == set(others) for some, others in zip(member.assignment, target, strict=True)):
        return "as assigned"
    roles = zip(("active", "standby", "warm-up"), target, strict=True)
    return "; ".join(f"{role} {_tasks(some)}" for role, some in roles if some) or "nothing"


def _tasks(tasks: Sequence[StreamsTask]) -> str:
    """Tasks as Kafka Streams calls them: 0_3 is partition 3 of part 0."""
    shown = ", ".join(f"{parts.text(part)}_{partition}" for part, partition in sorted(tasks)[:_MOST_NAMES])
    left = len(tasks) - _MOST_NAMES
    return (shown or "none") + (f" and {left:,} more" if left > 0 else "")


def _names(names: Iterable[str]) -> PageCell:
    some = list(names)
    left = len(some) - _MOST_NAMES
    shown = ", ".join(map(parts.text, some[:_MOST_NAMES]))
    return PageCell((shown or "—") + (f" and {words.number(left)} more" if left > 0 else ""), "name")
