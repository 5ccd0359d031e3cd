"""The page of a cluster's groups: a list that the URL filters and sorts, a page at a time, or as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupState, GroupType
from groupkeeper.csv_text import csv_text
from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.rules import words
from groupkeeper.rules.status import Status
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.judged import Judge, JudgedGroup, rows_of
from groupkeeper.web.pages.order import Order, ordered
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer, plain, seconds

COLUMNS: Sequence[PageColumn[JudgedGroup]] = [
    PageColumn("status", lambda row: markup.status(row.judged.status), "", "status",
               lambda row: -row.rank[0]),
    PageColumn("group", lambda row: parts.group_link(row.cluster, row.group.group_id), "name", "group",
               lambda row: row.group.group_id),
    PageColumn("lag", lambda row: parts.lag_and_lost(row.group.lag), "n", "lag", lambda row: row.group.lag.lag),
    PageColumn("time lag", lambda row: parts.time_lag(row.group.lag, row.group.wait), "n", "time_lag",
               lambda row: row.group.wait.lag_ms),
    PageColumn("lag change", lambda row: parts.per_s(row.group.lag_change_per_s), "n", "lag_change",
               lambda row: row.group.lag_change_per_s),
    PageColumn("caught up in", lambda row: words.duration(row.catch_up_ms), "n", "catch_up",
               lambda row: row.catch_up_ms),
    PageColumn("retention margin", lambda row: parts.marked(row.group.wait.margin_ms), "n", "margin",
               lambda row: row.group.wait.margin_ms),
    number_column("members", lambda row: row.group.members, "members"),
    PageColumn("type", lambda row: row.group.group_type or "—", "t", "type", lambda row: row.group.group_type or ""),
    PageColumn("state", lambda row: row.group.group_state or "—", "t", "state",
               lambda row: row.group.group_state or ""),
    number_column("rebalances", lambda row: row.group.rebalances, "rebalances"),
    PageColumn("commit age", lambda row: words.duration(row.judged.still_ms), "n", "still",
               lambda row: row.judged.still_ms),
    PageColumn("problem", lambda row: _problem(row.group), "why"),
]  # fmt: skip
UNTITLED = ("status", "group", "problem")
"""Columns without a title on cards."""


class Wish(NamedTuple):
    """The view that the URL requests. It may have any text; unknown values count as missing."""

    text: str = ""
    """A part of group ids; "", as in the next three: any."""
    status: str = ""
    kind: str = ""
    state: str = ""
    sort: str = "status"
    order: str = ""
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Wish:
        order = Order.of(parameters, COLUMNS, "status")
        return cls(
            parameters.get("q", "")[:300],
            _one_of(Status, parameters.get("status", "")),
            _one_of(GroupType, parameters.get("type", "")),
            _one_of(GroupState, parameters.get("state", "")),
            order.sort,
            order.order,
            order.page,
        )

    @property
    def ordering(self) -> Order:
        return Order(self.sort, self.order, self.page)

    @property
    def parameters(self) -> dict[str, str | int]:
        """The parameters of the view's URL."""
        return {"q": self.text, "status": self.status, "type": self.kind, "state": self.state,
                **self.ordering.parameters}  # fmt: skip


def _one_of(known: Iterable[str], text: str) -> str:
    return text if text in set(known) else ""


def chosen(rows: Sequence[JudgedGroup], wish: Wish) -> list[JudgedGroup]:
    """The requested groups, in order; unknown values come last. `rows`: all groups, by name."""
    wanted = wish.text.lower()
    is_narrowed = bool(wanted or wish.kind or wish.state or wish.status)
    found = (
        list(rows)
        if not is_narrowed
        else [
            row
            for row in rows
            if (not wanted or wanted in row.group.group_id.lower())
            and wish.kind in ("", row.group.group_type or "")
            and wish.state in ("", row.group.group_state or "")
            and wish.status in ("", row.judged.status)
        ]
    )
    if wish.sort == "status":
        found.sort(key=lambda row: row.rank, reverse=not wish.ordering.is_down)
    ordered(found, COLUMNS, wish.ordering)
    return found


