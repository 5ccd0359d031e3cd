"""Times of records on Apache Kafka, in batches of 1 KB to 900 KB, beside what the producers wrote down themselves."""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from tests.acts import cut, make_topic
from tools.apache_kafka import ApacheKafka

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, Position, TopicPartition
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Policies
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.pipeline.kafka.measuring import LogMeasure, measure
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import plan
from groupkeeper.protocol.record_batch import iter_headers

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

PATIENCE_S = 60
FIRST_MS = 1_700_000_000_000

Truth = dict[TopicPartition, list[tuple[int, int]]]
"""Offset and time of each record, as its delivery report has them."""


class Traffic(NamedTuple):
    """What goes to a topic: so many batches of about so many bytes for each partition."""

    name: str
    partitions: int
    batch_bytes: int
    batches: int
    codec: str
    record_bytes: int
    step_ms: int = 7
    config: Mapping[str, str] = {}


TRAFFIC = [
    Traffic("small", 200, 1_000, 4, "none", 200),
    Traffic("above-16k", 50, 20_000, 3, "lz4", 900),
    Traffic("single-records", 1, 100_000, 5, "none", 95_000),
    Traffic("hundred-k", 20, 100_000, 3, "gzip", 3_000),
    Traffic("three-hundred-k", 30, 300_000, 2, "snappy", 10_000),
    Traffic("nine-hundred-k", 40, 900_000, 2, "zstd", 45_000),
    Traffic("equal-times", 6, 200_000, 2, "lz4", 2_000, step_ms=0),
    Traffic("arrival", 6, 100_000, 2, "none", 5_000, config={"message.timestamp.type": "LogAppendTime"}),
]


