"""The lag of groups: what a partition's numbers mean, sums, and brokers that cannot tell all."""

import pytest
from tests.unit.client.scripted_broker import Handler, ScriptedBroker, fast_admin
from tests.unit.client.test_log_offsets import listed

from groupkeeper.client.admin.types import Failure, OffsetAndMetadata
from groupkeeper.operations.lag import (
    GroupsLag,
    LagStatus,
    LagSum,
    PartitionLag,
    describe_lag,
    in_parts,
    judge,
    lag_at_an_instant,
    sum_by_group,
    sum_by_topic,
)
from groupkeeper.operations.selection import Names
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup
from groupkeeper.protocol.primitives import RootMessage


@pytest.mark.parametrize(
    ("commit", "start", "end", "expected"),
    [
        (4, 0, 10, (6, 0, LagStatus.OK)),
        (10, 0, 10, (0, 0, LagStatus.OK)),
        (5, 5, 10, (5, 0, LagStatus.OK)),
        (0, 0, 0, (0, 0, LagStatus.OK)),
        (4, 5, 10, (6, 1, LagStatus.BELOW_LOG_START)),
        (4, 10, 10, (6, 6, LagStatus.BELOW_LOG_START)),
        (99, 0, 3, (0, 0, LagStatus.BEYOND_LOG_END)),
        (4, None, 10, (6, None, LagStatus.OK)),
        (None, 0, 10, (None, None, LagStatus.UNCOMMITTED)),
    ],
)
def test_what_the_numbers_mean(commit: int | None, start: int | None, end: int, expected: tuple[object, ...]) -> None:
    assert judge(None if commit is None else OffsetAndMetadata(commit), start, end, end, None) == expected


def test_up_to_the_last_stable_offset() -> None:
    assert judge(OffsetAndMetadata(4), 0, 7, 10, None) == (3, 0, LagStatus.OK)
    # A transaction is open before the commit: that is no commit beyond the log.
    assert judge(OffsetAndMetadata(9), 0, 7, 10, None) == (0, 0, LagStatus.OK)


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (errors.LeaderNotAvailable(), LagStatus.NO_LEADER),
        (errors.UnknownTopicOrPartition(), LagStatus.DELETED),
        (errors.TopicAuthorizationFailed(), LagStatus.NOT_AUTHORIZED),
        (errors.NotLeaderOrFollower(), LagStatus.UNKNOWN),
    ],
)
def test_why_the_ends_are_not_known(failure: Failure, status: LagStatus) -> None:
    assert judge(OffsetAndMetadata(4), None, None, None, failure) == (None, None, status)


def row(topic: str, partition: int, commit: int | None, lag: int | None, lost: int | None = 0) -> PartitionLag:
    committed = None if commit is None else OffsetAndMetadata(commit)
    return PartitionLag("g", topic, partition, committed, 0, 9, None, lag, lost, LagStatus.OK, None, None)


def test_sums_are_of_what_is_known() -> None:
    rows = [row("a", 0, 4, 6, 1), row("a", 1, None, None, None), row("b", 0, 3, 2), row("b", 1, 3, None, None)]
    assert sum_by_topic("g", rows) == [LagSum("g", "a", 2, 1, 0, 6, 6, 1, 9, 1), LagSum("g", "b", 2, 0, 1, 2, 2, 0, 0)]
    assert sum_by_group("g", rows) == LagSum("g", None, 4, 1, 1, 8, 6, 1, 9, 1)
    assert sum_by_group("g", []) == LagSum("g", None, 0, 0, 0, None, None, None, 0)


# Its lag is none, but the records are there: a sum that left them out would call the group healthy.
def test_the_backlog_of_partitions_without_a_commit() -> None:
    first, second = row("a", 0, None, None, None), row("a", 1, None, None, None)
    assert sum_by_group("g", [first._replace(log_start_offset=4), second]).uncommitted == 5 + 9
    assert sum_by_group("g", [first._replace(last_stable_offset=7), second]).uncommitted == 7 + 9
    assert sum_by_group("g", [first._replace(log_end_offset=None), second]).uncommitted == 9
    assert sum_by_group("g", [first._replace(log_start_offset=None)]).uncommitted is None


def test_groups_are_asked_for_in_parts() -> None:
    ids = [str(number) for number in range(9000)]
    parts = list(in_parts(ids))
    assert [group_id for part in parts for group_id in part] == ids
    assert len(parts[0]) < len(parts[1])
    assert list(in_parts([])) == []


def described(message: m.ConsumerGroupDescribeRequest, _: int) -> m.ConsumerGroupDescribeResponse:
    return m.ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(0, None, each, "Empty") for each in message.group_ids]
    )


def committed(offset_by_topic: dict[str, list[int]]) -> Handler:
    """Answers OffsetFetch: every group has these offsets."""

    def handle(message: m.OffsetFetchRequest, _: int) -> m.OffsetFetchResponse:
        topics = [
            m.OffsetFetchResponseTopics(
                name=topic,
                partitions=[
                    m.OffsetFetchResponsePartitions(index, offset, -1, "") for index, offset in enumerate(offsets)
                ],
            )
            for topic, offsets in offset_by_topic.items()
        ]
        return m.OffsetFetchResponse(
            groups=[m.OffsetFetchResponseGroup(each.group_id, topics) for each in message.groups]
        )

    return handle


