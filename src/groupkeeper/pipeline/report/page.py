"""The report as one page of HTML that needs nothing else. Names are untrusted: they are escaped, and the page's policy
allows no script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupkeeper.html import plots
from groupkeeper.html.look import SCRIPT, STYLE
from groupkeeper.html.markup import (
    PageColumn,
    nothing,
    number_column,
    numbers,
    sentence,
    sortable,
    status,
    text,
    time_column,
)
from groupkeeper.html.plots import Activity, LagLine
from groupkeeper.pipeline.report import front
from groupkeeper.pipeline.report.front import headline, unmeasured
from groupkeeper.pipeline.report.model import STALE_REASONS, STATUSES, Cluster, Group, Report, Stale
from groupkeeper.pipeline.report.moves import Move, made_by, moves_of, sums
from groupkeeper.pipeline.report.sections import anchor, last_commit, sections
from groupkeeper.rules import words
from groupkeeper.rules.status import Status

__all__ = ["headline", "page", "unmeasured"]

_MOST_ROWS = 500
_MOST_EVENTS = 300
_MOST_MOVED_GROUPS = 3
_MOST_REWINDS = 100
"""The most partitions that an entry about rewinds shows."""

_WITH_DATE_S = 10 * 86400
_RULES = {
    Status.OK: "nothing waits for long",
    Status.ABANDONED: "records wait, without members and commits for a day",
    Status.UNKNOWN: "the logs were not queried, or do not show it",
    Status.UNSTABLE: "rebalances again and again",
    Status.LAGGING: "committing, but minutes behind",
    Status.REWOUND: "set back, and on its way again",
    Status.STALLED: "commits without getting on",
    Status.STOPPED: "records wait, nothing is committed",
    Status.LOSING: "records are deleted before they are read",
}


class _Section(NamedTuple):
    """A section of the page. `needs`: the tables that it reads."""

    anchor: str
    title: str
    write: Callable[[Report], str]
    needs: tuple[str, ...]

    def html(self, report: Report) -> str:
        lacking = [each for each in self.needs if each in report.missing]
        html = nothing(f"Not known without the table {lacking[0]}.") if lacking else self.write(report)
        return (
            f'<section id="{self.anchor}"><details class="fold" open=""><summary><h2>{self.title}</h2></summary>'
            f"{html}</details></section>"
        )


def page(report: Report) -> str:
    """The whole page, as HTML."""
    parts = [
        _Section("clusters", "Clusters", _clusters, ("groups",)),
        _Section("worst", "Furthest behind", _worst, ("lag",)),
        _Section("lag", "Lag over time", _lag, ("lag", "commits", "log_offsets")),
        _Section("activity", "Commits and rebalances", _activities, ("rates",)),
        _Section("rewinds", "Rewinds", _rewinds, ("rewinds",)),
        _Section("stale", "Stale groups", _stale, ("stale",)),
        _Section("groups", "All groups", _groups, ("groups",)),
        _Section("details", "Each group", sections, ("groups",)),
    ]
    links = "".join(f'<a href="#{each.anchor}">{each.title}</a>' for each in parts)
    body = "".join(each.html(report) for each in parts)
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f"<title>Consumer groups, {words.moment(report.until)} UTC</title><style>{STYLE}</style></head>\n"
        f"<body><main><header><h1>Consumer groups</h1>{_header(report)}</header>"
        f"{front.findings(report, lambda cluster, group_id: _group(report, cluster, group_id))}"
        f'<nav>{links}</nav><div data-ranges=""></div>{_missing(report)}{body}'
        f"<footer>Written by groupkeeper pipeline report from the tables in {text(report.directory)}. "
        "The columns, and how status is judged: docs/pipeline-tables.md.</footer>"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _header(report: Report) -> str:
    tone, text = headline(report)
    if report.since is None or report.until is None:
        when = "Nothing was measured, and nothing happened."
    else:
        span = words.duration(int((report.until - report.since).total_seconds() * 1000))
        is_measured = report.measured_time is not None
        measured = f"lag as of {words.moment(report.measured_time)}" if is_measured else "lag was not measured"
        when = f"{words.moment(report.since)} to {words.moment(report.until)} ({span}); {measured}. All times are UTC."
    if report.refresh is not None:
        when += f" All numbers are of refresh {report.refresh.number:,}"
        when += "." if report.refresh.time is None else f", published {words.moment(report.refresh.time)}."
    away = "".join(f'<p class="banner none">{sentence(each)}</p>' for each in unmeasured(report))
    return f'<p class="soft">{when}</p><p class="banner {tone}">{text}</p>{away}'


def _missing(report: Report) -> str:
    if not report.missing:
        return ""
    names = ", ".join(report.missing)
    return (
        f'<p class="banner none">Missing in the directory: {names}. The report leaves out what these tables would '
        "show; groupkeeper pipeline snapshot writes all tables.</p>"
    )


def _clusters(report: Report) -> str:
    if not report.clusters:
        return nothing("No cluster has groups.")
    return f'<div class="cards">{"".join(map(_cluster, report.clusters))}</div>'


def _cluster(cluster: Cluster) -> str:
    pairs = [
        ("groups", words.number(cluster.groups)),
        ("members", words.number(cluster.members)),
        ("partitions", words.number(cluster.partitions)),
        ("lag", words.amount(cluster.lag)),
        ("time lag", words.duration(cluster.lag_ms)),
        ("offset commits", words.amount(cluster.commits)),
        ("rebalances", words.number(cluster.rebalances)),
        ("offsets deleted", words.number(cluster.deletions)),
        ("offsets expired", words.number(cluster.expirations)),
        ("rewinds and jumps", words.number(cluster.rewinds)),
        ("stale groups", words.number(cluster.stale_groups)),
    ]
    legend = "".join(
        f'<li>{status(each)} <b>{words.number(count)}</b> <span class="soft">{_RULES[each]}</span></li>'
        for each in reversed(STATUSES)
        if (count := cluster.statuses.get(each, 0))
    )
    return (
        f'<article class="card"><h3 class="name">{text(cluster.cluster)}</h3>{numbers(pairs)}'
        f'{plots.stack(cluster.statuses)}<ul class="legend">{legend}</ul></article>'
    )


def _worst(report: Report) -> str:
    shown = [
        ("Lag in records", "lag", lambda each: words.number(each.lag)),
        ("Time lag: age of the oldest record to read", "lag_ms", lambda each: words.duration(each.lag_ms)),
    ]
    if not any(report.worst(measure) for _, measure, _ in shown):
        return nothing("No group is known to have anything to read.")
    return f'<div class="two">{"".join(_ranked(report, *each) for each in shown)}</div>'


def _ranked(report: Report, title: str, measure: str, value: Callable[[Group], str]) -> str:
    groups = report.worst(measure)
    if not groups:
        return f'<figure class="card"><h3>{title}</h3>{nothing("Not known for any group.")}</figure>'
    most = getattr(groups[0], measure)
    rows = "".join(
        f'<tr><th scope="row" class="name">{_group(report, *each.key)}</th>'
        f"<td>{plots.share_bar(getattr(each, measure), most, each.status)}</td>"
        f'<td class="value">{value(each)}</td></tr>'
        for each in groups
    )
    return f'<figure class="card"><h3>{title}</h3><table class="bars">{rows}</table></figure>'


def _lag(report: Report) -> str:
    if not report.lag_lines:
        return nothing("No group is known to have anything to read.")
    statuses = {each.key: each.status for each in report.groups}
    drawn = [
        f'<figure class="card"><h3>{_group(report, line.cluster, line.group_id)} '
        f"{status(statuses.get((line.cluster, line.group_id), 'unknown'))}</h3>{plots.lag_plot(line)}"
        f"<figcaption>{_caption(line)}</figcaption></figure>"
        for line in report.lag_lines
    ]
    return (
        '<p class="note">Records that each group had to read, the worst groups first, each on its own scale and up '
        "to its last measurement. In steps: as it was measured. Sloped: before it was measured, by the commits, the "
        "ends of the logs and the times of records. Dashed, on grey: at least this much. Gaps: not measured for an "
        "hour, or not known.</p>"
        f'<div class="grid">{"".join(drawn)}</div>'
    )


def _caption(line: LagLine) -> str:
    """The text of a plot of lag."""
    time, now = line.points[-1]
    known = line.known
    text = "now unknown" if now is None else f"{words.number(now)} at {words.moment(time)}"
    if known:
        highest = max(known, key=lambda each: (each[1], each[0]))
        text += (
            ", the highest" if highest == (time, now)
            else f" · highest {words.number(highest[1])} at {words.moment(highest[0])}"
        )  # fmt: skip
    if line.known_from > line.points[0][0]:
        text += f" · known from {plots.clock(line.known_from, _WITH_DATE_S)}"
    if any(lag is None for _, lag in line.points[:-1]):
        text += " · gaps: not measured, or not known"
    return text


def _activities(report: Report) -> str:
    if not report.activity:
        return nothing("Nothing was committed, and no group has rebalanced.")
    return "".join(f'<div class="two">{_activity(report, each)}</div>' for each in report.activity)


def _activity(report: Report, activity: Activity) -> str:
    where = f", {text(activity.cluster)}" if len(report.clusters) > 1 else ""
    bins = "minute" if activity.minutes == 1 else f"{activity.minutes} minutes"
    each = f"{'a ' * (activity.minutes == 1)}{bins}"
    kinds = [
        ("Offset commits per minute", activity.commits, "commits/min", True),
        (f"Completed rebalances in each {bins}", activity.rebalances, "rebalances", False),
    ]
    return "".join(
        f'<figure class="card"><h3>{title}{where}</h3>{plots.bars_over_time(activity, counts, unit, is_rate=is_rate)}'
        f"<figcaption>{words.number(sum(counts))} in all; a bar is {each}</figcaption></figure>"
        for title, counts, unit, is_rate in kinds
    )


def _rewinds(report: Report) -> str:
    if not report.rewinds:
        return nothing("No offset was moved back, or ahead without reading.")
    moves = moves_of(report.rewinds)
    columns: list[PageColumn[Move]] = [
        time_column("when", lambda each: each.until),
        PageColumn("group", lambda each: _moved_groups(report, each), "name"),
        number_column("partitions", lambda each: each.partitions),
        number_column("read again", lambda each: sums(each.rewinds)[0] or None),
        number_column("skipped", lambda each: sums(each.rewinds)[1] or None),
        PageColumn("by whom, and how", lambda each: _moved_by(each) + _rewind_list(each), "why"),
    ]
    return (
        '<p class="note">All offsets that one change moved are one entry, and so are all that a group moved within a '
        "minute. An undo is shown with the change that it undid. Who moved offsets is known where a journal of "
        f"groupkeeper has it (--journal).</p>{sortable(columns, moves, 'rewinds', _MOST_EVENTS, name='rewinds')}"
    )


def _moved_groups(report: Report, move: Move) -> str:
    shown = [_group(report, move.change.cluster, each) for each in move.groups]
    return words.several(shown, _MOST_MOVED_GROUPS)


def _moved_by(move: Move) -> str:
    """Who moved the offsets, and how; then the undos."""
    html = sentence(made_by(move))
    if move.change.command:
        html += f"<code>{sentence(move.change.command)}</code>"
    return html + "".join(
        f'<p class="undone"><b>undone</b> {words.moment(each.until)}: {_moved_by(each)}</p>' for each in move.undone
    )


def _rewind_list(move: Move) -> str:
    """The offsets of each partition, folded if there are several."""
    several = len(move.groups) > 1
    rows = "".join(
        f"<li>{f'{text(each.group_id)}: ' if several else ''}{text(each.topic)}-{each.partition}: "
        f"{words.number(each.from_offset)} → {words.number(each.to_offset)}, {_moved(each.records)}</li>"
        for each in sorted(move.rewinds, key=lambda each: each[1:4])[:_MOST_REWINDS]
    )
    left = len(move.rewinds) - _MOST_REWINDS
    rows += f"<li>{left:,} more</li>" if left > 0 else ""
    if len(move.rewinds) == 1:
        return f'<ul class="rewinds">{rows}</ul>'
    return f'<details><summary>offsets</summary><ul class="rewinds">{rows}</ul></details>'


def _moved(records: int | None) -> str:
    if records is None:
        return "—"
    return f"{records:,} again" if records >= 0 else f"{-records:,} skipped"


def _stale(report: Report) -> str:
    if not report.stale:
        return nothing("Every group and every offset is in use.")
    columns: list[PageColumn[Stale]] = [
        PageColumn("group", lambda each: _group(report, each.cluster, each.group_id), "name"),
        PageColumn("why", lambda each: text(STALE_REASONS.get(each.reason, each.reason))),
        PageColumn("topics", lambda each: _topics(each.topics) if each.offsets else "the group as a whole", "name"),
        number_column("offsets", lambda each: each.offsets or None),
        PageColumn("idle", lambda each: words.days(each.idle_days), "n", by=lambda each: each.idle_days),
        time_column("first expires", lambda each: each.expires_time),
        number_column("records lost", lambda each: each.lost),
    ]
    return sortable(columns, report.stale, "unused groups and offsets", _MOST_EVENTS, name="stale")


def _topics(topics: Sequence[str]) -> str:
    return words.several([*map(text, topics)], 3)


def _groups(report: Report) -> str:
    if not report.groups:
        return nothing("There are none.")
    columns: list[PageColumn[Group]] = [
        PageColumn("status", lambda each: status(each.status), by=lambda each: STATUSES.index(each.status)),
        PageColumn("group", lambda each: _group(report, each.cluster, each.group_id), "name"),
        PageColumn("why", lambda each: sentence(each.rule), "why"),
        PageColumn("lag", lambda each: _partly(words.number(each.lag), each), "n", by=lambda each: each.lag),
        PageColumn("time lag", lambda each: words.duration(each.lag_ms), "n", by=lambda each: each.lag_ms),
        PageColumn("type and state", lambda each: text(f"{each.group_type} {each.group_state}".strip() or "—"), "t"),
        number_column("members", lambda each: each.members),
        number_column("partitions", lambda each: each.partitions),
        number_column("rebalances", lambda each: each.rebalances),
        PageColumn("last commit", lambda each: last_commit(each, report), "t",
                   by=lambda each: each.last_commit_time.timestamp() if each.last_commit_time else None),
    ]  # fmt: skip
    return sortable(columns, report.groups, "all groups", _MOST_ROWS, name="groups")


def _partly(text: str, group: Group) -> str:
    return f"≥ {text}" if group.unknown and group.lag is not None else text


def _group(report: Report, cluster: str, group_id: str) -> str:
    """A link with a group's name, and its cluster's name if the report has several clusters."""
    where = f' <span class="soft where">{text(cluster)}</span>' if len(report.clusters) > 1 else ""
    return f'<a href="#{anchor(cluster, group_id)}">{text(group_id)}</a>{where}'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
