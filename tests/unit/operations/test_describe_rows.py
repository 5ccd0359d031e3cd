"""Rows of a description of offsets: pure, from what is known; and what is left of one that is given up."""

import asyncio
from contextlib import suppress

from tests.patience import becomes
from tests.unit.live.views import described, member

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    CommittedOffsets,
    ListedOffset,
    Node,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.describe import OffsetTables, describe_offsets
from groupkeeper.operations.topics import unreachable
from groupkeeper.protocol.errors import LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def committed(offsets: dict[TopicPartition, int], epoch: int = -1) -> CommittedOffsets:
    count = len(offsets)
    return CommittedOffsets(tuple(offsets), list(offsets.values()), [epoch] * count, [""] * count, {})


# K1099-59, K88-52
def test_members_with_more_partitions_come_first_and_unassigned_partitions_last() -> None:
    first = TopicPartition("0-first", 0)
    group = described("g", member("idle"), member("one", A1), member("two", B0, A0))
    table = OffsetTables(Batch()).table(group, committed({first: 1, A0: 2}))
    owners = [owner and owner.client_id for owner in table.table.members]
    rows = list(zip(owners, table.table.partitions, table.offsets, strict=True))
    assert rows == [("two", A0, 2), ("two", B0, -1), ("one", A1, -1), (None, first, 1)]


# K1099-60
def test_lag_needs_both_ends() -> None:
    failure = LeaderNotAvailable()
    tables = OffsetTables(Batch({A0: ListedOffset(10), A1: ListedOffset(20)}, {B0: failure}))
    table = tables.table(described(), committed({B0: 99, A1: -1, A0: 4}, 7))
    assert list(table.table.partitions) == [A0, A1, B0]
    assert list(table.table.ends) == [10, 20, None]
    assert table.table.failures == [failure]
    assert (list(table.offsets), list(table.lags)) == ([4, -1, 99], [6, None, None])
    assert list(table.epochs) == [7, 7, 7]


def test_a_commit_beyond_the_end_has_a_negative_lag() -> None:
    table = OffsetTables(Batch({A0: ListedOffset(3)})).table(described(), committed({A0: 99}))
    assert list(table.lags) == [-96]


def test_groups_with_the_same_partitions_share_their_places_but_not_their_offsets() -> None:
    tables = OffsetTables(Batch({A0: ListedOffset(9), A1: ListedOffset(9)}))
    one = tables.table(described(), committed({A1: 1, A0: 2}))
    other = tables.table(described(), committed({A1: 3, A0: 4}))
    fewer = tables.table(described(), committed({A1: 5}))
    assert one.table is other.table is not fewer.table
    assert [list(table.offsets) for table in (one, other, fewer)] == [[2, 1], [4, 3], [5]]


def test_partitions_that_nobody_can_be_asked_about() -> None:
    refusal = TopicAuthorizationFailed()
    partitions = (PartitionDescription(0, Node(1, "h", 1)), PartitionDescription(1, None))
    topics = Batch({"a": TopicDescription("a", None, False, partitions)}, {"b": refusal})
    found = dict(unreachable([A0, A1, TopicPartition("a", 2), B0], topics))
    assert found == {A1: LeaderNotAvailable(), TopicPartition("a", 2): UnknownTopicOrPartition(), B0: refusal}


async def test_parts_have_ended_when_a_description_is_given_up() -> None:
    admin = Admin("127.0.0.1:1", properties={"default.api.timeout.ms": "30000"})
    before = asyncio.all_tasks()
    asking = asyncio.create_task(anext(describe_offsets(admin, [f"g-{number}" for number in range(20_000)])))
    await becomes(lambda: len(asyncio.all_tasks() - before) >= 3)  # two parts besides
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    assert asyncio.all_tasks() == before
    await admin.close()