async def lags(broker: ScriptedBroker, *group_ids: str, topics: Names | None = None) -> list[GroupsLag]:
    async with fast_admin(broker.bootstrap_servers) as admin:
        return [part async for part in describe_lag(admin, group_ids, topics=topics)]


def scripted(offsets: dict[str, list[int]], listing: Handler) -> ScriptedBroker:
    handlers: dict[str, Handler] = {
        "ConsumerGroupDescribe": described,
        "OffsetFetch": committed(offsets),
        "ListOffsets": listing,
    }
    return ScriptedBroker(handlers=handlers)


# K1099-60
async def test_leaderless_partitions_and_deleted_topics_hold_nobody_up() -> None:
    async with scripted({"dead": [1, 2], "gone": [5], "well": [7]}, listed(10)) as broker:
        broker.topics = {"dead": [-1, 0], "well": [0]}
        [part] = await lags(broker, "g", "h")
        statuses = {(row.topic, row.partition): (row.lag, row.status) for row in part.rows["g"]}
        assert statuses == {
            ("dead", 0): (None, LagStatus.NO_LEADER),
            ("dead", 1): (8, LagStatus.BELOW_LOG_START),
            ("gone", 0): (None, LagStatus.DELETED),
            ("well", 0): (3, LagStatus.BELOW_LOG_START),
        }
        assert [row._replace(group_id="g") for row in part.rows["h"]] == part.rows["g"]
        assert broker.count("ListOffsets") == 2  # one for each end, however many groups there are


async def test_an_offset_that_the_coordinator_refuses_has_its_row() -> None:
    def fetch(message: m.OffsetFetchRequest, version: int) -> m.OffsetFetchResponse:
        answer = committed({"t": [4, 4]})(message, version)
        assert isinstance(answer, m.OffsetFetchResponse)
        answer.groups[0].topics[0].partitions[1].error_code = errors.UnstableOffsetCommit.code
        return answer

    handlers: dict[str, Handler] = {"ConsumerGroupDescribe": described, "OffsetFetch": fetch, "ListOffsets": listed(10)}
    async with ScriptedBroker(handlers=handlers) as broker:
        broker.topics = {"t": [0, 0]}
        [part] = await lags(broker, "g")
        known, refused = part.rows["g"]
        assert (known.lag, known.failure) == (6, None)
        assert (refused.lag, refused.status, refused.failure) == (
            None,
            LagStatus.UNKNOWN,
            errors.UnstableOffsetCommit(),
        )


async def test_only_the_topics_that_are_meant_are_looked_at() -> None:
    async with scripted({"dead": [1], "well": [7]}, listed(10)) as broker:
        broker.topics = {"dead": [-1], "well": [0]}
        [part] = await lags(broker, "g", topics=Names(["w*"]))
        assert [row.topic for row in part.rows["g"]] == ["well"]


async def test_records_of_partitions_that_were_added_are_not_committed() -> None:
    """A group without members has committed in all partitions that there were; those with records have rows."""

    def ends(message: m.ListOffsetsRequest, version: int) -> RootMessage:
        reply = listed(0)(message, version)
        assert isinstance(reply, m.ListOffsetsResponse)
        for each in (part for topic in reply.topics for part in topic.partitions):
            is_empty = each.partition_index == 3
            each.offset = 0 if each.timestamp == -2 or is_empty else 10
        return reply

    async with scripted({"grown": [10, 10], "some": [-1, 10]}, ends) as broker:
        broker.topics = {"grown": [0, 0, 0, 0], "some": [0, 0, 0]}
        [part] = await lags(broker, "g")
        async with fast_admin(broker.bootstrap_servers) as admin:
            _, at_once = await lag_at_an_instant(admin, ["g"])
    rows = part.rows["g"]
    assert at_once.rows["g"] == rows
    assert [(row.topic, row.partition, row.status, row.readable) for row in rows] == [
        ("grown", 0, LagStatus.OK, 0),
        ("grown", 1, LagStatus.OK, 0),
        ("grown", 2, LagStatus.UNCOMMITTED, 10),
        ("some", 0, LagStatus.UNCOMMITTED, 10),
        ("some", 1, LagStatus.OK, 0),
    ]
    found = sum_by_group("g", rows)
    assert (found.lag, found.uncommitted, found.open_starts) == (0, 20, 2)


async def test_a_log_that_grew_is_looked_at_again() -> None:
    """The second part of the groups has committed more than there was when the first one was asked for."""
    ends = iter([10, 10, 30, 30])
    many = [f"group-{number:03}" for number in range(201)]

    def fetch(message: m.OffsetFetchRequest, version: int) -> m.OffsetFetchResponse:
        offset = 20 if message.groups[0].group_id == many[-1] else 10
        answer = committed({"t": [offset]})(message, version)
        assert isinstance(answer, m.OffsetFetchResponse)
        return answer

    handlers: dict[str, Handler] = {
        "ConsumerGroupDescribe": described,
        "OffsetFetch": fetch,
        "ListOffsets": lambda message, version: listed(next(ends))(message, version),
    }
    async with ScriptedBroker(handlers=handlers) as broker:
        broker.topics = {"t": [0]}
        first, second = await lags(broker, *many)
        assert {row.status for rows in first.rows.values() for row in rows} == {LagStatus.OK}
        [last] = second.rows[many[-1]]
        assert (last.log_end_offset, last.lag) == (30, 10)
