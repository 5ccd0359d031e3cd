"""Topics and the cluster."""

import pytest
from tests.unit.client.scripted_broker import HangUp, ScriptedBroker, cluster_of, fast_admin, in_turn, scripted

from groupkeeper.client.admin.types import (
    CreatedTopic,
    NewTopic,
    OffsetSpec,
    PartitionDescription,
    TopicListing,
    TopicPartition,
)
from groupkeeper.client.errors import CallTimedOut, MissingResult
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import create_topics_response, delete_topics_response
from groupkeeper.protocol.primitives import RootMessage

TOPIC_ID = bytes(range(16))


def metadata_of(broker: ScriptedBroker) -> RootMessage:
    topic, part = m.MetadataResponseTopic, m.MetadataResponsePartition
    parts = [part(5, 1, -1, -1, [0, 1], [], [0]), part(0, 0, 0, 4, [0, 1], [0], [1])]
    topics = [
        topic(0, "t", TOPIC_ID, False, parts, 1 << 3),
        topic(29, "secret"),
        topic(0, "__consumer_offsets", is_internal=True),
    ]
    return m.MetadataResponse(brokers=[m.MetadataResponseBroker(0, broker.host, broker.port)], topics=topics)


async def test_topics_with_their_partitions() -> None:
    async with scripted() as (broker, admin):
        broker.handlers["Metadata"] = in_turn(metadata_of(broker))
        batch = await admin.describe_topics()
        topics = await admin.list_topics()
        with_internal = await admin.list_topics(include_internal=True)
        node = admin._cluster.nodes[0]
    assert batch.failed == {"secret": errors.TopicAuthorizationFailed()}
    assert list(batch.done) == ["t", "__consumer_offsets"]
    topic = batch.done["t"]
    assert (topic.topic_id, topic.is_internal, topic.authorized_operations) == (TOPIC_ID, False, frozenset({"READ"}))
    assert topic.partitions == (
        PartitionDescription(0, node, 4, (0, 1), (0,), (1,), None),
        PartitionDescription(1, None, None, (0, 1), (), (0,), errors.LeaderNotAvailable()),
    )
    assert batch.done["__consumer_offsets"].topic_id is None
    assert topics == [TopicListing("secret", None, False), TopicListing("t", TOPIC_ID, False)]
    assert with_internal[0] == TopicListing("__consumer_offsets", None, True)


async def test_topics_by_name_are_not_created() -> None:
    async with scripted() as (broker, admin):
        broker.topics["t"] = [0]
        batch = await admin.describe_topics(["t", "gone", "t"], include_authorized_operations=True)
        assert list(batch.done) == ["t"]
        assert batch.failed == {"gone": errors.UnknownTopicOrPartition()}
        assert (await admin.describe_topics([])).done == {}
        [(_, message)] = broker.asked("Metadata")
        assert isinstance(message, m.MetadataRequest)
        assert [topic.name for topic in message.topics or ()] == ["t", "gone"]
        assert not message.allow_auto_topic_creation
        assert message.include_topic_authorized_operations


async def test_topics_by_name_on_old_brokers() -> None:
    async with scripted(ranges={"Metadata": (0, 3)}) as (broker, admin):
        broker.topics.update(t=[0], u=[0])
        batch = await admin.describe_topics(["t", "gone"])
    assert list(batch.done) == ["t"]
    assert batch.failed == {"gone": errors.UnknownTopicOrPartition()}


async def test_metadata_that_is_refused() -> None:
    async with scripted() as (broker, admin):
        broker.handlers["Metadata"] = in_turn(m.MetadataResponse(error_code=31))
        with pytest.raises(errors.ClusterAuthorizationFailed):
            await admin.describe_topics()
        with pytest.raises(errors.ClusterAuthorizationFailed):
            await admin.delete_topics(["t"])
        tp = TopicPartition("t", 0)
        ends = await admin.list_offsets({tp: OffsetSpec.latest()})
        assert ends.failed == {tp: errors.ClusterAuthorizationFailed()}


def creation(*topics: create_topics_response.CreatableTopicResult) -> RootMessage:
    return create_topics_response.CreateTopicsResponse(topics=topics)


