"""The page of a group: its partitions, its members with assignments and targets, and its history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from groupkeeper.client.topology import TopicPartition, by_topic
from groupkeeper.html import markup, plots
from groupkeeper.html.markup import PageColumn, number_column
from groupkeeper.live.history import GroupSample, Noted
from groupkeeper.live.model import ClusterSnapshot, GroupView
from groupkeeper.live.statuses import may_be, reason_of, since_ms
from groupkeeper.operations.causes.facts import Fact
from groupkeeper.operations.groups import AnyMember
from groupkeeper.operations.lag import LagSum
from groupkeeper.operations.watch import What
from groupkeeper.rules import words
from groupkeeper.rules.words import capitalized
from groupkeeper.shell import NO_WAYS, Ways, command, text, way_to
from groupkeeper.web.pages import parts, scope, streams
from groupkeeper.web.pages.order import Order
from groupkeeper.web.pages.partitions import BY_STATUS, partitions_table
from groupkeeper.web.pages.parts import ANONYMOUS, Viewer
from groupkeeper.web.pages.statuses import GroupStatuses, causes_of, told

_MOST_ROWS = 2000
_MOST_EVENTS = 200
_MOST_POINTS = 500
_MOST_BARS = 60
_MINUTE_MS = 60_000
_MOST_PARTITIONS = 40

_SKIPS = (
    ". Other partitions of its member move. If the member cannot read the record there, this plans to skip it, so that "
    "the group never reads it:"
)
EVENTS: Mapping[str, str] = {
    What.TYPE: "group type",
    What.STATE: "state",
    What.ASSIGNOR: "assignor",
    What.GROUP_EPOCH: "group epoch",
    What.TARGET_EPOCH: "target epoch",
    What.PRESENT: "member present",
    What.JOINED: "member joined",
    What.LEFT: "member left",
    What.MEMBER_EPOCH: "member epoch",
    What.UPGRADED: "member protocol",
    What.TARGET_ASSIGNMENT: "target assignment",
    What.ASSIGNMENT: "assignment",
    What.PROBLEM: "problem",
}
"""The events of groups in words."""


def group_page(
    snapshot: ClusterSnapshot,
    group: GroupView,
    samples: Sequence[GroupSample],
    changes: Sequence[Noted],
    now_ms: int,
    viewer: Viewer = ANONYMOUS,
    *,
    made: str = "",
    note: str = "",
    ways: Ways = NO_WAYS,
    order: Order = BY_STATUS,
) -> str:
    """The whole page. `group`: its last known state. `made`: a table of its changes in the journal; `note`: about
    the server itself; `ways`: for commands; `order`: of the partitions.
    """
    link = parts.url("/change", cluster=snapshot.cluster, group=group.group_id)
    change = f'<p class="actions"><a href="{link}">Reset, delete …</a></p>' if snapshot.is_up else ""
    when = (
        f'<p class="soft">{parts.measured(snapshot, now_ms)}</p>' if snapshot.is_up else parts.as_of(snapshot, now_ms)
    )
    statuses = GroupStatuses.of(group, snapshot.known.at_ms)
    facts = f"{parts.problems(group.problems)}{_facts(group, statuses, snapshot.known.at_ms)}"
    causes = causes_of(snapshot.known, group, statuses)
    front = f"{when}{parts.old(snapshot, facts)}{scope.topics_chosen(snapshot.known)}"
    front += _why(snapshot, group, causes, ways) if snapshot.is_up else ""
    marked = causes[0].tp if causes and causes[0].tp is not None else statuses.worst and statuses.worst[0]
    table = partitions_table(snapshot, group, statuses.by_partition, marked, order)
    numbers = f"<h2>Partitions</h2>{table}{_who(group)}"
    body = (
        f"{note}<h2>Lag</h2>{_lag(snapshot.known, group, samples)}{_progress(snapshot.cluster, samples)}"
        f"{parts.old(snapshot, numbers)}<h2>Events of the last 24 hours</h2>{_events(changes)}{made}"
    )
    ranges = '<div data-ranges=""></div>'
    body = f"{parts.live('state', front)}{change}{ranges}{parts.live('rest', body)}"
    return parts.page(group.group_id, body, parts.way_to(snapshot.cluster), viewer, follows=snapshot.cluster)


def _who(group: GroupView) -> str:
    if group.streams is None:
        return f"<h2>Members</h2>{_members(group)}"
    return (
        f"<h2>Members and their tasks</h2>{streams.members(group.streams)}"
        f"<h2>Topology</h2>{streams.topology(group.streams)}"
    )


def _facts(group: GroupView, statuses: GroupStatuses, at_ms: int) -> str:
    judged, worst, missing = statuses.judged, statuses.worst, may_be(group, at_ms)
    began_ms = None if worst is None else since_ms(group, worst[0], at_ms)
    described, wait = group.description, group.wait
    pairs = [
        ("status", markup.status(judged.status)),
        *([("since", parts.since(began_ms, at_ms))] if began_ms is not None else []),
        ("type", group.group_type or "—"),
        ("state", re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr/>", group.group_state or "—")),
        ("members", words.number(group.members)),
        ("lag", parts.lag(group.lag, parts.records)),
        *(
            [("lost", parts.records(group.lag.lost)), ("readable", parts.records(group.lag.readable))]
            if group.lag.lost
            else []
        ),
        ("lag change", parts.per_s(group.lag_change_per_s)),
        ("time lag", parts.time_lag(group.lag, wait)),
        ("retention margin", parts.marked(wait.margin_ms)),
        ("commit age", words.duration(judged.still_ms)),
        ("uncommitted", _uncommitted(group.lag)),
        ("rebalances seen", words.number(group.rebalances)),
    ]
    if described is not None:
        if described.group_epoch is not None:
            pairs.append(("group epoch", words.number(described.group_epoch)))
            pairs.append(("target epoch", words.number(described.target_assignment_epoch)))
        pairs.append(("assignor", markup.text(described.partition_assignor or None)))
        pairs.append(("coordinator", f"broker {described.coordinator.id}"))
    if group.dead_letters is not None:
        pairs.append(("dead-letter queue", markup.text(str(group.dead_letters))))
    if group.streams is not None:
        tasks = [sum(len(getattr(each.assignment, role)) for each in group.streams.members)
                 for role in ("active", "standby", "warmup")]  # fmt: skip
        pairs.append(("active, standby, warm-up tasks", " / ".join(map(words.number, tasks))))
        pairs.append(("topology epoch", words.number(group.streams.topology_epoch)))
    why = reason_of(group, worst)
    because = f'<p class="because">{markup.sentence(why)}.</p>' if why else ""
    missing = markup.sentence(capitalized(missing)) if missing else ""
    notes = "".join(f'<p class="note">{each}.</p>' for each in (parts.unread(group), missing) if each)
    return f'<div class="card">{because}{markup.numbers(pairs)}{notes}</div>'


def _why(snapshot: ClusterSnapshot, group: GroupView, found: Sequence[Fact], ways: Ways) -> str:
    way = way_to(snapshot.cluster, ways)
    items = [
        f"<li>{markup.sentence(told(fact))}{_SKIPS if '--shift-by' in fact.words else ''}<br/>"
        f"<code>{markup.sentence(text(command(way, fact.words, fact.names)))}</code></li>"
        for fact in found
    ]
    ask = markup.sentence(text(command(way, ("groups", "why"), (group.group_id,))))
    more = f'<p class="note">More, with the record and the transaction: <code>{ask}</code></p>'
    return f'<h2>Why it does not move</h2><div class="card"><ol>{"".join(items)}</ol>{more}</div>' if items else ""


def _uncommitted(lag: LagSum) -> str:
    if not lag.uncommitted_partitions:
        return "none"
    where = f" <small>in {words.counted(lag.uncommitted_partitions, 'partition')}</small>"
    return (parts.UNKNOWN if lag.uncommitted is None else parts.records(lag.uncommitted)) + where


def _lag(snapshot: ClusterSnapshot, group: GroupView, samples: Sequence[GroupSample]) -> str:
    points = [(_time(each.at_ms), each.lag) for each in _thinned(samples) if each.lag is not None]
    if snapshot.measured_ms is not None and group.lag.lag is not None:
        points.append((_time(snapshot.measured_ms), group.lag.lag))
    if len(points) < 2:
        if group.lag.lag is not None:
            return markup.nothing("There is no history of the group's lag yet.")
        return markup.nothing(
            "Nothing is committed, so the lag is not known."
            if group.lag.uncommitted_partitions
            else "It is not known now."
        )
    line = plots.LagLine(snapshot.cluster, group.group_id, tuple(points), points[0][0])
    caption = "Lag, in offsets, over the last 24 hours at most."
    return f'<figure class="card">{plots.lag_plot(line)}<figcaption>{caption}</figcaption></figure>'


def _progress(cluster: str, samples: Sequence[GroupSample]) -> str:
    """A plot of offsets committed. A sample stands for the commits since the previous one."""
    known = [(each.at_ms // _MINUTE_MS, each.committed) for each in samples if each.committed is not None]
    if len(known) < 2:
        return ""
    begin = known[0][0]
    minutes = max(1, -(-(known[-1][0] - begin + 1) // _MOST_BARS))
    counts = [0] * ((known[-1][0] - begin) // minutes + 1)
    for (_, before), (minute, after) in pairwise(known):
        counts[(minute - begin) // minutes] += max(0, after - before)
    activity = plots.Activity(cluster, _time(begin * _MINUTE_MS), minutes, tuple(counts), (), ())
    bars = plots.bars_over_time(activity, counts, "offsets", is_rate=False)
    caption = (
        f"Offsets by which its commits advanced in each {words.counted(minutes, 'minute')}; "
        "commits of lower offsets are left out."
    )
    return f'<figure class="card history">{bars}<figcaption>{caption}</figcaption></figure>'


def _thinned(samples: Sequence[GroupSample]) -> Iterable[GroupSample]:
    """No more samples than can be seen; of neighbours, the highest."""
    size = -(-len(samples) // _MOST_POINTS) or 1
    for start in range(0, len(samples), size):
        yield max(samples[start : start + size], key=lambda each: each.lag or 0)


def _members(group: GroupView) -> str:
    if group.description is None:
        return markup.nothing("Its members are not known now.")
    members: Sequence[AnyMember] = group.description.members
    return markup.table(_MEMBERS, members, "members", most=_MOST_ROWS, none="The group has no members.")


def _target(member: AnyMember) -> str:
    target = getattr(member, "target_assignment", None)
    is_settled = target is not None and set(target) == set(member.assignment)
    return "as assigned" if is_settled else "—" if target is None else _partitions(target)


_MEMBERS: Sequence[PageColumn[AnyMember]] = [
    PageColumn("member", lambda each: markup.text(getattr(each, "instance_id", None) or each.member_id), "name"),
    PageColumn("client", lambda each: markup.text(each.client_id), "name"),
    PageColumn("host", lambda each: markup.text(each.host), "t"),
    number_column("member epoch", lambda each: getattr(each, "member_epoch", None)),
    PageColumn("assignment", lambda each: _partitions(each.assignment), "name"),
    PageColumn("target assignment", lambda each: _target(each), "name"),
]


def _partitions(tps: Sequence[TopicPartition]) -> str:
    first, left = sorted(tps)[:_MOST_PARTITIONS], len(tps) - _MOST_PARTITIONS
    shown = "; ".join(f"{markup.text(topic)}: {', '.join(map(str, some))}" for topic, some in by_topic(first).items())
    return (shown or "nothing") + (f" and {left:,} more" if left > 0 else "")


def _events(changes: Sequence[Noted]) -> str:
    none = "No change of a member, assignment or state was seen."
    return markup.table(_EVENTS, changes[-_MOST_EVENTS:][::-1], "events", none=none)


_EVENTS: Sequence[PageColumn[Noted]] = [
    PageColumn("when", lambda each: words.moment(each.at_ms), "t"),
    PageColumn("what", lambda each: EVENTS.get(each.what, markup.text(each.what))),
    PageColumn("member", lambda each: markup.text(each.member_id), "name"),
    PageColumn("before", lambda each: _value(each.what, each.before), "name"),
    PageColumn("after", lambda each: _value(each.what, each.after), "name"),
]
_PROTOCOLS = {"True": "consumer", "False": "classic"}


def _value(what: str, noted: str | None) -> str:
    """A value of an event from the history, in words."""
    if what == What.UPGRADED:
        return _PROTOCOLS.get(noted or "", "—")
    return "nothing" if noted == "" else markup.text(noted)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
