"""Values that follow from several polls: rebalances, and the time of a group's last progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from groupkeeper.client.admin.types import GroupState, TopicPartition
from groupkeeper.live.model import MOST_REBALANCES, Stood
from groupkeeper.operations.groups import AnyGroup
from groupkeeper.operations.lag import GroupsLag, LagStatus, PartitionLag, in_both
from groupkeeper.operations.watch import WatchedChange, What, changes
from groupkeeper.rules.progress import Trend, trend, usual_gap_ms
from groupkeeper.rules.status import GAPS, PATIENCE_MS, REBALANCES_MS
from groupkeeper.rules.urgency import STEADY_PER_S

_MOVES = frozenset({What.JOINED, What.LEFT, What.ASSIGNMENT})
_NEWEST = 0.3
"""The weight of the latest poll in averages of rates."""

_OF_LOGS = frozenset({LagStatus.NO_LEADER, LagStatus.DELETED})
"""Statuses in which a partition is known to have no commit, although its log end is unknown."""

_LONG_MS = PATIENCE_MS // GAPS
"""Shorter gaps between commits don't make a group's limit longer, and are not kept one by one."""

_MOST_GAPS = 16

_IN_ROUND = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


class Pauses(NamedTuple):
    """The gaps between a group's commits: the latest long ones, and the sum of the others since the first of them."""

    long_ms: tuple[int, ...] = ()
    short_ms: int = 0

    def then(self, gap_ms: int) -> Pauses:
        """The pauses with one more gap."""
        if gap_ms < _LONG_MS:
            return self._replace(short_ms=self.short_ms + max(0, gap_ms)) if self.long_ms else self
        if len(self.long_ms) < _MOST_GAPS:
            return Pauses((*self.long_ms, gap_ms), self.short_ms)
        # An equal share of the rest goes with the oldest.
        return Pauses((*self.long_ms[1:], gap_ms), self.short_ms - self.short_ms // _MOST_GAPS)

    @property
    def usual_ms(self) -> int | None:
        """The usual gap in ms; None: too little is known, or it is short."""
        return usual_gap_ms(list(self.long_ms), self.short_ms) if self.long_ms else None


class KnownGroup(NamedTuple):
    """The last known progress of a group, from the history: see `GroupView`. `has_moved`: it was seen to move."""

    committed: int
    progress_ms: int | None
    pauses: Pauses = Pauses()
    has_moved: bool = False


class GroupStanding(NamedTuple):
    """The sum of the committed offsets of a topic, and the time of the first poll that found it."""

    topic: str
    committed: int
    since_ms: int


class Followed(NamedTuple):
    """A followed group; fields that GroupView has, too, are explained there. None: not known, unless a field says
    otherwise.
    """

    description: AnyGroup | None = None
    """The last known one; None: there is none yet."""
    rebalances: int = 0
    lag: int | None = None
    """At `at_ms`; None: partly unknown, or nothing is committed."""
    at_ms: int = 0
    lag_change_per_s: float | None = None
    produced_per_s: float | None = None
    """Records written, over the same polls."""
    rows: Sequence[PartitionLag] = ()
    """At `at_ms`; empty: they are not known."""
    standing: tuple[GroupStanding, ...] = ()
    """By topic with commits, in order; a topic that can't be read now keeps its value."""
    stood: Mapping[TopicPartition, Stood] = MappingProxyType({})
    """Partitions with records to read; those that can't be read now keep their values."""
    pauses: Pauses = Pauses()
    rebalanced_ms: tuple[int, ...] = ()
    """The times of the latest rebalances."""
    first_ms: int | None = None
    """A `progress_ms` that shows no commit; 0: there is none; None: before the first poll."""

    @property
    def lately(self) -> int:
        """Rebalances within the last 10 minutes, at most `MOST_REBALANCES`."""
        return sum(self.at_ms - each < REBALANCES_MS for each in self.rebalanced_ms)

    @property
    def trend(self) -> Trend | None:
        """See `GroupView`."""
        change, produced = self.lag_change_per_s, self.produced_per_s
        if change is None or produced is None:
            return None
        # An average of rates never comes back to 0.
        return Trend.STEADY if abs(change) < STEADY_PER_S else trend(produced, produced - change, self.lag or 0)

    @property
    def committed(self) -> int | None:
        """See `GroupView`."""
        return sum(each.committed for each in self.standing) if self.standing else None

    @property
    def progress_ms(self) -> int | None:
        """See `GroupView`."""
        return max((each.since_ms for each in self.standing), default=None)


class Following:
    """Follows the groups of one cluster from poll to poll."""

    def __init__(self, known: Mapping[str, KnownGroup] = {}) -> None:
        self._known = known
        self._groups: dict[str, Followed] = {}
        self._began_ms: int | None = None

    def follow(self, lag: GroupsLag, group_ids: Iterable[str], at_ms: int) -> list[WatchedChange]:
        """Adds the results of a poll for the existing groups; returns the changes since the previous poll."""
        before, self._groups = self._groups, {}
        self._began_ms = at_ms if self._began_ms is None else min(self._began_ms, at_ms)
        found: list[WatchedChange] = []
        for group_id in group_ids:
            last = before.get(group_id, Followed())
            now = lag.descriptions.get(group_id)
            rows = lag.rows.get(group_id)
            rebalances, rebalanced_ms = last.rebalances, last.rebalanced_ms
            if now is not None and last.description is not None and now != last.description:
                differences = list(changes(group_id, last.description, now))
                found += differences
                more = _rebalances(last.description, now, differences)
                rebalances += more
                rebalanced_ms = (*rebalanced_ms, *(at_ms,) * min(more, MOST_REBALANCES))[-MOST_REBALANCES:]
            total_lag = None if rows is None else _lag(rows)
            change, produced = _rates(last, total_lag, rows or (), at_ms)
            standing, stood, pauses = last.standing, last.stood, last.pauses
            first_ms = self._began_ms if last.first_ms is None else last.first_ms
            if rows is not None:
                rows = _with_done_ahead(rows, last.rows)
                standing = _standing(rows, standing, at_ms)
                since_ms = at_ms
                known = self._known.get(group_id)
                if known is not None and known.progress_ms is not None and _is_as_known(standing, known):
                    since_ms = known.progress_ms
                    standing = tuple(each._replace(since_ms=since_ms) for each in standing)
                if known is not None:
                    pauses, first_ms = known.pauses, _first_ms(known, since_ms)
                elif standing != last.standing and last.progress_ms is not None:
                    pauses = pauses.then(at_ms - last.progress_ms)
                stood = _stood(rows, stood, at_ms, since_ms)
            self._groups[group_id] = Followed(
                now or last.description,
                rebalances,
                total_lag,
                at_ms,
                change,
                produced,
                rows or (),
                standing,
                stood,
                pauses,
                rebalanced_ms,
                first_ms,
            )
        # Keep known groups that could not be asked yet, to compare them later.
        self._known = {
            group_id: known
            for group_id, known in self._known.items()
            if group_id in self._groups and group_id not in lag.rows
        }
        return found

    def of(self, group_id: str) -> Followed:
        """The state of a followed group."""
        return self._groups[group_id]

    def is_old(self, group_id: str) -> bool:
        """Whether the group has committed nothing since the first poll, of this run or of those in the history."""
        one = self._groups[group_id]
        return one.progress_ms in (None, one.first_ms)

    def group_ids(self) -> set[str]:
        """The groups that are followed, and those that the history knows and that could not be asked yet."""
        return self._groups.keys() | self._known.keys()


def _with_done_ahead(rows: list[PartitionLag], before: Sequence[PartitionLag]) -> list[PartitionLag]:
    """The rows; what is done ahead in a share group is as before where it is not known now."""
    known = {row.tp: row.done_ahead for row in before if row.done_ahead is not None}
    if not known:
        return rows
    return [row._replace(done_ahead=known.get(row.tp)) if row.done_ahead is None else row
            for row in rows]  # fmt: skip


def _standing(rows: Sequence[PartitionLag], before: tuple[GroupStanding, ...], at_ms: int) -> tuple[GroupStanding, ...]:
    """The committed offsets by topic; `at_ms` for those that have changed."""
    # After a clock was set back, an offset that has not moved has stood since now at the latest.
    known = {each.topic: each._replace(since_ms=min(each.since_ms, at_ms)) for each in before}
    found = []
    for topic, some in groupby(rows, key=lambda row: row.topic):
        of_topic, last = list(some), known.get(topic)
        if any(row.committed is None and row.failure is not None and row.status not in _OF_LOGS for row in of_topic):
            if last is not None:
                found.append(last)
        elif any(row.committed is not None for row in of_topic):
            committed = sum(
                row.committed.offset + (row.done_ahead or 0) for row in of_topic if row.committed is not None
            )
            news = GroupStanding(topic, committed, at_ms)
            found.append(news if last is None or last.committed != committed else last)
    now = tuple(found)
    return before if now == before else now


def _is_as_known(standing: tuple[GroupStanding, ...], known: KnownGroup) -> bool:
    """Whether the sum of offsets is as before a restart: then each topic has stood still for at least as long."""
    return known.committed == sum(each.committed for each in standing)


def _first_ms(known: KnownGroup, since_ms: int) -> int:
    """`Followed.first_ms` after a restart: offsets other than the known ones are later commits."""
    return since_ms if not known.has_moved and known.progress_ms in (None, since_ms) else 0


def _stood(
    rows: Sequence[PartitionLag], before: Mapping[TopicPartition, Stood], at_ms: int, new_ms: int
) -> dict[TopicPartition, Stood]:
    """Partitions with records to read, with their commits; new ones have stood since `new_ms`. In share groups, the
    start offset counts: records done ahead of it are not of the same instant as the log's end.
    """
    found = {}
    for row in rows:
        tp = row.tp
        last = before.get(tp)
        if row.committed is not None and row.lag:
            offset = row.committed.offset
            since_ms = new_ms if last is None else at_ms if last.offset != offset else min(last.since_ms, at_ms)
            found[tp] = Stood(offset, since_ms)
        elif last is not None and row.failure is not None:
            found[tp] = last
    return found


def _lag(rows: Sequence[PartitionLag]) -> int | None:
    """The total lag; None: partly unknown, or nothing is committed (the lag of a first commit is no growth)."""
    if all(row.committed is None for row in rows) or any(
        row.lag is None and (row.committed is not None or row.failure is not None) for row in rows
    ):
        return None
    return sum(row.lag or 0 for row in rows)


def _rates(
    last: Followed, lag: int | None, rows: Sequence[PartitionLag], at_ms: int
) -> tuple[float | None, float | None]:
    """The change of the lag and the records written, each per second, of partitions in both polls; None: not known."""
    if last.lag is None or lag is None or at_ms <= last.at_ms:
        return None, None
    seconds = (at_ms - last.at_ms) / 1000
    both = list(in_both(last.rows, rows))
    change = sum(row.lag - was.lag for was, row, *_ in both if was.lag is not None and row.lag is not None)
    return (
        _averaged(last.lag_change_per_s, change / seconds),
        _averaged(last.produced_per_s, sum(each.written for each in both) / seconds),
    )


def _averaged(before: float | None, rate: float) -> float:
    return rate if before is None else _NEWEST * rate + (1 - _NEWEST) * before


def _rebalances(before: AnyGroup, after: AnyGroup, differences: Sequence[WatchedChange]) -> int:
    if before.group_epoch is not None and after.group_epoch is not None:
        return max(0, after.group_epoch - before.group_epoch)
    is_new_round = after.group_state in _IN_ROUND and before.group_state not in _IN_ROUND
    was_in_round = before.group_state in _IN_ROUND
    # A change of members or assignments during a round was counted with the round.
    return int(is_new_round or (not was_in_round and any(change.what in _MOVES for change in differences)))
