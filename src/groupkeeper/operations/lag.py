"""The progress of groups: committed offsets, both ends of each log, and the lag, for many groups at a time.

The views of the official tools are in `describe`; here every partition has a status that explains its numbers.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.streams_types import StreamsGroupDescription
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    OffsetAndMetadata,
    OffsetSpec,
    ShareGroupDescription,
    SharePartitionOffset,
    TopicPartition,
)
from groupkeeper.operations.groups import AnyGroup, AnyMember, describe_any
from groupkeeper.operations.selection import Matching
from groupkeeper.operations.topics import describe_topics, offsets_of, unreachable
from groupkeeper.protocol.errors import LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition
from groupkeeper.rules import progress

Commits = dict[TopicPartition, OffsetAndMetadata | None]
Starts = Mapping[TopicPartition, SharePartitionOffset | None]


class LagStatus(StrEnum):
    """The status of a partition, from its committed offset and its log."""

    OK = "ok"
    UNCOMMITTED = "uncommitted"
    BELOW_LOG_START = "below_log_start"
    BEYOND_LOG_END = "beyond_log_end"
    NO_LEADER = "no_leader"
    DELETED = "deleted"
    NOT_AUTHORIZED = "not_authorized"
    UNKNOWN = "unknown"


class PartitionLag(NamedTuple):
    """One partition that a group has an offset for, or that a member is, or would be, assigned. None: not known, unless
    a field says otherwise.
    """

    group_id: str
    topic: str
    partition: int
    committed: OffsetAndMetadata | None
    """The committed offset, of a share group the start offset. None: nothing is committed, or `failure` says why it is
    unknown.
    """
    log_start_offset: int | None
    log_end_offset: int | None
    last_stable_offset: int | None
    """None: unknown, or not requested."""
    lag: int | None
    """How many offsets the commit is behind, never negative; of a share group the broker's count, with records in
    flight or released. None: unknown, or nothing is committed.
    """
    lost: int | None
    """How many offsets were removed unread, as the log starts after the commit; None: as for `lag`."""
    status: LagStatus
    member: AnyMember | None
    """None: not assigned, or to several members of a share group."""
    failure: Failure | None
    """Why the commit or the log's ends are unknown; None: they are known."""
    done_ahead: int | None = None
    """Of a share group, the number of records after the start offset that are done."""
    has_records: bool = True
    """False: the log was read, and has only markers and aborted records."""

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def in_log(self) -> int | None:
        """The number of offsets in the log, up to where the lag ends; None: unknown, or `failure` is not None."""
        if self.failure is not None:  # the last stable offset may be missing, or a commit where `committed` is None
            return None
        end = self.log_end_offset if self.last_stable_offset is None else self.last_stable_offset
        return None if self.log_start_offset is None or end is None else max(0, end - self.log_start_offset)

    @property
    def has_open_start(self) -> bool:
        """Whether nothing is committed although there may be records."""
        if self.committed is not None:
            return False
        return self.has_records and self.status is not LagStatus.DELETED and self.in_log != 0

    @property
    def readable(self) -> int | None:
        """Offsets that can still be read: of the lag, or, where nothing is committed, of the log; None: not known."""
        return self.in_log if self.committed is None else progress.readable(self.lag, self.lost)


WHY_BEYOND = (
    "the log was cut, or the topic deleted and created again; auto.offset.reset decides where a consumer starts"
)
"""Why a committed offset may be past the end of its log, and the consequence."""


class LagSum(NamedTuple):
    """The known lag of a group, or of one of its topics. None: unknown for all partitions, unless a field says
    otherwise.
    """

    group_id: str
    topic: str | None
    """None: all topics of the group."""
    partitions: int
    uncommitted_partitions: int
    """Partitions without a committed offset."""
    unknown: int
    """Partitions with a committed offset whose lag is unknown."""
    lag: int | None
    max_lag: int | None
    lost: int | None
    uncommitted: int | None
    """The known number of offsets in logs without a commit; None: unknown for all of these."""
    open_starts: int = 0
    """Partitions without a commit that may have records: the clients' `auto.offset.reset` decides whether they wait.
    """
    beyond: int = 0
    """Partitions whose commit is past the log's end: `auto.offset.reset` decides how many records wait."""

    @property
    def is_least(self) -> bool:
        """Whether more records may wait than the lag says."""
        return bool(self.unknown or self.open_starts or self.beyond)

    @property
    def readable(self) -> int | None:
        """Offsets that can still be read, as far as they are known."""
        known = [some for some in (progress.readable(self.lag, self.lost), self.uncommitted) if some is not None]
        return sum(known) if known else None


