"""More about each group: its partitions, members and events, and the history of its lag and commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from groupkeeper.html.plots import LagLine
from groupkeeper.pipeline.report.lag_lines import Window
from groupkeeper.pipeline.report.model import STATUSES, Details, Event, Group, Key, Member, Partition
from groupkeeper.pipeline.report.opened import Opened
from groupkeeper.pipeline.report.shares import Share, partitions
from groupkeeper.pipeline.tables import GROUP_EVENTS, LAG, MEMBERS, RATES, STATUS
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.rules import words
from groupkeeper.rules.status import Status

_MOST_PARTITIONS = 200
_MOST_MEMBERS = 100
_MOST_EVENTS = 100
_MOST_EVENTS_READ = 3_000
"""How many of a group's latest events to read; repeated events are folded."""
_MOST_IN_ALL = 200_000
"""The most partitions in the sections of all groups."""

_BINS = 48
_FOLDED_S = 600
_LAG_COLUMNS = (
    "cluster", "group_id", "topic", "partition", "committed_offset", "log_end_offset", "lag", "lag_ms", "lag_basis",
    "produced_per_s", "consumed_per_s", "catch_up_ms", "retention_margin_ms", "commit_time", "problem",
)  # fmt: skip
_MEMBER_COLUMNS = [
    "cluster", "group_id", "member_id", "instance_id", "client_id", "client_host", "member_state", "assigned",
]  # fmt: skip
_COUNTED = {"offset_expirations": "offsets expired", "offset_deletions": "offsets deleted"}


def read_details(
    opened: Opened,
    groups: Sequence[Group],
    shares: Mapping[Key, Share],
    lines: Mapping[Key, LagLine],
    window: Window | None,
) -> dict[Key, Details]:
    """The details of all groups."""
    partitions_of = _partitions(opened) | {key: partitions(own) for key, own in shares.items()}
    members = _members(opened)
    events = _events(opened, window)
    begin, minutes, commits = _commits(opened, window)
    found, left = {}, _MOST_IN_ALL
    for group in groups:
        key = group.key
        listed, people = partitions_of.pop(key, []), members.get(key, [])
        most = min(_MOST_PARTITIONS, left)
        left -= min(most, len(listed))
        happened = _folded(events.get(key, []))
        found[key] = Details(
            lines.get(key), tuple(listed[:most]), tuple(people[:_MOST_MEMBERS]),
            tuple(happened[:_MOST_EVENTS]),
            (
                max(0, len(listed) - most), max(0, len(people) - _MOST_MEMBERS),
                max(0, len(happened) - _MOST_EVENTS),
            ),
            begin, minutes, tuple(commits.get(key, ())),
        )  # fmt: skip
    return found


def _partitions(opened: Opened) -> dict[Key, list[Partition]]:
    """The partitions of each group, the worst first."""
    columns = ["cluster", "group_id", "topic", "partition", "status"]
    judged = opened.table(STATUS, columns, pc.field("topic").is_valid()).to_pylist()
    statuses = {(row["cluster"], row["group_id"], row["topic"], row["partition"]): row["status"] for row in judged}
    found: dict[Key, list[Partition]] = defaultdict(list)
    for row in opened.table(LAG, _LAG_COLUMNS).to_pylist():
        status = statuses.get((row["cluster"], row["group_id"], row["topic"], row["partition"])) or Status.UNKNOWN
        rates = (row["produced_per_s"], row["consumed_per_s"])
        found[row["cluster"], row["group_id"]].append(
            Partition(
                row["topic"] or "", row["partition"] or 0, status if status in STATUSES else Status.UNKNOWN,
                row["committed_offset"], row["log_end_offset"], row["lag"], row["lag_ms"], row["lag_basis"],
                None if None in rates else rates[0] - rates[1],
                row["catch_up_ms"], row["retention_margin_ms"], row["commit_time"], row["problem"] or "",
            )
        )  # fmt: skip
    for own in found.values():
        own.sort(key=lambda each: (STATUSES.index(each.status), -(each.lag_ms or 0), each.topic, each.partition))
    return found


