"""The additional parts of a streams group's page: its topology, and its members' tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupkeeper.client.admin.streams_types import (
    StreamsGroupDescription,
    StreamsMemberDescription,
    StreamsSubtopology,
    StreamsTask,
)
from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.rules import words

_MOST_ROWS = 500
_MOST_NAMES = 40


_PARTS: Sequence[PageColumn[StreamsSubtopology]] = [
    PageColumn("part", lambda each: markup.text(each.subtopology_id), "t"),
    PageColumn("reads", lambda each: _names(each.source_topics), "name"),
    PageColumn("reads after repartitioning",
               lambda each: _names(topic.name for topic in each.repartition_source_topics), "name"),
    PageColumn("writes to repartition", lambda each: _names(each.repartition_sink_topics), "name"),
    PageColumn("changelogs", lambda each: _names(topic.name for topic in each.state_changelog_topics), "name"),
]  # fmt: skip
_MEMBERS: Sequence[PageColumn[StreamsMemberDescription]] = [
    PageColumn("member", lambda each: markup.text(each.instance_id or each.member_id), "name"),
    PageColumn("client", lambda each: markup.text(each.client_id), "name"),
    PageColumn("host", lambda each: markup.text(each.host), "t"),
    PageColumn("process", lambda each: markup.text(each.process_id), "name"),
    number_column("member epoch", lambda each: each.member_epoch),
    PageColumn("active tasks", lambda each: _tasks(each.assignment.active), "name"),
    PageColumn("standby tasks", lambda each: _tasks(each.assignment.standby), "name"),
    PageColumn("warm-up tasks", lambda each: _tasks(each.assignment.warmup), "name"),
    PageColumn("target tasks", lambda each: _target(each), "name"),
]  # fmt: skip


def topology(group: StreamsGroupDescription) -> str:
    """The parts of the topology, with the topics that each reads and writes."""
    none = "No member has sent its topology yet."
    return markup.table(_PARTS, group.subtopologies, "parts of the topology", most=_MOST_ROWS, none=none)


def members(group: StreamsGroupDescription) -> str:
    """The members with their tasks and target tasks."""
    return markup.table(_MEMBERS, group.members, "members", most=_MOST_ROWS, none="There are none.")


def _target(member: StreamsMemberDescription) -> str:
    target = member.target_assignment
    if all(set(some) == set(others) for some, others in zip(member.assignment, target, strict=True)):
        return "as assigned"
    roles = zip(("active", "standby", "warm-up"), target, strict=True)
    return "; ".join(f"{role} {_tasks(some)}" for role, some in roles if some) or "nothing"


def _tasks(tasks: Sequence[StreamsTask]) -> str:
    """Tasks as Kafka Streams calls them: 0_3 is partition 3 of part 0."""
    shown = [f"{markup.text(part)}_{partition}" for part, partition in sorted(tasks)]
    return words.several(shown, _MOST_NAMES) or "none"


def _names(names: Iterable[str]) -> str:
    return words.several([*map(markup.text, names)], _MOST_NAMES) or "—"
