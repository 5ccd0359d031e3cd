"""The admin clients of the real libraries, each with its own calls."""

from collections.abc import Iterator
from typing import Any

import aiokafka
import aiokafka.admin
import kafka
import kafka.admin
import kafka.errors
import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.clients import CLIENTS, ConsumerOptions, Sent
from tests.conformance.clients import TopicPartition as Partition
from tests.conformance.member import Member

T0 = 1_700_000_000_000


def fill(broker: RunningBroker, topic: str) -> None:
    """Partition 0: 10 records, the latest timestamp in the middle; partition 1: 5 records."""
    stamps = [T0 + 1000 * (i if i != 4 else 100) for i in range(10)]
    CLIENTS["confluent"].produce(
        broker.bootstrap_servers, topic, [Sent(b"%d" % i, timestamp_ms=t) for i, t in enumerate(stamps)]
    )
    CLIENTS["confluent"].produce(broker.bootstrap_servers, topic, [Sent(b"x", partition=1) for _ in range(5)])


def commit(broker: RunningBroker, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Offsets of a group without members."""
    consumer = CLIENTS["kafka-python"].consumer(broker.bootstrap_servers, ConsumerOptions(group=group))
    consumer.assign([Partition(*p) for p in offsets])
    consumer.commit({Partition(*p): o for p, o in offsets.items()})
    consumer.close()


@pytest.fixture
def live_group(broker: RunningBroker, topic: str, name: str) -> Iterator[str]:
    """A Stable group of one member that owns all partitions."""
    with Member(CLIENTS["confluent"], broker.bootstrap_servers, ConsumerOptions(group=name), [topic]) as member:
        wait_for(lambda: len(member.assignment) == 6, "the assignment")
        yield name
        member.stop()


def code_of(future: Any) -> int:
    with pytest.raises(KafkaException) as caught:
        future.result(20)
    return int(caught.value.args[0].code())


# ------------------------------------------------------------------------------------------------- confluent


def test_confluent_lists_and_describes_groups(
    broker: RunningBroker, admin: AdminClient, topic: str, live_group: str
) -> None:
    empty = live_group + "-empty"
    commit(broker, empty, {(topic, 0): 3})
    listed = {g.group_id: g for g in admin.list_consumer_groups(request_timeout=20).result(20).valid}
    assert (listed[live_group].state, listed[live_group].type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CLASSIC)
    assert (listed[empty].state, listed[empty].is_simple_consumer_group) == (ConsumerGroupState.EMPTY, True)
    # K518-10
    only_empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(20).valid
    assert {live_group, empty} & {g.group_id for g in only_empty} == {empty}
    no_type = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(20).valid
    assert not {live_group, empty} & {g.group_id for g in no_type}
    found = admin.describe_consumer_groups([live_group])[live_group].result(20)
    (member,) = found.members
    assert (found.state, found.partition_assignor, member.client_id) == (ConsumerGroupState.STABLE, "range", "rdkafka")
    assert member.host == "/127.0.0.1"
    assert {(p.topic, p.partition) for p in member.assignment.topic_partitions} == {(topic, p) for p in range(6)}
    assert found.coordinator.host == "127.0.0.1"


def test_confluent_lists_and_alters_group_offsets(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    fill(broker, topic)
    commit(broker, topic, {(topic, 0): 3, (topic, 1): 4})

    def offsets(partitions: list[TopicPartition] | None = None) -> dict[int, int]:
        asked = ConsumerGroupTopicPartitions(topic, partitions)
        found = admin.list_consumer_group_offsets([asked])[topic].result(20)
        return {p.partition: p.offset for p in found.topic_partitions}

    assert offsets() == {0: 3, 1: 4}  # K88-10: all topics
    assert offsets([TopicPartition(topic, 1), TopicPartition(topic, 5)]) == {1: 4, 5: -1001}  # K88-05
    wanted = ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0, 1), TopicPartition(topic, 2, 0)])
    done = admin.alter_consumer_group_offsets([wanted])[topic].result(20)
    assert all(p.error is None for p in done.topic_partitions)
    assert offsets() == {0: 1, 1: 4, 2: 0}
    missing = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic + "-nope")])[topic + "-nope"]
    assert missing.result(20).topic_partitions == []  # K88-14: an unknown group is not an error


def test_confluent_cannot_alter_or_delete_a_live_group(admin: AdminClient, topic: str, live_group: str) -> None:
    wanted = ConsumerGroupTopicPartitions(live_group, [TopicPartition(topic, 0, 1)])
    (refused,) = admin.alter_consumer_group_offsets([wanted])[live_group].result(20).topic_partitions
    assert refused.error.code() == KafkaError.UNKNOWN_MEMBER_ID  # GO-04
    assert code_of(admin.delete_consumer_groups([live_group])[live_group]) == KafkaError.NON_EMPTY_GROUP  # GD-02


def test_confluent_deletes_groups(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    commit(broker, topic, {(topic, 0): 3})
    done = admin.delete_consumer_groups([topic, topic + "-nope"])
    assert done[topic].result(20) is None
    assert code_of(done[topic + "-nope"]) == KafkaError.GROUP_ID_NOT_FOUND
    assert topic not in {g.group_id for g in admin.list_consumer_groups().result(20).valid}


def test_confluent_lists_offsets(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    fill(broker, topic)

    def offset(spec: Any, partition: int = 0) -> tuple[int, int]:
        asked = TopicPartition(topic, partition)
        found = admin.list_offsets({asked: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)[asked].result(20)
        return found.offset, found.timestamp

    assert offset(OffsetSpec.earliest()) == (0, -1)
    assert offset(OffsetSpec.latest()) == (10, -1)
    assert offset(OffsetSpec.for_timestamp(T0 + 1)) == (1, T0 + 1000)
    assert offset(OffsetSpec.max_timestamp()) == (4, T0 + 100_000)
    assert offset(OffsetSpec.for_timestamp(T0 + 200_000)) == (-1, -1)
    assert offset(OffsetSpec.latest(), 2) == (0, -1)
    assert offset(OffsetSpec.max_timestamp(), 2) == (-1, -1)


def test_confluent_creates_and_deletes_topics(admin: AdminClient, name: str) -> None:
    made = admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "-1"})], request_timeout=20)
    assert made[name].result(20) is None
    again = admin.create_topics([NewTopic(name, 3, 1)])[name]
    assert code_of(again) == KafkaError.TOPIC_ALREADY_EXISTS
    bad = {
        "no such name!": KafkaError.TOPIC_EXCEPTION,
        name + "-none": KafkaError.INVALID_PARTITIONS,
        name + "-copies": KafkaError.INVALID_REPLICATION_FACTOR,
    }
    topics = [NewTopic("no such name!", 1, 1), NewTopic(name + "-none", 0, 1), NewTopic(name + "-copies", 1, 4)]
    assert {t: code_of(f) for t, f in admin.create_topics(topics).items()} == bad
    only_checked = admin.create_topics([NewTopic(name + "-checked", 1, 1)], validate_only=True)
    assert only_checked[name + "-checked"].result(20) is None
    wait_for(lambda: name in admin.list_topics(timeout=10).topics, "the new topic in the metadata")
    assert name + "-checked" not in admin.list_topics(timeout=10).topics
    assert admin.delete_topics([name])[name].result(20) is None
    wait_for(lambda: name not in admin.list_topics(timeout=10).topics, "its end")
    assert code_of(admin.delete_topics([name])[name]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_confluent_describes_the_cluster_and_topics(broker: RunningBroker, admin: AdminClient, topic: str) -> None:
    cluster = admin.describe_cluster(request_timeout=20).result(20)
    assert [f"{n.host}:{n.port}" for n in cluster.nodes] == broker.bootstrap_servers.split(",")
    assert cluster.cluster_id
    described = admin.list_topics(timeout=10)
    assert described.cluster_id == cluster.cluster_id
    assert sorted(described.topics[topic].partitions) == list(range(6))
    assert all(p.isrs == [p.leader] for p in described.topics[topic].partitions.values())


# ---------------------------------------------------------------------------------------------- kafka-python


@pytest.fixture
def python_admin(broker: RunningBroker) -> Iterator[Any]:
    made = kafka_admin(broker.bootstrap_servers)
    yield made
    made.close()


def kafka_admin(servers: str) -> Any:
    return kafka.KafkaAdminClient(bootstrap_servers=servers)


def test_kafka_python_on_groups(broker: RunningBroker, python_admin: Any, topic: str, live_group: str) -> None:
    listed = {g["group_id"]: g for g in python_admin.list_groups()}
    assert (listed[live_group]["group_state"], listed[live_group]["protocol_type"]) == ("Stable", "consumer")
    stable = {g["group_id"] for g in python_admin.list_groups(states_filter=["Stable"])}
    assert live_group in stable
    found = python_admin.describe_groups([live_group])[live_group]
    assert (found["group_state"], found["protocol_data"], len(found["members"])) == ("Stable", "range", 1)
    zero = kafka.TopicPartition(topic, 0)
    refused = python_admin.delete_group_offsets(live_group, [zero])
    assert refused == {zero: kafka.errors.GroupSubscribedToTopicError}  # K496-11


def test_kafka_python_on_group_offsets(broker: RunningBroker, python_admin: Any, topic: str) -> None:
    fill(broker, topic)
    zero, one = kafka.TopicPartition(topic, 0), kafka.TopicPartition(topic, 1)
    wanted = {zero: kafka.OffsetAndMetadata(3, "note", -1), one: kafka.OffsetAndMetadata(4, "", -1)}
    python_admin.alter_group_offsets(topic, wanted)
    found = python_admin.list_group_offsets({topic: None})[topic]
    assert {p: (o.offset, o.metadata) for p, o in found.items()} == {zero: (3, "note"), one: (4, "")}
    python_admin.delete_group_offsets(topic, [zero])  # K496-10
    assert set(python_admin.list_group_offsets({topic: None})[topic]) == {one}
    python_admin.reset_group_offsets(topic, {one: kafka.admin.OffsetSpec.EARLIEST})
    assert python_admin.list_group_offsets({topic: [one]})[topic][one].offset == 0
    python_admin.delete_groups([topic])
    assert topic not in {g["group_id"] for g in python_admin.list_groups()}


def test_kafka_python_removes_members(broker: RunningBroker, python_admin: Any, topic: str, name: str) -> None:
    options = ConsumerOptions(group=name, instance_id="gone", session_timeout_ms=30_000)
    with Member(CLIENTS["confluent"], broker.bootstrap_servers, options, [topic]) as member:
        wait_for(lambda: len(member.assignment) == 6, "the assignment")
        member.stop()
    assert len(python_admin.describe_groups([name])[name]["members"]) == 1
    python_admin.remove_group_members(name, [kafka.admin.MemberToRemove(group_instance_id="gone")])  # GC-24
    assert python_admin.describe_groups([name])[name]["members"] == []


def test_kafka_python_on_topics(broker: RunningBroker, python_admin: Any, topic: str, name: str) -> None:
    fill(broker, topic)
    other = name + "-other"
    python_admin.create_topics({other: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    assert {other, topic} <= set(python_admin.list_topics())
    (found,) = python_admin.describe_topics([other])
    assert len(found["partitions"]) == 2
    zero = kafka.TopicPartition(topic, 0)
    specs = kafka.admin.OffsetSpec
    assert python_admin.list_partition_offsets({zero: specs.LATEST})[zero].offset == 10
    assert python_admin.list_partition_offsets({zero: specs.EARLIEST})[zero].offset == 0
    python_admin.delete_topics([other])
    wait_for(lambda: other not in python_admin.list_topics(), "its end")


# -------------------------------------------------------------------------------------------------- aiokafka


async def test_aiokafka_on_everything(broker: RunningBroker, topic: str, live_group: str) -> None:
    empty = live_group + "-empty"
    commit(broker, empty, {(topic, 0): 3})
    admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    try:
        listed = await admin.list_consumer_groups()
        assert {(live_group, "consumer"), (empty, "")} <= {tuple(g[:2]) for g in listed}
        (answer,) = await admin.describe_consumer_groups([live_group])
        (group,) = answer.groups
        assert group[:4] == (0, live_group, "Stable", "consumer")
        found = await admin.list_consumer_group_offsets(empty)
        assert {(p.topic, p.partition): o.offset for p, o in found.items()} == {(topic, 0): 3}
        nodes = [one["node_id"] for one in (await admin.describe_cluster())["brokers"]]
        assert await admin.find_coordinator(empty) in nodes
        await admin.create_topics([aiokafka.admin.NewTopic(live_group + "-new", 2, 1)])
        assert live_group + "-new" in await admin.list_topics()
        (described,) = await admin.describe_topics([live_group + "-new"])
        assert len(described["partitions"]) == 2
        await admin.delete_topics([live_group + "-new"])
    finally:
        await admin.close()