class GroupsLag(NamedTuple):
    """Groups by id, with their partitions by topic and number; and the failures of groups.

    A group can be in `descriptions` and `failed`, or in `failed` and have rows: all available data is included.
    `streams`: full descriptions of streams groups; in `descriptions`, their members have the partitions that they
    read. `topic_ids`: by topic, if brokers have ids; a topic that is created again gets another one.
    """

    descriptions: dict[str, AnyGroup]
    rows: dict[str, list[PartitionLag]]
    failed: dict[str, Failure]
    streams: Mapping[str, StreamsGroupDescription] = {}
    topic_ids: Mapping[str, bytes] = {}


_FIRST_GROUPS = 200
"""The size of the first chunk: small, so that the first rows come soon."""

_MORE_GROUPS = 1000


def in_parts(group_ids: Sequence[str]) -> Iterable[Sequence[str]]:
    """The groups in chunks to request one after the other, the first one smaller."""
    start, size = 0, _FIRST_GROUPS
    while start < len(group_ids):
        yield group_ids[start : start + size]
        start, size = start + size, _MORE_GROUPS


async def describe_lag(
    admin: Admin, group_ids: Sequence[str], *, topics: Matching | None = None, to_last_stable: bool = False
) -> AsyncIterator[GroupsLag]:
    """The groups in chunks, as their data arrives. `topics`: only those; `to_last_stable`: the lag ends there.

    Raises nothing for single groups and partitions: those have their failures.
    """
    logs = _Logs(admin, to_last_stable)
    for part in in_parts(group_ids):
        offsets = await _ask(admin, part, topics)
        await logs.look([offsets])
        yield _beside(offsets, logs)


async def lag_at_an_instant(
    admin: Admin, group_ids: Sequence[str], *, topics: Matching | None = None, to_last_stable: bool = False
) -> tuple[int, GroupsLag]:
    """All the groups, and the time in ms of the request for the ends of all their logs, which comes last.

    Records acknowledged by then are before those ends, so that no lag is too low.

    Raises nothing for single groups and partitions: those have their failures.
    """
    logs = _Logs(admin, to_last_stable)
    parts = [await _ask(admin, part, topics) for part in in_parts(group_ids)]
    await logs.look(parts)
    streams: dict[str, StreamsGroupDescription] = {}
    every = GroupsLag({}, {}, {}, streams, logs.topic_ids)
    for offsets in parts:
        known = _beside(offsets, logs)
        every.descriptions.update(known.descriptions)
        every.rows.update(known.rows)
        every.failed.update(known.failed)
        streams.update(known.streams)
        await asyncio.sleep(0)  # it is much work, and others in this loop have theirs
    return logs.measured_ms, every


async def lag_of_offsets(
    admin: Admin,
    offsets: Mapping[str, Mapping[TopicPartition, int]],
    *,
    topics: Matching | None = None,
    to_last_stable: bool = False,
) -> dict[str, list[PartitionLag]]:
    """The rows of readers that keep their offsets outside of groups, by the readers' names.

    Raises nothing for single partitions: those have their failures.
    """
    logs = _Logs(admin, to_last_stable)
    wanted = {
        name: _wanted(None, {tp: OffsetAndMetadata(offset) for tp, offset in own.items()}, topics)
        for name, own in offsets.items()
    }
    await logs.look([_Offsets({}, {}, wanted, {}, {}, {})])
    return {name: sorted_rows(name, None, commits, logs, {}) for name, commits in wanted.items()}


class _Offsets(NamedTuple):
    """Groups as their coordinators describe them."""

    groups: dict[str, AnyGroup]
    streams: dict[str, StreamsGroupDescription]
    wanted: dict[str, Commits]
    """Their committed offsets, and None for partitions without one that are assigned."""
    refused: dict[str, Mapping[TopicPartition, Failure]]
    """Why the committed offsets of some partitions are unknown."""
    starts: dict[str, Starts]
    """The start offsets of share groups."""
    failed: dict[str, Failure]

    def added(self, counts: Mapping[str, int]) -> Iterator[tuple[str, list[TopicPartition]]]:
        """By group without members, the partitions that its topics got after it had committed in all others; members
        would be assigned them. `counts`: the number of partitions by topic.
        """
        for group_id, commits in self.wanted.items():
            group = self.groups.get(group_id)
            if not isinstance(group, ConsumerGroupDescription) or group.members:
                continue
            topics = {topic for topic, _ in commits}
            if topics <= counts.keys() and len(commits) >= sum(map(counts.__getitem__, topics)):
                continue  # as mostly
            for topic, known in Counter(topic for (topic, _), commit in commits.items() if commit).items():
                more = range(known, counts.get(topic, 0))
                if more and all(commits.get(TopicPartition(topic, number)) for number in range(known)):
                    yield group_id, [TopicPartition(topic, number) for number in more]


