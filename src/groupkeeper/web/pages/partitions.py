"""The partitions of a group: a table that the URL sorts, or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupType, TopicPartition
from groupkeeper.csv_text import csv_text
from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.live.model import ClusterSnapshot, GroupView, Wait
from groupkeeper.live.statuses import partition_statuses
from groupkeeper.operations.groups import AnyMember
from groupkeeper.operations.lag import LagStatus, PartitionLag
from groupkeeper.rules import words
from groupkeeper.rules.status import RANKS, Status
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.order import Order, ordered
from groupkeeper.web.pages.parts import plain, seconds

_MOST_ROWS = 2000
WELL = (Status.OK, "")
"""The status of a partition that has none."""

PartitionStatuses = Mapping[TopicPartition, tuple[Status, str]]


class PartitionRow(NamedTuple):
    """A partition of the table."""

    row: PartitionLag
    wait: Wait
    status: Status
    stood_ms: int | None
    """How long its commit is known to have been the same; None: unknown."""
    cluster: str
    is_marked: bool
    """Whether it is the reason why the group does not move."""

    def waiting(self, shown: str) -> str:
        """`shown`, or "unknown" if it is unknown how many records wait."""
        return parts.UNKNOWN if self.row.has_open_start else shown


_COLUMNS: Sequence[PageColumn[PartitionRow]] = [
    PageColumn("topic", lambda each: parts.topic_link(each.cluster, each.row.topic), "name", "topic",
               lambda each: each.row.topic),
    PageColumn("partition", lambda each: str(each.row.partition), "n", "partition", lambda each: each.row.partition),
    PageColumn("status", lambda each: markup.status(each.status) + " <b>the reason</b>" * each.is_marked, "", "status",
               lambda each: RANKS[each.status]),
    PageColumn("lag", lambda each: each.waiting(words.number(each.row.lag)), "n", "lag", lambda each: each.row.lag),
    number_column("lost", lambda each: each.row.lost),
    number_column("readable", lambda each: each.row.readable),
    PageColumn("time lag",
               lambda each: each.waiting(parts.marked(each.wait.lag_ms, is_estimated=each.wait.is_estimated)),
               "n", "time_lag", lambda each: each.wait.lag_ms),
    PageColumn("retention margin", lambda each: each.waiting(parts.marked(each.wait.margin_ms)), "n", "margin",
               lambda each: each.wait.margin_ms),
    PageColumn("commit age", lambda each: words.duration(each.stood_ms), "n", "age", lambda each: each.stood_ms),
    PageColumn("committed offset", lambda each: parts.offset(each.row.committed, "none"), "n", "offset",
               lambda each: each.row.committed and each.row.committed.offset),
    number_column("log start", lambda each: each.row.log_start_offset),
    number_column("log end", lambda each: each.row.log_end_offset, "end"),
    PageColumn("offset status", lambda each: each.row.status.value.replace("_", " "), "t"),
    number_column("done ahead", lambda each: each.row.done_ahead),
    PageColumn("member", lambda each: _member_name(each.row.member), "name", "member",
               lambda each: each.row.member and each.row.member.client_id),
    PageColumn("problem", lambda each: markup.text(_problem(each.row)) if _problem(each.row) else "", "why"),
]  # fmt: skip
BY_STATUS = Order("status")
"""The worst status first, and in it the longest wait."""


def order_of(parameters: Mapping[str, str]) -> Order:
    """The order that the URL requests, which may have any text."""
    return Order.of(parameters, _COLUMNS, "status")


def partition_rows(
    snapshot: ClusterSnapshot,
    group: GroupView,
    statuses: PartitionStatuses,
    order: Order,
    marked: TopicPartition | None = None,
) -> list[PartitionRow]:
    """All partitions of a group in order."""
    rows = []
    for row, wait in zip(group.rows, group.waits, strict=True):
        tp = row.tp
        stood = group.stood.get(tp)
        stood_ms = None if stood is None else max(0, snapshot.at_ms - stood.since_ms)
        status = statuses.get(tp, WELL)[0]
        rows.append(PartitionRow(row, wait, status, stood_ms, snapshot.cluster, tp == marked))
    if order.sort == "status":
        rows.sort(key=lambda each: 0 if each.status is Status.OK else each.wait.lag_ms or 0, reverse=order.is_down)
    ordered(rows, _COLUMNS, order)
    return rows


def partitions_table(
    snapshot: ClusterSnapshot,
    group: GroupView,
    statuses: PartitionStatuses,
    marked: TopicPartition | None,
    order: Order = BY_STATUS,
) -> str:
    """The table. `marked`: the partition that is the reason why the group does not move."""
    known = snapshot.known
    if known.is_partial:
        return markup.nothing("They are not in the history, from which these numbers come.")
    if not group.rows:
        return markup.nothing("It has no committed offsets, or you may not see their topics.")

    link = partial(parts.url, "/group", cluster=snapshot.cluster, group=group.group_id)
    columns = _columns(group)
    rows = partition_rows(known, group, statuses, order, marked)
    table = markup.table(columns, rows[:_MOST_ROWS], "partitions", heads=order.heads(columns, link))
    more = f"The first {_MOST_ROWS:,} of {len(rows):,}. " if len(rows) > _MOST_ROWS else ""
    csv = parts.url("/partitions.csv", cluster=snapshot.cluster, group=group.group_id, **order.parameters)
    saved = f'<a href="{csv}">CSV</a>' if snapshot.is_up else ""
    note = f'<p class="soft">{more}{saved}</p>' if more or saved else ""
    return _open_starts(group) + note + table


def _offset(group: GroupView) -> str:
    return "start offset" if group.group_type is GroupType.SHARE else "committed offset"


def _columns(group: GroupView) -> list[PageColumn[PartitionRow]]:
    """The columns that have content for this group."""
    left_out = [] if group.lag.lost else ["lost", "readable"]
    left_out += [] if group.group_type is GroupType.SHARE else ["done ahead"]
    return [
        each._replace(title=_offset(group)) if each.key == "offset" else each
        for each in _COLUMNS
        if each.title not in left_out
    ]


def partitions_csv(snapshot: ClusterSnapshot, group: GroupView, order: Order) -> str:
    """All partitions, unrounded: times in seconds, unknown values empty."""
    rows: list[list[object]] = [
        ["cluster", "group", "topic", "partition", "status", "offset_status", "committed_offset", "log_start_offset",
         "log_end_offset", "lag", "lost", "readable", "time_lag_s", "retention_margin_s", "commits_still_s",
         "done_ahead", "client_id", "host", "problem"]
    ]  # fmt: skip
    for row, wait, status, stood_ms, *_ in partition_rows(
        snapshot, group, partition_statuses(group, snapshot.at_ms), order
    ):
        offset = None if row.committed is None else row.committed.offset
        member = ("", "") if row.member is None else (row.member.client_id, row.member.host)
        rows.append(
            [plain(snapshot.cluster), plain(group.group_id), plain(row.topic), row.partition, status, row.status,
             offset, row.log_start_offset, row.log_end_offset, row.lag, row.lost, row.readable, seconds(wait.lag_ms),
             seconds(wait.margin_ms), seconds(stood_ms), row.done_ahead, *map(plain, member), plain(_problem(row))]
        )  # fmt: skip
    return csv_text(rows)


def _problem(row: PartitionLag) -> str:
    failed = row.failure is not None and row.status is not LagStatus.DELETED
    return f"{type(row.failure).__name__}: {row.failure}" if failed else ""


def _open_starts(group: GroupView) -> str:
    if not group.lag.open_starts:
        return ""
    setting = "share.auto.offset.reset" if group.group_type is GroupType.SHARE else "auto.offset.reset"
    caption = parts.open_starts_text(group.lag).replace("committed offset", _offset(group))
    return (
        f'<p class="note">{caption}. How many of these records wait is unknown: it depends on '
        f"<code>{setting}</code> of the group's clients.</p>"
    )


def _member_name(member: AnyMember | None) -> str:
    return "—" if member is None else f"{markup.text(member.client_id)} {markup.text(member.host)}"
