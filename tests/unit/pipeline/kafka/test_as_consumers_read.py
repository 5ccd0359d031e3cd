"""What the source reads of a broker's topics is what librdkafka's consumer reads of them, record for record."""

import asyncio
import json
import random
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import pack, plan_or_raise
from groupkeeper.pipeline.kafka.source import read_ranges

BROKER = {"properties": {"log.retention.ms": "-1", "log.cleaner.backoff.ms": "50"}}
PATIENCE_S = 60
Row = tuple[Any, ...]


def new_topic(servers: str, name: str, partitions: int = 3, **config: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})
    topic = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    admin.create_topics([topic])[name].result(PATIENCE_S)
    return name


def produce(servers: str, topic: str, count: int, *, keys: int = 10**6, size: int = 300, **settings: Any) -> None:
    rng = random.Random(topic)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "batch.num.messages": 40, **settings})
    for _ in range(count):
        key = None if keys == 10**6 and rng.random() < 0.1 else b"%d" % rng.randrange(keys)
        value = None if rng.random() < 0.1 else rng.randbytes(rng.randrange(size)) + b"-" * rng.randrange(size)
        headers: list[tuple[str, str | bytes | None]] | None = [("h", None), ("é", b"")] if rng.random() < 0.2 else None
        at = 1_700_000_000_000 + rng.randrange(-(10**6), 10**6)
        producer.produce(topic, value, key, rng.choice((0, 0, 1)), headers=headers, timestamp=at)  # 2 stays empty
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def theirs(servers: str, topic: str, isolation: str, partitions: int = 3) -> list[Row]:
    settings = {"bootstrap.servers": servers, "group.id": "theirs", "auto.offset.reset": "earliest",
                "enable.partition.eof": True, "isolation.level": isolation, "enable.auto.commit": False,
                "fetch.wait.max.ms": 10}  # fmt: skip
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    ended: set[int] = set()
    found: list[Row] = []
    while len(ended) < partitions:
        (message,) = consumer.consume(1, PATIENCE_S)
        if (error := message.error()) is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            partition = message.partition()
            assert partition is not None
            ended.add(partition)
            continue
        kind, at = message.timestamp()
        headers = list(message.headers() or ())
        found.append((message.partition(), message.offset(), at, kind - 1, message.key(), message.value(), headers))
    consumer.close()
    return sorted(found, key=lambda row: row[:2])


def ours(servers: str, topic: str, isolation: str, **given: str) -> list[Row]:
    options = parse_options(
        {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": topic, "includeHeaders": "true",
         "kafka.isolation.level": isolation, "minPartitions": "3", **given}
    )  # fmt: skip
    tasks = pack(asyncio.run(plan_or_raise(options)), options)
    rows = [row for task in tasks for batch in read_ranges(task, options) for row in batch.to_pylist()]
    return sorted(
        (
            (
                row["partition"], row["offset"], round(row["timestamp"].timestamp() * 1000), row["timestampType"],
                row["key"], row["value"], [(each["key"], each["value"]) for each in row["headers"] or ()],
            )
            for row in rows
        ),
        key=lambda row: row[:2],
    )  # fmt: skip


def check(servers: str, topic: str, least: int) -> list[Row]:
    """Both ways of reading, as one whole and byte by byte."""
    for isolation in ("read_uncommitted", "read_committed"):
        before, wanted, found = (read(servers, topic, isolation) for read in (ours, theirs, ours))
        while before != found:  # a log that is being cleaned
            assert len(found) < len(before)
            before, wanted, found = found, theirs(servers, topic, isolation), ours(servers, topic, isolation)
        assert found == wanted
        one_by_one = ours(servers, topic, isolation, **{"kafka.max.partition.fetch.bytes": "1"})
        assert set(map(repr, one_by_one)) <= set(map(repr, wanted))
        assert one_by_one == wanted or len(ours(servers, topic, isolation)) < len(wanted)
        assert len(wanted) >= least
    return wanted


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("settings", [{}, {"enable.idempotence": True}], ids=["plain", "idempotent"])
def test_compressions(servers: str, compression: str, settings: dict[str, Any]) -> None:
    topic = new_topic(servers, f"{compression}-{len(settings)}")
    produce(servers, topic, 400, **{**settings, "compression.type": compression})
    check(servers, topic, 400)


def test_times_of_the_broker(servers: str) -> None:
    topic = new_topic(servers, "appended", message_timestamp_type="LogAppendTime")
    produce(servers, topic, 200)
    assert {row[3] for row in check(servers, topic, 200)} == {1}


def test_transactions(servers: str) -> None:
    """Committed, aborted and open ones of several producers, one in the other, with records outside between."""
    rng = random.Random(5)
    topic = new_topic(servers, "transactions")
    producers = []
    for name in "abc":
        producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "batch.num.messages": 3})
        producer.init_transactions(PATIENCE_S)
        producers.append(producer)
    is_open = [False] * 3
    for number in range(250):
        which = rng.randrange(3)
        producer = producers[which]
        if not is_open[which]:
            producer.begin_transaction()
        is_open[which] = True
        producer.produce(topic, b"%d" % number, b"k", rng.randrange(2))
        if rng.random() < 0.2:
            (producer.commit_transaction if rng.random() < 0.5 else producer.abort_transaction)(PATIENCE_S)
            is_open[which] = False
        elif rng.random() < 0.5:
            producer.flush(PATIENCE_S)
        if rng.random() < 0.1:
            produce(servers, topic, 3)
    if not any(is_open):
        producers[0].begin_transaction()
        producers[0].produce(topic, b"open", b"k", 0)
    for producer in producers:
        producer.flush(PATIENCE_S)
    committed = check(servers, topic, 20)
    assert len(committed) < len(theirs(servers, topic, "read_uncommitted"))


def test_gaps_of_compaction_and_a_log_that_begins_later(servers: str) -> None:
    topic = new_topic(
        servers, "compacted", cleanup_policy="compact", internal_segment_bytes="20000",
        min_cleanable_dirty_ratio="0.01", min_compaction_lag_ms="0", delete_retention_ms="0",
    )  # fmt: skip
    produce(servers, topic, 2000, keys=15)
    deadline = time.monotonic() + PATIENCE_S
    while len(ours(servers, topic, "read_committed")) > 1500:
        assert time.monotonic() < deadline
    consumed = {(row[0], row[4]): row[5] for row in check(servers, topic, 10)}
    assert len({key for key in consumed if key[0] == 0}) == 15
    gone = new_topic(servers, "begins-later", internal_segment_bytes="20000")
    produce(servers, gone, 600)
    admin = AdminClient({"bootstrap.servers": servers})
    for result in admin.delete_records([TopicPartition(gone, 0, 123), TopicPartition(gone, 1, -1)]).values():
        result.result(PATIENCE_S)
    rows = check(servers, gone, 200)
    assert {row[0] for row in rows} == {0}
    assert rows[0][1] == 123
    again = ours(servers, gone, "read_committed", startingOffsets=json.dumps({gone: {"0": 5}}), failOnDataLoss="false")
    assert again == rows
