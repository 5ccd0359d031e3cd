"""Rows of a description of offsets: pure, from what is known."""

from groupkeeper.client.admin.types import (
    Batch,
    ListedOffset,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    PartitionDescription,
    TopicDescription,
    TopicPartition,
)
from groupkeeper.operations.describe import LogEnds, OffsetRow, offset_rows, unreachable
from groupkeeper.protocol.errors import LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def member(member_id: str, *assignment: TopicPartition) -> MemberDescription:
    return MemberDescription(member_id, None, "client", "/127.0.0.1", assignment)


def places(rows: tuple[OffsetRow, ...]) -> list[tuple[str | None, str, int]]:
    return [(row.member.member_id if row.member else None, row.topic, row.partition) for row in rows]


# K1099-59, K88-52
def test_members_with_more_partitions_come_first_and_unassigned_partitions_last() -> None:
    committed = {TopicPartition("0-first", 0): OffsetAndMetadata(1), A0: OffsetAndMetadata(2)}
    rows = offset_rows([member("idle"), member("one", A1), member("two", B0, A0)], committed, LogEnds({}, {}))
    assert places(rows) == [("two", "a", 0), ("two", "b", 0), ("one", "a", 1), (None, "0-first", 0)]


# K1099-60
def test_lag_needs_both_ends() -> None:
    committed = {A0: OffsetAndMetadata(4, 7), A1: None, B0: OffsetAndMetadata(99)}
    failure = LeaderNotAvailable()
    ends = LogEnds({A0: ListedOffset(10), A1: ListedOffset(20)}, {B0: failure})
    assert offset_rows([], committed, ends) == (
        OffsetRow("a", 0, 4, 10, 6, 7, None),
        OffsetRow("a", 1, None, 20, None, None, None),
        OffsetRow("b", 0, 99, None, None, None, None, failure),
    )


def test_a_commit_beyond_the_end_has_a_negative_lag() -> None:
    rows = offset_rows([], {A0: OffsetAndMetadata(99)}, LogEnds({A0: ListedOffset(3)}, {}))
    assert rows[0].lag == -96


def test_partitions_that_nobody_can_be_asked_about() -> None:
    refusal = TopicAuthorizationFailed()
    partitions = (PartitionDescription(0, Node(1, "h", 1)), PartitionDescription(1, None))
    topics = Batch({"a": TopicDescription("a", None, False, partitions)}, {"b": refusal})
    found = dict(unreachable([A0, A1, TopicPartition("a", 2), B0], topics))
    assert found == {A1: LeaderNotAvailable(), TopicPartition("a", 2): UnknownTopicOrPartition(), B0: refusal}
