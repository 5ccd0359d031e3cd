"""What all connections together may take: memory, and lines of the log."""

import asyncio
import struct
from contextlib import suppress
from typing import Any

import pytest
from tests.broker.conftest import Connect, Start

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker import Broker
from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.network.held_bytes import HeldBytes
from groupkeeper.broker.network.rated_log import RatedLog
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.record_batch import Record, write_batch

MEGABYTE = 1 << 20


class Waits:
    """Stands for a connection that waits for its peer."""

    def __init__(self) -> None:
        self.reason = ""

    def abort(self, reason: str) -> None:
        self.reason = reason


async def test_unfinished_requests_of_many_connections(
    start: Start, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"socket.request.max.bytes": str(MEGABYTE), "queued.max.request.bytes": str(2 * MEGABYTE)}
    broker = await start(properties=limits)
    wires = [await connect(broker) for _ in range(8)]
    for wire in wires:
        wire.writer.write(struct.pack(">i", MEGABYTE) + bytes(MEGABYTE - 100_000))
        await wire.writer.drain()
    # Whoever waits for longest is closed; the last ones may still finish.
    with suppress(ConnectionError):
        assert await asyncio.wait_for(wires[0].is_closed(), 10)
    wire = await connect(broker)
    assert (await wire.call(MetadataRequest([]), 12)).brokers
    assert broker.server.unfinished.total <= 2 * MEGABYTE
    assert "exceed queued.max.request.bytes (2097152 bytes; its part was" in caplog.text
    for one in wires:
        one.writer.transport.abort()
    while broker.server.unfinished.total:
        await wire.call(MetadataRequest([]), 12)


async def test_a_large_request_in_many_pieces_is_served(start: Start, connect: Connect) -> None:
    broker = await start()
    wire = await connect(broker)
    await wire.create("t", max_message_bytes=str(4 * MEGABYTE))
    batch = write_batch([Record(None, bytes(3 * MEGABYTE), timestamp=1)])
    for offset in range(3):
        assert (await wire.produce("t", batch)).base_offset == offset
    assert broker.server.unfinished.total == 0


async def test_the_bound_holds_a_largest_request(start: Start) -> None:
    with pytest.raises(InvalidSetting, match=r"queued\.max\.request\.bytes must be larger or equal to"):
        await start(properties={"queued.max.request.bytes": "1000"})


def test_who_waits_longest_is_closed() -> None:
    held, first, second, third = HeldBytes(100, "why"), Waits(), Waits(), Waits()
    held.hold(first, 150)  # alone it may have more
    held.hold(second, 10)
    assert (first.reason, held.total) == ("why (100 bytes; its part was 150)", 10)
    held.hold(third, 50)
    held.hold(second, 60)  # it goes on, so the other one waits for longer
    assert (second.reason, third.reason, held.total) == ("", "why (100 bytes; its part was 50)", 60)
    held.release(second)
    held.release(second)
    assert held.total == 0


async def test_answers_get_smaller_while_others_are_not_read(start: Start, connect: Connect) -> None:
    broker = await start(properties={"groupkeeper.unsent.max.bytes": str(MEGABYTE)})
    wire = await connect(broker)
    await wire.create("t")
    batch = write_batch([Record(None, bytes(100_000), timestamp=1)])
    for _ in range(10):
        assert not (await wire.produce("t", batch)).error_code
    sizes = []
    slow = Waits()
    for waiting in (0, MEGABYTE // 2, MEGABYTE):
        broker.server.unsent.hold(slow, waiting)
        sizes.append(len((await wire.fetch("t", 0, max_bytes=1 << 24)).records or b"") // len(batch))
    assert sizes == [5, 2, 1]


async def test_answers_that_are_not_read_count(broker: Broker, connect: Connect) -> None:
    good, wire = await connect(broker), await connect(broker)
    for name in range(1000):
        broker.topics.create(f"{name}-{'x' * 200}", 1)
    for _ in range(100):
        wire.send(MetadataRequest(None), 12)
    while not broker.server.unsent.total:
        await good.call(MetadataRequest([]), 12)
    wire.writer.transport.abort()
    while broker.server.unsent.total:
        await good.call(MetadataRequest([]), 12)


async def test_a_silent_connection_gives_its_place_first(
    broker: Broker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, silent, late = [await connect(broker) for _ in range(3)]
    for wire in (late, asked):
        await wire.call(MetadataRequest([]), 12)
    broker.server.close_idle()
    await late.call(MetadataRequest([]), 12)
    assert len(broker.server.connections) == 3
    monkeypatch.setattr("groupkeeper.broker.network.connection._KEPT_SILENT_S", 0.0)
    broker.server.close_idle()
    assert await asyncio.wait_for(silent.is_closed(), 30)
    broker.server.close_idle()
    await late.call(MetadataRequest([]), 12)
    assert len(broker.server.connections) == 2


async def test_a_peer_gets_few_lines(start: Start, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    broker = await start()
    for _ in range(30):
        wire = await connect(broker)
        wire.writer.write(struct.pack(">ihhihb", 11, 3, 99, 1, -1, 0))
        assert await asyncio.wait_for(wire.is_closed(), 30)
    assert caplog.text.count("closing the connection from /127.0.0.1: Metadata version 99") == 10
    assert "left out" not in caplog.text
    broker.server.log.sum_up()
    assert "and 20 more lines about connections from 127.0.0.1, which were left out" in caplog.text


async def test_all_peers_get_a_bounded_number_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    log = RatedLog()
    for number in range(2000):
        for address in range(3):
            log.line(f"/10.0.{number}.{address}", "closing the connection from %s", number)
    log.sum_up()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) < 70
    assert sum(int(line.split()[1]) for line in lines if line.startswith("and ")) == 6000 - 50
    log.line("/10.0.0.0", "again")
    log.sum_up()
    assert caplog.records[-1].getMessage() == "again"


async def test_failing_requests_are_lines_of_the_same_rate(
    broker: Broker, connect: Connect, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    wire = await connect(broker)
    await wire.list_offset("t", -1)
    monkeypatch.setattr(TABLE[2], "reply", None)
    monkeypatch.setattr(TABLE[2], "handle", fails)
    for _ in range(30):
        await wire.list_offset("t", -1)
    assert len([record for record in caplog.records if record.exc_info]) == 10
