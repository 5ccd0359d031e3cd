"""The fetches of a task, from a broker without Spark: what arrives, and what is said when nothing does."""

import asyncio
import gc
import random
import signal
import socket
from collections.abc import Callable

import pytest
from google_crc32c import value as crc32c
from tests.acts import cut, make_topic, produce
from tests.unit.client.fetched_logs import FetchedLogs, batch_of, log_of
from tests.unit.client.scripted_broker import ScriptedBroker

from groupkeeper.client.admin.types import TopicPartition as Place
from groupkeeper.pipeline.decode.records import records_seen
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance import quality
from groupkeeper.pipeline.kafka.fetching import fetch
from groupkeeper.pipeline.kafka.options import ReadOptions, parse_options
from groupkeeper.pipeline.kafka.planning import Range
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.record_batch import HEADER_SIZE, Record, write_batch
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60
RECORDS = 100


@pytest.fixture(scope="module")
def servers(broker: BackgroundBroker) -> str:
    """A broker with the topic `t`: partition 0 has all its records, 1 has lost the first 40."""
    servers = broker.bootstrap_servers
    make_topic(servers, "t", 2)
    produce(servers, "t", map(str, range(2 * RECORDS)), (0, 1), client={"batch.num.messages": 10})
    cut(servers, "t", 40, 1)
    return servers


def options_of(servers: str, **more: str) -> ReadOptions:
    properties = {"kafka.retry.backoff.ms": "1", "kafka.retry.backoff.max.ms": "1"}
    return parse_options({"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": "t", **properties, **more})


def piece(partition: int, start: int, end: int, topic: str = "t") -> Range:
    return Range(0, "c", topic, partition, start, end)


def offsets(ranges: list[Range], options: ReadOptions) -> dict[int, list[int]]:
    """What arrives, by partition."""
    found: dict[int, list[int]] = {}
    for fetched in fetch(ranges, options):
        records = records_seen(fetched.batches, fetched.sets)
        for number, offset in zip(records.set_index.tolist(), records.offset.tolist(), strict=True):
            found.setdefault(fetched.ranges[number].partition, []).append(offset)
    return found


@pytest.mark.parametrize("bytes_of_partition", ["1", "1000000"])
def test_every_offset_of_the_ranges_arrives_once(servers: str, bytes_of_partition: str) -> None:
    """Two ranges of one partition too, and batches larger than what is asked for."""
    options = options_of(servers, **{"kafka.max.partition.fetch.bytes": bytes_of_partition})
    found = offsets([piece(0, 3, 25), piece(1, 40, 100), piece(0, 25, 77)], options)
    assert found == {0: list(range(3, 77)), 1: list(range(40, 100))}


@pytest.mark.parametrize("seed", range(3))
def test_an_unkind_broker_is_read_whole(broker: BackgroundBroker, servers: str, seed: int) -> None:
    options = options_of(servers, **{"kafka.max.partition.fetch.bytes": "500"})
    unkindness = broker.faults.unkind(seed)
    try:
        found = offsets([piece(0, 3, 77), piece(1, 40, 100)], options)
    finally:
        broker.faults.clear()
    assert found == {0: list(range(3, 77)), 1: list(range(40, 100))}
    assert unkindness.hits


def test_a_range_is_given_up_once_it_is_done(servers: str) -> None:
    seen: set[int] = set()

    def is_done(found: Range) -> bool:
        return found.partition in seen

    count = 0
    pieces = [piece(0, 0, 100), piece(0, 0, 100)]
    for fetched in fetch(pieces, options_of(servers, **{"kafka.max.partition.fetch.bytes": "1"}), is_done=is_done):
        seen |= {each.partition for each in fetched.ranges}
        count += 1
    assert 1 <= count <= 2  # a fetch was under way


def test_offsets_that_went_meanwhile(servers: str) -> None:
    with pytest.raises(SourceError) as caught:
        offsets([piece(1, 10, 60)], options_of(servers))
    assert str(caught.value).startswith("cluster c, partition t-1: offsets 10 to 39 were removed while they were to be")
    some = options_of(servers, failOnDataLoss="false")
    assert offsets([piece(1, 10, 60)], some) == {1: list(range(40, 60))}
    assert offsets([piece(1, 10, 40)], some) == {}
    with pytest.raises(SourceError, match="t-0: offset 500 is beyond the end of the log, which has been cut since"):
        offsets([piece(0, 500, 600)], some)


