"""Answers that are legal but seldom, as they look on the wire."""

import asyncio

from tests.broker.conftest import Connect, Start

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

ASKED = 300


async def filled(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    await wire.create("t", 3)
    number = 0
    while number < 5:
        try:
            answer = await wire.produce("t", write_batch([Record(b"k", b"%d" % number, timestamp=1)]))
        except (asyncio.IncompleteReadError, ConnectionError):
            wire = await connect(broker)
            continue
        number += not answer.error_code  # another leader, for a moment


async def asked(broker: Broker, connect: Connect) -> list[tuple[int, int]]:
    """Error and bytes of many fetches, each on a connection that may end."""
    found = []
    wire = await connect(broker)
    for _ in range(ASKED):
        try:
            part = await wire.fetch("t", 0)
        except (asyncio.IncompleteReadError, ConnectionError):
            wire = await connect(broker)
            continue
        found.append((part.error_code, len(part.records or b"")))
    return found


async def test_fetches_are_short_empty_or_refused(start: Start, connect: Connect) -> None:
    broker = await start(properties={"groupkeeper.unkind.seed": "7"})
    await filled(broker, connect)
    found = set(await asked(broker, connect))
    whole = max(size for _, size in found)
    assert {error for error, _ in found} == {0, errors.NotLeaderOrFollower.code}
    assert (0, 0) in found
    assert any(0 < size < whole for _, size in found)


async def test_what_is_sent_begins_with_a_whole_batch(start: Start, connect: Connect) -> None:
    broker = await start(properties={"groupkeeper.unkind.seed": "8"})
    await filled(broker, connect)
    wire = await connect(broker)
    for _ in range(ASKED):
        try:
            records = (await wire.fetch("t", 0)).records
        except (asyncio.IncompleteReadError, ConnectionError):
            wire = await connect(broker)
            continue
        assert not records or next(iter(iter_headers(records)))[1].size_in_bytes <= len(records)


async def test_the_order_of_topics_and_partitions_changes(broker: Broker, connect: Connect) -> None:
    wire = await connect(broker)
    for name in "abc":
        await wire.create(name, 3)
    unkindness = broker.faults.unkind(1)
    seen = set()
    for _ in range(ASKED):
        try:
            answer = await wire.call(MetadataRequest(None), 9)
        except (asyncio.IncompleteReadError, ConnectionError):
            wire = await connect(broker)
            continue
        seen.add(tuple((topic.name, *(part.partition_index for part in topic.partitions)) for topic in answer.topics))
    assert {tuple(sorted(name for name, *_ in order)) for order in seen} == {("a", "b", "c")}
    assert len(seen) > 3
    assert 0 < unkindness.hits < ASKED
    broker.faults.clear()
    assert broker.active_faults is None
