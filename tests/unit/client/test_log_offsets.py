"""list_offsets: asked of the leaders, wherever they have gone."""

import asyncio
from collections.abc import Mapping

import pytest
from tests.unit.client.scripted_broker import Handler, HangUp, ScriptedBroker, admin_of, fast_admin, in_turn

from groupkeeper.client.admin import log_offsets
from groupkeeper.client.admin.types import ListedOffset, OffsetSpec, TopicPartition
from groupkeeper.client.errors import IllegalArgument, UnsupportedVersion
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition
from groupkeeper.protocol.primitives import RootMessage

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def listed(offset: int, code_by_partition: Mapping[TopicPartition, int] = {}) -> Handler:
    """Answers ListOffsets: `offset` for every partition, with the timestamp that was looked for, or a code."""

    def handle(message: m.ListOffsetsRequest, version: int) -> RootMessage:
        assert message.replica_id == -1

        def found(topic: str, part: m.ListOffsetsPartition) -> m.ListOffsetsPartitionResponse:
            code = code_by_partition.get(TopicPartition(topic, part.partition_index), 0)
            epoch = 3 if version >= 4 else -1
            return m.ListOffsetsPartitionResponse(part.partition_index, code, part.timestamp, offset, epoch)

        topics = [
            m.ListOffsetsTopicResponse(topic.name, [found(topic.name, each) for each in topic.partitions])
            for topic in message.topics
        ]
        return m.ListOffsetsResponse(topics=topics)

    return handle


def two_brokers() -> tuple[ScriptedBroker, ScriptedBroker]:
    first = ScriptedBroker(1, handlers={"ListOffsets": listed(10)})
    second = ScriptedBroker(2, handlers={"ListOffsets": listed(20)})
    first.topics.update(t=[1, 2], u=[2])
    return first, second


async def test_each_leader_is_asked_once() -> None:
    first, second = two_brokers()
    async with admin_of(first, second) as admin:
        specs = {T0: OffsetSpec.earliest(), T1: OffsetSpec.latest(), U0: OffsetSpec.for_timestamp(1234)}
        offsets = (await admin.list_offsets(specs)).all()
        assert offsets == {T0: ListedOffset(10, -2, 3), T1: ListedOffset(20, -1, 3), U0: ListedOffset(20, 1234, 3)}
        assert list(offsets) == [T0, T1, U0]
        await admin.list_offsets(specs)
        assert first.count("Metadata") == 1  # leaders are remembered
        assert (first.count("ListOffsets"), second.count("ListOffsets")) == (2, 2)


async def test_isolation_and_timeout_are_sent() -> None:
    first, second = two_brokers()
    async with admin_of(first, second) as admin:
        await admin.list_offsets({T0: OffsetSpec.latest()}, read_committed=True, timeout_ms=1000)
        await admin.list_offsets({T0: OffsetSpec.latest()})
    [(_, committed), (_, uncommitted)] = first.asked("ListOffsets")
    assert isinstance(committed, m.ListOffsetsRequest)
    assert isinstance(uncommitted, m.ListOffsetsRequest)
    assert (committed.isolation_level, uncommitted.isolation_level) == (1, 0)
    assert 0 < committed.timeout_ms <= 1000


@pytest.mark.parametrize("code", [3, 5, 6, 74])
async def test_moved_leaders_are_followed(code: int) -> None:
    first, second = two_brokers()
    async with admin_of(first, second) as admin:
        await admin.list_offsets({T0: OffsetSpec.latest(), T1: OffsetSpec.latest()})
        first.handlers["ListOffsets"] = listed(10, {T0: code})
        first.topics["t"] = [2, 2]
        offsets = (await admin.list_offsets({T0: OffsetSpec.latest(), T1: OffsetSpec.latest()})).all()
    assert offsets[T0].offset == 20


async def test_a_leader_that_is_not_ready_is_asked_again() -> None:
    first, second = two_brokers()
    first.handlers["ListOffsets"] = in_turn(listed(0, {T0: 78}), listed(11))
    async with admin_of(first, second) as admin:
        assert (await admin.list_offsets({T0: OffsetSpec.latest()})).all()[T0].offset == 11
        assert first.count("Metadata") == 1


