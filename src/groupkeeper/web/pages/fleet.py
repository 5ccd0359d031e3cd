"""The first page: the state of the clusters, and the groups that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType

from groupkeeper.html import markup, plots
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.rules import words
from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import headline
from groupkeeper.rules.words import capitalized
from groupkeeper.shell import NO_WAYS, Ways
from groupkeeper.web.pages import parts, scope
from groupkeeper.web.pages.judged import Firing, Judge, rows_of, sums_of, with_alerts
from groupkeeper.web.pages.needs import Need, needs_html, needs_of
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer


def fleet_page(
    snapshots: Sequence[ClusterSnapshot],
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    note: str = "",
    judge: Judge = rows_of,
    firing: Firing = MappingProxyType({}),
    ways: Ways = NO_WAYS,
) -> str:
    """The first page. `note`: about the server itself; `firing`: names of rules; `ways`: for commands."""
    cards = "".join(_cluster(each, now_ms, judge) for each in snapshots)
    needs = needs_of(snapshots, with_alerts(judge, firing))
    return parts.page(
        "Consumer groups",
        parts.live(
            "fleet",
            f"{note}{_headline(snapshots, needs, judge, sum(map(len, firing.values())))}"
            f"{needs_html(needs, now_ms, viewer, firing, ways)}<h2>Clusters</h2>"
            f'<div class="cards">{cards}</div>',
        ),
        viewer=viewer,
        follows=parts.EVERY,
    )


def _headline(snapshots: Sequence[ClusterSnapshot], needs: Sequence[Need], judge: Judge, firing: int) -> str:
    if not snapshots:
        return '<p class="banner none">Your roles give you access to no group.</p>'
    statuses = [row.judged.status for each in snapshots for row in judge(each.known)]
    tone, said = headline(len(statuses), Counter(one.urgency for one in needs), statuses.count(Status.UNKNOWN))
    away = parts.away(snapshots)
    is_down = any(not each.is_up and each.polls.done for each in snapshots)
    tone = "bad" if is_down else "none" if away and tone == "good" else tone
    text = "; ".join([*away, said])
    verb = "fires" if firing == 1 else "fire"
    alerts = f' <a href="/alerts">{words.counted(firing, "alert")} {verb}</a>.' if firing else ""
    return f'<p class="banner {tone}">{capitalized(text)}.{alerts}</p>'


def _cluster(snapshot: ClusterSnapshot, now_ms: int, judge: Judge) -> str:
    title = f'<h3 class="name">{parts.cluster_link(snapshot.cluster)}</h3>'
    when = f'<p class="soft">{parts.measured(snapshot, now_ms)}</p>{parts.problems(snapshot.problems)}'
    when += parts.another(snapshot, now_ms)
    numbers = parts.old(snapshot, _numbers(snapshot.known, judge)) if snapshot.known.is_up else ""
    return f'<article class="card">{title}{when}{numbers}</article>'


def _of_poll(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    """Figures of the last poll that are not kept in the history."""
    troubled = sum(bool(group.problems) for group in snapshot.groups.values())
    return [
        ("groups not read whole", words.number(troubled)),
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
        f'<li><a href="{parts.url("/cluster", cluster=snapshot.cluster, status=each)}">{markup.status(each)}</a> '
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
        ("shortest retention margin", parts.marked(sums.margin_ms)),
    ]
    if not snapshot.is_partial:
        pairs += _of_poll(snapshot)
    if open_starts:
        pairs.append(("partitions without a committed offset", words.number(open_starts)))
    return (
        f"{markup.numbers(pairs)}{scope.left_out(snapshot)}"
        f'{plots.stack(dict(statuses))}<ul class="legend">{legend}</ul>'
    )
