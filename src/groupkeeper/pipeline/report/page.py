"""The report as one page of HTML that needs nothing else. Every name is text that strangers chose: it is escaped here,
and the page's policy lets no script run but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from groupkeeper.pipeline.report import plots, words
from groupkeeper.pipeline.report.look import SCRIPT, STYLE
from groupkeeper.pipeline.report.model import STATUSES, Activity, Cluster, Group, LagLine, Report

__all__ = ["page", "verdict"]

_MOST_ROWS = 2000
_MOST_EVENTS = 300
_MOST_URGENT = 6
_WITH_DATE_S = 10 * 86400
_RULES = {
    "ok": "nothing waits for long",
    "unknown": "the logs were not queried, or do not show it",
    "unstable": "rebalances again and again",
    "lagging": "committing, but minutes behind",
    "rewound": "set back, and on its way again",
    "stalled": "commits without getting on",
    "stopped": "records wait, nothing is committed",
    "losing": "records are deleted before they are read",
}
_REASONS = {
    "idle": "not used for long",
    "topic_deleted": "its topic was deleted, or made again",
    "expiring": "about to expire",
    "below_log_start": "records were deleted unread",
}


class _Cell(NamedTuple):
    """`html` is safe; `key` is what a column of numbers or times is sorted by; `kind` is the class: n, t, name."""

    html: str
    kind: str = ""
    key: float | None = None


class _Section(NamedTuple):
    """`needs`: the tables that it requires."""

    anchor: str
    title: str
    write: Callable[[Report], str]
    needs: tuple[str, ...]

    def html(self, report: Report) -> str:
        lacking = [each for each in self.needs if each in report.missing]
        text = _nothing(f"Not known without the table {lacking[0]}.") if lacking else self.write(report)
        return f'<section id="{self.anchor}"><h2>{self.title}</h2>{text}</section>'


def page(report: Report) -> str:
    """The whole page."""
    sections = [
        _Section("clusters", "Clusters", _clusters, ("groups",)),
        _Section("worst", "Furthest behind", _worst, ("lag",)),
        _Section("lag", "Lag over time", _lag, ("lag", "commits", "log_offsets")),
        _Section("activity", "Commits and rebalances", _activities, ("rates",)),
        _Section("rewinds", "Rewinds", _rewinds, ("rewinds",)),
        _Section("stale", "Stale groups", _stale, ("stale",)),
        _Section("groups", "All groups", _groups, ("groups",)),
    ]
    links = "".join(f'<a href="#{each.anchor}">{each.title}</a>' for each in sections)
    body = "".join(each.html(report) for each in sections)
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f"<title>Consumer groups, {words.moment(report.until)} UTC</title><style>{STYLE}</style></head>\n"
        f"<body><main><header><h1>Consumer groups</h1>{_header(report)}</header>"
        f"{_urgent(report)}<nav>{links}</nav>{_missing(report)}{body}"
        f"<footer>Written by groupkeeper pipeline report from the tables in {_text(report.directory)}. "
        "What the columns mean, and how status is judged: docs/pipeline-tables.md.</footer>"
        f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def verdict(report: Report) -> tuple[str, str]:
    """How it looks in all: good, bad or none (it is not known), and in a sentence."""
    total = len(report.groups)
    if not total:
        return "none", "There are no consumer groups."
    troubled = sum(each.needs_attention for each in report.groups)
    unknown = sum(each.status == "unknown" for each in report.groups)
    rest = f"; the status of {unknown:,} is unknown" if unknown else ""
    if troubled:
        verb = "needs" if troubled == 1 else "need"
        return "bad", f"{troubled:,} of {words.counted(total, 'group')} {verb} attention{rest}."
    if unknown == total:
        return "none", f"How {words.counted(total, 'group')} {'is' if total == 1 else 'are'} doing is not known."
    return "good", f"{'The one group is' if total == 1 else f'{total - unknown:,} groups are'} fine{rest}."


def _header(report: Report) -> str:
    tone, text = verdict(report)
    if report.since is None or report.until is None:
        when = "Nothing was measured, and nothing happened."
    else:
        span = words.duration(int((report.until - report.since).total_seconds() * 1000))
        is_measured = report.measured_time is not None
        measured = f"lag as of {words.moment(report.measured_time)}" if is_measured else "lag was not measured"
        when = f"{words.moment(report.since)} to {words.moment(report.until)} ({span}); {measured}. All times are UTC."
    return f'<p class="soft">{when}</p><p class="verdict {tone}">{text}</p>'


def _urgent(report: Report) -> str:
    """The worst groups by name, before anything else."""
    troubled = [each for each in report.groups if each.needs_attention]
    if not troubled:
        return ""
    rows = "".join(
        f'<li>{_status(each.status)}<span class="name">{_group(report, each.cluster, each.group_id)}</span>'
        f'<span class="value">{_behind(each)}</span><span class="why">{_reason(each.rule)}</span></li>'
        for each in troubled[:_MOST_URGENT]
    )
    more = len(troubled) - _MOST_URGENT
    left = f'<li><a href="#groups">{more:,} more</a></li>' if more > 0 else ""
    return f'<ul class="urgent wide">{rows}{left}</ul>'


def _behind(group: Group) -> str:
    """How far it is behind, in short."""
    if group.lag is None:
        return ""
    waits = "" if not group.lag_ms else f", {words.duration(group.lag_ms)}"
    return f"{words.amount(group.lag)} records{waits}"


def _missing(report: Report) -> str:
    if not report.missing:
        return ""
    names = ", ".join(report.missing)
    return (
        f'<p class="verdict none">Not in the directory: {names}. What they tell is left out; '
        "groupkeeper pipeline snapshot makes all tables.</p>"
    )


def _clusters(report: Report) -> str:
    if not report.clusters:
        return _nothing("No cluster has groups.")
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
    numbers = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in pairs)
    legend = "".join(
        f'<li>{_status(status)} <b>{words.number(count)}</b> <span class="soft">{_RULES[status]}</span></li>'
        for status in reversed(STATUSES)
        if (count := cluster.statuses.get(status, 0))
    )
    return (
        f'<article class="card"><h3 class="name">{_text(cluster.cluster)}</h3><dl class="numbers">{numbers}</dl>'
        f'{plots.stack(cluster.statuses)}<ul class="legend">{legend}</ul></article>'
    )


def _worst(report: Report) -> str:
    shown = [
        ("Lag in records", "lag", lambda each: words.number(each.lag)),
        ("Time lag: age of the oldest record to read", "lag_ms", lambda each: words.duration(each.lag_ms)),
    ]
    if not any(report.worst(measure) for _, measure, _ in shown):
        return _nothing("No group is known to have anything to read.")
    return f'<div class="two">{"".join(_ranked(report, *each) for each in shown)}</div>'


def _ranked(report: Report, title: str, measure: str, value: Callable[[Group], str]) -> str:
    groups = report.worst(measure)
    if not groups:
        return f'<figure class="card"><h3>{title}</h3>{_nothing("Not known of any group.")}</figure>'
    most = getattr(groups[0], measure)
    rows = "".join(
        f'<tr><th scope="row" class="name">{_group(report, each.cluster, each.group_id)}</th>'
        f"<td>{plots.share_bar(getattr(each, measure), most, each.status)}</td>"
        f'<td class="value">{value(each)}</td></tr>'
        for each in groups
    )
    return f'<figure class="card"><h3>{title}</h3><table class="bars">{rows}</table></figure>'


def _lag(report: Report) -> str:
    if not report.lag_lines:
        return _nothing("No group is known to have anything to read.")
    statuses = {(each.cluster, each.group_id): each.status for each in report.groups}
    drawn = [
        f'<figure class="card"><h3>{_group(report, line.cluster, line.group_id)} '
        f"{_status(statuses.get((line.cluster, line.group_id), 'unknown'))}</h3>{plots.lag_plot(line)}"
        f"<figcaption>{_told(line)}</figcaption></figure>"
        for line in report.lag_lines
    ]
    return (
        '<p class="note">Records that each group had to read, the worst groups first; each plot has its own scale. '
        "Solid: the ends of the logs are known before and after, and taken to have grown evenly. Dashed, on grey: it "
        "is not known; it was at least this much, by what all groups had committed.</p>"
        f'<div class="grid">{"".join(drawn)}</div>'
    )


def _told(line: LagLine) -> str:
    """The text of a plot of lag."""
    now, highest = line.points[-1], max(line.points, key=lambda each: (each[1], each[0]))
    text = f"now {words.number(now[1])}"
    text += (
        ", the highest" if highest == now else f" · highest {words.number(highest[1])} at {words.moment(highest[0])}"
    )
    if line.known_from > line.points[0][0]:
        text += f" · known from {words.clock(line.known_from, _WITH_DATE_S)}"
    return text


def _activities(report: Report) -> str:
    if not report.activity:
        return _nothing("Nothing was committed, and no group has rebalanced.")
    return "".join(f'<div class="two">{_activity(report, each)}</div>' for each in report.activity)


def _activity(report: Report, activity: Activity) -> str:
    where = f", {_text(activity.cluster)}" if len(report.clusters) > 1 else ""
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
        return _nothing("No offset was moved back, or ahead without reading.")
    rows = [
        [
            _Cell(words.moment(each.rewind_time), "t", each.rewind_time.timestamp() if each.rewind_time else 0),
            _named(_group(report, each.cluster, each.group_id)),
            _named(f"{_text(each.topic)}-{each.partition}"),
            _number(each.from_offset),
            _number(each.to_offset),
            _Cell(_moved(each.records), "n", each.records or 0),
            _Cell({True: "reset: no members", False: "while it had members", None: "not known"}[each.was_empty]),
        ]
        for each in report.rewinds
    ]
    heads = [("when", "t"), ("group", ""), ("partition", ""), ("from", "n"), ("to", "n"), ("records", "n"), ("how", "")]
    return _table(heads, rows, _MOST_EVENTS, "rewinds")


def _moved(records: int | None) -> str:
    if records is None:
        return "—"
    return f"{records:,} again" if records >= 0 else f"{-records:,} skipped"


def _stale(report: Report) -> str:
    if not report.stale:
        return _nothing("Every group and every offset is in use.")
    rows = [
        [
            _named(_group(report, each.cluster, each.group_id)),
            _Cell(_text(_REASONS.get(each.reason, each.reason))),
            _named(_topics(each.topics) if each.offsets else "the group as a whole"),
            _number(each.offsets or None),
            _Cell(words.days(each.idle_days), "n", each.idle_days if each.idle_days is not None else -1),
            _Cell(words.moment(each.expires_time), "t", each.expires_time.timestamp() if each.expires_time else 0),
            _number(each.lost_records),
        ]
        for each in report.stale
    ]
    heads = [
        ("group", ""), ("why", ""), ("topics", ""), ("offsets", "n"), ("idle", "n"), ("first expires", "t"),
        ("records lost", "n"),
    ]  # fmt: skip
    return _table(heads, rows, _MOST_EVENTS, "stale")


def _topics(topics: Sequence[str]) -> str:
    more = f" and {len(topics) - 3:,} more" if len(topics) > 3 else ""
    return ", ".join(_text(each) for each in topics[:3]) + more


def _groups(report: Report) -> str:
    if not report.groups:
        return _nothing("There are none.")
    rows = [
        [
            _Cell(_status(each.status), "", STATUSES.index(each.status)),
            _named(_group(report, each.cluster, each.group_id)),
            _Cell(_reason(each.rule), "why"),
            _Cell(_partly(words.number(each.lag), each), "n", -1 if each.lag is None else each.lag),
            _Cell(words.duration(each.lag_ms), "n", -1 if each.lag_ms is None else each.lag_ms),
            _Cell(_text(f"{each.group_type} {each.group_state}".strip() or "—"), "t"),
            _number(each.members),
            _number(each.partitions),
            _number(each.rebalances),
            _Cell(
                _ago(each.last_commit_time, report.until), "t",
                each.last_commit_time.timestamp() if each.last_commit_time else 0,
            ),
        ]
        for each in report.groups
    ]  # fmt: skip
    heads = [
        ("status", ""), ("group", ""), ("why", ""), ("lag", "n"), ("time lag", "n"),
        ("type and state", "t"), ("members", "n"), ("partitions", "n"), ("rebalances", "n"), ("last commit", "t"),
    ]  # fmt: skip
    return _table(heads, rows, _MOST_ROWS, "groups")


def _ago(time: datetime | None, now: datetime | None) -> str:
    """How long ago that was; the time itself is shown to a pointer."""
    if time is None or now is None:
        return words.moment(time)
    return f'<span title="{words.moment(time)} UTC">{words.ago(time, now)} ago</span>'


def _partly(text: str, group: Group) -> str:
    return f"≥ {text}" if group.unknown and group.lag is not None else text


def _table(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[_Cell]], most: int, what: str) -> str:
    """A table that the page's script sorts; of very many rows the first."""
    head = "".join(f'<th scope="col"{_class(kind)}>{name}</th>' for name, kind in heads)
    body = "\n".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows[:most])
    left = (
        f'<p class="note">The first {most:,} of {len(rows):,}; all are in the tables.</p>' if len(rows) > most else ""
    )
    wish = ' data-filter="show only groups with …"' if what == "groups" else ""
    return (
        f'{left}<div class="wide"><table class="sortable" id="table-{what}"{wish}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _td(cell: _Cell) -> str:
    key = "" if cell.key is None else f' data-v="{cell.key:.10g}"'
    if isinstance(cell.key, int):
        key = f' data-v="{cell.key}"'
    return f"<td{_class(cell.kind)}{key}>{cell.html}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _number(value: int | None) -> _Cell:
    return _Cell(words.number(value), "n", -1 if value is None else value)


def _named(html: str) -> _Cell:
    return _Cell(html, "name")


def _group(report: Report, cluster: str, group_id: str) -> str:
    """A group's name, with its cluster's where there are several."""
    where = f' <span class="soft where">{_text(cluster)}</span>' if len(report.clusters) > 1 else ""
    return f"{_text(group_id)}{where}"


def _status(status: str) -> str:
    return f'<span class="status is-{status}">{plots.dot(status)}{status}</span>'


def _nothing(text: str) -> str:
    return f'<p class="soft">{text}</p>'


def _text(name: str) -> str:
    return escape(words.name(name))


def _reason(text: str) -> str:
    return escape(words.reason(text))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
