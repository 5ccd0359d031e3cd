"""What a client without rights is told, API by API (section 6.12 of the requirements), and how rules decide."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.held import log_of
from tests.broker.test_cluster_apis import part, plain

from groupkeeper.broker.authorizer import Operation, ResourceType, Rule, RuleAuthorizer
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.framing import request_class
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.testing.background import BackgroundBroker

TOPIC, GROUP, CLUSTER, TXN, *_ = ResourceType
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = (Operation(code) for code in range(3, 9))
TOPIC_FAILED, GROUP_FAILED, CLUSTER_FAILED, TXN_FAILED = 29, 30, 31, 53
BATCH = write_batch([Record(b"k", b"v", timestamp=1)])


def produce(**fields: Any) -> Any:
    data = part(0, "TopicProduceData", partition_data=[part(0, "PartitionProduceData", records=BATCH)], **fields)
    return m.ProduceRequest(None, -1, 1000, [data])


def fetch(**fields: Any) -> Any:
    parts = [part(1, "FetchPartition", partition_max_bytes=1000)]
    return m.FetchRequest(topics=[part(1, "FetchTopic", partitions=parts, **fields)])


def share_fetch(topic_id: bytes) -> Any:
    wanted = part(78, "FetchTopic", topic_id=topic_id, partitions=[part(78, "FetchPartition")])
    return m.ShareFetchRequest("g", "m", 0, 0, 1, 1000, 1, 1, topics=[wanted])


def ask(key: int, *values: Any, **fields: Any) -> Callable[[bytes], Any]:
    return lambda topic_id: request_class(key)(*values, **fields)


def topics(key: int, kind: str, inner: str = "", *values: Any, **fields: Any) -> Callable[[bytes], Any]:
    """A request of an API for partition 0 of one topic."""
    parts = {"partitions": [part(key, inner)]} if inner else {}
    return ask(key, *values, topics=[part(key, kind, **parts, **fields)])


def topics_by_id(key: int, kind: str, **fields: Any) -> Callable[[bytes], Any]:
    kind_of_request: Any = request_class(key)
    return lambda topic_id: kind_of_request(topics=[part(key, kind, topic_id=topic_id, **fields)])


def streams(**fields: Any) -> Callable[[bytes], Any]:
    """A heartbeat with a topology."""
    one = part(88, "Subtopology", subtopology_id="0", **fields)
    return ask(88, "s", "m", 5, topology=part(88, "Topology", epoch=1, subtopologies=[one]))


MADE_BY_STREAMS = ("repartition_source_topics", "state_changelog_topics")
SUBSCRIBED = {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout_ms": 1}
COMMIT = (8, "OffsetCommitRequestTopic", "OffsetCommitRequestPartition", "g")
SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"
SHARE_TOPIC = part(90, "DescribeShareGroupOffsetsRequestTopic", topic_name="t", partitions=[0])
SHARE_OFFSETS = part(90, "DescribeShareGroupOffsetsRequestGroup", group_id="g", topics=[SHARE_TOPIC])
SHARE_START = part(91, "AlterShareGroupOffsetsRequestPartition", start_offset=1)

SHARE_STATE = (
    (83, 0, "InitializeStateData"),
    (84, 0, "ReadStateData"),
    (85, 1, "WriteStateData"),
    (86, 0, "DeleteStateData"),
    (87, 1, "ReadStateSummaryData"),
)


def share_state(key: int, kind: str) -> Callable[[bytes], Any]:
    """A request to the share coordinator (GS-09)."""
    kind_of_request: Any = request_class(key)
    return lambda topic_id: kind_of_request(
        "g", [part(key, kind, topic_id=topic_id, partitions=[part(key, "PartitionData")])]
    )


# By resource: the operation that is missing, the version, and the request that needs it.
Cases = list[tuple[Operation, int, Callable[[bytes], Any]]]
OF_TOPIC: Cases = [
    (WRITE, 9, lambda _: produce(name="t")),
    (WRITE, 13, lambda topic_id: produce(topic_id=topic_id)),
    (READ, 12, lambda _: fetch(topic="t")),
    (READ, 16, lambda topic_id: fetch(topic_id=topic_id)),
    (DESCRIBE, 7, topics(2, "ListOffsetsTopic", "ListOffsetsPartition", name="t")),
    (DESCRIBE, 12, topics(3, "MetadataRequestTopic", name="t")),
    (DESCRIBE, 12, topics_by_id(3, "MetadataRequestTopic", name=None)),
    (DESCRIBE, 0, topics(75, "TopicRequest", name="t")),
    (DELETE, 6, topics(20, "DeleteTopicState", name="t")),
    (DELETE, 6, topics_by_id(20, "DeleteTopicState")),
    (ALTER, 3, topics(37, "CreatePartitionsTopic", name="t", count=5)),
    (DELETE, 2, topics(21, "DeleteRecordsTopic", "DeleteRecordsPartition", name="t")),
    (DESCRIBE, 4, topics(23, "OffsetForLeaderTopic", "OffsetForLeaderPartition", topic="t")),
    (READ, 0, topics(61, "TopicRequest", name="t", partition_indexes=[0])),
    (DESCRIBE, 1, ask(68, "g", "m", **SUBSCRIBED)),
    (DESCRIBE, 1, ask(76, "g", "m", subscribed_topic_names=["t"])),
    *((DESCRIBE, 0, streams(**{field: ["t"]})) for field in ("source_topics", "repartition_sink_topics")),
    *((DESCRIBE, 0, streams(**{field: [part(88, "TopicInfo", name="t")]})) for field in MADE_BY_STREAMS),
    (READ, 2, lambda topic_id: share_fetch(topic_id)),
    (DESCRIBE, 1, ask(90, [SHARE_OFFSETS])),
    (READ, 0, ask(91, "g", [part(91, "AlterShareGroupOffsetsRequestTopic", topic_name="t", partitions=[SHARE_START])])),
    (READ, 9, topics(*COMMIT, name="t")),
]
OF_GROUP: Cases = [
    (READ, 4, ask(25, "x", 1, 0, "g")),
    (DESCRIBE, 6, ask(10, coordinator_keys=["g"])),
    (READ, 9, ask(11, "g", 10_000)),
    (READ, 4, ask(12, "g")),
    (READ, 5, ask(13, "g")),
    (READ, 5, ask(14, "g", protocol_type="consumer", protocol_name="range")),
    (DESCRIBE, 6, ask(15, ["g"])),
    (DELETE, 2, ask(42, ["g"])),
    (DELETE, 0, ask(47, "g")),
    (READ, 1, ask(68, "g", "m")),
    (DESCRIBE, 1, ask(69, ["g"])),
    (READ, 1, ask(76, "g", "m", subscribed_topic_names=["t"])),
    (DESCRIBE, 1, ask(77, ["g"])),
    (READ, 2, lambda topic_id: share_fetch(topic_id)),
    (READ, 2, ask(79, "g", "m", 1)),
    (DESCRIBE, 1, ask(90, [SHARE_OFFSETS])),
    (READ, 0, ask(91, "g", [part(91, "AlterShareGroupOffsetsRequestTopic", topic_name="t", partitions=[SHARE_START])])),
    (READ, 0, ask(88, "g", "m", 5)),
    (DELETE, 0, ask(92, "g", [part(92, "DeleteShareGroupOffsetsRequestTopic", topic_name="t")])),
    (READ, 9, topics(*COMMIT, name="t")),
]
OF_TRANSACTIONAL_ID: Cases = [
    (WRITE, 5, ask(22, "x", 60_000)),
    (DESCRIBE, 6, ask(10, key_type=1, coordinator_keys=["x"])),
    (DESCRIBE, 0, ask(65, transactional_ids=["x"])),
    (WRITE, 4, ask(26, "x", 1, 0, True)),
    (WRITE, 4, ask(25, "x", 1, 0, "g")),
]
OF_CLUSTER: Cases = [
    (DESCRIBE, 4, ask(35)),
    (DESCRIBE, 0, ask(46)),
    (ALTER, 2, ask(43, topic_partitions=None)),
    (ALTER, 2, ask(57)),
    (Operation.CLUSTER_ACTION, 6, ask(10, key_type=2, coordinator_keys=[SHARE_KEY])),
    *((Operation.CLUSTER_ACTION, version, share_state(key, *names)) for key, version, *names in SHARE_STATE),
]
REFUSALS = [
    (name, resource_type, code, *case)
    for name, resource_type, code, cases in (
        ("t", TOPIC, TOPIC_FAILED, OF_TOPIC),
        ("g", GROUP, GROUP_FAILED, OF_GROUP),
        ("x", TXN, TXN_FAILED, OF_TRANSACTIONAL_ID),
        ("kafka-cluster", CLUSTER, CLUSTER_FAILED, OF_CLUSTER),
    )
    for case in cases
]


def codes_in(answer: Any) -> set[int]:
    """Every error code in an answer."""
    if isinstance(answer, dict):
        mine = {value for key, value in answer.items() if key == "error_code"}
        return mine.union(*(codes_in(value) for value in answer.values()))
    return set().union(*map(codes_in, answer)) if isinstance(answer, list) else set()


@pytest.mark.parametrize(("name", "resource_type", "code", "operation", "version", "request_for"), REFUSALS)
async def test_the_right_that_is_missing(
    start: Start,
    connect: Connect,
    name: str,
    resource_type: ResourceType,
    code: int,
    operation: Operation,
    version: int,
    request_for: Callable[[bytes], Any],
) -> None:
    # GA-01 GA-02 GA-03 GS-09 K88-20 K496-30 K1099-20
    authorizer = RuleAuthorizer(allows_without_rules=True)
    broker = await start(properties={"offsets.topic.num.partitions": "1"}, authorizer=authorizer)
    broker.groups.ensure_topic()
    wire = await connect(broker)
    topic_id = await wire.create("t")
    other = name + "2"
    for allowed in (name, other):
        authorizer.allow(Operation.ALL, resource_type, allowed)
    if resource_type == TOPIC:
        for enough in (DELETE, Operation.CLUSTER_ACTION):  # of the cluster: all topics may be deleted, or asked for
            authorizer.deny(enough, CLUSTER)
    request = request_for(topic_id)
    authorizer.deny(operation, resource_type, name)
    assert codes_in(plain(await wire.call(request, version))) == {code}
    # The right that is missing for something else doesn't matter. What the request does then is not asked here.
    authorizer.rules = tuple(
        Rule(*{**rule._asdict(), "name": other if rule.resource_type == resource_type else rule.name}.values())
        for rule in authorizer.rules
    )
    assert code not in codes_in(plain(await wire.call(request, version)))


async def test_what_may_not_be_seen_is_left_out(start: Start, connect: Connect) -> None:
    # GA-01: READ allows DESCRIBE as well.
    authorizer = RuleAuthorizer()
    wire = await connect(await start(authorizer=authorizer))
    authorizer.allow(CREATE, CLUSTER)
    authorizer.allow(Operation.DESCRIBE_CONFIGS, TOPIC)
    for name in ("seen", "hidden"):
        await wire.create(name)
    authorizer.allow(READ, TOPIC, "see*")
    for request, version in ((MetadataRequest(None), 12), (m.DescribeTopicPartitionsRequest(), 0)):
        assert [one["name"] for one in plain(await wire.call(request, version))["topics"]] == ["seen"]


async def test_automatic_topics_need_create(start: Start, connect: Connect) -> None:
    authorizer = RuleAuthorizer()
    authorizer.allow(DESCRIBE, TOPIC)
    broker = await start(authorizer=authorizer)
    wire = await connect(broker)
    request = MetadataRequest([part(3, "MetadataRequestTopic", name="new")], allow_auto_topic_creation=True)
    assert codes_in(plain(await wire.call(request, 12))) == {TOPIC_FAILED}
    assert broker.topics.get("new") is None
    authorizer.allow(CREATE, TOPIC, "new")
    await wire.call(request, 12)  # makes it, and answers that it isn't there
    assert codes_in(plain(await wire.call(request, 12))) == set()


async def test_creating_topics(start: Start, connect: Connect) -> None:
    authorizer = RuleAuthorizer()
    wire = await connect(await start(authorizer=authorizer))
    create = m.CreateTopicsRequest(
        topics=[part(19, "CreatableTopic", name="t", num_partitions=1, replication_factor=1)]
    )
    assert codes_in(plain(await wire.call(create, 7))) == {TOPIC_FAILED}
    authorizer.allow(CREATE, TOPIC, "t")
    (told,) = plain(await wire.call(create, 7))["topics"]
    # Who may not describe the configuration isn't told it.
    assert (told["topic_config_error_code"], told["num_partitions"], "configs" in told) == (TOPIC_FAILED, -1, False)


async def test_who_may_write_anywhere_gets_a_producer_id(start: Start, connect: Connect) -> None:
    authorizer = RuleAuthorizer()
    wire = await connect(await start(authorizer=authorizer))
    request = m.InitProducerIdRequest(None, 60_000)
    assert codes_in(plain(await wire.call(request, 4))) == {CLUSTER_FAILED}
    authorizer.allow(WRITE, TOPIC, "t")
    assert codes_in(plain(await wire.call(request, 4))) == set()
    authorizer.deny(WRITE, TOPIC)
    assert codes_in(plain(await wire.call(request, 4))) == {CLUSTER_FAILED}
    authorizer.allow(Operation.IDEMPOTENT_WRITE, CLUSTER)
    assert codes_in(plain(await wire.call(request, 4))) == set()


async def test_markers_of_transactions_need_one_of_two_rights(start: Start, connect: Connect) -> None:
    authorizer = RuleAuthorizer()
    wire = await connect(await start(authorizer=authorizer))
    topic = part(27, "WritableTxnMarkerTopic", name="gone", partition_indexes=[0])
    request = m.WriteTxnMarkersRequest([part(27, "WritableTxnMarker", producer_id=1, topics=[topic])])
    assert codes_in(plain(await wire.call(request, 1))) == {CLUSTER_FAILED}
    for operation in (ALTER, Operation.CLUSTER_ACTION):
        authorizer.rules = ()
        authorizer.allow(operation, CLUSTER)
        assert codes_in(plain(await wire.call(request, 1))) == {3}


async def test_one_transactional_batch_needs_the_transactional_id_for_all(start: Start, connect: Connect) -> None:
    """Nothing of such a request is written, and nothing is told of topics."""
    authorizer = RuleAuthorizer(allows_without_rules=True)
    broker = await start(authorizer=authorizer)
    wire = await connect(broker)
    for name in ("plain", "transactional"):
        await wire.create(name)
    authorizer.deny(WRITE, TXN, "x")
    in_transaction = write_batch(
        [Record(b"k", b"v", timestamp=1)], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    data = [
        part(0, "TopicProduceData", name=name, partition_data=[part(0, "PartitionProduceData", records=records)])
        for name, records in (("plain", BATCH), ("transactional", in_transaction))
    ]
    for transactional_id in ("x", None):
        answer = plain(await wire.call(m.ProduceRequest(transactional_id, -1, 1000, data), 9))
        assert [one["partition_responses"][0]["error_code"] for one in answer["responses"]] == [TXN_FAILED] * 2
    assert log_of(broker, "plain").log_end_offset == 0


async def test_only_brokers_fetch_as_replicas(start: Start, connect: Connect) -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    wire = await connect(await start(authorizer=authorizer))
    await wire.create("t")
    request = fetch(topic="t")
    request.replica_id = 7
    assert codes_in(plain(await wire.call(request, 11))) == {6}  # it has no replica
    authorizer.deny(READ, TOPIC)  # is for readers
    assert codes_in(plain(await wire.call(request, 11))) == {6}
    authorizer.deny(Operation.CLUSTER_ACTION, CLUSTER)
    assert codes_in(plain(await wire.call(request, 11))) == {TOPIC_FAILED}


async def test_there_are_no_loggers_to_set(wire: Wire) -> None:
    assert await wire.alter(8, "1", "kafka", "INFO") == (40, "Logger kafka does not exist!")


async def test_operations_are_told(start: Start, connect: Connect) -> None:
    # K1099-22
    authorizer = RuleAuthorizer()
    wire = await connect(await start(authorizer=authorizer))
    authorizer.allow(CREATE, CLUSTER)
    request = MetadataRequest(None, True, True, True)
    # Not even what it may: who may not describe the cluster gets nothing.
    assert "cluster_authorized_operations" not in plain(await wire.call(request, 10))
    authorizer.allow(DESCRIBE, CLUSTER)
    authorizer.allow(READ, TOPIC, "t")
    authorizer.allow(Operation.DESCRIBE_CONFIGS, TOPIC, "t")
    await wire.create("t")
    told = plain(await wire.call(request, 10))
    assert told["topics"][0]["topic_authorized_operations"] == 1 << 3 | 1 << 8 | 1 << 10
    assert told["cluster_authorized_operations"] == 1 << 5 | 1 << 8


def asked_by(client_id: str = "c", host: str = "127.0.0.1", principal: str = "User:ANONYMOUS") -> Call:
    return Call(3, 12, 1, client_id, MetadataRequest(), client_host=f"/{host}", principal=principal)


def test_rules() -> None:  # GA-01
    authorizer = RuleAuthorizer(super_users=["User:root"])
    authorizer.allow(READ, GROUP, "billing-*", client_id="bill*")
    authorizer.deny(READ, GROUP, "billing-secret", host="10.0.0.9")
    authorizer.allow(Operation.ALTER_CONFIGS, TOPIC, "t")

    def may(operation: Operation, name: str, kind: ResourceType = GROUP, **who: str) -> bool:
        return authorizer.allows(asked_by(**who), operation, kind, name)

    assert may(READ, "billing-1", client_id="bill")
    assert may(DESCRIBE, "billing-1", client_id="billing")
    assert not may(DELETE, "billing-1", client_id="bill")
    assert not may(READ, "billing-1", client_id="other")
    assert not may(READ, "shipping", client_id="bill")
    assert may(READ, "billing-secret", client_id="bill")
    assert not may(READ, "billing-secret", client_id="bill", host="10.0.0.9")
    assert may(DESCRIBE, "billing-secret", client_id="bill", host="10.0.0.9")  # a denied READ leaves DESCRIBE
    assert may(Operation.DESCRIBE_CONFIGS, "t", TOPIC)
    assert not may(DESCRIBE, "t", TOPIC)
    assert may(DELETE, "anything", principal="User:root")
    assert RuleAuthorizer(allows_without_rules=True).allows(asked_by(), READ, TOPIC, "t")


def test_a_real_client_without_rights() -> None:
    authorizer = RuleAuthorizer(allows_without_rules=True)
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}, authorizer=authorizer) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"one")
        assert producer.flush(20) == 0
        authorizer.allow(DESCRIBE, GROUP, "secret")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "secret"})
        with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
            consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        authorizer.allow(READ, GROUP, "secret")
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        assert broker.authorizer is authorizer
        consumer.close()