def produce(servers: str, traffic: Traffic, topic: str, first_ms: int = FIRST_MS) -> Truth:
    """Each batch is sent by itself; what has been said of each record is returned."""
    truth: Truth = {}

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
        truth.setdefault(tp, []).append((int(message.offset() or 0), message.timestamp()[1]))

    producer = Producer(
        {
            "bootstrap.servers": servers, "compression.type": traffic.codec, "linger.ms": 1000,
            "batch.size": 980_000, "message.max.bytes": 990_000, "enable.idempotence": True,
        }
    )  # fmt: skip
    rng = random.Random(topic)
    count = max(1, traffic.batch_bytes // traffic.record_bytes)
    for batch in range(traffic.batches):
        for partition in range(traffic.partitions):
            for number in range(batch * count, (batch + 1) * count):
                value = rng.randbytes(traffic.record_bytes)  # no codec makes less of it
                at_ms = first_ms + partition + number * traffic.step_ms
                producer.produce(topic, value, None, partition, on_delivery=note, timestamp=at_ms)
                producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0
    for records in truth.values():
        records.sort()
    return truth


def delete_topics(servers: str, names: Sequence[str]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.delete_topics(list(names)).values():
        done.result(PATIENCE_S)


@pytest.fixture(scope="module")
def servers(apache_kafka: ApacheKafka) -> str:
    return apache_kafka.bootstrap_servers


@pytest.fixture(scope="module")
def truth(servers: str) -> Iterator[Truth]:
    """The logs of TRAFFIC; the topics go afterwards."""
    found: Truth = {}
    for traffic in TRAFFIC:
        make_topic(servers, traffic.name, traffic.partitions, **traffic.config)
        found |= produce(servers, traffic, traffic.name)
    yield found
    delete_topics(servers, [traffic.name for traffic in TRAFFIC])


def time_at(records: list[tuple[int, int]], offset: int) -> int | None:
    return next((time_ms for at, time_ms in records if at >= offset), None)


async def test_the_batches_are_as_large_as_they_should_be(servers: str, truth: Truth) -> None:
    """Otherwise the other tests would show little."""
    for traffic in TRAFFIC:
        tp, sizes = TopicPartition(traffic.name, 0), list[int]()

        def take(_: TopicPartition, records: bytes, sizes: list[int] = sizes) -> int:
            headers = [header for _, header in iter_headers(records)]
            sizes.extend(header.size_in_bytes for header in headers)
            return headers[-1].next_offset

        async with Admin(servers) as admin:
            (await admin.read_logs({tp: (0, truth[tp][-1][0] + 1)}, take)).all()
        assert max(sizes) > 0.7 * traffic.batch_bytes
        assert sum(size > 0.5 * traffic.batch_bytes for size in sizes) >= traffic.batches / 2


async def test_times_are_those_that_the_producers_wrote_down(servers: str, truth: Truth) -> None:
    rng = random.Random(1)
    wanted: dict[Position, int | None] = {}
    for tp, records in truth.items():
        end = records[-1][0] + 1
        for offset in {0, end - 1, end, *(rng.randrange(end + 1) for _ in range(3))}:
            wanted[Position(*tp, offset)] = time_at(records, offset)
    async with Admin(servers) as admin:
        found = (await admin.record_timestamps(wanted)).all()
    assert len(wanted) > 1000
    assert found == wanted


async def test_the_pipeline_has_the_same_times(servers: str, truth: Truth) -> None:
    wanted = {tp: [records[len(records) // 2][0], records[-1][0] + 1] for tp, records in truth.items()}
    given = {"kafka.bootstrap.servers": servers, "cluster": "c", "rows": "decoded"}
    async with Admin(servers) as admin:  # the cluster is looked at through its offsets topic
        (await admin.alter_consumer_group_offsets("reader", dict.fromkeys(truth, OffsetAndMetadata(0)))).all()
    options = parse_options(given)
    instant = (await plan(options)).instants["c"]
    (rows,) = await asyncio.to_thread(measure, [LogMeasure(options.clusters[0], instant, wanted)])
    for tp, records in truth.items():
        offset, time_ms = records[len(records) // 2]
        assert rows[tp]["log_end_offset"] == records[-1][0] + 1
        assert rows[tp]["problem"] is None
        found = {"is_there": True, "time": time_ms * 1000, "is_committed_there": True, "committed_time": time_ms * 1000}
        assert rows[tp]["records"] == [{"offset": offset} | found]


@pytest.mark.parametrize("traffic", [each for each in TRAFFIC if not each.config], ids=lambda each: each.name)
async def test_a_clone_skips_nothing_and_replays_what_it_says(servers: str, traffic: Traffic) -> None:
    """To a copy whose offsets are shifted: by records that others wrote before, and that are removed."""
    name = f"c{time.time_ns()}"
    for topic in (name, f"east.{name}"):
        make_topic(servers, topic, traffic.partitions)
    small = traffic._replace(batches=1, batch_bytes=500, record_bytes=100)
    shift = produce(servers, small, f"east.{name}", FIRST_MS - 10_000_000)
    here = produce(servers, traffic, name)
    there = produce(servers, traffic, f"east.{name}")
    for to, records in shift.items():
        if to.partition % 2:
            cut(servers, to.topic, len(records), to.partition)
    rng = random.Random(2)
    committed = {tp: rng.randrange(len(records) + 1) for tp, records in here.items()}
    async with Admin(servers) as ours:
        commits = {tp: OffsetAndMetadata(offset) for tp, offset in committed.items()}
        (await ours.alter_consumer_group_offsets(name, commits)).all()
        wanted = CloneRequest({name: f"{name}-copy"}, ALL_COMMITTED, Policies(), time.time_ns() // 10**6)
        made = await make_clone(ours, Source(None, "east."), wanted)
    assert made.troubles == ()
    (group,) = made.plan.groups
    for tp, offset in committed.items():
        to = TopicPartition(f"east.{tp.topic}", tp.partition)
        change = group.changes[to]
        assert change.after is not None
        moved = len(shift[to]) + offset - change.after.offset  # from where it should be, had it been exact
        assert moved >= 0, (to, change)  # nothing is skipped
        assert change.skipped == 0
        assert change.replayed is not None
        assert moved <= change.replayed, (to, change)
        if traffic.step_ms:
            assert (moved, change.replayed) == (0, 0), (to, change)
        if offset < len(here[tp]):
            assert change.after_ms == there[to][change.after.offset - len(shift[to])][1]
    delete_topics(servers, [name, f"east.{name}"])


async def test_a_clone_to_copies_that_lack_records_or_stamp_them_on_arrival(servers: str) -> None:
    """What it cannot keep it counts: the truth is never worse."""
    name, count = f"l{time.time_ns()}", 40
    make_topic(servers, name, 2)
    make_topic(servers, f"lost.{name}", 2)
    make_topic(servers, f"late.{name}", 2, **{"message.timestamp.type": "LogAppendTime"})
    traffic = Traffic(name, 2, 60_000, 2, "lz4", 60_000 // (count // 2))
    for topic in (name, f"lost.{name}", f"late.{name}"):
        produce(servers, traffic, topic)
    for partition in range(2):
        cut(servers, f"lost.{name}", 15, partition)
    commits = {TopicPartition(name, 0): OffsetAndMetadata(10), TopicPartition(name, 1): OffsetAndMetadata(30)}
    async with Admin(servers) as ours:
        (await ours.alter_consumer_group_offsets(name, commits)).all()
        found = {}
        for prefix in ("lost.", "late."):
            made = await make_clone(ours, Source(None, prefix), CloneRequest({name: "copy"}, ALL_COMMITTED, Policies()))
            assert made.troubles == ()
            for tp, change in made.plan.groups[0].changes.items():
                assert change.after is not None
                found[prefix, tp.partition] = (change.after.offset, change.skipped, change.replayed)
    # Records 10 to 14 are not there; the copy that stamps them got all of them after the source's times.
    assert found == {
        ("lost.", 0): (15, 5, 0), ("lost.", 1): (30, 0, 0), ("late.", 0): (0, 0, count), ("late.", 1): (0, 0, count),
    }  # fmt: skip
    delete_topics(servers, [name, f"lost.{name}", f"late.{name}"])


async def test_markers_and_aborted_records(servers: str) -> None:
    """The time of an aborted record counts; a marker has none, and at the end of the log nothing is left."""
    name = f"tx{time.time_ns()}"
    make_topic(servers, name, 2)
    for partition, ends in ((0, (True, False, True)), (1, (False, False))):
        producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{name}-{partition}"})
        producer.init_transactions(PATIENCE_S)
        for number, is_commit in enumerate(ends):
            producer.begin_transaction()
            producer.produce(name, bytes(30_000), None, partition, timestamp=FIRST_MS + number)
            assert producer.flush(PATIENCE_S) == 0
            (producer.commit_transaction if is_commit else producer.abort_transaction)(PATIENCE_S)
    # 0: record, 1: marker, 2: record, 3: marker …
    wanted = {Position(name, 0, offset): FIRST_MS + (offset + 1) // 2 for offset in range(5)}
    wanted |= {Position(name, 1, offset): FIRST_MS + (offset + 1) // 2 for offset in range(3)}
    none = dict.fromkeys([Position(name, 0, 5), Position(name, 0, 6), Position(name, 1, 3), Position(name, 1, 4)])
    async with Admin(servers) as admin:
        assert (await admin.record_timestamps([*wanted, *none])).all() == {**wanted, **none}
        committed = {0: FIRST_MS, **dict.fromkeys(range(1, 5), FIRST_MS + 2), 5: None, 6: None}
        places = {Position(name, 0, offset): time_ms for offset, time_ms in committed.items()}
        places |= {Position(name, 1, offset): None for offset in range(5)}
        found = (await admin.first_records(places, read_committed=True)).all()
        assert {at: None if one is None else one.timestamp for at, one in found.items()} == places
    delete_topics(servers, [name])
