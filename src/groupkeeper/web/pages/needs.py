"""The groups that need someone: in which order, and what the first page says of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.standings import MOST_REBALANCES
from groupkeeper.live.verdicts import since_ms
from groupkeeper.operations.causes.facts import Fact
from groupkeeper.operations.errors import named
from groupkeeper.operations.selection import Names
from groupkeeper.pipeline.report import words
from groupkeeper.rules.causes import Cause
from groupkeeper.rules.progress import Trend
from groupkeeper.rules.status import LAGGING_MS, RANKS, REBALANCES_MS, Status
from groupkeeper.rules.urgency import Urgency, urgency
from groupkeeper.shell import Ways, command, text, way_to
from groupkeeper.web.pages import parts
from groupkeeper.web.pages.alerts import Firing
from groupkeeper.web.pages.judged import Judge, JudgedGroup
from groupkeeper.web.pages.parts import PageColumn, Viewer
from groupkeeper.web.pages.verdict import GroupVerdict, causes_of, told

_MOST_SHOWN = 12
_MOST_LEFT = 200
_FEW = 3
_STEADY_PER_S = 0.05
_RANKS = {each: rank for rank, each in enumerate(Urgency)}
_GENERATED = re.compile(r"console-consumer-\d{1,5}")
"""What Kafka's console consumer calls the group of one run."""

_TITLES: Mapping[Urgency, str] = {
    Urgency.EXPIRING: "Unread records are about to be removed",
    Urgency.STANDING: "Members are connected, but records stay unread or are lost",
    Urgency.BEHIND: "Members read too slowly",
    Urgency.STORM: "Members come and go all the time",
    Urgency.REST: "Not known to be well",
}
_HELP: Mapping[Urgency, tuple[str, ...]] = {
    Urgency.BEHIND: ("groups", "offsets", "--trend", "10s"),
    Urgency.STORM: ("groups", "watch"),
}
_WHY = ("groups", "why")


class Need(NamedTuple):
    """A group that needs someone. ``snapshot``: of its cluster now, which may be down."""

    urgency: Urgency
    snapshot: ClusterSnapshot
    row: JudgedGroup

    @property
    def name(self) -> str:
        return self.row.group.group_id

    @property
    def link(self) -> str:
        return parts.group_link(self.snapshot.cluster, self.name)


def urgency_of(row: JudgedGroup) -> Urgency:
    """How much it needs someone."""
    group = row.group
    never = bool(group.lag.open_starts) and group.committed is None
    status, margin_ms = row.judged.status, group.wait.margin_ms
    return urgency(status, group.members, margin_ms, is_old=group.is_old, never_commits=never)


def need_rank(row: JudgedGroup) -> int:
    """The higher, the more can still be saved."""
    return len(_RANKS) - _RANKS[urgency_of(row)]


def needs_of(snapshots: Iterable[ClusterSnapshot], judge: Judge, firing: Firing) -> list[Need]:
    """Groups that need someone, first those of which most can still be saved; of clusters that are down the last known
    ones. Groups that a rule watches are told one by one, also without members; ``firing``: names of rules.
    """
    found = [Need(urgency_of(row), each, row) for each in snapshots for row in judge(each.known)]
    found = [one._replace(urgency=Urgency.REST) if _is_watched(one, firing) else one for one in found]
    return sorted((one for one in found if one.urgency is not Urgency.NONE), key=order)


def _is_watched(one: Need, firing: Firing) -> bool:
    """Whether it was left by its members, and an alert of it fires."""
    is_left = one.urgency is Urgency.LEFT and not _GENERATED.fullmatch(one.name)
    return is_left and (one.snapshot.cluster, one.name) in firing


def order(one: Need) -> tuple[int, bool, float, int, str, str]:
    """Of those that retention is about to reach, those with members, and the shortest margin; else the longest wait."""
    group = one.row.group
    is_expiring = one.urgency is Urgency.EXPIRING
    first = (group.wait.margin_ms or 0) if is_expiring else -(group.wait.lag_ms or 0)
    rank = -RANKS[one.row.judged.status]
    return _RANKS[one.urgency], is_expiring and not group.members, first, rank, one.snapshot.cluster, one.name


def needs_html(needs: Sequence[Need], now_ms: int, viewer: Viewer, firing: Firing, ways: Ways) -> str:
    """``needs``: in order. ``firing``: names of rules. ``ways``: for commands."""
    left = [one for one in needs if one.urgency is Urgency.LEFT]
    others = needs[: len(needs) - len(left)]
    counts = Counter(one.urgency for one in others)
    html = ""
    for rank, some in groupby(others[:_MOST_SHOWN], key=lambda one: one.urgency):
        items = "".join(_item(one, now_ms, viewer, firing, ways) for one in some)
        html += f'<h2>{_TITLES[rank]} <span class="soft">{counts[rank]:,}</span></h2><ul class="needs">{items}</ul>'
    return html + _more(others[_MOST_SHOWN:]) + (_left(left, viewer, ways) if left else "")


