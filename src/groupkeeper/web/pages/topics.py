"""The pages of topics and their groups. Only topics in offsets or assignments of groups are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import NamedTuple

from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.live.model import ClusterSnapshot, GroupView, TopicView
from groupkeeper.live.statuses import judge_status
from groupkeeper.operations.lag import known_sum
from groupkeeper.rules import words
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.order import Order, ordered
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer


class TopicReader(NamedTuple):
    """A group that reads a topic, in a snapshot of its cluster."""

    snapshot: ClusterSnapshot
    group: GroupView
    view: TopicView


class ReadTopic(NamedTuple):
    """A topic, with the groups that read it."""

    cluster: str
    name: str
    readers: Sequence[TopicReader]

    @property
    def _views(self) -> list[TopicView]:
        return [each.view for each in self.readers]

    @property
    def partitions(self) -> int:
        """The largest number of partitions that a group has of the topic."""
        return max(view.lag.partitions for view in self._views)

    @property
    def active(self) -> int:
        """The number of groups with a member that is assigned some of its partitions."""
        return sum(bool(view.assigned) for view in self._views)

    @property
    def lag(self) -> int | None:
        """The longest."""
        return max((view.lag.lag for view in self._views if view.lag.lag is not None), default=None)

    @property
    def lag_ms(self) -> int | None:
        """The longest."""
        return max((view.wait.lag_ms for view in self._views if view.wait.lag_ms is not None), default=None)

    @property
    def margin_ms(self) -> int | None:
        """The shortest."""
        return min((view.wait.margin_ms for view in self._views if view.wait.margin_ms is not None), default=None)

    @property
    def lost(self) -> int | None:
        """The lost records of all groups."""
        return known_sum([view.lag.lost for view in self._views])


_COLUMNS: Sequence[PageColumn[ReadTopic]] = [
    PageColumn("topic", lambda topic: parts.topic_link(topic.cluster, topic.name), "name", "topic",
               lambda topic: topic.name),
    number_column("partitions", lambda topic: topic.partitions, "partitions"),
    number_column("groups", lambda topic: len(topic.readers), "groups"),
    number_column("active groups", lambda topic: topic.active, "active"),
    number_column("largest lag", lambda topic: topic.lag, "lag"),
    PageColumn("longest time lag", lambda topic: parts.marked(topic.lag_ms), "n", "time_lag",
               lambda topic: topic.lag_ms),
    PageColumn("shortest retention margin", lambda topic: parts.marked(topic.margin_ms), "n", "margin",
               lambda topic: topic.margin_ms),
    number_column("lost", lambda topic: topic.lost, "lost"),
]  # fmt: skip
LONGEST_TEXT = 300


def topics_of(snapshot: ClusterSnapshot, wanted: str = "") -> list[ReadTopic]:
    """The topics with a text in their names, by name."""
    readers: dict[str, list[TopicReader]] = {}
    for group in snapshot.groups.values():
        for name, view in group.topics.items():
            if wanted in name.lower():
                readers.setdefault(name, []).append(TopicReader(snapshot, group, view))
    return [ReadTopic(snapshot.cluster, name, readers[name]) for name in sorted(readers)]


def topics_page(
    snapshot: ClusterSnapshot, parameters: Mapping[str, str], now_ms: int, viewer: Viewer = ANONYMOUS
) -> str:
    """The page of topics. `parameters`: of the URL, with any text."""
    title = f"Topics of {snapshot.cluster}"
    when, mark = parts.when(snapshot, now_ms), snapshot
    if not snapshot.known.is_up:
        return parts.page(title, when, parts.way_to(snapshot.cluster), viewer, follows=snapshot.cluster)
    snapshot = snapshot.known
    text = parameters.get("q", "")[:LONGEST_TEXT]
    order = Order.of(parameters, _COLUMNS, "time_lag")
    topics = topics_of(snapshot, text.lower())
    ordered(topics, _COLUMNS, order)

    link = partial(parts.url, "/topics", cluster=snapshot.cluster, q=text)
    form = (
        f'<form method="get" action="/topics"><input type="hidden" name="cluster" value="{escape(snapshot.cluster)}"/>'
        f'<label>name contains<input type="search" name="q" value="{escape(text)}"/></label>'
        '<button type="submit">Show</button></form>'
    )
    counts = ""
    if not snapshot.is_partial:
        counted = words.counted(len(topics), "topic")
        counts = f'<p class="soft">{counted} that groups have committed offsets for, or that members read.</p>'
    table = markup.table(_COLUMNS, order.cut(topics), "topics", heads=order.heads(_COLUMNS, link))
    if not topics:
        none = "No topic matches, or no group has offsets or members."
        if snapshot.is_partial:
            none = "They are not in the history, from which these numbers come."
        table = f'<p class="card soft">{none}</p>'
    list_ = f"{scope.left_out(snapshot)}{counts}{table}{order.turning(len(topics), link)}"
    body = f"{when}{form}{parts.live('list', parts.old(mark, list_))}"
    return parts.page(title, body, parts.way_to(snapshot.cluster), viewer, follows=snapshot.cluster)


_READER_COLUMNS: Sequence[PageColumn[TopicReader]] = [
    PageColumn("status of the group",
               lambda reader: markup.status(judge_status(reader.group, reader.snapshot.at_ms).status)),
    PageColumn("group", lambda reader: parts.group_link(reader.snapshot.cluster, reader.group.group_id), "name",
               "group", lambda reader: reader.group.group_id),
    PageColumn("type", lambda reader: reader.group.group_type or "—", "t"),
    PageColumn("state", lambda reader: reader.group.group_state or "—", "t"),
    number_column("members on it", lambda reader: reader.view.assigned, "members"),
    number_column("partitions", lambda reader: reader.view.lag.partitions),
    number_column("uncommitted partitions", lambda reader: reader.view.lag.uncommitted_partitions),
    PageColumn("lag", lambda reader: parts.lag(reader.view.lag), "n", "lag", lambda reader: reader.view.lag.lag),
    PageColumn("time lag", lambda reader: parts.time_lag(reader.view.lag, reader.view.wait), "n", "time_lag",
               lambda reader: reader.view.wait.lag_ms),
    PageColumn("retention margin", lambda reader: parts.marked(reader.view.wait.margin_ms), "n", "margin",
               lambda reader: reader.view.wait.margin_ms),
    number_column("lost", lambda reader: reader.view.lag.lost),
    number_column("readable", lambda reader: reader.view.lag.readable),
]  # fmt: skip


def topic_page(
    snapshot: ClusterSnapshot, topic: ReadTopic, parameters: Mapping[str, str], now_ms: int, viewer: Viewer = ANONYMOUS
) -> str:
    """The groups that read a topic, with the lag of each."""
    order = Order.of(parameters, _READER_COLUMNS, "time_lag")
    readers = sorted(topic.readers, key=lambda reader: reader.group.group_id)
    ordered(readers, _READER_COLUMNS, order)

    link = partial(parts.url, "/topic", cluster=snapshot.cluster, topic=topic.name)
    pairs = [
        ("partitions", words.number(topic.partitions)),
        ("groups", words.number(len(topic.readers))),
        ("active groups", words.number(topic.active)),
        ("largest lag", parts.records(topic.lag)),
        ("longest time lag", parts.marked(topic.lag_ms)),
        ("shortest retention margin", parts.marked(topic.margin_ms)),
    ]
    heads = order.heads(_READER_COLUMNS, link)
    table = markup.table(_READER_COLUMNS, order.cut(readers), "groups that read it", heads=heads)
    crumbs = [*parts.way_to(snapshot.cluster), ("topics", parts.url("/topics", cluster=snapshot.cluster))]
    readers_list = (
        f'<div class="card">{markup.numbers(pairs)}</div>{scope.left_out(snapshot.known)}<h2>Readers</h2>{table}'
        f"{order.turning(len(readers), link)}"
    )
    body = f"{parts.when(snapshot, now_ms)}{parts.live('list', parts.old(snapshot, readers_list))}"
    return parts.page(topic.name, body, crumbs, viewer, follows=snapshot.cluster)
