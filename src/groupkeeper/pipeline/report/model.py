"""The content of a report. Times are aware and in UTC; counts are of the window from `since` to `until` where they are
of
what happened, and of the last measurement where they are of what is.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

__all__ = [
    "STATUSES",
    "Activity",
    "Cluster",
    "Finding",
    "Group",
    "LagLine",
    "Refresh",
    "Report",
    "Rewind",
    "Stale",
]

STATUSES = ("losing", "stopped", "stalled", "rewound", "lagging", "unstable", "unknown", "ok")
"""From worst to best; another text counts as unknown."""


class Refresh(NamedTuple):
    """The refresh that all of a report is of: its number in the ledger, and when it was published."""

    number: int
    time: datetime | None


class Finding(NamedTuple):
    """Something to act on. `kind`: one of impact.KINDS. `group_id` "": of no group. `place`: a topic's partition.
    `value` in `unit`, which begins with ms where it is a time; None: not known. `time`: since when, or when. `command`
    helps with it; HOST:PORT and the context are for the reader to fill in.
    """

    kind: str
    cluster: str
    group_id: str
    place: str | None
    value: float | None
    unit: str
    time: datetime | None
    note: str
    command: tuple[str, ...]


class Group(NamedTuple):
    """A group as it is. `lag` in records and `lag_ms`, the age of the oldest record to read, are None where no
    partition is known; `unknown` partitions are left out of them. `since` and `last_commit_time` None: not
    known, or never. `measured_time`: the instant of its lag, None: it was not measured.
    """

    cluster: str
    group_id: str
    group_type: str
    group_state: str
    members: int
    partitions: int
    status: str
    rule: str
    since: datetime | None
    lag: int | None
    lag_ms: int | None
    unknown: int
    last_commit_time: datetime | None
    rebalances: int
    measured_time: datetime | None = None

    @property
    def needs_attention(self) -> bool:
        return self.status not in ("ok", "unknown")


class Cluster(NamedTuple):
    """The headline numbers of a cluster; `lag` and `lag_ms` as for a group, the sum and the worst of all."""

    cluster: str
    groups: int
    members: int
    partitions: int
    lag: int | None
    lag_ms: int | None
    statuses: dict[str, int]
    commits: int
    expirations: int
    deletions: int
    rebalances: int
    rewinds: int
    stale_groups: int


class Activity(NamedTuple):
    """What happened in a cluster, by bins of `minutes` from `begin` on: offset commits and completed rebalances.
    `covered` is how many minutes of each bin the report is about: fewer of the first and the last one.
    """

    cluster: str
    begin: datetime
    minutes: int
    commits: tuple[int, ...]
    rebalances: tuple[int, ...]
    covered: tuple[int, ...]


class LagLine(NamedTuple):
    """The lag in records of a group over time, None where it is not known or nothing was measured; before `known_from`
    it was at least that much. `measured_from`: from then on it was measured, and a point holds until the next one.
    """

    cluster: str
    group_id: str
    points: tuple[tuple[datetime, int | None], ...]
    known_from: datetime
    measured_from: datetime | None = None

    @property
    def known(self) -> list[tuple[datetime, int]]:
        """The points at which it is known."""
        return [(time, lag) for time, lag in self.points if lag is not None]


class Rewind(NamedTuple):
    """A row of tables.REWINDS; `records` below 0 are those that were skipped."""

    cluster: str
    group_id: str
    topic: str
    partition: int
    rewind_time: datetime | None
    from_offset: int | None
    to_offset: int | None
    records: int | None
    was_empty: bool | None


class Stale(NamedTuple):
    """The rows of tables.STALE of a group for a reason: how many offsets (0: the group as a whole), of which topics,
    the longest idle time, the first to expire, records lost in all.
    """

    cluster: str
    group_id: str
    reason: str
    offsets: int
    topics: tuple[str, ...]
    idle_days: float | None
    expires_time: datetime | None
    lost_records: int | None


class Report(NamedTuple):
    """`measured_time` None: no lag was measured. `missing` are tables that are not there. `groups` are sorted from
    worst to best; `top` is how many of them the plots show. `refresh` None: no run has listed the tables.
    """

    directory: str
    measured_time: datetime | None
    since: datetime | None
    until: datetime | None
    hours: float
    top: int
    clusters: tuple[Cluster, ...]
    groups: tuple[Group, ...]
    activity: tuple[Activity, ...]
    lag_lines: tuple[LagLine, ...]
    rewinds: tuple[Rewind, ...]
    stale: tuple[Stale, ...]
    missing: tuple[str, ...]
    refresh: Refresh | None = None
    findings: tuple[Finding, ...] = ()

    def worst(self, measure: str) -> list[Group]:
        """The groups that lag most by `lag` or `lag_ms`, worst first; those with nothing to read are left out."""
        found = [each for each in self.groups if getattr(each, measure)]
        return sorted(found, key=lambda each: -getattr(each, measure))[: self.top]