def _more(rest: Sequence[Need]) -> str:
    counts = Counter((one.snapshot.cluster, one.row.judged.status) for one in rest)
    links = (
        f'<a href="{parts.url("/cluster", cluster=name, status=status)}">{parts.text(name)} {status}</a> {count:,}'
        for (name, status), count in counts.items()
    )
    return f"<p>and {len(rest):,} more: {', '.join(links)}</p>" if rest else ""


def _item(one: Need, now_ms: int, viewer: Viewer, firing: Firing, ways: Ways) -> str:
    cluster = one.snapshot.cluster
    verdict = GroupVerdict.of(one.row.group, one.snapshot.known.at_ms)
    alerts = firing.get((cluster, one.name), ())
    alert = f' <a class="alert" href="/alerts">alert: {", ".join(map(parts.text, alerts))}</a>' if alerts else ""
    where = parts.text(cluster)
    if not one.snapshot.is_up and one.snapshot.known.measured_ms is not None:
        where += f", last known {parts.ago(one.snapshot.known.measured_ms, now_ms)}"
    is_still = one.urgency is Urgency.BEHIND and _still_ms(one, verdict) >= LAGGING_MS
    words_ = _WHY if is_still else _HELP.get(one.urgency, _WHY)
    words_ = ("groups", "members") if one.row.judged.status is Status.UNKNOWN else words_
    names: tuple[str, ...] = (one.name,)
    cause = _cause(one, verdict)
    if cause is not None and cause.cause is Cause.TRANSACTION and one.urgency in (Urgency.STANDING, Urgency.BEHIND):
        words_, names = cause.words, cause.names
    helps = parts.sentence(text(command(way_to(cluster, ways), words_, names)))
    link = parts.url("/change", cluster=cluster, group=one.name)
    change = f' <a href="{link}">Reset, delete …</a>' if viewer.changes else ""
    return (
        f'<li><p class="judged">{parts.status(one.row.judged.status)}{_since(one, verdict, now_ms)}</p>'
        f'<div class="about"><p><span class="name">{one.link}</span> '
        f'<span class="soft">{where}</span>{alert}</p><p class="because">{parts.sentence(_because(one, verdict))}</p>'
        f'</div>{_figures(one.row)}<p class="next"><span class="soft">look closer:</span> <code>{helps}</code>{change}'
        "</p></li>"
    )


def _since(one: Need, verdict: GroupVerdict, now_ms: int) -> str:
    began_ms = verdict.worst and since_ms(one.row.group, verdict.worst[0], one.snapshot.known.at_ms)
    if began_ms is None:
        return ""
    return f'<span class="soft">since {parts.since(began_ms, now_ms)} UTC</span>'


def _figures(row: JudgedGroup) -> str:
    group = row.group
    wait = group.wait
    lost = f" <small>{words.amount(group.lag.lost)} lost</small>" if group.lag.lost else ""
    records = "unknown" if group.lag.is_least and not group.lag.lag else words.amount(group.lag.lag)
    pairs = {
        "members": "none" if group.members == 0 else words.number(group.members),
        "records to read": f"{'≥ ' * (group.lag.is_least and bool(group.lag.lag))}{records}{lost}",
        "trend": _trend(row),
        "time lag": parts.time_lag(group.lag, wait),
        "may be removed": "—" if wait.margin_ms is None else parts.within(wait.margin_ms),
    }
    items = (f"<li><span>{name}</span> <b>{value}</b></li>" for name, value in pairs.items())
    return f'<ul class="figures">{"".join(items)}</ul>'


def _trend(row: JudgedGroup) -> str:
    change = row.group.lag_change_per_s
    if change is None or not row.group.lag.lag:
        return "—"
    if abs(change) < _STEADY_PER_S:
        return Trend.STEADY.value
    if change > 0:
        return f"grows {words.rate(change)}"
    return f"falls {words.rate(-change)}"


def _because(one: Need, verdict: GroupVerdict) -> str:
    """The reason, in a sentence."""
    group, rank = one.row.group, one.urgency
    found = _decides(one, verdict)
    if rank is Urgency.EXPIRING and group.wait.margin_ms is not None:
        nobody = ", and the group has no members: start its consumers" if group.members == 0 else ""
        return f"The next record{_shortest(one.row)} may be removed {parts.within(group.wait.margin_ms)}{nobody}."
    if rank is Urgency.STORM:
        lately = group.rebalances_lately
        more = " or more" * (lately >= MOST_REBALANCES)
        many = f"{words.counted(lately, 'rebalance')}{more} in the last {words.duration(REBALANCES_MS)}"
        return f"{many}: members come and go, or take too long between two polls."
    change = group.lag_change_per_s or 0
    if rank is Urgency.BEHIND and (still_ms := _still_ms(one, verdict)) >= LAGGING_MS:
        return f"{found} The committed offset has not moved for {words.duration(still_ms)}{_member(one, verdict)}."
    if rank is Urgency.BEHIND and change >= _STEADY_PER_S:
        return f"Each second {words.amount(round(change))} more records are written than read{_readers(group)}. {found}"
    if rank is Urgency.BEHIND and one.row.catch_up_ms is not None:
        return f"It catches up in {words.duration(one.row.catch_up_ms)} if it goes on like this. {found}"
    return found


