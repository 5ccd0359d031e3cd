"""What a Fetch answer holds of several partitions and when it comes, as Apache Kafka 4.3.1 has it."""

import asyncio
import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from tests.broker.conftest import Connect, Wire

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, write_batch

LONG_MS = 20_000
SOON_S = 10.0


def batch(size: int) -> bytes:
    """A batch of so many bytes, give or take a few."""
    return write_batch([Record(b"k", os.urandom(size), timestamp=1)])


class Wanted(NamedTuple):
    topic: str
    partition: int
    offset: int = 0
    max_bytes: int = 1 << 20
    last_fetched_epoch: int = -1


def request(
    wanted: Iterable[Wanted], *, max_bytes: int = 1 << 25, min_bytes: int = 1, max_wait_ms: int = 0
) -> m.FetchRequest:
    def part(one: Wanted) -> FetchPartition:
        return FetchPartition(one.partition, -1, one.offset, one.last_fetched_epoch, partition_max_bytes=one.max_bytes)

    topics = [FetchTopic(one.topic, partitions=[part(one)]) for one in wanted]
    return m.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics)


def told(answer: m.FetchResponse) -> list[tuple[str, int, int, int]]:
    """Topic, partition, error and bytes, in the order of the answer."""
    return [
        (topic.topic, part.partition_index, part.error_code, len(part.records or b""))
        for topic in answer.responses
        for part in topic.partitions
    ]


async def ask(wire: Wire, asked: m.FetchRequest) -> list[tuple[str, int, int, int]]:
    return told(await wire.call(asked, 12))


async def test_a_large_batch_only_for_the_first_partition_that_has_records(wire: Wire) -> None:
    await wire.create("t", 4)
    size = len(batch(1000))
    for partition in (1, 2, 3):
        await wire.produce("t", batch(1000), partition=partition)
    some = [Wanted("t", partition, max_bytes=1) for partition in range(4)]
    assert await ask(wire, request(some)) == [("t", 0, 0, 0), ("t", 1, 0, size), ("t", 2, 0, 0), ("t", 3, 0, 0)]
    some = [Wanted("t", partition) for partition in range(4)]
    found = await ask(wire, request(some, max_bytes=size + 700))
    assert found == [("t", 0, 0, 0), ("t", 1, 0, size), ("t", 2, 0, 0), ("t", 3, 0, 0)]
    found = await ask(wire, request(some, max_bytes=2 * size + 100))
    assert found == [("t", 0, 0, 0), ("t", 1, 0, size), ("t", 2, 0, size), ("t", 3, 0, 0)]


async def test_records_of_one_segment_only(wire: Wire) -> None:
    await wire.create("t", segment_bytes=str(1 << 20))
    for _ in range(4):
        await wire.produce("t", batch(400_000))
    size = len(batch(400_000))
    whole = 1 << 25
    # However much is wanted: the next segment comes with the next request, which need not wait.
    asked = request([Wanted("t", 0, 0, whole)], min_bytes=whole, max_wait_ms=LONG_MS)
    assert await ask(wire, asked) == [("t", 0, 0, 2 * size)]
    assert await ask(wire, request([Wanted("t", 0, 2, whole)])) == [("t", 0, 0, 2 * size)]


async def test_partitions_that_are_unknown_come_last(wire: Wire) -> None:
    await wire.create("t", 2)
    some = [Wanted("nope", 0), Wanted("t", 1), Wanted("t", 7), Wanted("t", 0, 99)]
    unknown, out = errors.UnknownTopicOrPartition.code, errors.OffsetOutOfRange.code
    found = await ask(wire, request(some))
    assert found == [("t", 1, 0, 0), ("t", 0, out, 0), ("nope", 0, unknown, 0), ("t", 7, unknown, 0)]


async def test_a_partition_that_is_named_twice_is_read_once(wire: Wire) -> None:
    await wire.create("t", 2)
    await wire.produce("t", batch(100))
    some = [Wanted("t", 0), Wanted("t", 1), Wanted("t", 0, 1)]
    assert await ask(wire, request(some)) == [("t", 0, 0, 0), ("t", 1, 0, 0)]


async def test_an_unknown_partition_does_not_hurry_the_others(wire: Wire, broker: Broker, connect: Connect) -> None:
    await wire.create("t")
    other = await connect(broker)
    asking = asyncio.create_task(ask(other, request([Wanted("nope", 0), Wanted("t", 0)], max_wait_ms=LONG_MS)))
    await wire.produce("t", batch(100))
    size = len(batch(100))
    assert await asking == [("t", 0, 0, size), ("nope", 0, errors.UnknownTopicOrPartition.code, 0)]


async def test_it_waits_for_no_more_than_the_answer_may_hold(wire: Wire) -> None:
    await wire.create("t")
    await wire.produce("t", batch(1000))
    began = time.monotonic()
    assert (await ask(wire, request([Wanted("t", 0)], max_bytes=500, min_bytes=10_000, max_wait_ms=LONG_MS)))[0][3]
    assert time.monotonic() - began < SOON_S


async def test_of_a_partition_no_more_than_its_limit_counts(wire: Wire) -> None:
    await wire.create("t")
    await wire.produce("t", batch(1000))
    began = time.monotonic()
    some = [Wanted("t", 0, max_bytes=100)]
    assert (await ask(wire, request(some, min_bytes=2000, max_wait_ms=300)))[0][3] > 1000
    assert time.monotonic() - began >= 0.29


async def test_the_last_fetched_epoch_tells_a_log_that_was_cut_off(wire: Wire) -> None:
    await wire.create("t")
    await wire.produce("t", batch(100))
    answer = await wire.call(request([Wanted("t", 0, 5, last_fetched_epoch=0)]), 12)
    part = answer.responses[0].partitions[0]
    assert (part.error_code, part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 0, 1)
    assert not part.records
    answer = await wire.call(request([Wanted("t", 0, 0, last_fetched_epoch=3)]), 12)
    assert answer.responses[0].partitions[0].error_code == errors.OffsetOutOfRange.code


async def test_aborted_transactions_are_null_where_there_was_no_room(wire: Wire) -> None:
    await wire.create("t", 2)
    for partition in (0, 1):
        await wire.produce("t", batch(1000), partition=partition)
    asked = request([Wanted("t", 0), Wanted("t", 1, max_bytes=100), Wanted("t", 1, offset=1)])
    asked.isolation_level = 1
    answer = await wire.call(asked, 12)
    assert [part.aborted_transactions for topic in answer.responses for part in topic.partitions] == [[], []]
    asked = request([Wanted("t", 0), Wanted("t", 1, max_bytes=100)])
    asked.isolation_level = 1
    answer = await wire.call(asked, 12)
    assert [part.aborted_transactions for topic in answer.responses for part in topic.partitions] == [[], None]
