"""Logs in which times and transactions contradict each other, and what plans make of them: for any cluster."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from tests.acts import cut, end_of, make_topic
from tests.broker.conftest import Wire
from tests.patience import until

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, OffsetSpec, TopicPartition
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, PlanTopics, Policies, Request, make_reset
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.operations.plans.model import Change
from groupkeeper.operations.plans.reset import ToTime
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import write_batch

PATIENCE_S = 30
FIRST_MS = 1_700_000_000_000
STEP_MS = 1000
LARGE = 700_000
STRAY = 987_654
"""A producer id that no coordinator has given out."""
MADE_MS = time.time_ns() // 10**6

Sent = list[tuple[int, int]]
"""Offset and time of each record."""


class Written(NamedTuple):
    """Of the records of a topic's only partition those that are committed, and the others."""

    committed: Sent
    aborted: Sent


def wait_until_it_ends_at(servers: str, topic: str, end: int) -> None:
    """A commit is acknowledged before its marker is written: what comes next may stand in front of the marker."""
    until(lambda: end_of(servers, topic) >= end, f"{topic} has no marker at {end - 1}")


def write_stray(servers: str, topic: str, time_ms: int) -> None:
    """Two records of a transaction that no coordinator knows."""

    async def send() -> int:
        wire = await Wire.open(servers)
        records = [Record(None, value, (), time_ms) for value in (b"1", b"2")]
        batch = write_batch(records, producer_id=STRAY, producer_epoch=0, base_sequence=0, is_transactional=True)
        data = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
        answer = await wire.call(ProduceRequest("stray", -1, 10_000, data), 9)
        wire.writer.close()
        return answer.responses[0].partition_responses[0].error_code

    assert asyncio.run(send()) == 0


def producer_of(servers: str, **properties: str) -> Producer:
    return Producer({"bootstrap.servers": servers, "linger.ms": 20, "message.max.bytes": 1_000_000, **properties})


def send(producer: Producer, topic: str, times: Sequence[int], size: int = 100) -> Sent:
    sent: Sent = []

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        sent.append((int(message.offset() or 0), message.timestamp()[1]))

    for time_ms in times:
        producer.produce(topic, bytes(size), None, 0, on_delivery=note, timestamp=time_ms)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    return sorted(sent)