def cluster_page(
    snapshot: ClusterSnapshot, wish: Wish, now_ms: int, viewer: Viewer = ANONYMOUS, judge: Judge = rows_of
) -> str:
    """A page of the list."""
    crumbs = [("Consumer groups", "/")]
    when, mark = parts.when(snapshot, now_ms), snapshot
    if not snapshot.known.is_up:
        return parts.page(snapshot.cluster, when, crumbs, viewer, follows=snapshot.cluster)
    snapshot = snapshot.known
    rows = chosen(judge(snapshot), wish)
    order = wish.ordering

    link = partial(parts.url, "/cluster", cluster=snapshot.cluster, **wish.parameters)
    counts = f"{words.counted(len(rows), 'group')} of {len(snapshot.groups):,}"
    csv_link = parts.url("/groups.csv", cluster=snapshot.cluster, **wish.parameters)
    heads = order.heads(COLUMNS, link)
    table = markup.table(COLUMNS, order.cut(rows), "groups", heads=heads, untitled=UNTITLED)
    topics_link = parts.url("/topics", cluster=snapshot.cluster)
    links = f'<a href="{topics_link}">topics</a>'
    if mark.is_up:
        links = f'<a href="{csv_link}">CSV</a> · {links}'
    if viewer.changes and mark.is_up:
        links += f' · <a href="{parts.url("/sweep", cluster=snapshot.cluster)}">sweep</a>'
    if not rows:
        all_ = parts.url("/cluster", cluster=snapshot.cluster)
        none = f'No group matches. <a href="{all_}">Show all groups</a>' if snapshot.groups else "There are no groups."
        if not snapshot.groups and snapshot.scope.left_out:
            none = "All groups of the cluster are left out."
        table = f'<p class="card soft">{none}</p>'
    list_ = f'{scope.left_out(snapshot)}<p class="soft">{counts} · {links}</p>{table}{order.turning(len(rows), link)}'
    body = f"{when}{_form(snapshot, wish)}{parts.live('list', parts.old(mark, list_))}"
    return parts.page(snapshot.cluster, body, crumbs, viewer, follows=snapshot.cluster)


def _form(snapshot: ClusterSnapshot, wish: Wish) -> str:
    groups = snapshot.groups.values()

    def choice(name: str, label: str, values: Iterable[str], now: str) -> str:
        options = "".join(
            f'<option value="{escape(value)}"{" selected" if value == now else ""}>{escape(value) or "all"}</option>'
            for value in ("", *sorted({*values, now} - {""}))
        )
        return f'<label>{label}<select name="{name}">{options}</select></label>'

    hidden = {"cluster": snapshot.cluster, "sort": wish.sort, "order": wish.order}
    return (
        '<form method="get" action="/cluster">'
        + "".join(f'<input type="hidden" name="{name}" value="{escape(value)}"/>' for name, value in hidden.items())
        + f'<label>name contains<input type="search" name="q" value="{escape(wish.text)}"/></label>'
        + choice("status", "status", Status, wish.status)
        + choice("type", "type", (group.group_type or "" for group in groups), wish.kind)
        + choice("state", "state", (group.group_state or "" for group in groups), wish.state)
        + '<button type="submit">Show</button></form>'
    )


def _problem(group: GroupView) -> str:
    return (
        parts.problem(group.problems[0]) if group.problems else parts.open_starts_text(group.lag) or parts.unread(group)
    )


def groups_csv(snapshot: ClusterSnapshot, wish: Wish, judge: Judge = rows_of) -> str:
    """The whole list, unrounded: times in seconds, unknown values empty."""
    rows: list[list[object]] = [
        ["cluster", "group", "status", "type", "state", "lag", "time_lag_s", "lag_change_per_s", "retention_margin_s",
         "members", "rebalances", "commits_still_s", "problem", "uncommitted_partitions", "uncommitted",
         "lost", "readable"]
    ]  # fmt: skip
    for group, judged, *_ in chosen(judge(snapshot), wish):
        wait, problem = group.wait, group.problems[0] if group.problems else None
        rows.append(
            [plain(snapshot.cluster), plain(group.group_id), judged.status, group.group_type or "",
             group.group_state or "", group.lag.lag, seconds(wait.lag_ms), group.lag_change_per_s,
             seconds(wait.margin_ms), group.members, group.rebalances, seconds(judged.still_ms),
             "" if problem is None else problem.error,
             group.lag.uncommitted_partitions, group.lag.uncommitted,
             group.lag.lost, group.lag.readable]
        )  # fmt: skip
    return csv_text(rows)
