"""Topics, their partitions and settings, as clients and the official tools ask for them."""

from pathlib import Path

import pytest
from tests.broker.conftest import Connect, Start, Wire
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.alter_configs_request import AlterableConfig as PlainConfig
from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsResource as PlainResource
from groupkeeper.protocol.messages.describe_producers_request import TopicRequest as ProducersTopic
from groupkeeper.protocol.messages.describe_topic_partitions_request import Cursor, TopicRequest
from groupkeeper.protocol.record_batch import Record, write_batch

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


async def metadata(
    wire: Wire, *names: str, version: int = 12, may_create: bool = True
) -> list[m.MetadataResponseTopic]:
    topics = [m.MetadataRequestTopic(name=name) for name in names]
    return list((await wire.call(m.MetadataRequest(topics, may_create), version)).topics)


def configured(name: str, value: str | None) -> m.CreatableTopic:
    return m.CreatableTopic("t", 1, 1, configs=[m.CreatableTopicConfig(name, value)])


def assigned(partition: int, nodes: list[int], *, count: int = -1, factor: int = -1) -> m.CreatableTopic:
    return m.CreatableTopic("t", count, factor, [m.CreatableReplicaAssignment(partition, nodes)])


def values(described: m.DescribeConfigsResult) -> dict[str, str | None]:
    return {config.name: config.value for config in described.configs}


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    async def test_every_version(self, wire: Wire, broker: Broker, version: int) -> None:
        topic_id = await wire.create("t", 3)
        request = m.MetadataRequest([m.MetadataRequestTopic(name="t")])
        answer = await wire.call(request, version)
        (node,) = answer.brokers
        assert f"{node.host}:{node.port}" == broker.bootstrap_servers
        assert node.node_id == 1
        assert answer.cluster_id == (broker.cluster_id if version >= 2 else None)
        (topic,) = answer.topics
        assert [part.leader_id for part in topic.partitions] == [1, 1, 1]
        assert [list(part.isr_nodes) for part in topic.partitions] == [[1], [1], [1]]
        if version >= 10:
            assert topic.topic_id == topic_id

    async def test_all_topics_or_none(self, wire: Wire) -> None:
        await wire.create("b")
        await wire.create("a")
        for version, wanted, found in ((0, (), ["a", "b"]), (1, None, ["a", "b"]), (1, (), []), (12, None, ["a", "b"])):
            answer = await wire.call(m.MetadataRequest(wanted), version)
            assert [topic.name for topic in answer.topics] == found

    async def test_by_id(self, wire: Wire) -> None:
        topic_id = await wire.create("t")
        wanted = [m.MetadataRequestTopic(topic_id, None), m.MetadataRequestTopic(b"\x01" * 16, None)]
        answer = await wire.call(m.MetadataRequest(wanted, False), 12)
        found = [(topic.name, topic.error_code) for topic in answer.topics]
        assert found == [(None, errors.UnknownTopicId.code), ("t", 0)]
        refused = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(topic_id, None)]), 10)
        assert refused.topics[0].error_code == errors.InvalidRequest.code

    async def test_topics_are_made_for_those_who_ask(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"num.partitions": "4"}))
        assert (await metadata(wire, "t", may_create=False))[0].error_code == errors.UnknownTopicOrPartition.code
        # The request that makes it is told that there is none, as by Kafka.
        assert (await metadata(wire, "t"))[0].error_code == errors.UnknownTopicOrPartition.code
        (topic,) = await metadata(wire, "t")
        assert (topic.error_code, len(topic.partitions)) == (0, 4)
        assert (await metadata(wire, "a b"))[0].error_code == errors.InvalidTopicException.code

    async def test_names_that_collide(self, broker: Broker, wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
        for _ in range(2):
            answer = {topic.name: topic.error_code for topic in await metadata(wire, "a.b", "a_b")}
            assert answer["a_b"] == errors.UnknownTopicOrPartition.code
        assert answer["a.b"] == 0
        assert list(broker.topics.names()) == ["a.b"]
        assert "Topic 'a_b' collides with existing topic: a.b" in caplog.text

    async def test_not_when_the_broker_forbids_it(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"auto.create.topics.enable": "false"}))
        assert (await metadata(wire, "t"))[0].error_code == errors.UnknownTopicOrPartition.code

    @pytest.mark.parametrize("grace_ms", [60_000, 0])
    async def test_a_deleted_topic_is_not_revived_by_who_still_asks_for_it(
        self, start: Start, connect: Connect, grace_ms: int
    ) -> None:
        broker = await start(properties={"groupkeeper.auto.create.grace.ms": grace_ms})
        wire = await connect(broker)
        await wire.create("t")
        await wire.call(m.DeleteTopicsRequest(topic_names=["t"]), 5)
        deleted_ms = broker.now_ms()
        await becomes(lambda: broker.now_ms() > deleted_ms)
        unknown = errors.UnknownTopicOrPartition.code  # also for who has it made
        assert [(await metadata(wire, "t"))[0].error_code for _ in range(2)] == [unknown, unknown if grace_ms else 0]
        if grace_ms:
            await wire.create("t")  # whoever means it, may

    async def test_authorized_operations(self, wire: Wire) -> None:
        await wire.create("t")
        wanted = [m.MetadataRequestTopic(name="t")]
        answer = await wire.call(m.MetadataRequest(wanted, False, True, True), 10)
        assert (answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations) == (8096, 3576)
        answer = await wire.call(m.MetadataRequest(wanted, False), 10)
        assert answer.topics[0].topic_authorized_operations == -(2**31)

    async def test_internal_topics_are_marked(self, wire: Wire) -> None:
        await wire.create("__consumer_offsets")
        assert (await metadata(wire, "__consumer_offsets"))[0].is_internal


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    async def test_every_version(self, wire: Wire, version: int) -> None:
        answer = await wire.call(m.CreateTopicsRequest([m.CreatableTopic("t", 2, 1)]), version)
        (topic,) = answer.topics
        assert (topic.name, topic.error_code, topic.error_message) == ("t", 0, None)
        if version >= 5:
            assert (topic.num_partitions, topic.replication_factor) == (2, 1)
            assert {config.name: config.value for config in topic.configs or ()}["retention.ms"] == "604800000"
        assert len((await metadata(wire, "t"))[0].partitions) == 2

    @pytest.mark.parametrize(
        ("topic", "code", "message"),
        [
            (m.CreatableTopic("there", 1, 1), 36, "Topic 'there' already exists."),
            (m.CreatableTopic("__cluster_metadata", 1, 1), 42, "of internal topic __cluster_metadata is prohibited."),
            (m.CreatableTopic("a b", 1, 1), 17, "'a b' contains one or more characters other than"),
            (m.CreatableTopic("", 1, 1), 17, "Topic name is invalid: the empty string is not allowed"),
            (m.CreatableTopic("t", 0, 1), 37, "Number of partitions was set to an invalid non-positive value."),
            (m.CreatableTopic("t", -2, 1), 37, "Number of partitions was set to an invalid non-positive value."),
            (m.CreatableTopic("t", 1, 0), 38, "factor must be larger than 0, or -1 to use the default value."),
            (m.CreatableTopic("t", 1, 3), 38, "replicate the partition 3 time(s): The target replication factor"),
            (configured("nonsense", "1"), 40, "Unknown topic config name: nonsense"),
            (configured("retention.ms", "x"), 40, "x for configuration retention.ms: Not a number of type LONG"),
            (configured("retention.ms", None), 40, "Null value not supported for topic configs: retention.ms"),
            (assigned(0, [2]), 39, "assignment includes broker 2, but no such broker is registered."),
            (assigned(1, [1]), 39, "partitions should be a consecutive 0-based integer sequence"),
            (assigned(0, []), 39, "an empty replica list"),
            (assigned(0, [1, 1]), 39, "the broker 1 more than once"),
            (assigned(0, [1], count=1), 42, "numPartitions was not set to -1"),
            (assigned(0, [1], factor=1), 42, "factor was not set to -1"),
        ],
    )
    async def test_refusals(self, wire: Wire, topic: m.CreatableTopic, code: int, message: str) -> None:
        await wire.create("there")
        answer = await wire.call(m.CreateTopicsRequest([topic, m.CreatableTopic("other", 1, 1)]), 7)
        assert answer.topics[0].error_code == code
        assert message in str(answer.topics[0].error_message)
        assert answer.topics[1].error_code == 0

    async def test_defaults_and_assignments(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"num.partitions": "3"}))
        assignments = [m.CreatableReplicaAssignment(index, [1]) for index in (1, 0)]
        topics = [m.CreatableTopic("defaults", -1, -1), m.CreatableTopic("assigned", -1, -1, assignments)]
        answer = await wire.call(m.CreateTopicsRequest(topics), 7)
        assert [topic.num_partitions for topic in answer.topics] == [3, 2]

    async def test_only_validating_makes_nothing(self, wire: Wire) -> None:
        request = m.CreateTopicsRequest([m.CreatableTopic("t", 2, 1)], 1000, True)
        assert (await wire.call(request, 7)).topics[0].error_code == 0
        assert (await metadata(wire, "t", may_create=False))[0].error_code == errors.UnknownTopicOrPartition.code

    async def test_a_name_twice(self, wire: Wire) -> None:
        topics = [m.CreatableTopic("t", 1, 1), m.CreatableTopic("t", 1, 1), m.CreatableTopic("u", 1, 1)]
        answer = await wire.call(m.CreateTopicsRequest(topics), 7)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("u", 0), ("t", 42)]


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(1, 7))
    async def test_every_version(self, wire: Wire, version: int) -> None:
        await wire.create("t")
        names = ["t", "nope"]
        topics = [m.DeleteTopicState(name) for name in names] if version >= 6 else ()
        request = m.DeleteTopicsRequest(topics, () if version >= 6 else names)
        answer = await wire.call(request, version)
        assert [(topic.name, topic.error_code) for topic in answer.responses] == [("t", 0), ("nope", 3)]
        assert (await metadata(wire, "t", may_create=False))[0].error_code == errors.UnknownTopicOrPartition.code

    async def test_by_id_and_refusals(self, wire: Wire) -> None:
        topic_id = await wire.create("t")
        states = [
            m.DeleteTopicState(None, topic_id),
            m.DeleteTopicState(None, b"\x01" * 16),
            m.DeleteTopicState(None),
            m.DeleteTopicState("t", topic_id),
        ]
        answer = await wire.call(m.DeleteTopicsRequest(states), 6)
        codes = [topic.error_code for topic in answer.responses]
        assert codes == [0, errors.UnknownTopicId.code, errors.InvalidRequest.code, errors.InvalidRequest.code]

    async def test_a_name_twice(self, wire: Wire) -> None:
        await wire.create("t")
        answer = await wire.call(m.DeleteTopicsRequest(topic_names=["t", "t"]), 5)
        assert [(one.name, one.error_code, one.error_message) for one in answer.responses] == [
            ("t", 42, "Duplicate topic name.")
        ]

    async def test_when_the_broker_forbids_it(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"delete.topic.enable": "false"}))
        await wire.create("t")
        answer = await wire.call(m.DeleteTopicsRequest(topic_names=["t"]), 5)
        assert answer.responses[0].error_code == errors.TopicDeletionDisabled.code