def write_in_transactions(servers: str, topic: str, is_commit: Callable[[int], bool], count: int = 10) -> Written:
    """Each of five records with times of long ago; the markers have the broker's time."""
    producer = producer_of(servers, **{"transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    written = Written([], [])
    for number in range(count):
        producer.begin_transaction()
        sent = send(producer, topic, [FIRST_MS + (5 * number + at) * STEP_MS for at in range(5)])
        (written.committed if is_commit(number) else written.aborted).extend(sent)
        (producer.commit_transaction if is_commit(number) else producer.abort_transaction)(PATIENCE_S)
    wait_until_it_ends_at(servers, topic, 6 * count)
    return written


async def reset_to(admin: Admin, topic: str, time_ms: int) -> Made:
    return await make_reset(admin, Request(["g"], PlanTopics([topic]), ToTime(time_ms), made_ms=MADE_MS))


def only_change(made: Made) -> Change:
    (group,) = made.plan.groups
    (change,) = group.changes.values()
    return change


async def check_resets(servers: str) -> None:
    topic = f"r{time.time_ns()}"
    make_topic(servers, topic)
    written = write_in_transactions(servers, topic, lambda number: number % 4 != 3)
    everything = sorted(written.committed + written.aborted)
    async with Admin(servers) as admin:
        for at in (0, 3, 5, 17, 22, 49):
            offset, time_ms = everything[at]
            change = only_change(await reset_to(admin, topic, time_ms - 1))
            assert change.after is not None
            assert (change.after.offset, change.after_ms) == (offset, time_ms)
            assert change.why.startswith("the first record from ")
        # Markers only have that time: no record has.
        change = only_change(await reset_to(admin, topic, everything[-1][1] + 1))
        assert change.after is not None
        assert (change.after.offset, change.after_ms) == (everything[-1][0] + 2, None)
        assert change.why.startswith("no record from ")


async def check_clones(servers: str, offsets: Sequence[int]) -> None:
    """To copies of the committed records, one written in transactions, with a transaction that failed at its begin."""
    topic = f"c{time.time_ns()}"
    for name in (topic, f"plain.{topic}", f"own.{topic}"):
        make_topic(servers, name)
    here = write_in_transactions(servers, topic, lambda number: number % 4 != 3, 12).committed  # the last is aborted
    times = [time_ms for _, time_ms in here]
    plain = producer_of(servers)
    send(plain, f"plain.{topic}", [1, 2, 3])
    there = {"plain.": send(plain, f"plain.{topic}", times), "own.": Sent()}
    own = producer_of(servers, **{"transactional.id": f"own.{topic}"})
    own.init_transactions(PATIENCE_S)
    for begin in range(0, len(times), 7):
        own.begin_transaction()
        there["own."] += send(own, f"own.{topic}", times[begin : begin + 7])
        own.commit_transaction(PATIENCE_S)
    wait_until_it_ends_at(servers, f"own.{topic}", there["own."][-1][0] + 2)
    async with Admin(servers) as admin:
        for offset in offsets:
            (
                await admin.alter_consumer_group_offsets(topic, {TopicPartition(topic, 0): OffsetAndMetadata(offset)})
            ).all()
            for prefix, copies in there.items():
                wanted = CloneRequest({topic: "copy"}, ALL_COMMITTED, Policies(), MADE_MS)
                made = await make_clone(admin, Source(None, prefix), wanted)
                assert made.troubles == ()
                change = only_change(made)
                assert change.after is not None
                left = sum(at >= offset for at, _ in here)
                meant = [at for at, _ in copies][-left] if left else change.log_end_offset
                assert (change.skipped, change.replayed) == (0, 0), (offset, prefix, change)
                assert change.after.offset == meant, (offset, prefix, change)


async def check_a_cut_segment(servers: str) -> None:
    """Kafka answers that there is no record, as the largest time of the first segment is that of a cut record."""
    topic = f"d{time.time_ns()}"
    make_topic(servers, topic, **{"segment.bytes": str(1024 * 1024)})
    producer = producer_of(servers)
    send(producer, topic, [FIRST_MS + 9000])
    for number in range(4):
        send(producer, topic, [FIRST_MS + number], LARGE)
    cut(servers, topic, 1)
    async with Admin(servers) as admin:
        spec = OffsetSpec(FIRST_MS + 3)
        answer = (await admin.list_offsets({TopicPartition(topic, 0): spec})).all()[TopicPartition(topic, 0)]
        assert answer.offset == -1
        change = only_change(await reset_to(admin, topic, FIRST_MS + 3))
        assert change.after is not None
        assert (change.after.offset, change.after_ms) == (4, FIRST_MS + 3)
        change = only_change(await reset_to(admin, topic, FIRST_MS + 4))
        assert change.after is not None
        assert (change.after.offset, change.after_ms) == (5, None)


async def check_what_is_too_far(servers: str) -> None:
    """Behind a marker, and in a log whose first segment is cut: 5 MB of earlier records."""
    topic, other = f"f{time.time_ns()}", f"e{time.time_ns()}"
    for name in (topic, other):
        make_topic(servers, name, **{"segment.bytes": str(1024 * 1024)})
    producer = producer_of(servers)
    write_in_transactions(servers, topic, lambda _: True, 1)
    send(producer, other, [FIRST_MS + 9000])
    for name in (topic, other):
        send(producer, name, [FIRST_MS + number for number in range(9)], LARGE)
    cut(servers, other, 1)
    async with Admin(servers) as admin:
        change = only_change(await reset_to(admin, topic, FIRST_MS + 8000))
        assert change.after is not None
        assert change.after.offset == 5
        assert change.why.startswith("before the first record from 2023-11-14T22:13:28.000Z on: it is the end of a ")
        assert change.why.endswith(
            "that record is not within the next 4 MiB of the log: earlier records are read again"
        )
        made = await reset_to(admin, other, FIRST_MS + 8)
        assert made.plan.groups == (), made
        (trouble,) = made.troubles
        assert trouble.topic_partition == TopicPartition(other, 0)
        assert "the broker finds no record at or after 2023-11-14T22:13:20.008Z" in str(trouble.failure)
