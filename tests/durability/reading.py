"""What readers find in the topics."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition
from tests.durability.workers import PARTITIONS, QUICK, Place

PATIENCE_S = 60.0


def _reader(servers: str, group: str = "reader", isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            **QUICK,
        }
    )


def read(servers: str, topic: str, first: Mapping[int, int] | None = None) -> dict[Place, bytes]:
    """All committed records from the given offsets by partition (default: 0) to the last stable offsets, by place."""
    consumer = _reader(servers)
    ends = {}
    for partition in range(PARTITIONS):
        _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE_S)
    starts = {partition: (first or {}).get(partition, 0) for partition in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
    there: dict[Place, bytes] = {}
    deadline = time.monotonic() + PATIENCE_S

    def is_done() -> bool:
        positions = {one.partition: one.offset for one in consumer.position(consumer.assignment())}
        return all(starts[p] >= end or positions[p] >= end for p, end in ends.items())

    while not is_done():
        assert time.monotonic() < deadline, f"{topic} cannot be read up to {ends}"
        for message in consumer.consume(5000, 0.1):
            assert message.error() is None, message.error()
            there[message.partition() or 0, message.offset() or 0] = message.value() or b""
    consumer.close()
    return there


def committed(servers: str, group: str, topic: str) -> list[int]:
    """The committed offsets by partition, −1001 where there is none; waits while transactions have them pending."""
    consumer = _reader(servers, group)
    found = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], timeout=PATIENCE_S)
    consumer.close()
    return [int(one.offset) for one in found]


def check_acknowledged(servers: str, topic: str, acknowledged: Mapping[Place, bytes]) -> dict[Place, bytes]:
    """Every acknowledged record is at its place; returns what was read, from the lowest of these places on."""
    if not acknowledged:
        return {}
    first: dict[int, int] = {}
    for partition, offset in acknowledged:
        first[partition] = min(offset, first.get(partition, offset))
    # A partition without new acknowledgements needs no reading.
    there = read(servers, topic, {p: first.get(p, 2**62) for p in range(PARTITIONS)})
    lost = {place: value for place, value in acknowledged.items() if there.get(place) != value}
    assert not lost, f"{len(lost)} acknowledged records are not where they were: {sorted(lost.items())[:5]}"
    return there
