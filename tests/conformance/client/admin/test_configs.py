"""Configs of topics, groups and brokers; partitions; records: what changes is what other clients then see."""

import confluent_kafka
import pytest
from tests.conformance.client.admin.conftest import Target
from tests.conformance.client.admin.waiting import until
from tests.conformance.clients import CLIENTS, Sent

from groupkeeper import (
    Admin,
    Batch,
    Config,
    ConfigResource,
    ConfigSource,
    ListChange,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicPartition,
)
from groupkeeper.errors import (
    IllegalArgument,
    InvalidConfig,
    InvalidPartitions,
    InvalidRequest,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)


def value(found: Batch[ConfigResource, dict[str, Config]], resource: ConfigResource, name: str) -> str | None:
    return found.done[resource][name].value


async def count(own: Admin, topic: str) -> int:
    return len((await own.describe_topics([topic])).all()[topic].partitions)


async def test_configs_of_a_topic(own: Admin, tp: TopicPartition) -> None:
    topic, missing = ConfigResource.topic(tp.topic), ConfigResource.topic(f"{tp.topic}-missing")
    altered = await own.alter_configs({topic: {"retention.ms": "3600000"}, missing: {"retention.ms": "1"}})
    assert list(altered.done) == [topic]
    assert isinstance(altered.failed[missing], UnknownTopicOrPartition)

    described = await until(
        lambda: own.describe_configs([topic, missing], include_synonyms=True),
        lambda found: value(found, topic, "retention.ms") == "3600000",
    )
    assert isinstance(described.failed[missing], UnknownTopicOrPartition)
    configs = described.done[topic]
    retention, policy = configs["retention.ms"], configs["cleanup.policy"]
    assert (retention.value, retention.source, retention.type) == ("3600000", ConfigSource.DYNAMIC_TOPIC_CONFIG, "LONG")
    assert not retention.is_default
    assert policy.is_default
    assert retention.synonyms[0].value == "3600000"

    await own.alter_configs({topic: {"cleanup.policy": ListChange.append("compact")}})
    await own.alter_configs({topic: {"retention.ms": None}})
    changed = await until(
        lambda: own.describe_configs([topic], names=["retention.ms", "cleanup.policy", "nothere"]),
        lambda found: (
            value(found, topic, "cleanup.policy") == "delete,compact"
            and value(found, topic, "retention.ms") != "3600000"
        ),
    )
    assert changed.done[topic]["retention.ms"].source != ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert "nothere" not in changed.done[topic]
    await own.alter_configs({topic: {"cleanup.policy": ListChange.subtract("delete")}})
    await until(
        lambda: own.topic_settings([tp.topic], ["cleanup.policy"]),
        lambda found: found.all() == {tp.topic: {"cleanup.policy": "compact"}},
    )


async def test_a_change_that_is_refused_or_only_tried_changes_nothing(own: Admin, tp: TopicPartition) -> None:
    topic = ConfigResource.topic(tp.topic)
    refused = await own.alter_configs({topic: {"retention.ms": "soon", "cleanup.policy": "compact"}})
    assert isinstance(refused.failed[topic], InvalidConfig)
    assert (await own.alter_configs({topic: {"cleanup.policy": "compact"}}, validate_only=True)).failed == {}
    (configs,) = (await own.describe_configs([topic])).all().values()
    assert configs["cleanup.policy"].value == "delete"


async def test_configs_of_brokers(own: Admin) -> None:
    (node,) = (await own.describe_cluster()).nodes
    broker, nobody, everyone = ConfigResource.broker(node.id), ConfigResource.broker(99), ConfigResource.broker()
    await own.alter_configs({everyone: {"log.cleaner.backoff.ms": "14000"}})
    described = await until(
        lambda: own.describe_configs([broker, nobody, everyone], include_documentation=True),
        lambda found: value(found, broker, "log.cleaner.backoff.ms") == "14000",
    )
    assert isinstance(described.failed[nobody], IllegalArgument)
    assert str(described.failed[nobody]) == f"the cluster has no broker 99; its brokers are {node.id}"
    assert described.done[broker]["log.cleaner.backoff.ms"].documentation
    assert described.done[everyone]["log.cleaner.backoff.ms"].source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert described.done[broker]["broker.id"].is_read_only
    await own.alter_configs({everyone: {"log.cleaner.backoff.ms": None}})


