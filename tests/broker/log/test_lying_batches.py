"""Batches whose headers do not say what their records say, and how they are kept, found and deleted."""

import asyncio
import logging
import struct
import time
from typing import Any

import pytest
from google_crc32c import value as crc32c
from tests.broker.conftest import Connect, Start
from tests.broker.held import log_of
from tests.broker.log.test_cleaning import QUICK
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.broker.log import produced, record_walk
from groupkeeper.protocol import errors
from groupkeeper.protocol.compression import CODECS, Content, compress
from groupkeeper.protocol.record_batch import HEADER_SIZE, Record, read_header, read_records, write_batch

NOW = int(time.time() * 1000)
LONG_AGO = NOW - 30 * 86_400_000


def lying(batch: bytes, *, max_timestamp: int) -> bytes:
    made = bytearray(batch)
    struct.pack_into(">q", made, 35, max_timestamp)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return bytes(made)


def starts_at(broker: Broker, topic: str) -> int:
    return log_of(broker, topic).log_start_offset


def old_and_new(codec: str = "none") -> bytes:
    """What a client sends that takes the largest of the given times for that of all: one is old, two have none."""
    records = [Record(b"k", b"v", timestamp=stamp) for stamp in (LONG_AGO, NOW, NOW)]
    return lying(write_batch(records, compression=codec), max_timestamp=LONG_AGO)


@pytest.mark.parametrize("codec", CODECS)
async def test_new_records_outlive_retention_beside_an_old_one(codec: str, start: Start, connect: Connect) -> None:
    broker = await start(properties=QUICK)
    wire = await connect(broker)
    await wire.create("mixed")
    await wire.create("old")
    assert (await wire.produce("mixed", old_and_new(codec))).error_code == 0
    assert (await wire.produce("old", write_batch([Record(b"k", b"v", timestamp=LONG_AGO)]))).error_code == 0
    await becomes(lambda: starts_at(broker, "old") > 0)  # retention has looked at all topics
    assert starts_at(broker, "mixed") == 0
    assert (await wire.list_offset("mixed", NOW - 60_000)).offset == 1
    assert (await wire.list_offset("mixed", -3)).timestamp == NOW
    fetched = (await wire.fetch("mixed", 0)).records or b""
    assert read_header(fetched).max_timestamp == NOW
    assert [record.timestamp for record in read_records(fetched)] == [LONG_AGO, NOW, NOW]


async def test_a_deletion_is_in_the_log(start: Start, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "groupkeeper.broker")
    broker = await start(properties=QUICK)
    wire = await connect(broker)
    await wire.create("old", retention_ms="86400000")
    await wire.produce("old", write_batch([Record(b"k", b"v", timestamp=LONG_AGO)] * 2))
    await becomes(lambda: starts_at(broker, "old") > 0)
    lines = [line for line in caplog.messages if "deleted" in line]
    assert lines == [
        "old-0: deleted 1 segments of 79 bytes (1 by retention.ms=86400000), the log starts at offset 2 now"
    ]


def bomb(content: bytes, count: int, codec: str = "zstd") -> bytes:
    checked = struct.pack(">hiqqqhii", CODECS.index(codec), count - 1, NOW, NOW, -1, -1, -1, count)
    checked += compress(codec, content)
    return struct.pack(">qiibI", 0, 9 + len(checked), 0, 2, crc32c(checked)) + checked


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
async def test_millions_of_records_in_a_few_bytes_are_refused_at_once(
    codec: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = bytes((12, 0, 0, 0, 0, 1, 0))
    packed = bomb(record * 5_000_000, 5_000_000, codec)
    read: list[int] = []

    def walk(content: Content, *rest: Any) -> Any:
        read.append(len(content))
        return record_walk.walk(content, *rest)

    monkeypatch.setattr(produced, "walk", walk)
    async with Broker() as broker:
        wire = await connect(broker)
        await wire.create("t", cleanup_policy="compact")
        answer = await wire.produce("t", packed)
        assert sum(read) < 100_000
        assert (answer.error_code, answer.base_offset) == (errors.UnknownServerError.code, -1)


async def test_large_values_are_taken(connect: Connect) -> None:
    """Apache Kafka takes what is small enough compressed, too."""
    packed = lying(write_batch([Record(b"k", bytes(40_000_000), timestamp=NOW)], compression="zstd"), max_timestamp=1)
    async with Broker() as broker:
        wire = await connect(broker)
        await wire.create("t")
        assert (await wire.produce("t", packed)).error_code == 0
        assert (await wire.list_offset("t", -3)).timestamp == NOW


async def test_what_a_batch_may_hold_has_a_limit(connect: Connect) -> None:
    content = write_batch([Record(b"k", bytes(130 << 20))])[HEADER_SIZE:]
    async with Broker() as broker:
        wire = await connect(broker)
        await wire.create("t")
        assert (await wire.produce("t", bomb(content, 1))).error_code == errors.MessageTooLarge.code


async def test_many_wrong_records_are_named_up_to_a_limit(connect: Connect) -> None:
    async with Broker() as broker:
        wire = await connect(broker)
        await wire.create("t", cleanup_policy="compact")
        answer = await wire.produce("t", write_batch([Record(None, b"v", timestamp=NOW)] * 20_000))
        assert answer.error_code == errors.InvalidRecord.code
        assert [one.batch_index for one in answer.record_errors] == list(range(1000))


async def test_times_of_many_records_are_found_beside_other_requests(connect: Connect) -> None:
    records = [Record(b"", b"", timestamp=NOW - 60_000 + place // 10) for place in range(300_000)]
    async with Broker() as broker:
        wire, other = await connect(broker), await connect(broker)
        await wire.create("t")
        assert (await wire.produce("t", write_batch(records, compression="zstd"))).error_code == 0
        asked = asyncio.ensure_future(wire.list_offset("t", NOW - 60_000 + 29_000))
        answers = 0
        while not asked.done():
            await other.list_offset("t", -1)
            answers += 1
        assert (await asked).offset == 290_000
        assert answers > 1
