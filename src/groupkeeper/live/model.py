"""Snapshots of clusters at one instant: immutable, and the only source of metrics, checks and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.client.admin.streams_types import StreamsGroupDescription
from groupkeeper.client.admin.types import GroupState, GroupType, Node, TopicPartition
from groupkeeper.operations.groups import AnyGroup
from groupkeeper.operations.lag import LagSum, PartitionLag
from groupkeeper.operations.problems import Problem
from groupkeeper.operations.share_groups import DeadLetterQueue
from groupkeeper.operations.transactions import OpenTransaction
from groupkeeper.rules.progress import Trend

MOST_REBALANCES = 100
"""The most rebalances of a group that are kept, the latest ones: the last 10 minutes count no more than these."""


class Wait(NamedTuple):
    """How long the next record of a partition has waited for a group, at the snapshot's instant. Aborted records and
    markers of transactions do not wait.
    """

    lag_ms: int | None
    """Since the record's own timestamp, or since a poll saw it if that is earlier; never negative; None: unknown."""
    is_estimated: bool = False
    """Whether `lag_ms` comes from the log ends of earlier polls."""
    margin_ms: int | None = None
    """Until the topic's `retention.ms` lets the record be removed, negative when overdue; None: nothing waits, the
    topic has no time retention, or it is unknown.
    """
    is_margin_known: bool = True
    """False: `margin_ms` is unknown."""
    is_waiting: bool = True
    """Whether a record is known to wait, which a time lag of 0 does not tell."""
    held_at: int | None = None
    """The last stable offset, if it keeps readers of committed records from this record; None: not, as far as known."""
    holder: OpenTransaction | None = None
    """The oldest transaction that is open there; None: unknown."""


NOTHING_WAITS = Wait(0, is_waiting=False)


class WaitSum(NamedTuple):
    """The longest wait of several partitions, and the shortest margin.

    `lag_ms`: a lower bound if some waits are unknown; None: all are unknown, or nothing waits in the partitions with
    known waits. `waiting`, `estimated` and `unknown` are numbers of partitions: where a record waits, where its
    time is estimated, where it is unknown whether one waits or since when. Partitions without a commit have no lag, and
    aren't counted.
    """

    lag_ms: int | None
    estimated: int = 0
    unknown: int = 0
    margin_ms: int | None = None
    waiting: int = 0


class Stood(NamedTuple):
    """The committed offset of a partition with records to read, and the time of the first poll that found it."""

    offset: int
    since_ms: int


class TopicView(NamedTuple):
    """A group's partitions of one topic together. `assigned`: the number of members with such partitions.

    `progress_ms`: time of the first poll that found the current commit; None: nothing is committed, or unknown.
    """

    lag: LagSum
    wait: WaitSum
    assigned: int
    progress_ms: int | None