async def test_creating_topics() -> None:
    config = create_topics_response.CreatableTopicConfigs("retention.ms", "1")
    answer = creation(
        create_topics_response.CreatableTopicResult("a", TOPIC_ID, 0, None, 0, 3, 1, [config]),
        create_topics_response.CreatableTopicResult("b", error_code=36, error_message="Topic 'b' already exists."),
    )
    async with scripted({"CreateTopics": in_turn(answer)}) as (broker, admin):
        batch = await admin.create_topics(
            [
                NewTopic("a", 3, 1, configs={"retention.ms": "1"}),
                NewTopic("b", assignments={0: [0, 1]}),
                NewTopic("left-out"),
            ],
            validate_only=True,
        )
        [(version, message)] = broker.asked("CreateTopics")
    assert batch.done == {"a": CreatedTopic("a", TOPIC_ID, 3, 1, {"retention.ms": "1"})}
    assert batch.failed["b"] == errors.TopicAlreadyExists("Topic 'b' already exists.")
    assert isinstance(batch.failed["left-out"], MissingResult)
    assert version == 7
    assert isinstance(message, m.CreateTopicsRequest)
    assert message.validate_only
    assert message.timeout_ms > 0
    assert message.topics == [
        m.CreatableTopic("a", 3, 1, [], [m.CreatableTopicConfig("retention.ms", "1")]),
        m.CreatableTopic("b", -1, -1, [m.CreatableReplicaAssignment(0, [0, 1])], []),
        m.CreatableTopic("left-out", -1, -1, [], []),
    ]


async def test_the_controller_is_asked_and_followed() -> None:
    refused = creation(create_topics_response.CreatableTopicResult("a", error_code=41))
    created = creation(create_topics_response.CreatableTopicResult("a"))
    async with (
        ScriptedBroker(1, handlers={"CreateTopics": in_turn(refused)}) as first,
        ScriptedBroker(2, handlers={"CreateTopics": in_turn(created)}) as second,
    ):
        cluster_of(first, second)
        metadata = first._answer_metadata

        def moved(message: m.MetadataRequest, version: int) -> RootMessage:
            answer = metadata(message, version)
            answer.controller_id = 2
            return answer

        first.handlers["Metadata"] = in_turn(metadata, moved)
        async with fast_admin(first.bootstrap_servers) as admin:
            assert list((await admin.create_topics([NewTopic("a")])).all()) == ["a"]
    assert (first.count("CreateTopics"), second.count("CreateTopics")) == (1, 1)


async def test_a_lost_controller_is_looked_up_again() -> None:
    created = creation(create_topics_response.CreatableTopicResult("a"))
    async with scripted({"CreateTopics": in_turn(HangUp, created)}, ranges={"Metadata": (0, 0)}) as (broker, admin):
        # Metadata 0 doesn't name the controller: any broker is asked.
        assert list((await admin.create_topics([NewTopic("a")])).all()) == ["a"]
        broker.handlers["CreateTopics"] = in_turn(HangUp)
        with pytest.raises(CallTimedOut):
            await admin.create_topics([NewTopic("a")], timeout_ms=100)


@pytest.mark.parametrize("highest", [6, 5, 1])
async def test_deleting_topics(highest: int) -> None:
    result = delete_topics_response.DeletableTopicResult

    def handle(message: m.DeleteTopicsRequest, version: int) -> RootMessage:
        names = [topic.name for topic in message.topics] if version >= 6 else message.topic_names
        return delete_topics_response.DeleteTopicsResponse(
            responses=[result(name, error_code=3 if name == "gone" else 0) for name in names]
        )

    async with scripted({"DeleteTopics": handle}, ranges={"DeleteTopics": (1, highest)}) as (_, admin):
        batch = await admin.delete_topics(["t", "gone"])
    assert batch.done == {"t": None}
    assert batch.failed == {"gone": errors.UnknownTopicOrPartition()}


async def test_the_cluster() -> None:
    answer = m.DescribeClusterResponse(
        cluster_id="id",
        controller_id=2,
        brokers=[m.DescribeClusterBroker(1, "a", 1, None), m.DescribeClusterBroker(2, "b", 2, "rack")],
        cluster_authorized_operations=1 << 5 | 1 << 8,
    )
    refused = m.DescribeClusterResponse(error_code=31, error_message="no")
    async with scripted({"DescribeCluster": in_turn(answer, refused)}) as (_, admin):
        cluster = await admin.describe_cluster(include_authorized_operations=True)
        with pytest.raises(errors.ClusterAuthorizationFailed, match="no"):
            await admin.describe_cluster()
    assert cluster.cluster_id == "id"
    assert cluster.controller == cluster.nodes[1]
    assert str(cluster.nodes[1]) == "b:2 (id: 2 rack: rack isFenced: false)"
    assert str(cluster.nodes[0]) == "a:1 (id: 1 rack: null isFenced: false)"
    assert cluster.authorized_operations == frozenset({"CREATE", "DESCRIBE"})
