"""The lag of groups: what a partition's numbers mean, sums, and brokers that cannot tell all."""

import pytest
from tests.unit.client.scripted_broker import Handler, ScriptedBroker, fast_admin, scripted
from tests.unit.client.test_log_offsets import listed

from groupkeeper.client.admin.types import Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.operations.lag import (
    LagStatus,
    LagSum,
    PartitionLag,
    describe_lag,
    in_parts,
    judge,
    sum_by_group,
    sum_by_topic,
)
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.consumer_group_describe_response import DescribedGroup


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
    groups = [DescribedGroup(0, None, each, "Empty") for each in message.group_ids]
    return m.ConsumerGroupDescribeResponse(groups=groups)


def committed(offset_by_topic: dict[str, list[int]]) -> Handler:
    """Answers OffsetFetch: every group has these offsets."""

    def handle(message: m.OffsetFetchRequest, _: int) -> m.OffsetFetchResponse:
        part = m.OffsetFetchResponsePartitions
        topics = [
            m.OffsetFetchResponseTopics(topic, partitions=[part(index, at, -1, "") for index, at in enumerate(offsets)])
            for topic, offsets in offset_by_topic.items()
        ]
        groups = [m.OffsetFetchResponseGroup(each.group_id, topics) for each in message.groups]
        return m.OffsetFetchResponse(groups=groups)

    return handle


async def test_an_offset_that_the_coordinator_refuses_has_its_row() -> None:
    def fetch(message: m.OffsetFetchRequest, version: int) -> m.OffsetFetchResponse:
        answer = committed({"t": [4, 4]})(message, version)
        assert isinstance(answer, m.OffsetFetchResponse)
        answer.groups[0].topics[0].partitions[1].error_code = errors.UnstableOffsetCommit.code
        return answer

    handlers: dict[str, Handler] = {"ConsumerGroupDescribe": described, "OffsetFetch": fetch, "ListOffsets": listed(10)}
    async with ScriptedBroker(handlers=handlers) as broker:
        broker.topics = {"t": [0, 0]}
        async with fast_admin(broker.bootstrap_servers) as admin:
            [part] = [part async for part in describe_lag(admin, ["g"])]
        known, refused = part.rows["g"]
        assert (known.lag, known.failure) == (6, None)
        assert (refused.lag, refused.status, refused.failure) == (
            None,
            LagStatus.UNKNOWN,
            errors.UnstableOffsetCommit(),
        )


async def test_a_log_without_its_last_stable_offset_has_no_known_size() -> None:
    def listed_to(message: m.ListOffsetsRequest, version: int) -> m.ListOffsetsResponse:
        code = errors.UnknownServerError.code if message.isolation_level else 0
        answer = listed(10, {TopicPartition("t", 0): code})(message, version)
        assert isinstance(answer, m.ListOffsetsResponse)
        return answer

    handlers: dict[str, Handler] = {"ConsumerGroupDescribe": described, "OffsetFetch": committed({"t": [-1]})}
    async with scripted(handlers | {"ListOffsets": listed_to}) as (broker, admin):
        broker.topics = {"t": [0]}
        [part] = [part async for part in describe_lag(admin, ["g"], to_last_stable=True)]
        (found,) = part.rows["g"]
    assert (found.log_start_offset, found.log_end_offset, found.last_stable_offset) == (10, 10, None)
    assert (found.in_log, found.readable, found.has_open_start) == (None, None, True)
    assert sum_by_group("g", [found]).uncommitted is None


@pytest.mark.parametrize("last_stable_offset", [None, 7])
def test_an_unknown_commit_is_not_the_start_of_the_log(last_stable_offset: int | None) -> None:
    refused = row("a", 0, None, None)._replace(
        last_stable_offset=last_stable_offset, status=LagStatus.UNKNOWN, failure=errors.UnstableOffsetCommit()
    )
    assert (refused.readable, refused.has_open_start) == (None, True)
    assert sum_by_group("g", [refused]).uncommitted is None