class TestTooManyPartitions:
    """As Apache Kafka 4.3.1 answers, which refuses a request for more than its controller changes at a time."""

    ALL = "Excessively large number of partitions per request."
    BATCH = "Unable to perform excessively large batch operation."

    @pytest.mark.parametrize(
        ("counts", "message"),
        [
            ((10_001,), ALL),
            ((2_000_000,), ALL),
            ((6_000, 4_001), ALL),
            ((1, 10_000), ALL),
            ((10_000,), BATCH),
            ((-1, 9_999), BATCH),
            ((9_999,), None),
        ],
    )
    async def test_of_topics(self, wire: Wire, counts: tuple[int, ...], message: str | None) -> None:
        topics = [m.CreatableTopic(f"t{number}", count, 1) for number, count in enumerate(counts)]
        answer = await wire.call(m.CreateTopicsRequest(topics, 30_000, validate_only=True), 7)
        code = 0 if message is None else errors.PolicyViolation.code
        assert [(one.error_code, one.error_message) for one in answer.topics] == [(code, message)] * len(counts)

    async def test_of_topics_that_grow(self, wire: Wire) -> None:
        for name in ("t", "u"):
            await wire.create(name)
        topics = [m.CreatePartitionsTopic(name, count, None) for name, count in (("t", 6_000), ("u", 6_000))]
        request = m.CreatePartitionsRequest(topics, 30_000, validate_only=True)
        answer = await wire.call(request, 3)
        assert [(one.error_code, one.error_message) for one in answer.results] == [(0, None), (44, self.BATCH)]


