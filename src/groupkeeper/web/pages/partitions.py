"""The partitions of a group: a table that the URL sorts, or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupType, TopicPartition
from groupkeeper.csv_text import csv_text
from groupkeeper.live.model import ClusterSnapshot, GroupView, Wait
from groupkeeper.live.verdicts import partition_statuses
from groupkeeper.operations.groups import AnyMember
from groupkeeper.operations.lag import LagStatus, PartitionLag
from groupkeeper.pipeline.report import words
from groupkeeper.rules.status import RANKS, Status
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.order import Order, ordered
from groupkeeper.web.pages.parts import PageCell, PageColumn, plain, seconds

_MOST_ROWS = 2000
WELL = (Status.OK, "")
"""Of a partition that no status is known of."""

PartitionStatuses = Mapping[TopicPartition, tuple[Status, str]]


class PartitionRow(NamedTuple):
    """``stood_ms``: for how long its commit has been the same, as far as it was seen; None: not known."""

    row: PartitionLag
    wait: Wait
    status: Status
    stood_ms: int | None


_KEYS: Mapping[str, Callable[[PartitionRow], float | str | None]] = {
    "topic": lambda each: each.row.topic,
    "partition": lambda each: each.row.partition,
    "status": lambda each: RANKS[each.status],
    "offset": lambda each: each.row.committed and each.row.committed.offset,
    "end": lambda each: each.row.log_end_offset,
    "lag": lambda each: each.row.lag,
    "time_lag": lambda each: each.wait.lag_ms,
    "margin": lambda each: each.wait.margin_ms,
    "age": lambda each: each.stood_ms,
    "member": lambda each: each.row.member and each.row.member.client_id,
}
_ASCENDING_FIRST = ("topic", "partition", "margin", "member")
BY_STATUS = Order("status", ascending=_ASCENDING_FIRST)
"""The worst first, and of them the one that waits for longest."""


def order_of(parameters: Mapping[str, str]) -> Order:
    """As the URL wants it: anything may be in it."""
    return Order.of(parameters, _KEYS, "status", _ASCENDING_FIRST)


def partition_rows(
    snapshot: ClusterSnapshot, group: GroupView, statuses: PartitionStatuses, order: Order
) -> list[PartitionRow]:
    """All partitions of a group in order."""
    rows = []
    for row, wait in zip(group.rows, group.waits, strict=True):
        place = TopicPartition(row.topic, row.partition)
        stood = group.stood.get(place)
        stood_ms = None if stood is None else max(0, snapshot.at_ms - stood.since_ms)
        rows.append(PartitionRow(row, wait, statuses.get(place, WELL)[0], stood_ms))
    if order.sort == "status":
        rows.sort(key=lambda each: 0 if each.status is Status.OK else each.wait.lag_ms or 0, reverse=order.is_down)
    ordered(rows, _KEYS[order.sort], order)
    return rows


def partitions_table(
    snapshot: ClusterSnapshot,
    group: GroupView,
    statuses: PartitionStatuses,
    marked: TopicPartition | None,
    order: Order = BY_STATUS,
) -> str:
    """``marked``: the partition that is the reason why the group does not move."""
    known = snapshot.known
    if known.is_partial:
        return parts.nothing("They are not in the history, from which these numbers come.")
    if not group.rows:
        return parts.nothing("It has no committed offsets, or you may not see their topics.")

    def link(other: Mapping[str, str | int]) -> str:
        own: dict[str, str | int] = {**order.parameters, **other}
        return parts.url("/group", cluster=snapshot.cluster, group=group.group_id, **own)

    heads = [order.head(column, link) for column in _columns(group)]
    rows = partition_rows(known, group, statuses, order)
    table = parts.table(heads, (_cells(known, group, each, marked) for each in rows[:_MOST_ROWS]), "partitions")
    more = f"The first {_MOST_ROWS:,} of {len(rows):,}. " if len(rows) > _MOST_ROWS else ""
    csv = parts.url("/partitions.csv", cluster=snapshot.cluster, group=group.group_id, **order.parameters)
    saved = f'<a href="{csv}">CSV</a>' if snapshot.is_up else ""
    note = f'<p class="soft">{more}{saved}</p>' if more or saved else ""
    return _without_commit(group) + note + table


def _offset(group: GroupView) -> str:
    return "start offset" if group.group_type is GroupType.SHARE else "committed offset"


def _columns(group: GroupView) -> list[PageColumn]:
    lost = [PageColumn("lost", "n"), PageColumn("readable", "n")] if group.lag.lost else []
    return [
        PageColumn("topic", "", "topic"),
        PageColumn("partition", "n", "partition"),
        PageColumn("status", "", "status"),
        PageColumn("lag", "n", "lag"),
        *lost,
        PageColumn("time lag", "n", "time_lag"),
        PageColumn("retention margin", "n", "margin"),
        PageColumn("commit age", "n", "age"),
        PageColumn(_offset(group), "n", "offset"),
        PageColumn("log start", "n"),
        PageColumn("log end", "n", "end"),
        PageColumn("offset status"),
        *([PageColumn("done ahead", "n")] if group.group_type is GroupType.SHARE else []),
        PageColumn("member", "", "member"),
        PageColumn("problem"),
    ]


def _cells(
    snapshot: ClusterSnapshot, group: GroupView, each: PartitionRow, marked: TopicPartition | None
) -> Sequence[PageCell]:
    row, wait = each.row, each.wait
    topic = parts.url("/topic", cluster=snapshot.cluster, topic=row.topic)
    is_marked = TopicPartition(row.topic, row.partition) == marked
    return (
        PageCell(f'<a href="{topic}">{parts.text(row.topic)}</a>', "name"),
        PageCell(str(row.partition), "n"),
        PageCell(parts.status(each.status) + " <b>the reason</b>" * is_marked),
        PageCell(_waiting(row, words.number(row.lag)), "n"),
        *(parts.number(value) for value in ((row.lost, row.readable) if group.lag.lost else ())),
        PageCell(_waiting(row, parts.duration(wait.lag_ms, is_estimated=wait.is_estimated)), "n"),
        PageCell(_waiting(row, parts.duration(wait.margin_ms)), "n"),
        PageCell(words.duration(each.stood_ms), "n"),
        PageCell("none" if row.committed is None else words.number(row.committed.offset), "n"),
        parts.number(row.log_start_offset),
        parts.number(row.log_end_offset),
        PageCell(row.status.value.replace("_", " "), "t"),
        *([parts.number(row.done_ahead)] if group.group_type is GroupType.SHARE else []),
        PageCell(_member_name(row.member), "name"),
        PageCell(parts.text(_problem(row)) if _problem(row) else "", "why"),
    )


def partitions_csv(snapshot: ClusterSnapshot, group: GroupView, order: Order) -> str:
    """All of them, unrounded: times in seconds, nothing where it isn't known."""
    rows: list[list[object]] = [
        ["cluster", "group", "topic", "partition", "status", "offset_status", "committed_offset", "log_start_offset",
         "log_end_offset", "lag", "lost", "readable", "time_lag_s", "retention_margin_s", "commits_still_s",
         "done_ahead", "client_id", "host", "problem"]
    ]  # fmt: skip
    for row, wait, status, stood_ms in partition_rows(
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


def _waiting(row: PartitionLag, shown: str) -> str:
    return parts.UNKNOWN if row.has_open_start else shown


def _without_commit(group: GroupView) -> str:
    if not group.lag.open_starts:
        return ""
    setting = "share.auto.offset.reset" if group.group_type is GroupType.SHARE else "auto.offset.reset"
    caption = parts.without_commit(group.lag).replace("committed offset", _offset(group))
    return (
        f'<p class="note">{caption}. How many of these records wait is unknown: it depends on '
        f"<code>{setting}</code> of the group's clients.</p>"
    )


def _member_name(member: AnyMember | None) -> str:
    return "—" if member is None else f"{parts.text(member.client_id)} {parts.text(member.host)}"
