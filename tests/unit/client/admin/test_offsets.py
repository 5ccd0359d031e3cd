"""Committed offsets: fetched in batches or one by one, committed, deleted."""

from collections.abc import Mapping

import pytest
from tests.unit.client.scripted_broker import Handler, HangUp, in_turn, scripted

from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.client.errors import CallTimedOut, IllegalArgument, MissingResult, UnsupportedVersion
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

Store = Mapping[str, Mapping[TopicPartition, int]]


def fetching(store: Store, *, code_by_group: Mapping[str, int] = {}, code_by_topic: Mapping[str, int] = {}) -> Handler:
    """Answers OffsetFetch in every version from `store`, as a coordinator does."""

    def partitions_of(group_id: str, topics: object) -> dict[str, list[tuple[int, int, int]]]:
        offsets = store.get(group_id, {})
        wanted = list(offsets)
        if topics is not None:
            wanted = [TopicPartition(each.name, index) for each in topics for index in each.partition_indexes]  # type: ignore[attr-defined]
        found: dict[str, list[tuple[int, int, int]]] = {}
        for tp in wanted:
            code = code_by_topic.get(tp.topic, 0)
            found.setdefault(tp.topic, []).append((tp.partition, -1 if code else offsets.get(tp, -1), code))
        return found

    def handle(message: m.OffsetFetchRequest, version: int) -> RootMessage:
        if version >= 8:
            return m.OffsetFetchResponse(groups=[group_of(group) for group in message.groups])
        code = code_by_group.get(message.group_id, 0)
        epoch, code_of_parts = 7 if version >= 5 else -1, code if version < 2 else 0
        part = m.OffsetFetchResponsePartition
        topics = [
            m.OffsetFetchResponseTopic(topic, [part(i, o, epoch, "m", code_of_parts or c) for i, o, c in parts])
            for topic, parts in partitions_of(message.group_id, message.topics).items()
        ]
        if version < 2:
            return m.OffsetFetchResponse(topics=topics)
        return m.OffsetFetchResponse(topics=[] if code else topics, error_code=code)

    def group_of(group: m.OffsetFetchRequestGroup) -> m.OffsetFetchResponseGroup:
        if code := code_by_group.get(group.group_id, 0):
            return m.OffsetFetchResponseGroup(group.group_id, [], code)
        part, found = m.OffsetFetchResponsePartitions, partitions_of(group.group_id, group.topics)
        topics = [
            m.OffsetFetchResponseTopics(topic, partitions=[part(i, o, 7, None, c) for i, o, c in parts])
            for topic, parts in found.items()
        ]
        return m.OffsetFetchResponseGroup(group.group_id, topics)

    return handle


STORE = {"g": {A0: 10, A1: 11}, "h": {B0: 3}}


async def test_all_offsets_of_a_group_in_one_request() -> None:
    # K88-40, K88-53
    async with scripted({"OffsetFetch": fetching(STORE)}) as (broker, admin):
        batch = await admin.list_consumer_group_offsets({"g": None})
        assert batch.all()["g"].all() == {A0: OffsetAndMetadata(10, 7, ""), A1: OffsetAndMetadata(11, 7, "")}
        [(version, message)] = broker.asked("OffsetFetch")
        assert version == 9  # K88-44
        assert isinstance(message, m.OffsetFetchRequest)
        [group] = message.groups
        assert group.topics is None
        assert (group.member_id, group.member_epoch) == (None, -1)
        assert broker.count("JoinGroup") == 0


async def test_named_partitions() -> None:
    # K88-41, K88-42
    async with scripted({"OffsetFetch": fetching(STORE, code_by_topic={"b": 29})}) as (_, admin):
        batch = await admin.list_consumer_group_offsets({"g": [A0, B0, TopicPartition("a", 5), A0], "h": []})
        assert batch.done["g"].done == {A0: OffsetAndMetadata(10, 7), TopicPartition("a", 5): None}
        assert batch.done["g"].failed == {B0: errors.TopicAuthorizationFailed()}
        assert batch.done["h"].all() == {}  # an empty list is not "all" (K88-X4)
        with pytest.raises(IllegalArgument, match="a-9 was not included in the original request"):
            batch.done["g"].result(TopicPartition("a", 9))


async def test_unknown_groups_have_no_offsets() -> None:
    # K88-11, K88-34
    async with scripted({"OffsetFetch": fetching(STORE, code_by_group={"secret": 30})}) as (_, admin):
        batch = await admin.list_consumer_group_offsets({"nobody": None, "secret": None})
    assert batch.done["nobody"].all() == {}
    assert batch.failed == {"secret": errors.GroupAuthorizationFailed()}


