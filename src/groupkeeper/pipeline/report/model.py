"""The content of a report. Times are aware and in UTC; counts of events are of the window from `since` to `until`,
other counts are of the last measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import Urgency

STATUSES = tuple(reversed(Status))
"""Statuses from worst to best; another text counts as unknown."""


class Refresh(NamedTuple):
    """The refresh that a report shows: its number in the ledger, and when it was published (None: unknown)."""

    number: int
    time: datetime | None


class Finding(NamedTuple):
    """Something to act on. `kind`: an urgency, of a group; else calmed, held or stale. `group_id` "": it is not about a
    group. `place`: a partition as TOPIC-PARTITION; None: none. `value` is in `unit`, which begins with ms if it is a
    time; None: unknown. `time`: when it began, or will happen. `command` helps with it; the reader fills in HOST:PORT.
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
    """A group at present. `lag` in records and `lag_ms`, the age of the oldest record to read, are None if no
    partition's lag is known; `unknown` is the number of partitions without one. `since`: when the first of its
    partitions with the group's status got it; `rule`: of the partition that has waited longest. `since` and
    `last_commit_time` None: unknown, or never. `measured_time`: the instant of its lag, None: it was not measured.
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
    urgency: Urgency = Urgency.NONE


class Cluster(NamedTuple):
    """The headline numbers of a cluster; `lag` is the sum of its groups, `lag_ms` the highest; None: no group's is
    known.
    """

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
    """Offset commits and completed rebalances in a cluster, in bins of `minutes` from `begin` on. `covered`: how many
    minutes of each bin the report covers, fewer for the first and the last one.
    """

    cluster: str
    begin: datetime
    minutes: int
    commits: tuple[int, ...]
    rebalances: tuple[int, ...]
    covered: tuple[int, ...]


class LagLine(NamedTuple):
    """The lag of a group in records over time; None: unknown, or not measured. Before `known_from` the values are lower
    bounds. From `measured_from` on they were measured, and a point holds until the next one; None: never.
    """

    cluster: str
    group_id: str
    points: tuple[tuple[datetime, int | None], ...]
    known_from: datetime
    measured_from: datetime | None = None

    @property
    def known(self) -> list[tuple[datetime, int]]:
        """The points with a known lag."""
        return [(time, lag) for time, lag in self.points if lag is not None]


class Rewind(NamedTuple):
    """A row of tables.REWINDS; `records` below 0 were skipped. `change_id` None: no journal has the change."""

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
    """The rows of tables.STALE of a group with the same reason: the number of offsets (0: the group as a whole), their
    topics, the longest idle time, the first time of expiry, and the records lost in all.
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
    """A partition with a committed offset of a group, as tables.LAG and tables.STATUS have it."""

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
    """More about a group: partitions with the worst first, events with the latest first. `left_out`: how many more
    partitions, members and events there are. `commits`: offsets committed in each bin of `minutes` from `begin` on;
    empty: none.
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
    """A report. `measured_time` None: no lag was measured. `missing`: needed tables that the directory lacks. `groups`
    are in the order of their urgency; `top` is how many of them the plots show. `refresh` None: no run has listed the
    tables.
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