async def test_configs_of_groups(own: Admin, name: str) -> None:
    group = ConfigResource.group(name)
    altered = await own.alter_configs({group: {"consumer.session.timeout.ms": "50000"}})
    if isinstance(altered.failed.get(group), InvalidRequest):
        return  # before 4.0
    configs = await until(
        lambda: own.describe_configs([group]),
        lambda found: value(found, group, "consumer.session.timeout.ms") == "50000",
    )
    assert configs.done[group]["consumer.session.timeout.ms"].source == ConfigSource.DYNAMIC_GROUP_CONFIG


async def test_more_partitions(own: Admin, target: Target, tp: TopicPartition) -> None:
    missing = f"{tp.topic}-missing"
    assert (await own.create_partitions({tp.topic: 3}, validate_only=True)).failed == {}
    made = await own.create_partitions({tp.topic: 3, missing: 5})
    assert isinstance(made.failed[missing], UnknownTopicOrPartition)
    await until(lambda: count(own, tp.topic), lambda found: found == 3)
    seen = confluent_kafka.Consumer({"bootstrap.servers": target.bootstrap_servers, "group.id": "x"})
    assert sorted(seen.list_topics(tp.topic, timeout=10).topics[tp.topic].partitions) == [0, 1, 2]
    seen.close()
    again = await own.create_partitions({tp.topic: 3})
    assert isinstance(again.failed[tp.topic], InvalidPartitions)
    (node,) = (await own.describe_cluster()).nodes
    await own.create_partitions({tp.topic: NewPartitions(4, ((node.id,),))})
    await until(lambda: count(own, tp.topic), lambda found: found == 4)


async def test_deleting_records(own: Admin, target: Target, tp: TopicPartition) -> None:
    CLIENTS["confluent"].produce(target.bootstrap_servers, tp.topic, [Sent(b"%d" % number) for number in range(5)])
    gone = TopicPartition(tp.topic, 9)
    deleted = await own.delete_records({tp: 2, gone: 1})
    assert deleted.done == {tp: 2}
    assert isinstance(deleted.failed[gone], UnknownTopicOrPartition)
    assert (await own.list_offsets({tp: OffsetSpec.earliest()})).all()[tp].offset == 2
    beyond = await own.delete_records({tp: 6})
    assert isinstance(beyond.failed[tp], OffsetOutOfRange)
    assert (await own.delete_records({tp: None})).done == {tp: 5}
    with pytest.raises(IllegalArgument, match="must not be negative: -1; None deletes all records"):
        await own.delete_records({tp: -1})


async def test_records_of_a_compacted_topic_are_kept(own: Admin, name: str) -> None:
    (await own.create_topics([NewTopic(name, 1, 1, configs={"cleanup.policy": "compact"})])).all()
    tp = TopicPartition(name, 0)
    assert isinstance((await own.delete_records({tp: None})).failed[tp], PolicyViolation)


async def test_topics_that_may_be_there(own: Admin, tp: TopicPartition) -> None:
    new = NewTopic(f"{tp.topic}-new", 2, 1)
    assert isinstance((await own.create_topics([NewTopic(tp.topic, 7, 1)])).failed[tp.topic], TopicAlreadyExists)
    made = (await own.create_topics([NewTopic(tp.topic, 7, 1), new], if_missing=True)).all()
    assert {name: topic.is_new for name, topic in made.items()} == {tp.topic: False, new.name: True}
    assert await count(own, tp.topic) == 1
    names = [tp.topic, new.name, f"{tp.topic}-missing"]
    assert list((await own.delete_topics(names, if_there=True)).all()) == names
