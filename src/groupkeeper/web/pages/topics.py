"""Topics, and the groups that read them: what the groups' offsets and members tell, so only topics that some have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot, GroupView, TopicView
from groupkeeper.live.verdicts import judge_status
from groupkeeper.pipeline.report import words
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.order import Order, ordered
from groupkeeper.web.pages.parts import ANONYMOUS, PageCell, PageColumn, Viewer


class ReadTopic(NamedTuple):
    """A topic with what is known of it by the groups that read it."""

    name: str
    readers: Sequence[tuple[GroupView, TopicView]]

    @property
    def partitions(self) -> int:
        """As many as a group has at most."""
        return max(view.lag.partitions for _, view in self.readers)

    @property
    def active(self) -> int:
        """Groups with a member that has some of its partitions."""
        return sum(bool(view.assigned) for _, view in self.readers)

    @property
    def lag(self) -> int | None:
        """The longest."""
        return max((view.lag.lag for _, view in self.readers if view.lag.lag is not None), default=None)

    @property
    def lag_ms(self) -> int | None:
        """The longest."""
        return max((view.wait.lag_ms for _, view in self.readers if view.wait.lag_ms is not None), default=None)

    @property
    def margin_ms(self) -> int | None:
        """The shortest."""
        return min((view.wait.margin_ms for _, view in self.readers if view.wait.margin_ms is not None), default=None)

    @property
    def lost(self) -> int | None:
        """Of all groups."""
        return sum(view.lag.lost or 0 for _, view in self.readers)


_KEYS: Mapping[str, Callable[[ReadTopic], float | str | None]] = {
    "topic": lambda topic: topic.name,
    "partitions": lambda topic: topic.partitions,
    "groups": lambda topic: len(topic.readers),
    "active": lambda topic: topic.active,
    "lag": lambda topic: topic.lag,
    "time_lag": lambda topic: topic.lag_ms,
    "margin": lambda topic: topic.margin_ms,
    "lost": lambda topic: topic.lost,
}
_COLUMNS = (
    PageColumn("topic", "", "topic"),
    PageColumn("partitions", "n", "partitions"),
    PageColumn("groups", "n", "groups"),
    PageColumn("active groups", "n", "active"),
    PageColumn("largest lag", "n", "lag"),
    PageColumn("longest time lag", "n", "time_lag"),
    PageColumn("shortest retention margin", "n", "margin"),
    PageColumn("lost", "n", "lost"),
)
_ASCENDING_FIRST = ("topic", "margin")
LONGEST_TEXT = 300


def topics_of(snapshot: ClusterSnapshot, wanted: str = "") -> list[ReadTopic]:
    """The topics with a text in their names, by name."""
    readers: dict[str, list[tuple[GroupView, TopicView]]] = {}
    for group in snapshot.groups.values():
        for name, view in group.topics.items():
            if wanted in name.lower():
                readers.setdefault(name, []).append((group, view))
    return [ReadTopic(name, readers[name]) for name in sorted(readers)]


def topics_page(
    snapshot: ClusterSnapshot, parameters: Mapping[str, str], now_ms: int, viewer: Viewer = ANONYMOUS
) -> str:
    """The list. ``parameters``: of the address; anything may be in them."""
    title = f"Topics of {snapshot.cluster}"
    when, mark = parts.when(snapshot, now_ms), snapshot
    if not snapshot.known.is_up:
        return parts.page(title, when, parts.way_to(snapshot.cluster), viewer, follows=snapshot.cluster)
    snapshot = snapshot.known
    text = parameters.get("q", "")[:LONGEST_TEXT]
    order = Order.of(parameters, _KEYS, "time_lag", _ASCENDING_FIRST)
    topics = topics_of(snapshot, text.lower())
    ordered(topics, _KEYS[order.sort], order)

    def link(other: Mapping[str, str | int]) -> str:
        return parts.url("/topics", cluster=snapshot.cluster, **{"q": text, **order.parameters, **other})

    form = (
        f'<form method="get" action="/topics"><input type="hidden" name="cluster" value="{escape(snapshot.cluster)}"/>'
        f'<label>name contains<input type="search" name="q" value="{escape(text)}"/></label>'
        '<button type="submit">Show</button></form>'
    )
    counts = f"{words.counted(len(topics), 'topic')} that groups have committed offsets for, or that members read."
    rows = (_cells(snapshot.cluster, topic) for topic in order.cut(topics))
    table = parts.table([order.head(column, link) for column in _COLUMNS], rows, "topics")
    if not topics:
        none = "No topic matches, or no group has offsets or members."
        if snapshot.is_partial:
            none = "They are not in the history, from which these numbers come."
        table = f'<p class="card soft">{none}</p>'
    list_ = f'{scope.left_out(snapshot)}<p class="soft">{counts}</p>{table}{order.turning(len(topics), link)}'
    body = f"{when}{form}{parts.live('list', parts.old(mark, list_))}"
    return parts.page(title, body, parts.way_to(snapshot.cluster), viewer, follows=snapshot.cluster)


def _cells(cluster: str, topic: ReadTopic) -> Sequence[PageCell]:
    link = parts.url("/topic", cluster=cluster, topic=topic.name)
    return (
        PageCell(f'<a href="{link}">{parts.text(topic.name)}</a>', "name"),
        parts.number(topic.partitions),
        parts.number(len(topic.readers)),
        parts.number(topic.active),
        parts.number(topic.lag),
        PageCell(parts.duration(topic.lag_ms), "n"),
        PageCell(parts.duration(topic.margin_ms), "n"),
        parts.number(topic.lost),
    )


_READERS: Mapping[str, Callable[[tuple[GroupView, TopicView]], float | str | None]] = {
    "group": lambda reader: reader[0].group_id,
    "members": lambda reader: reader[1].assigned,
    "lag": lambda reader: reader[1].lag.lag,
    "time_lag": lambda reader: reader[1].wait.lag_ms,
    "margin": lambda reader: reader[1].wait.margin_ms,
}
_READER_COLUMNS = (
    PageColumn("status of the group"),
    PageColumn("group", "", "group"),
    PageColumn("type", "t"),
    PageColumn("state", "t"),
    PageColumn("members on it", "n", "members"),
    PageColumn("partitions", "n"),
    PageColumn("without commit", "n"),
    PageColumn("lag", "n", "lag"),
    PageColumn("time lag", "n", "time_lag"),
    PageColumn("retention margin", "n", "margin"),
    PageColumn("lost", "n"),
    PageColumn("readable", "n"),
)


def topic_page(
    snapshot: ClusterSnapshot, topic: ReadTopic, parameters: Mapping[str, str], now_ms: int, viewer: Viewer = ANONYMOUS
) -> str:
    """The groups that read a topic, with the lag of each."""
    order = Order.of(parameters, _READERS, "time_lag", _ASCENDING_FIRST)
    readers = sorted(topic.readers, key=lambda reader: reader[0].group_id)
    ordered(readers, _READERS[order.sort], order)

    def link(other: Mapping[str, str | int]) -> str:
        address: dict[str, str | int] = {"topic": topic.name, **order.parameters, **other}
        return parts.url("/topic", cluster=snapshot.cluster, **address)

    pairs = [
        ("partitions", words.number(topic.partitions)),
        ("groups", words.number(len(topic.readers))),
        ("active groups", words.number(topic.active)),
        ("largest lag", parts.records(topic.lag)),
        ("longest time lag", parts.duration(topic.lag_ms)),
        ("shortest retention margin", parts.duration(topic.margin_ms)),
    ]
    table = parts.table(
        [order.head(column, link) for column in _READER_COLUMNS],
        (_reader_cells(snapshot.known, *reader) for reader in order.cut(readers)),
        "groups that read it",
    )
    crumbs = [*parts.way_to(snapshot.cluster), ("topics", parts.url("/topics", cluster=snapshot.cluster))]
    readers_list = (
        f'<div class="card">{parts.numbers(pairs)}</div>{scope.left_out(snapshot.known)}<h2>Readers</h2>{table}'
        f"{order.turning(len(readers), link)}"
    )
    body = f"{parts.when(snapshot, now_ms)}{parts.live('list', parts.old(snapshot, readers_list))}"
    return parts.page(topic.name, body, crumbs, viewer, follows=snapshot.cluster)


def _reader_cells(snapshot: ClusterSnapshot, group: GroupView, view: TopicView) -> Sequence[PageCell]:
    link = parts.url("/group", cluster=snapshot.cluster, group=group.group_id)
    lag, wait = view.lag, view.wait
    return (
        PageCell(parts.status(judge_status(group, snapshot.at_ms).status)),
        PageCell(f'<a href="{link}">{parts.text(group.group_id)}</a>', "name"),
        PageCell(group.group_type or "—", "t"),
        PageCell(group.group_state or "—", "t"),
        parts.number(view.assigned),
        parts.number(lag.partitions),
        parts.number(lag.uncommitted_partitions),
        PageCell(parts.lag(lag), "n"),
        PageCell(parts.time_lag(lag, wait), "n"),
        PageCell(parts.duration(wait.margin_ms), "n"),
        parts.number(lag.lost),
        parts.number(lag.readable),
    )