def _readers(group: GroupView) -> str:
    """Whether more members would help."""
    if not group.members or not group.rows:
        return ""
    verb = "reads" if group.members == 1 else "read"
    return f"; {words.counted(group.members, 'member')} {verb} {words.counted(len(group.rows), 'partition')}"


def _shortest(row: JudgedGroup) -> str:
    """Of which partition that is; "" where it is not known."""
    group = row.group
    for each, wait in zip(group.rows, group.waits, strict=True):
        if wait.margin_ms == group.wait.margin_ms:
            return f" of {each.topic}-{each.partition}"
    return ""


def _still_ms(one: Need, verdict: GroupVerdict) -> int:
    """For how long the partition that decides has been seen to stand still."""
    stood = None if verdict.worst is None else one.row.group.stood.get(verdict.worst[0])
    return 0 if stood is None else max(0, one.snapshot.known.at_ms - stood.since_ms)


def _member(one: Need, verdict: GroupVerdict) -> str:
    """Who reads the partition that decides."""
    place = None if verdict.worst is None else verdict.worst[0]
    found = [each.member for each in one.row.group.rows if place == (each.topic, each.partition) and each.member]
    return f"; its member is {named(found)}" if found else ""


def _decides(one: Need, verdict: GroupVerdict) -> str:
    """What is known of the partition that decides, or of the whole group."""
    cause = _cause(one, verdict)
    if cause is not None:
        return f"{told(cause)}."
    place, why = verdict.worst or (None, "")
    return "" if place is None else f"{place.topic}-{place.partition}: {why}."


def _cause(one: Need, verdict: GroupVerdict) -> Fact | None:
    is_losing = verdict.judged.status is Status.LOSING
    return next(iter(() if is_losing else causes_of(one.snapshot.known, one.row.group, verdict)), None)


def _left(left: Sequence[Need], viewer: Viewer, ways: Ways) -> str:
    """Groups without members are one row, which opens."""
    named = [one for one in left if not _GENERATED.fullmatch(one.name)]
    generated = len(left) - len(named)
    named.sort(key=lambda one: -(one.row.group.lag.lost or 0))
    shown = [f"{parts.text(one.name)}{_lost(one)}" for one in named[:_FEW]]
    shown += [f"{len(named) - _FEW:,} more"] if len(named) > _FEW else []
    shown += [f"{generated:,} of kafka-console-consumer"] if generated else []
    rows = [*named, *(one for one in left if _GENERATED.fullmatch(one.name))]
    table = parts.table(_LEFT, rows, "groups without members", untitled=("group", "cluster"), most=_MOST_LEFT)
    return (
        f'<details id="left" class="card"><summary><b>{words.counted(len(left), "group")} without members, behind: '
        "review and sweep</b> "
        f'<span class="soft">{", ".join(shown)}</span></summary>'
        f"<p>They have no members, and no commit was seen{_commitless(left)}. "
        "If nobody needs them, plan to delete their offsets:</p>"
        f"{_sweeps(left, viewer, ways)}{table}</details>"
    )


def _commitless(left: Sequence[Need]) -> str:
    """Since when none of them has committed, as far as it was seen."""
    latest_ms = max((one.row.group.progress_ms or 0 for one in left), default=0)
    return f" since {parts.moment(latest_ms)} UTC" if latest_ms else ""


def _lost(one: Need) -> str:
    lost = one.row.group.lag.lost
    return f" ({words.amount(lost)} records lost)" if lost else ""


_LEFT: Sequence[PageColumn[Need]] = [
    PageColumn("group", lambda one: one.link, "name"),
    PageColumn("cluster", lambda one: parts.text(one.snapshot.cluster)),
    PageColumn("lag", lambda one: parts.lag_and_lost(one.row.group.lag), "n"),
    PageColumn("time lag", lambda one: parts.time_lag(one.row.group.lag, one.row.group.wait), "n"),
    PageColumn("commit age", lambda one: words.duration(one.row.judged.still_ms), "n"),
]


def _sweeps(left: Sequence[Need], viewer: Viewer, ways: Ways) -> str:
    """A command for each cluster, and its page where something can be changed."""
    clusters = dict.fromkeys(sorted(one.snapshot.cluster for one in left))
    items = ""
    for cluster in clusters:
        own = [one for one in left if one.snapshot.cluster == cluster]
        names = ["console-consumer-*"] * any(_GENERATED.fullmatch(one.name) for one in own)
        names = names or [Names(()).quoted(one.name) for one in own[:_FEW]]
        sweep = command(way_to(cluster, ways), ("plan", "sweep", "--idle", "1d"), names)
        page = f' <a href="{parts.url("/sweep", cluster=cluster)}">plan it here</a>' if viewer.changes else ""
        items += (
            f"<li>{parts.cluster_link(cluster)} {len(own):,}{page}<br/><code>{parts.sentence(text(sweep))}</code></li>"
        )
    return f"<ul>{items}</ul>"
