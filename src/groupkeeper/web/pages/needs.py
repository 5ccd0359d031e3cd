"""The list of groups that need attention, on the first page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from groupkeeper.html import markup
from groupkeeper.html.markup import PageColumn
from groupkeeper.live.model import ClusterSnapshot
from groupkeeper.live.statuses import reason_of, since_ms
from groupkeeper.operations.causes.facts import Fact
from groupkeeper.operations.errors import named
from groupkeeper.operations.selection import Names, command_about
from groupkeeper.rules import words
from groupkeeper.rules.causes import Cause
from groupkeeper.rules.progress import Trend
from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import TITLES, Urgency, UrgencyFacts, because, next_step
from groupkeeper.rules.words import within
from groupkeeper.shell import Ways, command, text, way_to
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.judged import GENERATED, Firing, Judge, JudgedGroup
from groupkeeper.web.pages.parts import Viewer
from groupkeeper.web.pages.statuses import GroupStatuses, causes_of, told

_MOST_SHOWN = 12
_MOST_LEFT = 200
_FEW = 3


class Need(NamedTuple):
    """A group that needs attention. `snapshot`: the current one of its cluster, which may be down."""

    urgency: Urgency
    snapshot: ClusterSnapshot
    row: JudgedGroup

    @property
    def name(self) -> str:
        return self.row.group.group_id

    @property
    def link(self) -> str:
        return parts.group_link(self.snapshot.cluster, self.name)


def needs_of(snapshots: Iterable[ClusterSnapshot], judge: Judge) -> list[Need]:
    """Groups that need attention, in order; the last known ones of clusters that are down."""
    rows = ((each, row) for each in snapshots for row in judge(each.known))
    found = [Need(rank, each, row) for each, row in rows if (rank := row.urgency) is not Urgency.NONE]
    return sorted(found, key=lambda one: (one.row.rank, one.snapshot.cluster, one.name))


def needs_html(needs: Sequence[Need], now_ms: int, viewer: Viewer, firing: Firing, ways: Ways) -> str:
    """The list as HTML. `needs`: in order. `firing`: names of rules. `ways`: for commands."""
    left = [one for one in needs if one.urgency is Urgency.LEFT]
    others = needs[: len(needs) - len(left)]
    counts = Counter(one.urgency for one in others)
    html = ""
    for rank, some in groupby(others[:_MOST_SHOWN], key=lambda one: one.urgency):
        items = "".join(_item(one, now_ms, viewer, firing, ways) for one in some)
        html += f'<h2>{TITLES[rank]} <span class="soft">{counts[rank]:,}</span></h2><ul class="needs">{items}</ul>'
    return html + _more(others[_MOST_SHOWN:]) + (_left(left, viewer, ways) if left else "")


def _more(rest: Sequence[Need]) -> str:
    counts = Counter((one.snapshot.cluster, one.row.judged.status) for one in rest)
    links = (
        f'<a href="{parts.url("/cluster", cluster=name, status=status)}">{markup.text(name)} {status}</a> {count:,}'
        for (name, status), count in counts.items()
    )
    return f"<p>and {len(rest):,} more: {', '.join(links)}</p>" if rest else ""


def _item(one: Need, now_ms: int, viewer: Viewer, firing: Firing, ways: Ways) -> str:
    cluster = one.snapshot.cluster
    statuses = GroupStatuses.of(one.row.group, one.snapshot.known.at_ms)
    alerts = firing.get((cluster, one.name), ())
    alert = f' <a class="alert" href="/alerts">alert: {", ".join(map(markup.text, alerts))}</a>' if alerts else ""
    where = markup.text(cluster)
    if not one.snapshot.is_up and one.snapshot.known.measured_ms is not None:
        where += f", last known {words.ago(now_ms - one.snapshot.known.measured_ms)}"
    cause = _cause(one, statuses)
    of = _concern(one, statuses, cause)
    step = command_about(way_to(cluster, ways), next_step(of), one.name)
    if cause is not None and cause.cause is Cause.TRANSACTION and one.urgency in (Urgency.STANDING, Urgency.BEHIND):
        step = command(way_to(cluster, ways), cause.words, cause.names)
    link = parts.url("/change", cluster=cluster, group=one.name)
    change = f' <a href="{link}">Reset, delete …</a>' if viewer.changes else ""
    return (
        f'<li><p class="judged">{markup.status(one.row.judged.status)}{_since(one, statuses, now_ms)}</p>'
        f'<div class="about"><p><span class="name">{one.link}</span> '
        f'<span class="soft">{where}</span>{alert}</p><p class="because">{markup.sentence(because(of))}</p>'
        f'</div>{_figures(one.row)}<p class="next"><span class="soft">look closer:</span> '
        f"<code>{markup.sentence(text(step))}</code>{change}</p></li>"
    )


def _since(one: Need, statuses: GroupStatuses, now_ms: int) -> str:
    began_ms = statuses.worst and since_ms(one.row.group, statuses.worst[0], one.snapshot.known.at_ms)
    if began_ms is None:
        return ""
    return f'<span class="soft">since {parts.since(began_ms, now_ms)} UTC</span>'


def _figures(row: JudgedGroup) -> str:
    group = row.group
    wait = group.wait
    lost = f" <small>{words.amount(group.lag.lost)} lost</small>" if group.lag.lost else ""
    pairs = {
        "members": "none" if group.members == 0 else words.number(group.members),
        "records to read": parts.lag(group.lag, words.amount) + lost,
        "trend": _trend(row),
        "time lag": parts.time_lag(group.lag, wait),
        "may be removed": "—" if wait.margin_ms is None else within(wait.margin_ms),
    }
    items = (f"<li><span>{name}</span> <b>{value}</b></li>" for name, value in pairs.items())
    return f'<ul class="figures">{"".join(items)}</ul>'


def _trend(row: JudgedGroup) -> str:
    change, trend = row.group.lag_change_per_s, row.group.trend
    if change is None or trend is None or not row.group.lag.lag:
        return "—"
    return trend.value if trend is Trend.STEADY else f"{trend} {words.rate(abs(change))}"


def _concern(one: Need, statuses: GroupStatuses, cause: Fact | None) -> UrgencyFacts:
    """The facts of a group's urgency, with the reader and the reason of the partition that decides."""
    group, tp = one.row.group, statuses.worst and statuses.worst[0]
    readers = [each.member for each in group.rows if tp == each.tp and each.member]
    return one.row.urgency_facts._replace(
        reader=named(readers) if readers else "",
        why=(reason_of(group, statuses.worst) or "") if cause is None else told(cause),
    )