class TestDescribeTopicPartitions:
    async def ask(
        self, wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None
    ) -> m.DescribeTopicPartitionsResponse:
        request = m.DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
        return await wire.call(request, 0)

    async def test_known_unknown_and_impossible_topics(self, wire: Wire) -> None:
        await wire.create("t", 2)
        answer = await self.ask(wire, "t", "nope", "a b", "t")
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("a b", 17), ("nope", 3), ("t", 0)]
        for part in answer.topics[2].partitions:
            assert part.leader_id == 1
            # A null here makes Apache's tools fail.
            assert part.eligible_leader_replicas == []
            assert part.last_known_elr == []
        assert answer.next_cursor is None

    async def test_a_page_of_the_broker(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"max.request.partition.size.limit": "2"}))
        await wire.create("t", 3)
        answer = await self.ask(wire, "t")
        assert (len(answer.topics[0].partitions), answer.next_cursor is None) == (2, False)

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
    async def test_pages(self, wire: Wire, limit: int) -> None:
        for name, count in (("a", 3), ("b", 1), ("c", 4)):
            await wire.create(name, count)
        seen: list[tuple[str | None, int]] = []
        cursor: Cursor | None = None
        for _ in range(20):
            answer = await self.ask(wire, limit=limit, cursor=cursor)
            page = [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]
            assert len(page) <= limit
            seen += page
            if answer.next_cursor is None:
                break
            cursor = Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
        assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]