class GroupView(NamedTuple):
    """A group at the snapshot's instant. None: not known, unless a field says otherwise."""

    group_id: str
    group_type: GroupType | None
    """From the coordinator's description, else from the listing."""
    group_state: GroupState | None
    description: AnyGroup | None
    """None: it can't be described, for a reason in `problems`, or the view is from the history."""
    streams: StreamsGroupDescription | None
    """The description of a streams group; None: of another type, or unknown."""
    rows: Sequence[PartitionLag]
    """In order of topics and partitions."""
    waits: Sequence[Wait]
    """The waits of `rows`, in the same order."""
    topics: Mapping[str, TopicView]
    """Sums of the rows by topic."""
    lag: LagSum
    """The sum of all rows."""
    wait: WaitSum
    """The sum of all `waits`."""
    rebalances: int
    """Since the collector began: new epochs; of a classic group, polls with a new round, members or assignments."""
    committed: int | None
    """The sum of the committed offsets, to detect commits; None: nothing is committed, or it isn't known."""
    progress_ms: int | None
    """When a poll first found these committed offsets: no progress since. None: nothing is committed, or unknown."""
    problems: tuple[Problem, ...]
    lag_change_per_s: float | None = None
    """In offsets, over the latest polls, newer ones counting more."""
    trend: Trend | None = None
    """The trend of the lag, by the rates of the same polls."""
    noted_members: int | None = None
    """The number of members in the history, for a group that was only read from there; None: unknown, or another."""
    stood: Mapping[TopicPartition, Stood] = MappingProxyType({})
    """Partitions with records to read."""
    unread: frozenset[str] = frozenset()
    """Topics that no member reads, as far as that is known."""
    usual_gap_ms: int | None = None
    """The group's usual time between commits, if it is long; None: not known, or short."""
    rebalances_lately: int = 0
    """The number of rebalances within the last 10 minutes."""
    dead_letters: DeadLetterQueue | None = None
    """The queue of a share group; None: it has none, or that is not known."""
    is_old: bool = False
    """Whether no poll has seen the group commit."""

    @property
    def members(self) -> int | None:
        """The number of members; None: unknown."""
        return self.noted_members if self.description is None else len(self.description.members)


class Polls(NamedTuple):
    """The polls of a cluster: how many so far, how many failed as a whole, the start time of the last successful one,
    and that of the first of those that have failed since; None: there is none.
    """

    done: int = 0
    failed: int = 0
    succeeded_ms: int | None = None
    failing_ms: int | None = None

    def ended(self, began_ms: int, *, is_success: bool) -> Polls:
        """The counts with one more poll."""
        if is_success:
            return Polls(self.done + 1, self.failed, began_ms)
        failing_ms = began_ms if self.failing_ms is None else self.failing_ms
        return Polls(self.done + 1, self.failed + 1, self.succeeded_ms, failing_ms)


class Scope(NamedTuple):
    """What the selection of groups and topics leaves out of a cluster.

    `left_out`: the groups, by name. `unmatched`: options whose names match no group, or no topic of the groups.
    `are_topics_chosen`: whether the groups may have other topics. `hides_topics`: whether they may have topics that
    the client may not describe, which brokers silently leave out.
    """

    left_out: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    are_topics_chosen: bool = False
    hides_topics: bool = False


class OtherCluster(NamedTuple):
    """An earlier cluster: the one with the id `before` had the name until then."""

    before: str
    since_ms: int


class ClusterSnapshot(NamedTuple):
    """A cluster at one instant."""

    cluster: str
    measured_ms: int | None
    """When all log ends were requested, after all other requests; None: not polled, so that `groups` is empty."""
    seconds: float
    """How long the poll took."""
    groups: Mapping[str, GroupView]
    problems: tuple[Problem, ...]
    """Why the poll failed, or which brokers did not list their groups."""
    polls: Polls
    listed: int = 0
    """The number of groups in the cluster, with unselected ones."""
    cluster_id: str | None = None
    """None: not known."""
    brokers: tuple[Node, ...] = ()
    scope: Scope = Scope()
    last: ClusterSnapshot | None = None
    """After failed polls the last successful one; None: there is none."""
    replaced: OtherCluster | None = None
    """The cluster that had the name before; None: no other one."""
    is_partial: bool = False
    """Whether it is from the history, which has no partitions and members."""

    @property
    def is_up(self) -> bool:
        """Whether the last poll succeeded."""
        return self.measured_ms is not None

    @property
    def known(self) -> ClusterSnapshot:
        """This snapshot, or the last successful one if the poll failed."""
        return self if self.is_up or self.last is None else self.last

    @property
    def at_ms(self) -> int:
        """The instant at which all surfaces judge its groups; 0 after a failed poll, which has none."""
        return self.measured_ms or 0


def not_polled(cluster: str) -> ClusterSnapshot:
    """A cluster before its first poll."""
    return ClusterSnapshot(cluster, None, 0.0, {}, (), Polls())