async def _ask(admin: Admin, part: Sequence[str], topics: Matching | None) -> _Offsets:
    described, fetched = await asyncio.gather(
        describe_any(admin, part), admin.list_consumer_group_offsets(dict.fromkeys(part))
    )
    groups = described.done
    shares = [group_id for group_id, group in groups.items() if isinstance(group, ShareGroupDescription)]
    starts = await admin.list_share_group_offsets(dict.fromkeys(shares)) if shares else Batch()
    # A group that doesn't exist has no offsets; one with a topic that may not be seen has others.
    failed = described.failed | fetched.failed | starts.failed
    offsets = {
        group_id: {**batch.done, **dict.fromkeys(batch.failed)} if batch.failed else batch.done
        for group_id, batch in fetched.done.items()
    }
    offsets |= {group_id: _commits(batch.done) for group_id, batch in starts.done.items()}
    wanted = {group_id: _wanted(groups.get(group_id), offsets[group_id], topics) for group_id in part
              if group_id in offsets and (group_id not in failed or offsets[group_id])}  # fmt: skip
    return _Offsets(
        groups,
        described.streams,
        wanted,
        {group_id: batch.failed for group_id, batch in fetched.done.items() if batch.failed},
        {group_id: batch.done for group_id, batch in starts.done.items()},
        failed,
    )


def _beside(offsets: _Offsets, logs: _Logs) -> GroupsLag:
    """The committed offsets of the groups, with the ends of the logs."""
    rows = {
        group_id: sorted_rows(group_id, offsets.groups.get(group_id), commits, logs, offsets.refused.get(group_id, {}))
        for group_id, commits in offsets.wanted.items()
    }
    for group_id, starts in offsets.starts.items():
        rows[group_id] = [of_share_group(row, starts) for row in rows.get(group_id, ())]
    return GroupsLag(offsets.groups, rows, offsets.failed, offsets.streams, logs.topic_ids)


def _commits(starts: Starts) -> Commits:
    """Start offsets of a share group in the form of commits."""
    return {
        tp: None if start is None else OffsetAndMetadata(start.start_offset, start.leader_epoch)
        for tp, start in starts.items()
    }


def of_share_group(row: PartitionLag, starts: Starts) -> PartitionLag:
    """The row with the broker's lag: only the broker knows which records after the start offset are done."""
    start = starts.get(row.tp)
    if start is None or start.lag is None:
        return row._replace(lag=None)
    end = row.log_end_offset
    return row._replace(lag=start.lag, done_ahead=None if end is None else max(0, end - start.start_offset - start.lag))


def _wanted(group: AnyGroup | None, commits: Commits, topics: Matching | None) -> Commits:
    """The commit (None: none) for each partition with a commit or assigned to a member."""
    if group is not None and group.members:
        assigned = {tp: None for member in group.members for tp in member.assignment}
        commits = {**assigned, **commits}
    if topics:
        commits = {tp: commit for tp, commit in commits.items() if topics.matches(tp.topic)}
    return commits


class _Logs:
    """The ends of logs, looked up once; a log is looked up again when a later commit is past its known end."""

    def __init__(self, admin: Admin, to_last_stable: bool) -> None:
        self._admin = admin
        self.to_last_stable = to_last_stable
        self.starts: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.stables: dict[TopicPartition, int] = {}
        self.failed: dict[TopicPartition, Failure] = {}
        self.counts: dict[str, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.measured_ms = time.time_ns() // 1_000_000  # when the ends were last requested

    async def look(self, parts: Sequence[_Offsets]) -> None:
        ends, failed = self.ends, self.failed
        news = {
            tp
            for offsets in parts
            for commits in offsets.wanted.values()
            for tp, commit in commits.items()
            if tp not in failed and (tp not in ends or (commit and commit.offset > ends[tp]))
        }
        if news:
            await self._describe(sorted(news))
        added = [(offsets.wanted, *each) for offsets in parts for each in offsets.added(self.counts)]
        news.update(tp for *_, some in added for tp in some if tp not in ends)
        reachable = sorted(tp for tp in news if tp not in failed)
        if reachable:
            await self._list(reachable)
        for wanted, group_id, some in added:
            there = {tp: None for tp in some if ends.get(tp, 0) > self.starts.get(tp, 0)}
            wanted[group_id] = {**wanted[group_id], **there}

    async def _describe(self, partitions: list[TopicPartition]) -> None:
        topics = await describe_topics(self._admin, [topic for topic, _ in partitions])
        self.counts |= {name: len(topic.partitions) for name, topic in topics.done.items()}
        self.topic_ids |= {name: topic.topic_id for name, topic in topics.done.items() if topic.topic_id is not None}
        self.failed.update(unreachable(partitions, topics))

    async def _list(self, partitions: list[TopicPartition]) -> None:
        # First where they begin: all leaders are connected then, so that the ends are those of one moment.
        starts = await self._admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))
        self.measured_ms = time.time_ns() // 1_000_000
        latest = dict.fromkeys(partitions, OffsetSpec.latest())
        if self.to_last_stable:
            stables, ends = await asyncio.gather(
                self._admin.list_offsets(latest, read_committed=True), self._admin.list_offsets(latest)
            )
            self.stables.update(offsets_of(stables.done))
            self.failed.update(stables.failed)
        else:
            ends = await self._admin.list_offsets(latest)
        self.starts.update(offsets_of(starts.done))
        self.ends.update(offsets_of(ends.done))
        self.failed.update(starts.failed | ends.failed)