@pytest.mark.parametrize("highest", [2, 5, 6, 7])
async def test_one_request_a_group_on_old_brokers(highest: int) -> None:
    # K88-45, K88-73, K88-74, E2E-06
    store = {f"g{index}": {A0: index} for index in range(30)}
    handler = fetching(store, code_by_group={"g7": 30})
    async with scripted({"OffsetFetch": handler}, ranges={"OffsetFetch": (1, highest)}) as (broker, admin):
        batch = await admin.list_consumer_group_offsets(dict.fromkeys(store))
        epoch = 7 if highest >= 5 else None
        assert batch.done["g3"].all() == {A0: OffsetAndMetadata(3, epoch, "m")}
        assert len(batch.done) == 29
        assert batch.failed == {"g7": errors.GroupAuthorizationFailed()}
        assert broker.count("OffsetFetch") == 30


async def test_all_topics_need_version_2() -> None:
    # K88-70, E2E-06
    async with scripted({"OffsetFetch": fetching(STORE)}, ranges={"OffsetFetch": (0, 1)}) as (_, admin):
        batch = await admin.list_consumer_group_offsets({"g": None, "h": [B0]})
        assert isinstance(batch.failed["g"], UnsupportedVersion)
        assert str(batch.failed["g"]) == (
            "The broker only supports OffsetFetchRequest v1, but we need v2 or newer to request all topic partitions."
        )
        assert batch.done["h"].all() == {B0: OffsetAndMetadata(3, None, "m")}  # K88-71


@pytest.mark.parametrize(("code", "failure"), [(30, errors.GroupAuthorizationFailed()), (24, errors.InvalidGroupId())])
async def test_group_errors_of_version_1_are_on_partitions(code: int, failure: errors.KafkaError) -> None:
    # K88-30, K88-71
    handler = fetching(STORE, code_by_group={"g": code})
    async with scripted({"OffsetFetch": handler}, ranges={"OffsetFetch": (1, 1)}) as (_, admin):
        assert (await admin.list_consumer_group_offsets({"g": [A0]})).failed == {"g": failure}


async def test_partition_errors_of_version_1_stay_there() -> None:
    # K88-30
    ranges = {"OffsetFetch": (1, 1)}
    async with scripted({"OffsetFetch": fetching(STORE, code_by_topic={"b": 29})}, ranges=ranges) as (_, admin):
        offsets = (await admin.list_consumer_group_offsets({"g": [A0, B0]})).done["g"]
    assert (list(offsets.done), offsets.failed) == ([A0], {B0: errors.TopicAuthorizationFailed()})


@pytest.mark.parametrize(("highest", "is_sent"), [(6, False), (7, True), (9, True)])
async def test_require_stable_is_dropped_where_unknown(highest: int, is_sent: bool) -> None:
    # K88-72
    handler = fetching(STORE, code_by_topic={"b": 88})
    async with scripted({"OffsetFetch": handler}, ranges={"OffsetFetch": (1, highest)}) as (broker, admin):
        batch = await admin.list_consumer_group_offsets({"h": [B0]}, require_stable=True)
        assert batch.done["h"].failed == {B0: errors.UnstableOffsetCommit()}
        [(_, message)] = broker.asked("OffsetFetch")
        assert isinstance(message, m.OffsetFetchRequest)
        assert message.require_stable is is_sent


async def test_partitions_left_out_of_the_answer() -> None:
    left_out = m.OffsetFetchResponse(groups=[m.OffsetFetchResponseGroup("g")])
    async with scripted({"OffsetFetch": in_turn(left_out)}) as (_, admin):
        batch = await admin.list_consumer_group_offsets({"g": [A0]})
    assert isinstance(batch.done["g"].failed[A0], MissingResult)


def committing(**code_by_topic: int) -> Handler:
    def handle(message: m.OffsetCommitRequest, version: int) -> RootMessage:
        def outcome(topic: m.OffsetCommitRequestTopic) -> m.OffsetCommitResponseTopic:
            code, part = code_by_topic.get(topic.name, 0), m.OffsetCommitResponsePartition
            partitions = [part(each.partition_index, code) for each in topic.partitions]
            return m.OffsetCommitResponseTopic(topic.name, partitions=partitions)

        return m.OffsetCommitResponse(topics=[outcome(topic) for topic in message.topics])

    return handle


OFFSETS = {A0: OffsetAndMetadata(5, 2, "why"), B0: OffsetAndMetadata(6)}


async def test_commits_come_from_outside_of_the_group() -> None:
    # GO-12, K88-44
    async with scripted({"OffsetCommit": committing(b=3)}) as (broker, admin):
        batch = await admin.alter_consumer_group_offsets("g", OFFSETS)
        assert batch.done == {A0: None}
        assert batch.failed == {B0: errors.UnknownTopicOrPartition()}
        topic, part = m.OffsetCommitRequestTopic, m.OffsetCommitRequestPartition
        topics = [topic("a", partitions=[part(0, 5, 2, "why")]), topic("b", partitions=[part(0, 6, -1, "")])]
        assert broker.asked("OffsetCommit") == [(9, m.OffsetCommitRequest("g", -1, "", None, -1, topics))]