class TestPartitionsAndRecords:
    async def grow(self, wire: Wire, count: int, assignments: list[list[int]] | None = None) -> tuple[int, str | None]:
        given = None if assignments is None else [m.CreatePartitionsAssignment(ids) for ids in assignments]
        request = m.CreatePartitionsRequest([m.CreatePartitionsTopic("t", count, given)], 1000)
        (result,) = (await wire.call(request, 3)).results
        return result.error_code, result.error_message

    async def test_more_partitions(self, wire: Wire) -> None:
        assert (await self.grow(wire, 1))[0] == errors.UnknownTopicOrPartition.code
        await wire.create("t", 2)
        assert await self.grow(wire, 2) == (37, "Topic already has 2 partition(s).")
        assert await self.grow(wire, 1) == (37, "The topic t currently has 2 partition(s); 1 would not be an increase.")
        assert (await self.grow(wire, 4, [[1]]))[0] == errors.InvalidReplicaAssignment.code
        assert (await self.grow(wire, 3, [[7]]))[0] == errors.InvalidReplicaAssignment.code
        assert await self.grow(wire, 3, [[1]]) == (0, None)
        assert await self.grow(wire, 5) == (0, None)
        assert len((await metadata(wire, "t"))[0].partitions) == 5

    async def test_records_are_deleted_from_the_front(self, wire: Wire) -> None:
        await wire.create("t")
        await wire.produce("t", write_batch([Record(None, b"v", timestamp=stamp) for stamp in range(10)]))

        async def delete(offset: int, topic: str = "t") -> tuple[int, int]:
            request = m.DeleteRecordsRequest([m.DeleteRecordsTopic(topic, [m.DeleteRecordsPartition(0, offset)])], 1000)
            (part,) = (await wire.call(request, 2)).topics[0].partitions
            return part.error_code, part.low_watermark

        assert await delete(3) == (0, 3)
        assert await delete(1) == (0, 3)
        assert await delete(11) == (errors.OffsetOutOfRange.code, -1)
        assert await delete(-2) == (errors.OffsetOutOfRange.code, -1)
        assert await delete(0, "nope") == (errors.UnknownTopicOrPartition.code, -1)
        assert (await wire.list_offset("t", -2)).offset == 3
        assert (await wire.list_offset("t", 0)).offset == 3
        assert (await wire.fetch("t", 2)).error_code == errors.OffsetOutOfRange.code
        assert await delete(-1) == (0, 10)

    async def test_a_compacted_topic_keeps_its_records(self, wire: Wire) -> None:
        await wire.create("t", cleanup_policy="compact")
        request = m.DeleteRecordsRequest([m.DeleteRecordsTopic("t", [m.DeleteRecordsPartition(0, 0)])], 1000)
        (part,) = (await wire.call(request, 2)).topics[0].partitions
        assert part.error_code == errors.PolicyViolation.code

    async def test_leader_epochs(self, wire: Wire) -> None:
        await wire.create("t")
        await wire.produce("t", write_batch([Record(None, b"v", timestamp=1)]))
        parts = [
            m.OffsetForLeaderPartition(0, -1, 0),
            m.OffsetForLeaderPartition(0, 5, 0),
            m.OffsetForLeaderPartition(9, -1, 0),
        ]
        for version in (2, 3, 4):
            request = m.OffsetForLeaderEpochRequest(-2 if version == 2 else -1, [m.OffsetForLeaderTopic("t", parts)])
            answer = await wire.call(request, version)
            found = [(one.error_code, one.leader_epoch, one.end_offset) for one in answer.topics[0].partitions]
            assert found == [(0, 0, 1), (errors.UnknownLeaderEpoch.code, -1, -1), (3, -1, -1)]

    async def test_nothing_is_ever_reassigned(self, wire: Wire) -> None:
        answer = await wire.call(m.ListPartitionReassignmentsRequest(), 0)
        assert (answer.error_code, list(answer.topics)) == (0, [])


