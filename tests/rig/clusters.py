"""The clusters of a run: the embedded broker, or an Apache Kafka of any version, each in a process of its own."""

from collections.abc import Iterable

from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conformance.brokers import RunningBroker, new_broker
from tests.rig.actors.performing import CLIENT, PATIENCE_S, ends_of
from tests.rig.facts import Made, now
from tests.rig.story import Story, Topic
from tools.apache_kafka import ApacheKafka

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "8",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",  # records with old timestamps stay
    "message.max.bytes": "2000000",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "group.share.delivery.count.limit": "10",  # what a busy machine lets expire is delivered again, not archived
    "group.share.record.lock.duration.ms": "60000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.streams.session.timeout.ms": "600000",  # the only member beats for itself, and a busy machine delays that
    "group.streams.max.session.timeout.ms": "600000",
}

_REBALANCING = (
    ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.COMPLETING_REBALANCING, ConsumerGroupState.UNKNOWN
)  # fmt: skip
"""confluent-kafka calls the newer protocol's states unknown."""


OURS = {"embedded": "groupkeeper", "compiled": "compiled", "pypy": "pypy"}
"""The kind of broker of those kinds of clusters that are the embedded broker."""


def kind_of(cluster: str) -> str:
    """`apache-4.3.1#2` is another one of `apache-4.3.1`."""
    return cluster.partition("#")[0]


def release_of(cluster: str) -> tuple[int, ...]:
    """The embedded broker is as Apache Kafka 4.4."""
    kind = kind_of(cluster)
    return (4, 4, 0) if kind in OURS else tuple(int(word) for word in kind.partition("-")[2].split("."))


def new_cluster(cluster: str) -> RunningBroker:
    """Not started yet."""
    kind = kind_of(cluster)
    if kind in OURS:
        # Offsets topics keep their history, as Apache's do by their large segments.
        settings = {**SETTINGS, "groupkeeper.internal.topics.roll.bytes": "104857600"}
        return new_broker(OURS[kind], settings)
    # A busy machine delays heartbeats; a broker that is fenced for it would lead no partition.
    return ApacheKafka(SETTINGS | {"broker.session.timeout.ms": "60000"}, version=kind.partition("-")[2])


def make_topics(story: Story, servers: dict[str, str]) -> Iterable[Made]:
    """Creates the story's topics, and waits until their partitions answer."""
    for cluster in story.clusters:
        topics = [topic for topic in story.topics if topic.cluster == cluster]
        began = now()
        _create(topics, servers[cluster])
        ended = now()
        for topic in topics:
            yield Made(cluster, topic.name, topic.partitions, topic.settings, began, ended)


def _create(topics: list[Topic], servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
    wanted = [NewTopic(one.name, one.partitions, 1, config={"retention.ms": "-1", **one.settings}) for one in topics]
    for made in admin.create_topics(wanted).values():
        made.result(PATIENCE_S)
    onlooker = Consumer({"bootstrap.servers": servers, "group.id": "rig onlooker", **CLIENT})
    for topic in topics:
        for partition in range(topic.partitions):
            ends_of(onlooker, topic.name, partition)
    onlooker.close()


def is_rebalancing(servers: str) -> bool:
    """Whether members of a group wait for partitions, or are to give some back."""
    admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
    return any(one.state in _REBALANCING for one in admin.list_consumer_groups().result(PATIENCE_S).valid)