@pytest.mark.parametrize(("code", "lookups"), [(14, 1), (27, 1), (15, 2), (16, 2)])
async def test_commits_are_retried(code: int, lookups: int) -> None:
    # GO-12
    async with scripted({"OffsetCommit": in_turn(committing(a=code, b=code), committing())}) as (broker, admin):
        assert (await admin.alter_consumer_group_offsets("g", OFFSETS)).all() == {A0: None, B0: None}
        assert broker.count("FindCoordinator") == lookups


@pytest.mark.parametrize("highest", [2, 5, 6])
async def test_commits_to_old_brokers(highest: int) -> None:
    async with scripted({"OffsetCommit": committing()}, ranges={"OffsetCommit": (2, highest)}) as (broker, admin):
        assert (await admin.alter_consumer_group_offsets("g", OFFSETS)).failed == {}
        assert [version for version, _ in broker.asked("OffsetCommit")] == [highest]


async def test_a_call_on_one_group_raises_what_concerns_it() -> None:
    async with scripted({"OffsetCommit": in_turn(HangUp)}) as (_, admin):
        with pytest.raises(CallTimedOut, match="alterConsumerGroupOffsets timed out after 100 ms"):
            await admin.alter_consumer_group_offsets("g", OFFSETS, timeout_ms=100)


def deleting(error_code: int = 0, *, leave_out: str = "", **code_by_topic: int) -> Handler:
    def handle(message: m.OffsetDeleteRequest, version: int) -> RootMessage:
        part, code = m.OffsetDeleteResponsePartition, code_by_topic.get
        topics = [
            m.OffsetDeleteResponseTopic(
                topic.name, [part(each.partition_index, code(topic.name, 0)) for each in topic.partitions]
            )
            for topic in message.topics
            if topic.name != leave_out
        ]
        return m.OffsetDeleteResponse(error_code, topics=[] if error_code else topics)

    return handle


async def test_deleting_offsets() -> None:
    # K496-40, K496-42, K496-45
    async with scripted({"OffsetDelete": deleting(b=86)}) as (broker, admin):
        batch = await admin.delete_consumer_group_offsets("g", [A0, A1, B0, A0])
        assert batch.done == {A0: None, A1: None}
        assert batch.failed == {B0: errors.GroupSubscribedToTopic()}
        with pytest.raises(errors.GroupSubscribedToTopic):
            batch.all()
        with pytest.raises(IllegalArgument, match="c-0 was not included in the original request"):  # K496-41
            batch.result(TopicPartition("c", 0))
        [(version, message)] = broker.asked("OffsetDelete")
        assert version == m.OffsetDeleteRequest.MAX_VERSION
        assert isinstance(message, m.OffsetDeleteRequest)
        asked = {topic.name: [each.partition_index for each in topic.partitions] for topic in message.topics}
        assert asked == {"a": [0, 1], "b": [0]}


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (24, errors.InvalidGroupId),
        (30, errors.GroupAuthorizationFailed),
        (68, errors.NonEmptyGroup),
        (69, errors.GroupIdNotFound),
    ],
)
async def test_group_errors_fail_the_deletion(code: int, failure: type[errors.KafkaError]) -> None:
    # K496-42, K496-44, K496-75
    async with scripted({"OffsetDelete": deleting(code)}) as (_, admin):
        with pytest.raises(failure):
            await admin.delete_consumer_group_offsets("g", [A0])


@pytest.mark.parametrize(("code", "lookups"), [(14, 1), (15, 2), (16, 2)])
async def test_deletions_are_retried(code: int, lookups: int) -> None:
    # K496-44
    async with scripted({"OffsetDelete": in_turn(deleting(code), deleting())}) as (broker, admin):
        assert (await admin.delete_consumer_group_offsets("g", [A0])).all() == {A0: None}
        assert broker.count("FindCoordinator") == lookups


async def test_deletions_left_out_of_the_answer() -> None:
    # K496-43
    async with scripted({"OffsetDelete": deleting(leave_out="b")}) as (_, admin):
        batch = await admin.delete_consumer_group_offsets("g", [A0, B0])
    assert str(batch.failed[B0]) == 'Offset deletion result for partition "b-0" was not included in the response'


async def test_deletions_need_the_api() -> None:
    # K496-70
    async with scripted(ranges={"OffsetDelete": None}) as (_, admin):
        with pytest.raises(UnsupportedVersion, match="The node does not support OFFSET_DELETE"):
            await admin.delete_consumer_group_offsets("g", [A0])
