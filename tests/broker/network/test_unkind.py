"""Answers that are legal but seldom, as they look on the wire."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from tests.broker.conftest import Connect, Start, Wire

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

ASKED = 300
T = TypeVar("T")


async def answers(broker: Broker, connect: Connect, ask: Callable[[Wire], Awaitable[T]]) -> AsyncIterator[T]:
    """Of many requests, each on a connection that may end."""
    wire = await connect(broker)
    for _ in range(ASKED):
        try:
            answer = await ask(wire)
        except (asyncio.IncompleteReadError, ConnectionError):
            wire = await connect(broker)
        else:
            yield answer


async def fetches(seed: int, start: Start, connect: Connect) -> list[PartitionData]:
    """The answers of a broker that is unkind, with five records."""
    broker = await start(properties={"groupkeeper.unkind.seed": str(seed)})
    await (await connect(broker)).create("t", 3)
    number = 0
    batch = write_batch([Record(b"k", b"v", timestamp=1)])
    async for answer in answers(broker, connect, lambda wire: wire.produce("t", batch)):
        number += not answer.error_code  # another leader, for a moment
        if number == 5:
            break
    return [one async for one in answers(broker, connect, lambda wire: wire.fetch("t", 0))]


async def test_fetches_are_short_empty_or_refused(start: Start, connect: Connect) -> None:
    found = {(part.error_code, len(part.records or b"")) for part in await fetches(7, start, connect)}
    whole = max(size for _, size in found)
    assert {error for error, _ in found} == {0, errors.NotLeaderOrFollower.code}
    assert (0, 0) in found
    assert any(0 < size < whole for _, size in found)


async def test_what_is_sent_begins_with_a_whole_batch(start: Start, connect: Connect) -> None:
    for records in [part.records for part in await fetches(8, start, connect) if part.records]:
        assert next(iter(iter_headers(records)))[1].size_in_bytes <= len(records)


async def test_the_order_of_topics_and_partitions_changes(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    for name in "abc":
        await wire.create(name, 3)
    unkindness = broker.faults.unkind(1)
    seen = set()
    async for answer in answers(broker, connect, lambda wire: wire.call(MetadataRequest(None), 9)):
        seen.add(tuple((topic.name, *(part.partition_index for part in topic.partitions)) for topic in answer.topics))
    assert {tuple(sorted(name for name, *_ in order)) for order in seen} == {("a", "b", "c")}
    assert len(seen) > 3
    assert 0 < unkindness.hits < ASKED
    broker.faults.clear()
    assert broker.active_faults is None