def _members(opened: Opened) -> dict[Key, list[Member]]:
    found: dict[Key, list[Member]] = defaultdict(list)
    for row in opened.table(MEMBERS, _MEMBER_COLUMNS).to_pylist():
        assigned = tuple(
            (each["topic"] or each.get("topic_id") or "", tuple(sorted(each["partitions"] or ())))
            for each in row["assigned"] or ()
            if each["partitions"]
        )
        found[row["cluster"], row["group_id"]].append(
            Member(
                row["instance_id"] or row["member_id"] or "", row["client_id"] or "", row["client_host"] or "",
                row["member_state"] or "", assigned,
            )
        )  # fmt: skip
    for own in found.values():
        own.sort(key=lambda each: each[:3])
    return found


def _events(opened: Opened, window: Window | None) -> dict[Key, list[Event]]:
    """The events of each group, the latest first."""
    if window is None:
        return {}
    found: dict[Key, list[Event]] = defaultdict(list)
    columns = ["cluster", "group_id", "event_time", "event", "member_id", "instance_id", "client_id", "members"]
    wanted = pc.field("event_time") >= pa.scalar(window.since, TIME)
    rows = opened.table(GROUP_EVENTS, columns, wanted).sort_by([("event_time", "descending")])
    read: dict[Key, int] = defaultdict(int)
    for row in (row for batch in rows.to_batches() for row in batch.to_pylist()):
        key = row["cluster"], row["group_id"]
        read[key] += 1
        if read[key] > _MOST_EVENTS_READ:
            continue
        member = row["instance_id"] or row["member_id"]
        about = words.name(row["client_id"] or member) if member else ""
        if not member and row["members"] is not None:
            about = words.counted(row["members"], "member")
        found[row["cluster"], row["group_id"]].append(
            Event(row["event_time"], row["event_time"], (row["event"] or "").replace("_", " "), about)
        )
    since = pc.field("minute") >= pa.scalar(window.since, TIME)
    gone = (pc.field("offset_expirations") > 0) | (pc.field("offset_deletions") > 0)
    for row in opened.table(RATES, ["cluster", "group_id", "minute", *_COUNTED],
                            since & gone & pc.field("group_id").is_valid()).to_pylist():  # fmt: skip
        for column, what in _COUNTED.items():
            if row[column]:
                found[row["cluster"], row["group_id"]].append(
                    Event(row["minute"], row["minute"], what, "", row[column])
                )
    for own in found.values():
        own.sort(key=lambda each: each.time, reverse=True)
    return found


def _folded(events: Iterable[Event]) -> list[Event]:
    """Joins repetitions of an event within ten minutes to one entry."""
    found: list[Event] = []
    for each in events:
        last = found[-1] if found else None
        if last is not None and last.what == each.what and (last.time - each.time).total_seconds() <= _FOLDED_S:
            about = last.about if last.about == each.about else ""
            found[-1] = Event(each.time, last.until, each.what, about, last.times + each.times)
        else:
            found.append(each)
    return found


def _commits(opened: Opened, window: Window | None) -> tuple[datetime | None, int, dict[Key, list[int]]]:
    """Offsets committed, in bins: the start of the first bin, the minutes of a bin, and the counts of each group."""
    if window is None:
        return None, 1, {}
    first = int(window.since.timestamp()) // 60
    minutes = max(1, -(-(int(window.until.timestamp()) // 60 + 1 - first) // _BINS))
    wanted = (
        (pc.field("minute") >= pa.scalar(datetime.fromtimestamp(first * 60, UTC), TIME))
        & pc.field("group_id").is_valid()
        & (pc.field("offset_commits") > 0)
    )
    rows = opened.table(RATES, ["cluster", "group_id", "minute", "offset_commits"], wanted)
    minute = pc.divide(pc.cast(rows["minute"], pa.int64()), 60_000_000)
    bins = pc.divide(pc.subtract(minute, first), minutes)
    summed = rows.append_column("bin", bins).group_by(["cluster", "group_id", "bin"]).aggregate(
        [("offset_commits", "sum")]
    )  # fmt: skip
    found: dict[Key, list[int]] = defaultdict(lambda: [0] * _BINS)
    for row in summed.to_pylist():
        if 0 <= row["bin"] < _BINS:
            found[row["cluster"], row["group_id"]][row["bin"]] = row["offset_commits_sum"]
    return datetime.fromtimestamp(first * 60, UTC), minutes, found
