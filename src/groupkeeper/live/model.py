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

MOST_REBALANCES = 100
"""The most rebalances of a group that are kept, the latest ones: the last 10 minutes count no more than these."""


class Wait(NamedTuple):
    """How long the next record of a partition has waited for a group, at the snapshot's instant. Aborted records and
    markers of transactions do not wait.

    ``lag_ms``: since the record's own timestamp, or since a poll saw it if that is earlier; never negative; None:
    unknown. ``is_waiting``: whether a record is known to wait, which a time lag of 0 does not tell. ``is_estimated``:
    ``lag_ms`` comes from the log ends of earlier polls. ``margin_ms``: until the topic's ``retention.ms`` lets the
    record be removed, negative when overdue; None: nothing waits, the topic has no time retention, or
    (``is_margin_known`` False) it is unknown. ``held_at``: the last stable offset, if an open transaction there is
    known to keep consumers of committed records from this record. ``holder``: the oldest transaction that is open
    there; None: unknown.
    """

    lag_ms: int | None
    is_estimated: bool = False
    margin_ms: int | None = None
    is_margin_known: bool = True
    is_waiting: bool = True
    held_at: int | None = None
    holder: OpenTransaction | None = None


NOTHING_WAITS = Wait(0, is_waiting=False)


class WaitSum(NamedTuple):
    """The longest wait of several partitions, and the shortest margin.

    ``lag_ms``: a lower bound if some waits are unknown; None: all are unknown, or nothing waits in the partitions with
    known waits. ``waiting``, ``estimated`` and ``unknown`` are numbers of partitions: where a record waits, where its
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
    """A group's partitions of one topic together. ``assigned``: the number of members with such partitions.

    ``progress_ms``: time of the first poll that found the current commit; None: nothing is committed, or unknown.
    """

    lag: LagSum
    wait: WaitSum
    assigned: int
    progress_ms: int | None


class GroupView(NamedTuple):
    """A group at the snapshot's instant.

    ``group_type`` and ``group_state`` come from the coordinator's description, else from the listing; None: not known.
    ``description`` None: it can't be described, and ``problems`` has the reason. ``rows`` are in order of topics and
    partitions, ``waits`` belong to the same rows. ``topics``: sums of the rows by topic; ``lag``, ``wait``: sums of all
    rows.

    ``rebalances``: the number seen since the collector began: new epochs; for a classic group, polls that found other
    members or assignments. ``committed``: the sum of the committed offsets, to detect commits; None: nothing is
    committed, or it isn't known. ``progress_ms``: time of the first poll that found the current committed offsets: the
    group has made no progress for at least this time; None: nothing is committed. ``lag_change_per_s``: in offsets,
    over the latest polls, newer ones counting more; None: not known. ``noted_members``: the number of members in the
    history, for a group that was only read from there. ``stood``: partitions with records to read. ``unread``: topics
    that no member reads, as far as that is known. ``usual_gap_ms``: the group's usual time between commits, if it is
    long; None: not known, or short. ``rebalances_lately``: those of ``rebalances`` within the last 10 minutes.
    ``dead_letters``: the queue of a share group; None: it has none, or that is not known. ``is_old``: no poll has seen
    the group commit.
    """

    group_id: str
    group_type: GroupType | None
    group_state: GroupState | None
    description: AnyGroup | None
    streams: StreamsGroupDescription | None
    rows: Sequence[PartitionLag]
    waits: Sequence[Wait]
    topics: Mapping[str, TopicView]
    lag: LagSum
    wait: WaitSum
    rebalances: int
    committed: int | None
    progress_ms: int | None
    problems: tuple[Problem, ...]
    lag_change_per_s: float | None = None
    noted_members: int | None = None
    stood: Mapping[TopicPartition, Stood] = MappingProxyType({})
    unread: frozenset[str] = frozenset()
    usual_gap_ms: int | None = None
    rebalances_lately: int = 0
    dead_letters: DeadLetterQueue | None = None
    is_old: bool = False

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

    ``left_out``: the groups, by name. ``unmatched``: options whose names match no group, or no topic of the groups.
    ``are_topics_chosen``: whether the groups may have other topics. ``hides_topics``: whether they may have topics that
    the client may not describe, which brokers silently leave out.
    """

    left_out: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    are_topics_chosen: bool = False
    hides_topics: bool = False


class OtherCluster(NamedTuple):
    """An earlier cluster: the one with the id ``before`` had the name until then."""

    before: str
    since_ms: int


class ClusterSnapshot(NamedTuple):
    """A cluster at one instant.

    ``measured_ms``: when all log ends were requested, after all other requests; None: the poll failed, and ``groups``
    is empty. ``problems``: why it failed, or which brokers did not list their groups. ``seconds``: how long the poll
    took. ``listed``: the number of groups in the cluster, with unselected ones. ``last``: after failed polls the last
    successful one; None: there is none. ``replaced``: another cluster had the name before. ``is_partial``: it is from
    the history, which has no partitions and members.
    """

    cluster: str
    measured_ms: int | None
    seconds: float
    groups: Mapping[str, GroupView]
    problems: tuple[Problem, ...]
    polls: Polls
    listed: int = 0
    cluster_id: str | None = None
    brokers: tuple[Node, ...] = ()
    scope: Scope = Scope()
    last: ClusterSnapshot | None = None
    replaced: OtherCluster | None = None
    is_partial: bool = False

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