class TestSettings:
    async def test_where_a_topics_settings_come_from(self, start: Start, connect: Connect) -> None:
        wire = await connect(await start(properties={"log.cleanup.policy": "compact"}))
        await wire.create("t", retention_ms="5")
        result = await wire.describe(TOPIC, "t", "retention.ms", "cleanup.policy", "segment.bytes")
        found = {
            config.name: (
                config.value,
                config.config_source,
                [(one.name, one.value, one.source) for one in config.synonyms],
            )
            for config in result.configs
        }
        assert found == {
            "retention.ms": ("5", 1, [("retention.ms", "5", 1)]),
            "cleanup.policy": (
                "compact",
                4,
                [("log.cleanup.policy", "compact", 4), ("log.cleanup.policy", "delete", 5)],
            ),
            "segment.bytes": ("1073741824", 5, [("log.segment.bytes", "1073741824", 5)]),
        }

    async def test_the_brokers_settings(self, wire: Wire) -> None:
        result = await wire.describe(BROKER, "1", "group.max.size", "num.partitions")
        found = [(config.name, config.read_only) for config in result.configs]
        assert found == [("num.partitions", True), ("group.max.size", True)]
        assert len((await wire.describe(BROKER, "1")).configs) > 100

    async def test_a_groups_settings(self, wire: Wire) -> None:
        result = await wire.describe(GROUP, "g", "consumer.session.timeout.ms")
        assert [(config.value, config.config_source) for config in result.configs] == [("45000", 5)]

    @pytest.mark.parametrize(
        ("kind", "name", "code"),
        [(TOPIC, "nope", 3), (TOPIC, "a b", 17), (BROKER, "7", 42), (BROKER, "x", 42), (77, "x", 42)],
    )
    async def test_refusals(self, wire: Wire, kind: int, name: str, code: int) -> None:
        assert (await wire.describe(kind, name)).error_code == code

    async def test_changing_a_topic(self, wire: Wire) -> None:
        await wire.create("t")
        assert await wire.alter(TOPIC, "t", "retention.ms", "7") == (0, None)
        assert await wire.alter(TOPIC, "t", "cleanup.policy", "compact", APPEND) == (0, None)
        found = values(await wire.describe(TOPIC, "t", "retention.ms", "cleanup.policy"))
        assert found == {"retention.ms": "7", "cleanup.policy": "delete,compact"}
        assert await wire.alter(TOPIC, "t", "cleanup.policy", "delete", SUBTRACT) == (0, None)
        assert await wire.alter(TOPIC, "t", "retention.ms", None, DELETE) == (0, None)
        found = values(await wire.describe(TOPIC, "t", "retention.ms", "cleanup.policy"))
        assert found == {"retention.ms": "604800000", "cleanup.policy": "compact"}

    @pytest.mark.parametrize("version", range(3))
    async def test_replacing_all_settings_of_a_topic(self, wire: Wire, version: int) -> None:
        await wire.create("t", retention_ms="5", segment_ms="6")

        async def replace(name: str, value: str | None, kind: int = TOPIC, topic: str = "t") -> int:
            resource = PlainResource(kind, topic, [PlainConfig(name, value)])
            answer = await wire.call(m.AlterConfigsRequest([resource]), version)
            return answer.responses[0].error_code

        assert await replace("retention.ms", "7") == 0
        assert values(await wire.describe(TOPIC, "t", "retention.ms", "segment.ms")) == {
            "retention.ms": "7",
            "segment.ms": "604800000",
        }
        assert await replace("nonsense", "7") == errors.InvalidConfig.code
        assert await replace("retention.ms", None) == errors.InvalidRequest.code
        assert await replace("retention.ms", "7", kind=77) == errors.InvalidRequest.code
        assert await replace("retention.ms", "7", topic="nope") == errors.UnknownTopicOrPartition.code

    @pytest.mark.parametrize(
        ("setting", "value", "operation", "code"),
        [
            ("nonsense", "1", SET, 40),
            ("retention.ms", "x", SET, 40),
            ("retention.ms", "1", APPEND, 40),
            ("retention.ms", "1", 9, -1),
            ("retention.ms", None, SET, 42),
        ],
    )
    async def test_bad_changes(self, wire: Wire, setting: str, value: str | None, operation: int, code: int) -> None:
        await wire.create("t")
        for topic, expected in (("t", code), ("nope", errors.UnknownTopicOrPartition.code)):
            assert (await wire.alter(TOPIC, topic, setting, value, operation))[0] == expected


