"""The first page: how the clusters are, and the groups that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.pipeline.report import plots, words
from groupkeeper.rules.status import RANKS, Status
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.judged import Judge, rows_of
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer

_MOST_URGENT = 12


def fleet_page(
    snapshots: Sequence[ClusterSnapshot],
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    note: str = "",
    judge: Judge = rows_of,
) -> str:
    """All clusters. ``note``: about the server itself."""
    cards = "".join(_cluster(each, now_ms, judge) for each in snapshots)
    troubled = _troubled(snapshots, judge)
    return parts.page(
        "Consumer groups",
        parts.live(
            "fleet",
            f"{note}{_verdict(snapshots, len(troubled))}{_urgent(troubled)}<h2>Clusters</h2>"
            f'<div class="cards">{cards}</div>',
        ),
        viewer=viewer,
        follows=parts.EVERY,
    )


Troubled = Sequence[tuple[Status, ClusterSnapshot, GroupView]]


def _troubled(snapshots: Sequence[ClusterSnapshot], judge: Judge) -> Troubled:
    """Groups that need attention, the worst first."""
    found: list[tuple[Status, ClusterSnapshot, GroupView]] = [
        (row.judged.status, snapshot, row.group)
        for snapshot in snapshots
        for row in judge(snapshot)
        if RANKS[row.judged.status] > RANKS[Status.UNKNOWN]
    ]
    found.sort(key=lambda each: (-RANKS[each[0]], -(each[2].wait.lag_ms or 0), each[1].cluster, each[2].group_id))
    return found


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


def _urgent(troubled: Troubled) -> str:
    if not troubled:
        return ""
    items = []
    for status, snapshot, group in troubled[:_MOST_URGENT]:
        link = parts.url("/group", cluster=snapshot.cluster, group=group.group_id)
        behind = f"{'≥ ' if group.lag.is_least else ''}{words.amount(group.lag.lag)} records"
        behind += f" ({words.amount(group.lag.lost)} lost)" if group.lag.lost else ""
        if group.wait.lag_ms:
            behind += f", {parts.duration(group.wait.lag_ms, is_least=bool(group.wait.unknown))} behind"
        items.append(
            f'<li>{parts.status(status)}<span class="name"><a href="{link}">{parts.text(group.group_id)}</a> '
            f'<span class="soft where">{parts.text(snapshot.cluster)}</span></span>'
            f'<span class="value">{behind}</span></li>'
        )
    left = Counter(snapshot.cluster for _, snapshot, _ in troubled[_MOST_URGENT:])
    links = (f'<a href="{parts.url("/cluster", cluster=name)}">{parts.text(name)}</a> {left[name]:,}' for name in left)
    more = f'<li><span class="name">and {left.total():,} more: {", ".join(links)}</span></li>' if left else ""
    return f'<ul class="urgent wide">{"".join(items)}{more}</ul>'


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
    lags = [group.lag.lag for group in groups if group.lag.lag is not None]
    waits = [group.wait.lag_ms for group in groups if group.wait.lag_ms is not None]
    margins = [group.wait.margin_ms for group in groups if group.wait.margin_ms is not None]
    members = [group.members for group in groups if group.members is not None]
    statuses = Counter(row.judged.status.value for row in judge(snapshot))
    legend = "".join(
        f'<li><a href="{parts.url("/cluster", cluster=snapshot.cluster, status=each)}">{parts.status(each)}</a> '
        f"<b>{words.number(statuses[each])}</b></li>"
        for each in reversed(Status)
        if statuses[each]
    )
    lost = sum(group.lag.lost or 0 for group in groups)
    open_starts = sum(group.lag.open_starts for group in groups)
    pairs = [
        ("groups", words.number(len(snapshot.groups))),
        ("members", words.number(sum(members))),
        ("lag, all groups", parts.records(sum(lags) if lags else None)),
        *([("lost", parts.records(lost))] if lost else []),
        ("longest time lag", words.duration(max(waits, default=None))),
        ("shortest retention margin", parts.duration(min(margins, default=None))),
    ]
    if not snapshot.is_partial:
        pairs += _of_poll(snapshot)
    if open_starts:
        pairs.append(("partitions without a committed offset", words.number(open_starts)))
    return (
        f'{parts.numbers(pairs)}{scope.left_out(snapshot)}{plots.stack(dict(statuses))}<ul class="legend">{legend}</ul>'
    )
