"""first_records, record_timestamps and read_logs, of leaders whose answers have no room for most partitions."""

import random
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import pytest
from tests.unit.client.fetched_logs import FetchedLogs, Log, batch_of, log_of, records_from
from tests.unit.client.scripted_broker import Handler, ScriptedBroker, fast_admin
from tests.unit.transactions import marker

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import FirstRecord, Position, TopicPartition
from groupkeeper.client.errors import CallTimedOut, UnexpectedResponse
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import OffsetOutOfRange, TopicAuthorizationFailed
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.record_batch import iter_headers, write_batch

TOPIC = "t"
MIB = 1024 * 1024


@asynccontextmanager
async def leader_of(fetch: Handler, partitions: int) -> AsyncIterator[tuple[ScriptedBroker, Admin]]:
    broker = ScriptedBroker(1, handlers={"Fetch": fetch})
    broker.topics = {TOPIC: [1] * partitions}
    async with broker, fast_admin(broker.bootstrap_servers) as admin:
        yield broker, admin


def by_place(logs: Iterable[Log]) -> dict[TopicPartition, Log]:
    return {TopicPartition(TOPIC, number): log for number, log in enumerate(logs)}


def marker_at(offset: int) -> bytes:
    return marker(1, is_commit=True, base_offset=offset, at_ms=1)


def expected(logs: Mapping[TopicPartition, Log], position: Position) -> int | None:
    records = records_from(logs[TopicPartition(position.topic, position.partition)], position.offset)
    return records[0].timestamp if records else None


# D1: a batch beyond the limit is there for the first partition only, the others are empty.
@pytest.mark.parametrize("size", [1_000, 20_000, 100_000, 900_000])
async def test_batches_of_any_size(size: int) -> None:
    logs = by_place(log_of([batch_of(0, [100 + number], size), batch_of(1, [200 + number])]) for number in range(12))
    wanted = [Position(TOPIC, number, offset) for number in range(12) for offset in (0, 1, 2)]
    async with leader_of(FetchedLogs(logs), 12) as (_, admin):
        found = (await admin.record_timestamps(wanted)).all()
    assert found == {position: expected(logs, position) for position in wanted}
    assert found[wanted[2]] is None


async def test_many_large_batches_take_bounded_memory_and_requests() -> None:
    shared = batch_of(0, [5], MIB - 1000)  # the same bytes for all of them
    fetch = FetchedLogs(dict.fromkeys((TopicPartition(TOPIC, number) for number in range(120)), log_of([shared])))
    async with leader_of(fetch, 120) as (broker, admin):
        found = (await admin.record_timestamps([Position(TOPIC, number, 0) for number in range(120)])).all()
    assert set(found.values()) == {5}
    assert max(fetch.sizes) <= 8 * MIB
    assert broker.count("Fetch") < 30


async def test_many_positions_in_one_batch_take_one_request() -> None:
    logs = by_place([log_of([batch_of(0, range(100, 400))])])
    wanted = [Position(TOPIC, 0, offset) for offset in range(300)]
    async with leader_of(FetchedLogs(logs), 1) as (broker, admin):
        found = (await admin.record_timestamps(wanted)).all()
        assert broker.count("Fetch") == 1
    assert list(found.values()) == list(range(100, 400))


async def test_markers_and_removed_records_are_read_over() -> None:
    kept = batch_of(1_000, [7], 50_000)
    log = log_of([batch_of(0, [1]), *(marker_at(offset) for offset in range(1, 900)), kept, marker_at(1_001)])
    empty = log_of([batch_of(0, [1]), marker_at(1), marker_at(2)])
    wanted = [Position(TOPIC, 0, offset) for offset in (0, 1, 500, 950, 1_000, 1_001, 1_002)]
    async with leader_of(FetchedLogs(by_place([log, empty])), 2) as (_, admin):
        found = (await admin.first_records([*wanted, Position(TOPIC, 1, 1)])).all()
    assert list(found.values()) == [FirstRecord(0, 1), *[FirstRecord(1_000, 7)] * 4, None, None, None]


async def test_a_log_whose_last_records_were_removed_has_no_record_there() -> None:
    log = log_of([batch_of(0, [1])], end=10)
    full = log_of([batch_of(0, [2], 100_000)])
    async with leader_of(FetchedLogs(by_place([log, full])), 2) as (_, admin):
        found = await admin.record_timestamps([Position(TOPIC, 0, 5), Position(TOPIC, 1, 0), Position(TOPIC, 0, 11)])
    assert found.done == {Position(TOPIC, 0, 5): None, Position(TOPIC, 1, 0): 2}
    assert [type(why) for why in found.failed.values()] == [OffsetOutOfRange]


async def test_the_time_is_the_brokers_where_the_topic_says_so() -> None:
    records = list(records_from(log_of([batch_of(0, [1, 2])]), 0))
    batch = write_batch(records, base_offset=0, log_append_time_ms=90, compression="lz4")
    async with leader_of(FetchedLogs(by_place([log_of([batch])])), 1) as (_, admin):
        found = (await admin.first_records([Position(TOPIC, 0, 1)])).all()
    assert list(found.values()) == [FirstRecord(1, 90, is_append_time=True)]


