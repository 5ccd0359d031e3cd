"""The first page: how the clusters are, and the groups that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.verdicts import partition_statuses, worst_partition
from groupkeeper.pipeline.report import plots, words
from groupkeeper.rules.status import RANKS, Status
from groupkeeper.rules.urgency import Urgency, urgency
from groupkeeper.shell import NO_WAYS, Ways, command, text, way_to
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.alerts import Firing
from groupkeeper.web.pages.judged import Judge, JudgedGroup, rows_of, sums_of
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer

_MOST_URGENT = 12
_FEW = 3
_NO_MEMBERS = "no members"
_URGENCIES = {each: rank for rank, each in enumerate(Urgency)}


def fleet_page(
    snapshots: Sequence[ClusterSnapshot],
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    note: str = "",
    judge: Judge = rows_of,
    firing: Firing = MappingProxyType({}),
    ways: Ways = NO_WAYS,
) -> str:
    """All clusters. ``note``: about the server itself; ``firing``: names of rules; ``ways``: for commands."""
    cards = "".join(_cluster(each, now_ms, judge) for each in snapshots)
    troubled = _troubled(snapshots, judge)
    needed = sum(one.urgency is not Urgency.LEFT for one in troubled)
    return parts.page(
        "Consumer groups",
        parts.live(
            "fleet",
            f"{note}{_verdict(snapshots, needed)}{_urgent(troubled, viewer, firing, ways)}<h2>Clusters</h2>"
            f'<div class="cards">{cards}</div>',
        ),
        viewer=viewer,
        follows=parts.EVERY,
    )


class Trouble(NamedTuple):
    """A group that needs someone."""

    urgency: Urgency
    snapshot: ClusterSnapshot
    row: JudgedGroup


def _troubled(snapshots: Sequence[ClusterSnapshot], judge: Judge) -> list[Trouble]:
    """Groups that need someone, first those of which most can still be saved."""
    found = [
        Trouble(_urgency(row), snapshot, row)
        for snapshot in snapshots
        for row in judge(snapshot)
        if _urgency(row) is not Urgency.NONE
    ]
    return sorted(found, key=_order)


def _urgency(row: JudgedGroup) -> Urgency:
    group = row.group
    return urgency(row.judged.status, group.members, group.wait.margin_ms, is_old=group.is_old)


def _order(one: Trouble) -> tuple[int, bool, float, int, str, str]:
    """Of those that retention is about to reach, those with members, and the shortest margin; else the longest wait."""
    group = one.row.group
    is_expiring = one.urgency is Urgency.EXPIRING
    first = (group.wait.margin_ms or 0) if is_expiring else -(group.wait.lag_ms or 0)
    rank = -RANKS[one.row.judged.status]
    return _URGENCIES[one.urgency], is_expiring and not group.members, first, rank, one.snapshot.cluster, group.group_id


def _verdict(snapshots: Sequence[ClusterSnapshot], troubled: int) -> str:
    down = [each.cluster for each in snapshots if not each.is_up and each.polls.done]
    waiting = [each.cluster for each in snapshots if not each.polls.done]
    if not snapshots:
        return '<p class="verdict none">Your roles give you access to no group.</p>'
    total = sum(len(each.groups) for each in snapshots)
    texts = (
        [f"{words.counted(len(down), 'cluster')} cannot be reached: {', '.join(map(parts.text, down))}"] if down else []
    )
    texts += [f"not polled yet: {', '.join(map(parts.text, waiting))}"] if waiting else []
    verb = "needs" if troubled == 1 else "need"
    texts.append(
        f"{troubled:,} of {words.counted(total, 'group')} {verb} attention"
        if troubled
        else f"no group of {total:,} is known to need attention"
    )
    tone = "bad" if down or troubled else "none" if waiting or not total else "good"
    text = "; ".join(texts)
    return f'<p class="verdict {tone}">{text[0].upper()}{text[1:]}.</p>'


def _urgent(troubled: Sequence[Trouble], viewer: Viewer, firing: Firing, ways: Ways) -> str:
    if not troubled:
        return ""
    left = [one for one in troubled if one.urgency is Urgency.LEFT]
    shown = troubled[: len(troubled) - len(left)]
    items = [_item(one, firing, ways) for one in shown[:_MOST_URGENT]]
    rest = Counter((one.snapshot.cluster, one.row.judged.status) for one in shown[_MOST_URGENT:])
    links = (
        f'<a href="{parts.url("/cluster", cluster=name, status=status)}">{parts.text(name)} {status}</a> {count:,}'
        for (name, status), count in rest.items()
    )
    if rest:
        items.append(f'<li><span class="name">and {rest.total():,} more: {", ".join(links)}</span></li>')
    items += [_folded(left, viewer)] if left else []
    return f'<ul class="urgent wide">{"".join(items)}</ul>'


def _item(one: Trouble, firing: Firing, ways: Ways) -> str:
    group, cluster = one.row.group, one.snapshot.cluster
    link = parts.url("/group", cluster=cluster, group=group.group_id)
    behind = f"{'≥ ' if group.lag.is_least else ''}{words.amount(group.lag.lag)} records"
    behind += f" ({words.amount(group.lag.lost)} lost)" if group.lag.lost else ""
    if group.wait.lag_ms:
        behind += f", {parts.duration(group.wait.lag_ms, is_least=bool(group.wait.unknown))} behind"
    facts = [_NO_MEMBERS if group.members == 0 else words.counted(group.members or 0, "member")]
    facts += [f"{parts.per_s(group.lag_change_per_s)} lag"] if group.lag_change_per_s is not None else []
    if group.wait.margin_ms is not None:
        facts.append(f"records may be removed {parts.within(group.wait.margin_ms)}")
    facts += [f"{words.counted(group.rebalances_lately, 'rebalance')} lately"] if group.rebalances_lately else []
    alerts = firing.get((cluster, group.group_id), ())
    facts += [f'<b><a href="/alerts">alert: {", ".join(map(parts.text, alerts))}</a></b>'] if alerts else []
    worst = worst_partition(group, one.row.judged.status, partition_statuses(group, one.snapshot.at_ms))
    why = f"{parts.text(f'{worst[0].topic}-{worst[0].partition}')}: {parts.sentence(worst[1])}. " if worst else ""
    verb = "watch" if one.urgency is Urgency.STORM else "why"
    helps = parts.sentence(text(command(way_to(cluster, ways), ("groups", verb), (group.group_id,))))
    return (
        f'<li>{parts.status(one.row.judged.status)}<span class="name"><a href="{link}">{parts.text(group.group_id)}</a>'
        f' <span class="soft where">{parts.text(cluster)}</span></span><span class="value">{behind}</span>'
        f'<span class="why">{" · ".join(facts)}<br/>{why}<code>{helps}</code></span></li>'
    )


def _folded(left: Sequence[Trouble], viewer: Viewer) -> str:
    """Groups without members are one row."""
    counts = Counter(one.snapshot.cluster for one in left)
    path = "/sweep" if viewer.changes else "/cluster"
    links = (f'<a href="{parts.url(path, cluster=name)}">{parts.text(name)}</a> {counts[name]:,}' for name in counts)
    names = ", ".join(parts.text(one.row.group.group_id) for one in left[:_FEW])
    lost = sum(bool(one.row.group.lag.lost) for one in left)
    lost_too = f"; of {lost:,} of them records are lost" if lost else ""
    do = "sweep" if viewer.changes else "<code>groupkeeper plan sweep</code> plans to delete what is not used"
    return (
        f'<li>{parts.status(Status.ABANDONED)}<span class="name">{words.counted(len(left), "group")} without members '
        f'<span class="soft where">{names}{" …" if len(left) > _FEW else ""}</span></span><span class="value"></span>'
        f'<span class="why">Nobody reads there as far as is known{lost_too}. {do}: {", ".join(links)}</span></li>'
    )


def _cluster(snapshot: ClusterSnapshot, now_ms: int, judge: Judge) -> str:
    link = parts.url("/cluster", cluster=snapshot.cluster)
    title = f'<h3 class="name"><a href="{link}">{parts.text(snapshot.cluster)}</a></h3>'
    when = f'<p class="soft">{parts.measured(snapshot, now_ms)}</p>{parts.problems(snapshot.problems)}'
    when += parts.another(snapshot, now_ms)
    numbers = parts.old(snapshot, _numbers(snapshot.known, judge)) if snapshot.known.is_up else ""
    return f'<article class="card">{title}{when}{numbers}</article>'


def _of_poll(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """Figures of the last poll that are not kept in the history."""
    troubled = sum(bool(group.problems) for group in snapshot.groups.values())
    return [
        ("groups with problems", words.number(troubled)),
        ("brokers", words.number(len(snapshot.brokers))),
        (
            "last poll took",
            f"{snapshot.seconds:.1f} s" if snapshot.seconds >= 1 else f"{snapshot.seconds * 1000:.0f} ms",
        ),
    ]


def _numbers(snapshot: ClusterSnapshot, judge: Judge) -> str:
    groups = snapshot.groups.values()
    sums = sums_of(snapshot)
    statuses = Counter(row.judged.status.value for row in judge(snapshot))
    legend = "".join(
        f'<li><a href="{parts.url("/cluster", cluster=snapshot.cluster, status=each)}">{parts.status(each)}</a> '
        f"<b>{words.number(statuses[each])}</b></li>"
        for each in reversed(Status)
        if statuses[each]
    )
    open_starts = sum(group.lag.open_starts for group in groups)
    pairs = [
        ("groups", words.number(len(snapshot.groups))),
        ("members", words.number(sums.members)),
        ("lag, all groups", parts.records(sums.lag)),
        *([("lost", parts.records(sums.lost))] if sums.lost else []),
        ("longest time lag", words.duration(sums.time_lag_ms)),
        ("shortest retention margin", parts.duration(sums.margin_ms)),
    ]
    if not snapshot.is_partial:
        pairs += _of_poll(snapshot)
    if open_starts:
        pairs.append(("partitions without a committed offset", words.number(open_starts)))
    return (
        f'{parts.numbers(pairs)}{scope.left_out(snapshot)}{plots.stack(dict(statuses))}<ul class="legend">{legend}</ul>'
    )