async def test_a_lost_leader_is_looked_up_again() -> None:
    first, second = two_brokers()
    first.handlers["ListOffsets"] = in_turn(HangUp)
    async with admin_of(first, second) as admin:
        call = asyncio.create_task(admin.list_offsets({T0: OffsetSpec.latest()}))
        await first.until("ListOffsets")
        first.topics["t"] = [2, 2]
        assert (await call).all()[T0].offset == 20


async def test_one_bad_partition_does_not_break_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    # KAFKA-19500: a partition without a leader must not hang the call.
    monkeypatch.setattr(log_offsets, "_TOPIC_PATIENCE_S", 0.05)
    monkeypatch.setattr(log_offsets, "_LEADER_PATIENCE_S", 0.1)
    first, second = two_brokers()
    first.topics["leaderless"] = [-1]
    first.handlers["ListOffsets"] = listed(10, {TopicPartition("t", 0): 29})
    keys = [T0, T1, TopicPartition("t", 9), TopicPartition("gone", 0), TopicPartition("leaderless", 0)]
    async with admin_of(first, second) as admin:
        batch = await admin.list_offsets(dict.fromkeys(keys, OffsetSpec.latest()))
    assert list(batch.done) == [T1]
    assert batch.failed == {
        T0: TopicAuthorizationFailed(),
        TopicPartition("t", 9): UnknownTopicOrPartition(),
        TopicPartition("gone", 0): UnknownTopicOrPartition(),
        TopicPartition("leaderless", 0): LeaderNotAvailable(),
    }


async def test_topics_that_may_not_be_seen() -> None:
    def metadata(message: m.MetadataRequest, version: int) -> RootMessage:
        topics = [m.MetadataResponseTopic(29, topic.name) for topic in message.topics or ()]
        return m.MetadataResponse(brokers=[m.MetadataResponseBroker(1, broker.host, broker.port)], topics=topics)

    async with ScriptedBroker(1) as broker:
        broker.handlers["Metadata"] = metadata
        async with fast_admin(broker.bootstrap_servers) as admin:
            assert (await admin.list_offsets({T0: OffsetSpec.latest()})).failed == {T0: TopicAuthorizationFailed()}


SPECIAL = [
    (6, OffsetSpec.max_timestamp()),
    (7, OffsetSpec.earliest_local()),
    (8, OffsetSpec.latest_tiered()),
    (10, OffsetSpec.earliest_pending_upload()),
]


@pytest.mark.parametrize(("highest", "spec"), SPECIAL)
async def test_specs_that_the_broker_does_not_know(highest: int, spec: OffsetSpec) -> None:
    first, second = two_brokers()
    first.ranges["ListOffsets"] = (1, highest)
    async with admin_of(first, second) as admin:
        first.topics["t"] = [1, 1]
        batch = await admin.list_offsets({T0: spec, T1: OffsetSpec.latest()})
        assert batch.done[T1].offset == 10
        assert isinstance(batch.failed[T0], UnsupportedVersion)
        assert str(batch.failed[T0]) == (
            f"The node does not support LIST_OFFSETS with version in range [{highest + 1},11]. "
            f"The supported range is [1,{highest}]."
        )
        assert isinstance((await admin.list_offsets({T0: spec})).failed[T0], UnsupportedVersion)
        first.ranges["ListOffsets"] = (1, highest + 1)
        async with fast_admin(first.bootstrap_servers) as admin:
            assert (await admin.list_offsets({T0: spec})).all()[T0].offset == 10


async def test_the_oldest_version() -> None:
    first, second = two_brokers()
    first.ranges["ListOffsets"] = (1, 1)
    async with admin_of(first, second) as admin:
        assert (await admin.list_offsets({T0: OffsetSpec.latest()})).all() == {T0: ListedOffset(10, -1, None)}
        batch = await admin.list_offsets({T0: OffsetSpec.latest()}, read_committed=True)
        assert isinstance(batch.failed[T0], UnsupportedVersion)


async def test_old_metadata_never_creates_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_offsets, "_TOPIC_PATIENCE_S", 0.0)
    first, second = two_brokers()
    first.ranges["Metadata"] = (0, 3)
    async with admin_of(first, second) as admin:
        batch = await admin.list_offsets({T0: OffsetSpec.latest(), TopicPartition("new", 0): OffsetSpec.latest()})
    assert list(batch.done) == [T0]
    assert all(message.topics is None for _, message in first.asked("Metadata"))  # type: ignore[attr-defined]


def test_negative_timestamps_are_refused() -> None:
    with pytest.raises(IllegalArgument):
        OffsetSpec.for_timestamp(-5)