async def test_a_corrupt_batch_fails_those_who_need_it() -> None:
    batch = bytearray(batch_of(2, [3]))
    batch[-1] ^= 1
    log = log_of([batch_of(0, [1, 2]), bytes(batch), batch_of(3, [4])])
    async with leader_of(FetchedLogs(by_place([log])), 1) as (_, admin):
        found = await admin.record_timestamps([Position(TOPIC, 0, offset) for offset in range(4)])
    assert {position.offset: time for position, time in found.done.items()} == {0: 1, 1: 2, 3: 4}
    assert [(each.offset, type(why)) for each, why in found.failed.items()] == [(2, UnexpectedResponse)]


async def test_a_leader_that_never_has_room_is_a_reason() -> None:
    def nothing(message: m.FetchRequest, version: int) -> m.FetchResponse:
        return m.FetchResponse()

    async with leader_of(nothing, 1) as (_, admin):
        found = await admin.record_timestamps([Position(TOPIC, 0, 0)], timeout_ms=1500)
        read = await admin.read_logs({TopicPartition(TOPIC, 0): (0, 5)}, lambda *_: None, timeout_ms=1500)
    for failed in (found.failed, read.failed):
        assert [type(why) for why in failed.values()] == [CallTimedOut]
        assert "the broker's replies hold no records" in str(next(iter(failed.values())))


async def test_what_may_not_be_read_says_so_beside_the_rest() -> None:
    logs = FetchedLogs(by_place([log_of([batch_of(0, [1], 30_000)]), log_of([batch_of(0, [2], 30_000)])]))

    def refusing(message: m.FetchRequest, version: int) -> m.FetchResponse:
        allowed = [each for each in message.topics if each.topic == TOPIC]
        refused = [each.topic for each in message.topics if each.topic != TOPIC]
        answer = logs(m.FetchRequest(max_bytes=message.max_bytes, topics=allowed), version)
        answer.responses = [
            *(m.FetchableTopicResponse(name, partitions=[PartitionData(0, 29, -1)]) for name in refused),
            *answer.responses,
        ]
        return answer

    async with leader_of(refusing, 2) as (broker, admin):
        broker.topics["closed"] = [1]
        found = await admin.record_timestamps([Position(TOPIC, 0, 0), Position("closed", 0, 0), Position(TOPIC, 1, 0)])
    assert list(found.done.values()) == [1, 2]
    assert [type(why) for why in found.failed.values()] == [TopicAuthorizationFailed]


def random_log(rng: random.Random) -> Log:
    """Batches of 1 to 5 records of many sizes, markers, and offsets that compaction has left."""
    batches, offset = [], rng.randrange(20)
    start = offset
    for _ in range(rng.randrange(12)):
        offset += rng.choice((0, 0, 0, rng.randrange(30)))
        if rng.random() < 0.2:
            batches.append(marker_at(offset))
        else:
            times = [rng.randrange(1000) for _ in range(rng.randrange(1, 6))]
            batches.append(batch_of(offset, times, rng.choice((10, 1_000, 5_000, 40_000, 200_000))))
        offset = next(iter_headers(batches[-1]))[1].next_offset
    return log_of(batches, start=start)


@pytest.mark.parametrize("seed", range(20))
async def test_answers_as_unkind_as_the_protocol_allows(seed: int) -> None:
    rng = random.Random(seed)
    logs = by_place(random_log(rng) for _ in range(rng.randrange(1, 20)))
    wanted = [Position(*tp, rng.randrange(log.start, log.end + 1)) for tp, log in logs.items() for _ in range(4)]
    taken: dict[TopicPartition, dict[int, bytes]] = {tp: {} for tp in logs}

    def take(tp: TopicPartition, records: bytes) -> int | None:
        reached = None
        for pos, header in iter_headers(records):
            taken[tp][header.base_offset] = records[pos : pos + header.size_in_bytes]
            reached = header.next_offset
        return reached

    async with leader_of(FetchedLogs(logs, rng), len(logs)) as (_, admin):
        times = (await admin.record_timestamps(wanted)).all()
        (await admin.read_logs({tp: (log.start, log.end) for tp, log in logs.items()}, take)).all()
    assert times == {position: expected(logs, position) for position in wanted}
    assert {tp: list(batches.values()) for tp, batches in taken.items()} == {
        tp: list(log.batches) for tp, log in logs.items()
    }


async def test_logs_of_large_batches_are_read_to_their_ends() -> None:
    logs = by_place(log_of([batch_of(offset, [offset], 2 * MIB) for offset in range(3)]) for _ in range(8))
    logs[TopicPartition(TOPIC, 8)] = log_of([batch_of(0, [1])], end=7)  # its last records were removed
    read: dict[TopicPartition, int] = {}

    def take(tp: TopicPartition, records: bytes) -> int | None:
        read[tp] = max(header.next_offset for _, header in iter_headers(records))
        return read[tp]

    async with leader_of(FetchedLogs(logs), 9) as (_, admin):
        ranges = {tp: (0, log.end) for tp, log in logs.items()}
        assert (await admin.read_logs(ranges, take)).all() == dict.fromkeys(ranges)
        assert sorted(read.values()) == [1, *[3] * 8]
        shorter = await admin.read_logs({TopicPartition(TOPIC, 0): (0, 9)}, take)
    assert "the log ends at offset 3" in str(shorter.failed[TopicPartition(TOPIC, 0)])
