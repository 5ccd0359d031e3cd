"""A section for each group. The first ones are in the page as they are. Further ones are packed, and the page's script
unpacks them on demand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from groupkeeper.html import plots
from groupkeeper.html.markup import (
    PageColumn,
    nothing,
    number_column,
    numbers,
    packed,
    sentence,
    sortable,
    status,
    text,
    time_column,
)
from groupkeeper.html.plots import Activity
from groupkeeper.pipeline.report.model import STATUSES, Details, Event, Group, Member, Partition, Report
from groupkeeper.rules import words

_PLAIN = 50
_IN_A_PACK = 64
_MOST = 20_000
_MOST_TOPICS = 8
_NOTHING = Details()


def anchor(cluster: str, group_id: str) -> str:
    """The id of a group's section: the same in each report, and valid for any names."""
    name = f"{cluster}\0{group_id}".encode("utf-8", "surrogatepass")
    return f"g-{hashlib.sha256(name).hexdigest()[:12]}"


def sections(report: Report) -> str:
    """The sections of all groups."""
    plain = "".join(_section(report, each) for each in report.groups[:_PLAIN])
    packs = ""
    for begin in range(_PLAIN, min(_MOST, len(report.groups)), _IN_A_PACK):
        some = report.groups[begin : min(_MOST, begin + _IN_A_PACK)]
        ids = " ".join(anchor(*each.key) for each in some)
        packs += packed("".join(_section(report, each) for each in some), "sections", ids)
    left = len(report.groups) - _PLAIN
    note = ""
    if left > 0:
        note = (
            f'<p class="note">The {_PLAIN} groups that need attention most; a click on a name in the list above opens '
            "any other group here.</p>"
        )
    if len(report.groups) > _MOST:
        note += f'<p class="note">Groups after the first {_MOST:,} are in the tables only.</p>'
    return f'{note}<div id="sections">{plain}</div>{packs}'


def last_commit(group: Group, report: Report) -> str:
    """How long before the report's end the group committed; the time itself is shown as a tooltip."""
    time, until = group.last_commit_time, report.until
    if time is None or until is None:
        return words.moment(time)
    ms = int((until - time).total_seconds() * 1000)
    return f'<span title="{words.moment(time)} UTC">{words.ago(ms)}</span>'


def _section(report: Report, group: Group) -> str:
    details = report.details.get(group.key, _NOTHING)
    where = f' <span class="soft where">{text(group.cluster)}</span>' if len(report.clusters) > 1 else ""
    more = [f"{count:,} more {what}" for count, what in
            zip(details.left_out, ("partitions", "members", "events"), strict=True) if count]  # fmt: skip
    left = f'<p class="note">In the tables: {", ".join(more)}.</p>' if more else ""
    return (
        f'<details class="card group" id="{anchor(*group.key)}"><summary>'
        f'<h3 class="name">{text(group.group_id)}{where}</h3> '
        f"{status(group.status)}</summary><p>{sentence(group.rule)}</p>{numbers(_facts(report, group, details))}"
        f"{_history(group, details)}<h4>Partitions</h4>{_partitions(details.partitions)}"
        f"<h4>Members</h4>{_members(group, details.members)}<h4>Events</h4>{_events(details.events)}{left}</details>"
    )


def _facts(report: Report, group: Group, details: Details) -> Iterator[tuple[str, str]]:
    at_least = "≥ " if group.unknown and group.lag is not None else ""
    yield "lag", f"{at_least}{words.number(group.lag)}"
    yield "time lag", words.duration(group.lag_ms)
    known = [each for each in details.partitions if each.lag_change_per_s is not None]
    if known:
        change = sum(each.lag_change_per_s or 0 for each in known)
        yield "lag change", f"{'+' * (change > 0)}{words.rate(change)}".replace("-", "−")
        caught = max((each.catch_up_ms for each in known if each.catch_up_ms is not None), default=None)
        never = any(each.lag and each.catch_up_ms is None for each in known)
        yield "caught up in", "never" if never else words.duration(caught)
    margins = [each.margin_ms for each in details.partitions if each.margin_ms is not None]
    if margins:
        yield "retention margin", words.margin(min(margins))
    yield "type and state", text(f"{group.group_type} {group.group_state}".strip() or "—")
    yield "members", words.number(group.members)
    yield "partitions", words.number(group.partitions)
    yield "rebalances", words.number(group.rebalances)
    yield "last commit", last_commit(group, report)


