"""Share groups: what reading a topic costs the broker, by a share consumer beside a plain one, with confluent-kafka.

RECORDS of 1 KB in two partitions, in batches as librdkafka makes them; PORTIONS are what a share consumer asks for at a
time. The plain consumer is a member of a group too, and commits at its end.
"""

import os
import time
from collections.abc import Callable
from uuid import uuid4

from bench.broker import running_broker, used_cpu_s

RECORDS = int(os.environ.get("RECORDS", "200000"))
PORTIONS = (500, 2000)
RECORD_SIZE = 1024
PATIENCE_S = 120


def main() -> None:
    try:
        from confluent_kafka import ShareConsumer  # noqa: F401
    except ImportError:
        print("share groups: skipped, confluent-kafka with a ShareConsumer is not installed")
        return
    with running_broker() as (address, pid):
        topic = _fill(address)
        plain = _measure("plain consumer", pid, lambda: _read_plain(address, topic))
        for portion in PORTIONS:
            for mode in ("implicit", "explicit"):
                name = f"share, {portion} {mode}"
                spent = _measure(name, pid, lambda m=mode, p=portion: _read_shared(address, topic, m, p))  # type: ignore[misc]
                print(f"{'':28}{plain / spent:.2f} of the plain consumer's throughput per CPU second of the broker")


def _fill(address: str) -> str:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = f"shared-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 2)])[topic].result(10)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.kbytes": 1 << 20})
    for number in range(RECORDS):
        producer.produce(topic, os.urandom(RECORD_SIZE), partition=number % 2)
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("records were not acknowledged")
    return topic


def _measure(name: str, pid: int, read: Callable[[], float]) -> float:
    """CPU seconds of the broker."""
    cpu = used_cpu_s(pid)
    elapsed = read()
    cpu = used_cpu_s(pid) - cpu
    print(
        f"{name:28}{RECORDS / elapsed:8.0f} records/s, {cpu:5.2f} s of the broker's CPU, "
        f"{cpu / RECORDS * 1e6:5.1f} µs each"
    )
    return cpu


def _read_plain(address: str, topic: str) -> float:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    seen, began = 0, 0.0
    give_up = time.monotonic() + PATIENCE_S
    while seen < RECORDS:
        got = len(consumer.consume(10_000, 0.5))
        began = began or (time.perf_counter() if got else 0.0)
        seen += got
        if time.monotonic() > give_up:
            raise SystemExit(f"the plain consumer got {seen} records")
    consumer.commit(asynchronous=False)
    elapsed = time.perf_counter() - began
    consumer.close()
    return elapsed


def _read_shared(address: str, topic: str, mode: str, portion: int) -> float:
    from confluent_kafka import AcknowledgeType, ShareConsumer
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    group_id = uuid4().hex
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[earliest])
    admin = AdminClient({"bootstrap.servers": address})
    admin.incremental_alter_configs([resource])[resource].result(10)
    consumer = ShareConsumer(
        {
            "bootstrap.servers": address,
            "group.id": group_id,
            "share.acknowledgement.mode": mode,
            "max.poll.records": portion,
        }
    )
    consumer.subscribe([topic])
    seen, began = 0, 0.0
    give_up = time.monotonic() + PATIENCE_S
    while seen < RECORDS:
        messages = consumer.poll(0.5)
        began = began or (time.perf_counter() if messages else 0.0)
        seen += sum(message.error() is None for message in messages)
        if mode == "explicit":
            for message in messages:
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        if time.monotonic() > give_up:
            raise SystemExit(f"the share consumer got {seen} records")
    consumer.commit_sync(10)
    elapsed = time.perf_counter() - began
    consumer.close()
    return elapsed


if __name__ == "__main__":
    main()
