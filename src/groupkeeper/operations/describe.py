"""Describe groups: committed offsets with their lag, as typed rows free of presentation."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    CommittedOffsets,
    ConsumerGroupDescription,
    ListedOffset,
    MemberDescription,
    OffsetSpec,
    TopicPartition,
)
from groupkeeper.client.batch import or_failed
from groupkeeper.operations.topics import describe_topics, listed, unreachable
from groupkeeper.protocol.errors import GroupIdNotFound, InvalidGroupId

Ends = Batch[TopicPartition, ListedOffset]
"""The log ends, and why those of other partitions are unknown."""


class PartitionTable:
    """The rows of a table of offsets, by column, except columns of the group alone (offsets, epochs, lags).

    A row is a partition with an offset of the group, or assigned to a member. `members`: None for a partition without
    a member; `ends`: None for an unknown log end, with the reason in `failures` (no leader, no topic, no permission
    …). Groups without members share their table when they have offsets in the same partitions.
    """

    __slots__ = ("ends", "failures", "members", "partitions")

    def __init__(
        self, partitions: tuple[TopicPartition, ...], members: Sequence[MemberDescription | None], ends: Ends
    ) -> None:
        listed = ends.done
        self.partitions = partitions
        self.members = members
        self.ends = [listed[tp].offset if tp in listed else None for tp in partitions]
        self.failures = [ends.failed[tp] for tp in partitions if tp in ends.failed]


class GroupOffsets(NamedTuple):
    """The offsets of a group, by column; a row for each row of the table.

    −1 as the protocol has it: nothing committed (`offsets`), not known (`epochs`). `lags` are None where either
    end isn't known.
    """

    description: ConsumerGroupDescription
    table: PartitionTable
    offsets: Sequence[int]
    epochs: Sequence[int]
    lags: Sequence[int | None]


_GROUPS_PER_PART = 2000
"""Enough to keep the brokers busy, few enough to hold all their rows at a time."""

_PARTS_AHEAD = 1
"""The number of parts that brokers work on while one is shown."""


class DescribedOffsets(NamedTuple):
    """Some groups with their offsets, as far as both are known."""

    groups: Batch[str, ConsumerGroupDescription]
    offsets: Batch[str, GroupOffsets]


async def describe_groups(admin: Admin, group_ids: Sequence[str]) -> Batch[str, ConsumerGroupDescription]:
    """The groups' descriptions; when no broker replies, that failure for each of them. As for the official tools, the
    group '' cannot be described.
    """
    found = await or_failed(admin.describe_consumer_groups(group_ids), group_ids)
    if found.done.pop("", None) or isinstance(found.failed.get(""), GroupIdNotFound):
        found.failed[""] = InvalidGroupId()
    return found


async def describe_offsets(admin: Admin, group_ids: Sequence[str]) -> AsyncGenerator[DescribedOffsets, None]:
    """Groups with their offsets, in parts: a bounded number of rows is held at a time.

    A part takes one description and one fetch per coordinator, side by side, and then one look at each log's end. A
    group whose committed offsets are refused is in `offsets.failed`; a partition whose log end isn't known has its
    row. Where a group cannot be described, its part has no offsets.
    """
    under_way: deque[asyncio.Task[DescribedOffsets]] = deque()
    try:
        for start in range(0, len(group_ids), _GROUPS_PER_PART):
            part = group_ids[start : start + _GROUPS_PER_PART]
            under_way.append(asyncio.create_task(_describe_part(admin, part)))
            if len(under_way) > _PARTS_AHEAD:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _describe_part(admin: Admin, group_ids: Sequence[str]) -> DescribedOffsets:
    groups, committed = await asyncio.gather(describe_groups(admin, group_ids), admin.list_committed_offsets(group_ids))
    if groups.failed:
        return DescribedOffsets(groups, Batch())
    wanted = set(chain.from_iterable({offsets.partitions for offsets in committed.done.values()}))
    for group in groups.done.values():
        if group.members:
            wanted.update(*(member.assignment for member in group.members))
    tables = OffsetTables(await log_ends(admin, wanted))
    done = {group_id: tables.table(groups.done[group_id], offsets) for group_id, offsets in committed.done.items()}
    return DescribedOffsets(groups, Batch(done, dict(committed.failed)))


async def log_ends(admin: Admin, partitions: Iterable[TopicPartition]) -> Ends:
    """The log end offsets. Partitions without a topic or leader fail at once, and don't delay the others."""
    wanted = sorted(partitions)
    topics = await describe_topics(admin, [topic for topic, _ in wanted])
    failed = dict(unreachable(wanted, topics))
    reachable = (tp for tp in wanted if tp not in failed)
    ends = await listed(admin, reachable, OffsetSpec.latest())
    return Batch(ends.done, failed | ends.failed)


class OffsetTables:
    """Makes tables of offsets of groups, where the ends of the logs are known."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._tables: dict[tuple[TopicPartition, ...], PartitionTable] = {}  # of groups without members

    def table(self, group: ConsumerGroupDescription, committed: CommittedOffsets) -> GroupOffsets:
        """The offsets of one group with their lag where both ends of it are known."""
        table = self._table_of(group.members, committed.partitions)
        offsets: Sequence[int] = committed.offsets
        epochs = committed.leader_epochs
        if table.partitions != committed.partitions:
            row_by_partition = {tp: row for row, tp in enumerate(committed.partitions)}
            rows = [row_by_partition.get(tp) for tp in table.partitions]
            offsets, epochs = ([-1 if row is None else column[row] for row in rows] for column in (offsets, epochs))
        lags = [
            None if offset < 0 or end is None else end - offset for offset, end in zip(offsets, table.ends, strict=True)
        ]
        return GroupOffsets(group, table, offsets, epochs, lags)

    def _table_of(self, members: Sequence[MemberDescription], committed: tuple[TopicPartition, ...]) -> PartitionTable:
        if members:
            return self._table_with(members, committed)
        table = self._tables.get(committed)
        if table is None:
            in_order = tuple(sorted(committed))
            table = self._tables[committed] = PartitionTable(in_order, [None] * len(committed), self._ends)
        return table

    def _table_with(
        self, members: Sequence[MemberDescription], committed: tuple[TopicPartition, ...]
    ) -> PartitionTable:
        """Partitions by member, those with most partitions first; then partitions of no member."""
        partitions: list[TopicPartition] = []
        owners: list[MemberDescription | None] = []
        for member in sorted(members, key=lambda member: -len(member.assignment)):
            assigned = sorted(set(member.assignment))
            partitions += assigned
            owners += [member] * len(assigned)
        rest = sorted(set(committed).difference(partitions))
        return PartitionTable((*partitions, *rest), owners + [None] * len(rest), self._ends)