def test_a_partition_without_a_leader_is_waited_for_and_named(servers: str) -> None:
    options = options_of(servers, **{"kafkaConsumer.pollTimeoutMs": "1000"})
    with pytest.raises(SourceError) as caught:
        offsets([piece(0, 7, 9, "nowhere")], options)
    text = "cluster c, partition nowhere-0, offset 7: nothing could be read for 1000 ms (kafkaConsumer.pollTimeoutMs): "
    assert str(caught.value).startswith(f"{text}UnknownTopicOrPartition")


async def test_a_log_whose_end_was_cleaned_away_is_read_to_its_end() -> None:
    """Apache Kafka answers with nothing where compaction has left nothing before the last stable offset."""

    def answer(request: m.FetchRequest, version: int) -> m.FetchResponse:
        start = request.topics[0].partitions[0].fetch_offset
        records = write_batch([Record(b"k", b"v")]) if start == 0 else None
        partition = PartitionData(0, 0, 5, 3, records=records)
        return m.FetchResponse(responses=[m.FetchableTopicResponse("t", partitions=[partition])])

    async with ScriptedBroker(handlers={"Fetch": answer}) as broker:
        broker.topics["t"] = [broker.node_id]
        options = options_of(broker.bootstrap_servers, **{"kafkaConsumer.pollTimeoutMs": "1000"})
        assert await asyncio.to_thread(offsets, [piece(0, 0, 3)], options) == {0: [0]}
        uncommitted = options_of(broker.bootstrap_servers, **{"kafka.isolation.level": "read_uncommitted"})
        assert await asyncio.to_thread(offsets, [piece(0, 0, 5)], uncommitted) == {0: [0]}
        with pytest.raises(SourceError, match="nothing could be read for 1000 ms"):  # it may still come
            await asyncio.to_thread(offsets, [piece(0, 0, 4)], options)


def rows(ranges: list[Range], options: ReadOptions) -> list[object]:
    return list(read_ranges(ranges, options._replace(includes_headers=True)))


@pytest.mark.parametrize(("at", "read"), [(HEADER_SIZE, quality._log), (HEADER_SIZE, rows), (-1, rows)])
async def test_malformed_records_are_named(at: int, read: Callable[..., object]) -> None:
    """Their checksum is right: a client has written them so."""
    batch = bytearray(write_batch([Record(b"k", b"v")]))
    batch[at] += 2  # the record's length, or the number of its headers
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    logs = FetchedLogs({Place("t", 0): log_of([bytes(batch)])})
    async with ScriptedBroker(1, handlers={"Fetch": logs}) as broker:
        broker.topics["t"] = [1]
        with pytest.raises(SourceError, match=r"^cluster c, partition t-0, offset 0: corrupt batch: "):
            await asyncio.to_thread(read, [piece(0, 0, 1)], options_of(broker.bootstrap_servers))


@pytest.mark.parametrize("seed", range(5))
async def test_answers_as_unkind_as_the_protocol_allows(seed: int) -> None:
    """Empty for want of room, short, reordered, throttled, refused: every record arrives once all the same."""
    rng = random.Random(seed)
    sizes = (10, 5_000, 300_000)
    logs = {
        Place("t", number): log_of([batch_of(2 * at, [1, 2], rng.choice(sizes)) for at in range(rng.randrange(6))])
        for number in range(8)
    }
    pieces = [piece(tp.partition, 0, log.end) for tp, log in logs.items() if log.end]
    async with ScriptedBroker(1, handlers={"Fetch": FetchedLogs(logs, rng)}) as broker:
        broker.topics["t"] = [1] * len(logs)
        options = options_of(broker.bootstrap_servers, **{"kafka.max.partition.fetch.bytes": "8000"})
        found = await asyncio.to_thread(offsets, pieces, options)
    assert found == {each.partition: list(range(each.end)) for each in pieces}


@pytest.mark.parametrize("after_fetches", [0, 1])
def test_an_interruption_leaves_nothing_behind(
    servers: str, after_fetches: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C while the brokers do not answer: no task is pending when its loop is gone, of which asyncio would tell."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = servers if after_fetches else f"127.0.0.1:{silent.getsockname()[1]}"
        fetched = fetch([piece(0, 0, RECORDS + 1)], options_of(address))  # its last offset never comes
        for _ in range(after_fetches):
            next(fetched)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                list(fetched)
        finally:
            signal.signal(signal.SIGALRM, before)
    gc.collect()
    assert caplog.records == []
