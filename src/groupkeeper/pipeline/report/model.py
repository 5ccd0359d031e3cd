"""The content of a report. Times are aware and in UTC; counts are of the window from `since` to `until` where they are
of
what happened, and of the last measurement where they are of what is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "STATUSES",
    "Activity",
    "Cluster",
    "Details",
    "Event",
    "Finding",
    "Group",
    "LagLine",
    "Member",
    "Partition",
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
    helps with it; HOST:PORT is for the reader to fill in.
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
    partition is known; `unknown` partitions are left out of them. `since`: when the earliest of its partitions of that
    status got it; `rule` is of the one that waits longest. `since` and `last_commit_time` None: not known, or never.
    `measured_time`: the instant of its lag, None: it was not measured.
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
    """A row of tables.REWINDS; `records` below 0 are those that were skipped. `change_id` None: no journal has it."""

    cluster: str
    group_id: str
    topic: str
    partition: int
    rewind_time: datetime | None
    from_offset: int | None
    to_offset: int | None
    records: int | None
    was_empty: bool | None
    change_id: str | None = None
    change_kind: str | None = None
    changed_by: str | None = None
    changed_on: str | None = None
    command: str | None = None
    undoes: str | None = None


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


class Partition(NamedTuple):
    """A partition that a group has committed an offset of, as tables.LAG and tables.STATUS have it."""

    topic: str
    partition: int
    status: str
    committed_offset: int | None
    log_end_offset: int | None
    lag: int | None
    lag_ms: int | None
    lag_basis: str | None
    growth_per_s: float | None
    catch_up_ms: int | None
    margin_ms: int | None
    commit_time: datetime | None
    problem: str


class Member(NamedTuple):
    """`name`: its instance id, else its member id. `assigned`: topics with their partitions."""

    name: str
    client_id: str
    client_host: str
    state: str
    assigned: tuple[tuple[str, tuple[int, ...]], ...]


class Event(NamedTuple):
    """Something that happened to a group; `times` times, from `time` on until `until`."""

    time: datetime
    until: datetime
    what: str
    about: str
    times: int = 1


class Details(NamedTuple):
    """More about a group: partitions with the worst first, events with the latest first. `left_out`: how many
    partitions, members and events there are beside them. `commits`: offsets committed in each bin of `minutes` from
    `begin` on; empty: none.
    """

    line: LagLine | None = None
    partitions: tuple[Partition, ...] = ()
    members: tuple[Member, ...] = ()
    events: tuple[Event, ...] = ()
    left_out: tuple[int, int, int] = (0, 0, 0)
    begin: datetime | None = None
    minutes: int = 1
    commits: tuple[int, ...] = ()


class Unmeasured(NamedTuple):
    """A cluster that the last refresh could not measure, and why: its lag and statuses are unknown."""

    cluster: str
    problem: str


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
    details: Mapping[tuple[str, str], Details] = MappingProxyType({})
    unmeasured: tuple[Unmeasured, ...] = ()

    def worst(self, measure: str) -> list[Group]:
        """The groups that lag most by `lag` or `lag_ms`, worst first; those with nothing to read are left out."""
        found = [each for each in self.groups if getattr(each, measure)]
        return sorted(found, key=lambda each: -getattr(each, measure))[: self.top]
