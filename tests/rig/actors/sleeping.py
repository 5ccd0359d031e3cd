"""Groups that committed days ago and have been idle since.

No request tells the time of a commit (OffsetCommit had one in version 1, which Kafka 4 took out), so the records are
written into the offsets topic, as Kafka writes them; the broker takes them in when it starts again.
"""

import struct
import time
from collections.abc import Iterable
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition
from tests.rig.actors.performing import CLIENT, PATIENCE_S, partitions_of, patiently
from tests.rig.facts import DONE, Committed, now
from tests.rig.story import Sleeper

OFFSETS_TOPIC = "__consumer_offsets"
DAY_MS = 86_400_000
DAYS_AGO = (5.0, 3.5, 1.25)
"""Of the commits of each partition; after 7 days brokers forget."""


def put_to_sleep(sleeper: Sleeper, servers: str) -> Iterable[Committed]:
    """Writes the commits; the broker knows of them when it has started again."""
    partitions = _count_partitions(sleeper, servers)
    place = log_partition_of(sleeper.group, partitions)
    # Of all clients only that one may write internal topics.
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, **CLIENT, "client.id": "__admin_client"})
    for number, days in enumerate(DAYS_AGO):
        stated_ms = time.time_ns() // 1_000_000 - int(days * DAY_MS)
        began = now()
        for topic in sleeper.topics:
            metadata = f"{days} days ago"
            value = struct.pack(">hqi", 3, 2 * number, -1) + _text(metadata) + struct.pack(">q", stated_ms)
            key = struct.pack(">h", 1) + _text(sleeper.group) + _text(topic) + struct.pack(">i", 0)
            producer.produce(OFFSETS_TOPIC, value, key, partition=place, timestamp=stated_ms, on_delivery=_check)
        assert producer.flush(PATIENCE_S) == 0, "commits could not be written into the offsets topic"
        ended = now()
        for topic in sleeper.topics:
            yield Committed(sleeper.cluster, sleeper.group, topic, 0, 2 * number, -1, metadata, DONE, sleeper.name,
                            began, ended, stated_ms)  # fmt: skip


def _count_partitions(sleeper: Sleeper, servers: str) -> int:
    """Of the offsets topic, which brokers make when they are asked for a group's offsets first."""
    client = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": sleeper.group, **CLIENT})
    try:
        patiently(lambda: client.committed([TopicPartition(sleeper.topics[0], 0)], PATIENCE_S))
        return len(partitions_of(client, OFFSETS_TOPIC))
    finally:
        client.close()


def _check(error: Any, message: Any) -> None:
    assert error is None, error


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def log_partition_of(group: str, partitions: int) -> int:
    """Where the offsets topic has a group."""
    return abs(hash_of(group)) % partitions


def hash_of(text: str) -> int:
    """Java's."""
    number = 0
    for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le")):
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number
