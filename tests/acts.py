"""What tests do at a cluster before they look at it: topics, records, commits, members. Clusters are known by their
addresses, so that any broker will do; each function returns when its work is done.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from confluent_kafka.admin import OffsetSpec as End
from tests.patience import until

from groupkeeper import Admin, SyncAdmin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition

T = TypeVar("T")
PATIENCE_S = 60


def make_topic(servers: str, name: str, partitions: int = 1, /, **config: str) -> None:
    """Its records stay, of whatever times they are, unless `config` says otherwise."""
    topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1", **config})
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([topic])[name].result(PATIENCE_S)


def new_topic(servers: str, partitions: int = 3) -> str:
    """A topic with a name that no other has."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    make_topic(servers, name, partitions)
    return name


def produce(
    servers: str,
    topic: str,
    values: Iterable[str | bytes],
    partitions: Sequence[int] = (0,),
    *,
    times_ms: Iterable[int] = (),
    keys: Iterable[bytes] = (),
    client: Mapping[str, str | int] = {},
) -> None:
    """Records of these values, in the partitions by turns. Without `times_ms`, they are of now, without `keys` they
    have none; `client` has settings of librdkafka.
    """
    producer = Producer({"bootstrap.servers": servers, **client})
    times, given = iter(times_ms), iter(keys)
    for value, partition in zip(values, cycle(partitions), strict=False):
        producer.produce(topic, value, next(given, None), partition, timestamp=next(times, 0))
    assert producer.flush(PATIENCE_S) == 0


def begin_transaction(
    servers: str, transactional_id: str, topic: str, values: Sequence[bytes], /, partition: int = 0, **client: str | int
) -> Producer:
    """A producer with an open transaction, in which it has written these records."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, **client})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def begin_with_the_first_record(servers: str, group_id: str) -> None:
    """A share group begins with the next one otherwise."""
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[earliest])
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def cut(servers: str, topic: str, offset: int, partition: int = 0) -> None:
    """Removes the records before an offset."""
    admin = AdminClient({"bootstrap.servers": servers})
    (done,) = admin.delete_records([Place(topic, partition, offset)]).values()
    done.result(PATIENCE_S)


def end_of(servers: str, topic: str, partition: int = 0) -> int:
    place, admin = Place(topic, partition), AdminClient({"bootstrap.servers": servers})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return int(admin.list_offsets({place: End.latest()})[place].result(PATIENCE_S).offset)
        except KafkaException as error:  # the metadata of a new topic may be ahead of the broker
            if error.args[0].code() != KafkaError.UNKNOWN_LEADER_EPOCH or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def ask(servers: str, question: Callable[[Admin], Awaitable[T]]) -> T:
    async def answer() -> T:
        async with Admin(servers) as admin:
            return await question(admin)

    return asyncio.run(answer())


def commit(servers: str, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Offsets of a group that has no members."""
    with SyncAdmin(servers) as admin:
        wanted = {TopicPartition(*place): OffsetAndMetadata(offset) for place, offset in offsets.items()}
        admin.alter_consumer_group_offsets(group_id, wanted).all()


def committed(servers: str, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    with SyncAdmin(servers) as admin:
        found = admin.list_consumer_group_offsets({group_id: None}).result(group_id).all()
    return {tp: commit for tp, commit in found.items() if commit is not None}


def committed_offsets(servers: str, group_id: str) -> dict[TopicPartition, int]:
    return {tp: one.offset for tp, one in committed(servers, group_id).items()}


@contextmanager
def transactions(servers: str, group_id: str) -> Iterator[Callable[[Mapping[tuple[str, int], int]], Producer]]:
    """Begins transactions in which the group commits offsets; the producer has the group's id, too."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": group_id})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group_id})
    producer.init_transactions(PATIENCE_S)

    def begin(offsets: Mapping[tuple[str, int], int]) -> Producer:
        producer.begin_transaction()
        places = [Place(*place, offset) for place, offset in offsets.items()]
        producer.send_offsets_to_transaction(places, reader.consumer_group_metadata(), PATIENCE_S)
        return producer

    yield begin
    reader.close()


def member(
    servers: str, group_id: str, *topics: str, partitions: int = 1, client: Mapping[str, str | int] = {}
) -> Consumer:
    """A consumer that has been assigned so many partitions. It reads from the beginning, and commits only when told."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": group_id, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, **client,
        }
    )  # fmt: skip
    consumer.subscribe([*topics])

    def has_all() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) >= partitions

    until(has_all, f"partitions of a member of {group_id}")
    return consumer
