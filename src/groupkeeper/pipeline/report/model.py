"""The content of a report. Times are aware and in UTC; counts of events are of the window from `since` to `until`,
other counts are of the last measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from groupkeeper.rules.status import Status
from groupkeeper.rules.urgency import Urgency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.html.plots import Activity, LagLine

Key = tuple[str, str]
"""A cluster's name and a group's."""

STATUSES = tuple(reversed(Status))
"""Statuses from worst to best; another text counts as unknown."""

STALE_REASONS = {
    "idle": "not used for long",
    "topic_deleted": "its topic was deleted, or made again",
    "expiring": "about to expire",
    "below_log_start": "records were deleted unread",
}
"""Texts for the reasons of tables.STALE."""


class Refresh(NamedTuple):
    """The refresh that a report shows: its number in the ledger, and when it was published (None: unknown)."""

    number: int
    time: datetime | None


class Finding(NamedTuple):
    """Something to act on."""

    kind: str
    """An urgency, of a group; else calmed, held or stale."""
    cluster: str
    group_id: str
    """Empty: it is not about a group."""
    partition: str | None
    """A partition as TOPIC-PARTITION; None: none."""
    value: float | None
    """In `unit`; None: unknown."""
    unit: str
    """Begins with ms if it is a time."""
    time: datetime | None
    """When it began or will happen, or when `value` was measured; None: unknown."""
    note: str
    command: tuple[str, ...]
    """Helps with it; has HOST:PORT, for the reader to fill in, if no way to the cluster is known."""


class Group(NamedTuple):
    """A group at present."""

    cluster: str
    group_id: str
    group_type: str
    group_state: str
    members: int
    partitions: int
    status: str
    rule: str
    """The rule for the partition that has waited longest."""
    since: datetime | None
    """When the first of its partitions with the group's status got it; None: unknown, or never."""
    lag: int | None
    """In records; None: no partition's is known."""
    lag_ms: int | None
    """The age of the oldest record to read; None: no partition's is known, as in share groups."""
    unknown: int
    """The number of partitions without a known lag."""
    last_commit_time: datetime | None
    """None: unknown, or never."""
    rebalances: int
    measured_time: datetime | None = None
    """The instant of its lag; None: it was not measured."""
    urgency: Urgency = Urgency.NONE

    @property
    def key(self) -> Key:
        return self.cluster, self.group_id


class Cluster(NamedTuple):
    """The headline numbers of a cluster."""

    cluster: str
    groups: int
    members: int
    partitions: int
    lag: int | None
    """The sum of its groups; None: no group's is known."""
    lag_ms: int | None
    """The highest of its groups; None: no group's is known."""
    statuses: dict[str, int]
    commits: int
    expirations: int
    deletions: int
    rebalances: int
    rewinds: int
    stale_groups: int


class Rewind(NamedTuple):
    """A row of tables.REWINDS. None in the fields of a change: no journal has it."""

    cluster: str
    group_id: str
    topic: str
    partition: int
    rewind_time: datetime
    """When it was committed; rows without it are left out."""
    from_offset: int
    to_offset: int
    records: int | None
    """How many are read again; below 0: skipped; None: more than a BIGINT holds."""
    was_empty: bool | None
    """Whether the group had no members then; None: unknown."""
    change_id: str | None = None
    """In groupkeeper's journal."""
    change_kind: str | None = None
    """reset, undo, clone or sweep."""
    changed_by: str | None = None
    """The user, with server and principal if known."""
    changed_on: str | None = None
    """The host; None also if hosts are not kept."""
    command: str | None = None
    """Without secrets."""
    undoes: str | None = None
    """The id of the change that an undo undoes; None: it is none."""


class Stale(NamedTuple):
    """The rows of tables.STALE of a group with the same reason."""

    cluster: str
    group_id: str
    reason: str
    offsets: int
    """How many; 0: the group as a whole."""
    topics: tuple[str, ...]
    idle_days: float | None
    """The longest idle time; None: unknown."""
    expires_time: datetime | None
    """The first time of expiry; None: unknown, or never while the group has members."""
    lost: int | None
    """In all; None: the reason is not below_log_start."""


class Partition(NamedTuple):
    """A partition with a committed offset of a group, as in tables.LAG and tables.STATUS, or SHARE_OFFSETS. None: not
    known, unless a field says otherwise.
    """

    topic: str
    partition: int
    status: str
    committed_offset: int | None
    """A share group's start offset; None: no member of it has read the partition."""
    log_end_offset: int | None
    """None: the partition could not be queried."""
    lag: int | None
    """In records."""
    lag_ms: int | None
    """The age of the oldest record to read; None: unknown, as in share groups."""
    lag_basis: str | None
    """How `lag_ms` is known: exact, interpolated, unknown; None: a share group."""
    lag_change_per_s: float | None
    """Records produced less those read."""
    catch_up_ms: int | None
    """Time until lag is 0 if both rates stay; None: never, or unknown."""
    margin_ms: int | None
    """Time until the oldest unread record may be deleted; below 0: now; None: never, or unknown."""
    commit_time: datetime | None
    """When it was committed, or a share group's state was written."""
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
    """More about a group: partitions with the worst first, events with the latest first."""

    line: LagLine | None = None
    """The group's lag over time; None: not measured."""
    partitions: tuple[Partition, ...] = ()
    members: tuple[Member, ...] = ()
    events: tuple[Event, ...] = ()
    left_out: tuple[int, int, int] = (0, 0, 0)
    """How many more partitions, members and events there are."""
    begin: datetime | None = None
    """The time of the first bin of `commits`; None: the tables have no times."""
    minutes: int = 1
    """The length of a bin."""
    commits: tuple[int, ...] = ()
    """Offsets committed in each bin; empty: none."""


class Unmeasured(NamedTuple):
    """A cluster that the last refresh could not measure, and why: its lag and statuses are unknown."""

    cluster: str
    problem: str


class Report(NamedTuple):
    """A report."""

    directory: str
    measured_time: datetime | None
    """The latest instant; None: no lag was measured."""
    since: datetime | None
    """None: the tables have no times."""
    until: datetime | None
    """None where `since` is."""
    hours: float
    top: int
    """How many groups the plots show."""
    clusters: tuple[Cluster, ...]
    groups: tuple[Group, ...]
    """In the order of their urgency."""
    activity: tuple[Activity, ...]
    lag_lines: tuple[LagLine, ...]
    rewinds: tuple[Rewind, ...]
    stale: tuple[Stale, ...]
    missing: tuple[str, ...]
    """Needed tables that the directory lacks."""
    refresh: Refresh | None = None
    """None: no run has listed the tables."""
    findings: tuple[Finding, ...] = ()
    details: Mapping[Key, Details] = MappingProxyType({})
    unmeasured: tuple[Unmeasured, ...] = ()

    def worst(self, measure: str) -> list[Group]:
        """The groups that lag most by `lag` or `lag_ms`, worst first; those with nothing to read are left out."""
        found = [each for each in self.groups if getattr(each, measure)]
        return sorted(found, key=lambda each: -getattr(each, measure))[: self.top]


def by_group(rows: Iterable[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    """The rows of each group."""
    found: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["cluster"], row["group_id"]].append(row)
    return found
