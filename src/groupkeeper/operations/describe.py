"""Describe groups: committed offsets with their lag (K88-50, K1099-50 …), as typed rows free of presentation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    ListedOffset,
    MemberDescription,
    OffsetAndMetadata,
    OffsetSpec,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import LeaderNotAvailable, UnknownTopicOrPartition


class OffsetRow(NamedTuple):
    """One partition that a group has an offset for, or that a member is assigned.

    None: nothing committed (``current_offset``, ``leader_epoch``), not known (``log_end_offset``), either of the two
    (``lag``), assigned to no member (``member``). ``failure`` says why the log end isn't known: no leader, no topic,
    no permission …
    """

    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None
    member: MemberDescription | None
    failure: Failure | None = None


class GroupOffsets(NamedTuple):
    """Rows by member, those with most partitions first, then what no member is assigned (K1099-59)."""

    description: ConsumerGroupDescription
    rows: tuple[OffsetRow, ...]


class LogEnds(NamedTuple):
    """Where logs end, and why that isn't known of some partitions."""

    offsets: Mapping[TopicPartition, ListedOffset]
    failed: Mapping[TopicPartition, Failure]


Committed = Mapping[TopicPartition, OffsetAndMetadata | None]


_first = itemgetter(0)

_GROUPS_PER_PART = 2000
"""Enough to keep the brokers busy, few enough to hold all their rows at a time."""


async def describe_offsets(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], *, timeout_ms: int | None = None
) -> AsyncIterator[Batch[str, GroupOffsets]]:
    """The offsets of groups that are described already, in parts: so many rows are better not held all at once.

    A part takes one fetch per coordinator and one look at each log's end. A group whose committed offsets are refused
    is in ``failed``; a partition whose log end isn't known has its row. ``timeout_ms`` is for each call.
    """
    for start in range(0, len(groups), _GROUPS_PER_PART):
        described = {group.group_id: group for group in groups[start : start + _GROUPS_PER_PART]}
        committed = await admin.list_consumer_group_offsets(dict.fromkeys(described), timeout_ms=timeout_ms)
        wanted: set[TopicPartition] = set()
        for group_id, offsets in committed.done.items():
            wanted.update(offsets.done, *(member.assignment for member in described[group_id].members))
        ends = await log_ends(admin, wanted, timeout_ms=timeout_ms)
        yield Batch(
            {
                group_id: GroupOffsets(
                    described[group_id], offset_rows(described[group_id].members, offsets.done, ends)
                )
                for group_id, offsets in committed.done.items()
            },
            dict(committed.failed),
        )


async def log_ends(admin: Admin, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None) -> LogEnds:
    """Where the logs end. Partitions that cannot be asked for fail at once, and don't hold up the others."""
    wanted = sorted(partitions)
    topics = await describe_topics(admin, [topic for topic, _ in wanted], timeout_ms=timeout_ms)
    failed = dict(unreachable(wanted, topics))
    specs = dict.fromkeys((partition for partition in wanted if partition not in failed), OffsetSpec.latest())
    listed: Batch[TopicPartition, ListedOffset] = (
        await admin.list_offsets(specs, timeout_ms=timeout_ms) if specs else Batch()
    )
    return LogEnds(listed.done, failed | listed.failed)


def unreachable(
    partitions: Iterable[TopicPartition], topics: Batch[str, TopicDescription]
) -> Iterable[tuple[TopicPartition, Failure]]:
    """Those of the partitions that no broker can be asked about, and why."""
    leader_by_partition = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in topics.done.values()
        for partition in topic.partitions
    }
    for partition in partitions:
        if partition.topic in topics.failed:
            yield partition, topics.failed[partition.topic]
        elif partition not in leader_by_partition:
            yield partition, UnknownTopicOrPartition()
        elif leader_by_partition[partition] is None:
            yield partition, LeaderNotAvailable()


def offset_rows(members: Sequence[MemberDescription], committed: Committed, ends: LogEnds) -> tuple[OffsetRow, ...]:
    """The rows of one group, in order (K1099-59)."""
    rows: list[OffsetRow] = []
    rest = committed
    if members:
        rest = dict(committed)
        for member in sorted(members, key=lambda member: -len(member.assignment)):
            commits = {partition: committed.get(partition) for partition in member.assignment}
            rows += _rows(commits, ends, member)
            for partition in commits:
                rest.pop(partition, None)
    rows += _rows(rest, ends, None)
    return tuple(rows)


def _rows(commits: Committed, ends: LogEnds, member: MemberDescription | None) -> Iterator[OffsetRow]:
    """A row for each partition in order, with the lag where both ends of it are known (K1099-60)."""
    new = tuple.__new__  # the constructors of named tuples take three times as long
    end_by_partition, failed = ends
    for partition, commit in sorted(commits.items(), key=_first):
        topic, index = partition
        offset, epoch, _ = commit or (None, None, "")
        listed = end_by_partition.get(partition)
        end = None if listed is None else listed.offset
        lag = None if offset is None or end is None else end - offset
        failure = failed.get(partition) if failed else None
        yield new(OffsetRow, (topic, index, offset, end, lag, epoch, member, failure))