def _history(group: Group, details: Details) -> str:
    drawn = []
    if details.line is not None and len(details.line.points) > 1:
        drawn.append(f"<figure><h4>Lag</h4>{plots.lag_plot(details.line)}</figure>")
    elif details.line is not None:
        time, lag = details.line.points[0]
        drawn.append(f"<figure><h4>Lag</h4>{nothing(f'Measured once: {words.number(lag)} at {words.moment(time)}.')}"
                     "</figure>")  # fmt: skip
    else:
        drawn.append(
            f"<figure><h4>Lag</h4>{nothing('Not measured: nothing is committed, or not to be seen.')}</figure>"
        )
    if details.begin is not None and any(details.commits):
        activity = Activity(group.cluster, details.begin, details.minutes, details.commits, (), ())
        unit = f"offsets committed in {words.counted(details.minutes, 'minute')}"
        bars = plots.bars_over_time(activity, details.commits, unit, is_rate=False)
        drawn.append(f"<figure><h4>Commits</h4>{bars}</figure>")
    return f'<div class="two">{"".join(drawn)}</div>'


def _partitions(partitions: Sequence[Partition]) -> str:
    if not partitions:
        return nothing("No offset is committed.")
    problems = [PageColumn[Partition]("problem", lambda each: sentence(each.problem) or " ", "why")]
    columns = [*_PARTITIONS, *(problems if any(each.problem for each in partitions) else [])]
    return sortable(columns, partitions, "partitions")


def _estimated(each: Partition) -> str:
    return ("~ " if each.lag_basis == "interpolated" else "") + words.duration(each.lag_ms)


def _lag_change(each: Partition) -> str:
    return "—" if each.lag_change_per_s is None else words.rate(each.lag_change_per_s)


def _caught_up(each: Partition) -> str:
    if each.catch_up_ms is None and each.lag_change_per_s is not None and each.lag:
        return "never"
    return words.duration(each.catch_up_ms)


def _members(group: Group, members: Sequence[Member]) -> str:
    if not members:
        return nothing("It has none." if not group.members else "Not known.")
    return sortable(_MEMBERS, members, "members")


def _assigned(member: Member) -> str:
    shown = [f"{text(topic)}: {_ranges(partitions)}" for topic, partitions in member.assigned[:_MOST_TOPICS]]
    left = len(member.assigned) - _MOST_TOPICS
    return ("; ".join(shown) or "none") + (f"; {words.counted(left, 'more topic')}" if left > 0 else "")


def _ranges(numbers: Sequence[int]) -> str:
    """Partition numbers as text, as in 0–3, 7."""
    found: list[list[int]] = []
    for each in numbers:
        if found and each == found[-1][-1] + 1:
            found[-1][1:] = [each]
        else:
            found.append([each])
    return ", ".join("–".join(map(str, each)) for each in found)


def _events(events: Sequence[Event]) -> str:
    if not events:
        return nothing("Nothing happened in the time shown.")
    return sortable(_EVENTS, events, "events")


_PARTITIONS: Sequence[PageColumn[Partition]] = [
    PageColumn("status", lambda each: status(each.status), by=lambda each: STATUSES.index(each.status)),
    PageColumn("partition", lambda each: f"{text(each.topic)}-{each.partition}", "name"),
    number_column("committed offset", lambda each: each.committed_offset),
    number_column("log end", lambda each: each.log_end_offset),
    number_column("lag", lambda each: each.lag),
    PageColumn("time lag", lambda each: _estimated(each), "n", by=lambda each: each.lag_ms),
    PageColumn("lag change", lambda each: _lag_change(each), "n", by=lambda each: each.lag_change_per_s or 0),
    PageColumn("caught up in", lambda each: _caught_up(each), "n", by=lambda each: each.catch_up_ms),
    PageColumn("retention margin", lambda each: words.margin(each.margin_ms), "n", by=lambda each: each.margin_ms),
    time_column("last commit", lambda each: each.commit_time),
]  # fmt: skip
_MEMBERS: Sequence[PageColumn[Member]] = [
    PageColumn("member", lambda each: text(each.name), "name"),
    PageColumn("client", lambda each: text(each.client_id), "name"),
    PageColumn("host", lambda each: text(each.client_host), "name"),
    PageColumn("state", lambda each: text(each.state) if each.state else "—", "t"),
    PageColumn("partitions", lambda each: _assigned(each), "name"),
]
_EVENTS: Sequence[PageColumn[Event]] = [
    time_column("when", lambda each: each.until),
    PageColumn("what", lambda each: sentence(each.what) + f" <b>{each.times:,} times</b>" * (each.times > 1)),
    PageColumn("about", lambda each: sentence(each.about) if each.about else "—", "name"),
    time_column("from", lambda each: each.time if each.time != each.until else None),
]
