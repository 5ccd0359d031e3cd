"""Timestamps of records at offsets, as the Admin reads them from logs of all kinds of batches."""

from collections.abc import AsyncIterator

import pytest
from tests.cli.stages import PATIENCE_S

from groupkeeper.broker import Broker
from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetSpec, Position, TopicPartition
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import OffsetOutOfRange, UnknownTopicOrPartition
from groupkeeper.protocol.record_batch import Record, write_batch

TOPIC = "orders"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        (await admin.create_topics([NewTopic(TOPIC, 2, 1, configs={"retention.ms": "-1"})])).all()
        address = parse_bootstrap_servers(broker.bootstrap_servers)[0]
        connection = await open_connection(address, Settings(), Security(), PATIENCE_S)

        async def produce(partition: int, batch: bytes) -> None:
            produced = m.TopicProduceData(TOPIC, partition_data=[m.PartitionProduceData(partition, batch)])
            request = m.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[produced])
            answer = await connection.ask(request, 9, m.ProduceResponse, PATIENCE_S)
            assert answer.responses[0].partition_responses[0].error_code == 0

        def records(size: int, *timestamps: int) -> list[Record]:
            return [Record(None, bytes(size), timestamp=timestamp) for timestamp in timestamps]

        await produce(0, write_batch(records(10, 100, 90, 110)))  # 0 to 2, not in order
        await produce(0, write_batch(records(10_000, 200, 210), compression="zstd"))  # 3, 4
        await produce(0, write_batch(records(30_000, 300, 310, 320)))  # 5 to 7, larger than what is asked for first
        await produce(0, write_batch(records(10, -1)))  # 8, without a timestamp
        await produce(1, write_batch(records(10, 1000)))
        connection.abort()
        yield admin


def at(*offsets: int, partition: int = 0) -> list[Position]:
    return [Position(TOPIC, partition, offset) for offset in offsets]


async def test_timestamps(admin: Admin) -> None:
    found = await admin.record_timestamps([*at(*range(9)), *at(0, partition=1)])
    assert list(found.all().values()) == [100, 90, 110, 200, 210, 300, 310, 320, -1, 1000]


async def test_no_record(admin: Admin) -> None:
    found = await admin.record_timestamps([*at(9, 10, 0), *at(-1, partition=1), Position("nope", 0, 0)])
    assert found.done == {at(9)[0]: None, at(0)[0]: 100}
    told = {position.offset: type(failure) for position, failure in found.failed.items()}
    assert told == {10: OffsetOutOfRange, -1: OffsetOutOfRange, 0: UnknownTopicOrPartition}
    assert (await admin.record_timestamps([])).done == {}


async def test_they_are_what_a_lookup_by_time_finds(admin: Admin) -> None:
    for timestamp in (95, 200, 305):
        tp = TopicPartition(TOPIC, 0)
        found = (await admin.list_offsets({tp: OffsetSpec.for_timestamp(timestamp)})).all()[tp]
        assert (await admin.record_timestamps(at(found.offset))).all() == {at(found.offset)[0]: found.timestamp}