class TestLogs:
    @pytest.mark.parametrize("version", range(1, 6))
    async def test_sizes(self, wire: Wire, broker: Broker, version: int) -> None:
        await wire.create("t", 2)
        records = write_batch([Record(None, b"v", timestamp=1)])
        await wire.produce("t", records, partition=1)
        for wanted in (None, [m.DescribableLogDirTopic("t", [0, 1, 7]), m.DescribableLogDirTopic("nope", [0])]):
            answer = await wire.call(m.DescribeLogDirsRequest(wanted), version)
            (directory,) = answer.results
            assert directory.log_dir == broker.storage_path
            assert [(topic.name, [part.partition_size for part in topic.partitions]) for topic in directory.topics] == [
                ("t", [0, len(records)])
            ]
            if version >= 4:
                assert 0 < directory.usable_bytes <= directory.total_bytes

    async def test_a_replica_moves_to_the_directory_that_it_is_in(
        self, start: Start, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        wire = await connect(await start(directory="relative"))
        await wire.create("t")
        told = (await wire.call(m.DescribeLogDirsRequest(None), 4)).results[0].log_dir
        for path, code in ((told, errors.NONE), ("relative", errors.LogDirNotFound.code)):
            wanted = m.AlterReplicaLogDir(path, [m.AlterReplicaLogDirTopic("t", [0])])
            (topic,) = (await wire.call(m.AlterReplicaLogDirsRequest([wanted]), 2)).results
            assert [one.error_code for one in topic.partitions] == [code]

    async def test_producers(self, wire: Wire) -> None:
        await wire.create("t")
        stamp = 1_600_000_000_000
        records = [Record(None, b"v", timestamp=stamp)] * 3
        await wire.produce("t", write_batch(records, producer_id=9, producer_epoch=2, base_sequence=4))
        request = m.DescribeProducersRequest([ProducersTopic("t", [0, 1])])
        answer = await wire.call(request, 0)
        known, unknown = answer.topics[0].partitions
        (producer,) = known.active_producers
        assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (9, 2, 6)
        assert producer.current_txn_start_offset == -1
        assert unknown.error_code == errors.UnknownTopicOrPartition.code


class TestDescribeCluster:
    @pytest.mark.parametrize("version", range(3))
    async def test_every_version(self, wire: Wire, broker: Broker, version: int) -> None:
        answer = await wire.call(m.DescribeClusterRequest(True), version)
        assert answer.cluster_id == broker.cluster_id
        assert [f"{node.host}:{node.port}" for node in answer.brokers] == [broker.bootstrap_servers]
        assert (answer.controller_id, answer.cluster_authorized_operations) == (1, 8096)

    @pytest.mark.parametrize(
        ("kind", "code"), [(2, errors.MismatchedEndpointType.code), (9, errors.UnsupportedEndpointType.code)]
    )
    async def test_other_endpoints(self, wire: Wire, kind: int, code: int) -> None:
        answer = await wire.call(m.DescribeClusterRequest(False, kind), 1)
        assert answer.error_code == code


async def test_a_topic_that_no_group_knows_goes_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """Its deletion leaves the coordinators nothing to write."""
    known, unknown = TopicPartition("known", 0), TopicPartition("unknown", 0)
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        (await admin.create_topics([NewTopic(name, 1, 1) for name, _ in (known, unknown)])).all()
        (await admin.alter_consumer_group_offsets("g", {known: OffsetAndMetadata(0)})).all()
        (await admin.delete_topics(["unknown"])).all()
        (await admin.alter_consumer_group_offsets("g", {known: OffsetAndMetadata(0, None, "again")})).all()
        assert (await admin.list_consumer_group_offsets({"g": None})).result("g").all()[known] == (0, None, "again")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
