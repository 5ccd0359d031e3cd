"""Real producers and consumers, of confluent-kafka and kafka-python, for the tour's groups to come from."""

import json
import random
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer

from groupkeeper.demo.stage import TourFailed

PATIENCE_S = 20.0
HOUR_MS = 3_600_000
_PAST_MS = 3 * HOUR_MS
PARTITIONS_BY_TOPIC = {"orders": 3, "payments": 2}
RECORDS_BY_TOPIC = {"orders": 6000, "payments": 4000}


class Sent(NamedTuple):
    """A record as it was produced; the broker keeps its timestamp."""

    topic: str
    key: str
    value: str
    timestamp_ms: int


class DemoReading(NamedTuple):
    """The records that one run of a consumer read. oldest_ms is None if it read nothing."""

    records_by_topic: dict[str, int]
    oldest_ms: int | None

    @property
    def total(self) -> int:
        return sum(self.records_by_topic.values())


def past_hours(now_ms: int) -> list[Sent]:
    """Orders and payments spread over the last three hours, in the order of their time."""
    chance = random.Random(20)
    records = []
    for topic, count in RECORDS_BY_TOPIC.items():
        for number in range(count):
            at_ms = now_ms - _PAST_MS + (number + 1) * _PAST_MS // count
            customer = f"customer-{chance.randrange(500)}"
            fields = {"number": number, "customer": customer, "amount": round(chance.uniform(1, 300), 2)}
            records.append(Sent(topic, customer, json.dumps(fields), min(at_ms, now_ms)))
    return sorted(records, key=lambda sent: sent.timestamp_ms)


def client_settings(bootstrap: str) -> dict[str, str | int | float | bool]:
    """The settings of every confluent-kafka client here: the address, and logging of errors only."""
    return {"bootstrap.servers": bootstrap, "log_level": 3}


def create_topics(bootstrap: str) -> None:
    admin = AdminClient(client_settings(bootstrap))
    created = admin.create_topics([NewTopic(name, count) for name, count in PARTITIONS_BY_TOPIC.items()])
    for name, answer in created.items():
        try:
            answer.result(PATIENCE_S)
        except (KafkaException, TimeoutError) as error:
            raise TourFailed(f"the topic {name} could not be created: {str(error) or 'no answer'}") from error


def produce(bootstrap: str, records: Iterable[Sent]) -> None:
    """Sends with confluent-kafka's idempotent producer and waits for every acknowledgement."""
    lost: list[str] = []
    producer = Producer(
        {**client_settings(bootstrap), "enable.idempotence": True, "compression.type": "gzip", "linger.ms": 20}
    )
    for sent in records:
        producer.produce(
            sent.topic,
            sent.value,
            sent.key,
            timestamp=sent.timestamp_ms,
            on_delivery=lambda error, _: lost.append(str(error)) if error is not None else None,
        )
        producer.poll(0)
    unsent = producer.flush(PATIENCE_S)
    if lost or unsent:
        raise TourFailed(f"{unsent + len(lost)} records were not acknowledged {lost[:1]}")


def read_in_group(bootstrap: str, group_id: str, wanted: int) -> DemoReading:
    """Reads `wanted` records of both topics as the only member of the group, commits and leaves (confluent-kafka)."""
    consumer = Consumer(
        {
            **client_settings(bootstrap),
            "group.id": group_id,
            "client.id": group_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(list(PARTITIONS_BY_TOPIC))
    counts: dict[str, int] = {}
    oldest_ms: int | None = None
    deadline = time.monotonic() + PATIENCE_S
    try:
        while (missing := wanted - sum(counts.values())) > 0:
            if time.monotonic() > deadline:
                raise TourFailed(f"{group_id} read {sum(counts.values())} of {wanted} records in {PATIENCE_S:.0f} s")
            for message in consumer.consume(min(missing, 500), timeout=0.5):
                if message.error() is not None:
                    continue  # the client retries by itself; the deadline above ends what it cannot mend
                topic, (_, at_ms) = message.topic() or "", message.timestamp()
                counts[topic] = counts.get(topic, 0) + 1
                oldest_ms = at_ms if oldest_ms is None else min(oldest_ms, at_ms)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return DemoReading(counts, oldest_ms)


class LiveMember(threading.Thread):
    """A member of a group, which leaves it when `stopping` is set."""

    def __init__(self, client_id: str) -> None:
        super().__init__(name=client_id, daemon=True)
        self.stopping = threading.Event()


class DemoMember(LiveMember):
    """A member of a group that reads and commits until it is stopped (kafka-python)."""

    def __init__(self, bootstrap: str, group_id: str, client_id: str) -> None:
        super().__init__(client_id)
        self.bootstrap = bootstrap
        self.group_id = group_id
        self.client_id = client_id
        self.read = 0
        self.partitions = 0

    def run(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group_id,
            client_id=self.client_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            # kafka-python 3.0.12 may join before it knows the topics, share out nothing, and not notice later.
            consumer.topics()
            consumer.subscribe(list(PARTITIONS_BY_TOPIC))
            while not self.stopping.is_set():
                # Long polls: when one ends just before SyncGroup is answered, kafka-python 3.0.12 drops the answer.
                received = sum(len(records) for records in consumer.poll(timeout_ms=1000).values())
                self.partitions = len(consumer.assignment())
                if received:
                    consumer.commit()
                    self.read += received
        finally:
            consumer.close()


@contextmanager
def running(members: Sequence[LiveMember]) -> Iterator[None]:
    """Members of a group that leave at the end."""
    try:
        for member in members:
            member.start()
        yield
    finally:
        for member in members:
            member.stopping.set()
        for member in members:
            member.join(timeout=5)


def wait_until_all_is_read(members: list[DemoMember], wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while sum(member.read for member in members) < wanted or not all(member.partitions for member in members):
        if time.monotonic() > deadline:
            raise TourFailed(
                f"{[(member.name, member.read, member.partitions) for member in members]} of {wanted} records"
            )
        members[0].stopping.wait(0.05)


@contextmanager
def live_members(bootstrap: str, group_id: str, count: int, wanted: int) -> Iterator[list[DemoMember]]:
    """Members that share the partitions of both topics and have read `wanted` records; they leave at the end."""
    members = [DemoMember(bootstrap, group_id, f"{group_id}-{number}") for number in range(1, count + 1)]
    with running(members):
        wait_until_all_is_read(members, wanted)
        yield members