def _cause(one: Need, statuses: GroupStatuses) -> Fact | None:
    is_told = statuses.judged.status in (Status.LOSING, Status.UNSTABLE)
    return next(iter(() if is_told else causes_of(one.snapshot.known, one.row.group, statuses)), None)


def _left(left: Sequence[Need], viewer: Viewer, ways: Ways) -> str:
    """A row for all groups without members, which can be opened."""
    named = [one for one in left if not GENERATED.fullmatch(one.name)]
    generated = len(left) - len(named)
    named.sort(key=lambda one: -(one.row.group.lag.lost or 0))
    shown = [f"{markup.text(one.name)}{_lost(one)}" for one in named[:_FEW]]
    shown += [f"{len(named) - _FEW:,} more"] if len(named) > _FEW else []
    shown += [f"{generated:,} of kafka-console-consumer"] if generated else []
    latest_ms = max(one.row.group.progress_ms or 0 for one in left)
    since = f" since {words.moment(latest_ms)} UTC" if latest_ms else ""
    rows = [*named, *(one for one in left if GENERATED.fullmatch(one.name))]
    table = markup.table(_LEFT, rows, "groups without members", untitled=("group", "cluster"), most=_MOST_LEFT)
    return (
        f'<details id="left" class="card"><summary><b>{words.counted(len(left), "group")} without members, behind: '
        "review and sweep</b> "
        f'<span class="soft">{", ".join(shown)}</span></summary>'
        f"<p>They have no members, and no commit was seen{since}. "
        "If nobody needs them, plan to delete their offsets:</p>"
        f"{_sweeps(left, viewer, ways)}{table}</details>"
    )


def _lost(one: Need) -> str:
    lost = one.row.group.lag.lost
    return f" ({words.amount(lost)} records lost)" if lost else ""


_LEFT: Sequence[PageColumn[Need]] = [
    PageColumn("group", lambda one: one.link, "name"),
    PageColumn("cluster", lambda one: markup.text(one.snapshot.cluster)),
    PageColumn("lag", lambda one: parts.lag_and_lost(one.row.group.lag), "n"),
    PageColumn("time lag", lambda one: parts.time_lag(one.row.group.lag, one.row.group.wait), "n"),
    PageColumn("commit age", lambda one: words.duration(one.row.judged.still_ms), "n"),
]


def _sweeps(left: Sequence[Need], viewer: Viewer, ways: Ways) -> str:
    """For each cluster, a command for a sweep, and a link to its page if changes are possible."""
    clusters = dict.fromkeys(sorted(one.snapshot.cluster for one in left))
    items = ""
    for cluster in clusters:
        own = [one for one in left if one.snapshot.cluster == cluster]
        names = ["console-consumer-*"] * any(GENERATED.fullmatch(one.name) for one in own)
        names = names or [Names(()).quoted(one.name) for one in own[:_FEW]]
        sweep = command(way_to(cluster, ways), next_step(own[0].row.urgency_facts), names)
        page = f' <a href="{parts.url("/sweep", cluster=cluster)}">plan it here</a>' if viewer.changes else ""
        items += (
            f"<li>{parts.cluster_link(cluster)} {len(own):,}{page}<br/><code>{markup.sentence(text(sweep))}</code></li>"
        )
    return f"<ul>{items}</ul>"