def sorted_rows(
    group_id: str, group: AnyGroup | None, commits: Commits, logs: _Logs, refused: Mapping[TopicPartition, Failure]
) -> list[PartitionLag]:
    """The rows of one group by topic and partition. `refused`: why its committed offsets aren't known."""
    member_by_partition: dict[TopicPartition, AnyMember | None] = {}
    for member in group.members if group else ():
        for tp in member.assignment:
            # Several members of a share group may have a partition: then none of them is its member.
            member_by_partition[tp] = None if tp in member_by_partition else member
    rows = []
    for tp in sorted(commits):
        failure = refused.get(tp) or logs.failed.get(tp)
        start, end = logs.starts.get(tp), logs.ends.get(tp)
        stable = logs.stables.get(tp)
        lag, lost, status = judge(commits[tp], start, stable if logs.to_last_stable else end, end, failure)
        rows.append(
            PartitionLag(
                group_id,
                tp.topic,
                tp.partition,
                commits[tp],
                start,
                end,
                stable,
                lag,
                lost,
                status,
                member_by_partition.get(tp),
                failure,
            )
        )
    return rows


def judge(
    commit: OffsetAndMetadata | None, start: int | None, target: int | None, end: int | None, failure: Failure | None
) -> tuple[int | None, int | None, LagStatus]:
    """Lag, lost records and status. `target` is where the lag ends: the log's end, or its last stable offset."""
    if failure is not None:
        return None, None, _STATUS_BY_FAILURE.get(type(failure), LagStatus.UNKNOWN)
    if commit is None:
        return None, None, LagStatus.UNCOMMITTED
    lag, lost = progress.lag(commit.offset, target), progress.lost(commit.offset, start)
    if end is not None and commit.offset > end:
        return lag, lost, LagStatus.BEYOND_LOG_END
    return lag, lost, LagStatus.BELOW_LOG_START if lost else LagStatus.OK


_STATUS_BY_FAILURE: Mapping[type[Failure], LagStatus] = {
    LeaderNotAvailable: LagStatus.NO_LEADER,
    UnknownTopicOrPartition: LagStatus.DELETED,
    TopicAuthorizationFailed: LagStatus.NOT_AUTHORIZED,
}


def known_sum(values: Collection[int | None]) -> int | None:
    """The sum of those that are known; None: there are some, and none is known."""
    known = [each for each in values if each is not None]
    return sum(known) if known or not values else None


class Moved(NamedTuple):
    """Both rows of a partition whose commit and log end two measurements know, and the number of offsets between."""

    was: PartitionLag
    row: PartitionLag
    written: int
    read: int


def in_both(before: Iterable[PartitionLag], after: Iterable[PartitionLag]) -> Iterator[Moved]:
    """The partitions of a group that both measurements know; others have no rate."""
    seen = {row.tp: row for row in before}
    for row in after:
        was = seen.get(row.tp)
        if was is None or was.committed is None or was.log_end_offset is None:
            continue
        if row.committed is not None and row.log_end_offset is not None:
            written = row.log_end_offset - was.log_end_offset
            yield Moved(was, row, written, row.committed.offset - was.committed.offset)


def sum_by_topic(group_id: str, rows: Sequence[PartitionLag]) -> list[LagSum]:
    """A sum for each topic; the rows are in order of topics."""
    return [sum_by_group(group_id, list(some), topic) for topic, some in groupby(rows, key=lambda row: row.topic)]


def sum_by_group(group_id: str, rows: Sequence[PartitionLag], topic: str | None = None) -> LagSum:
    """The sum of all rows of a group, even if there are none. `topic`: they are those of this topic."""
    lags = [row.lag for row in rows if row.lag is not None]
    lost = [row.lost for row in rows if row.lost is not None]
    uncommitted_partitions = sum(row.committed is None for row in rows)
    unknown = sum(row.lag is None and row.committed is not None for row in rows)
    return LagSum(
        group_id,
        topic,
        len(rows),
        uncommitted_partitions,
        unknown,
        sum(lags) if lags else None,
        max(lags) if lags else None,
        sum(lost) if lost else None,
        known_sum([row.in_log for row in rows if row.committed is None]),
        sum(row.has_open_start for row in rows),
        sum(row.status is LagStatus.BEYOND_LOG_END for row in rows),
    )
