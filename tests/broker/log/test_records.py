"""Produce, Fetch and ListOffsets as clients see them; every refusal as Apache Kafka 4.3.1 answers it."""

import asyncio
import time

import pytest
from tests.broker.conftest import Connect, Wire
from tests.broker.held import log_of

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records, write_batch

NOW = int(time.time() * 1000)


def batch(count: int = 1, *, timestamp: int = NOW, key: bytes | None = b"k", **arguments: object) -> bytes:
    records = [Record(key, b"v%d" % index, timestamp=timestamp + index) for index in range(count)]
    return write_batch(records, **arguments)  # type: ignore[arg-type]


def damaged() -> bytes:
    whole = bytearray(batch())
    whole[-1] ^= 1
    return bytes(whole)


class TestProduce:
    @pytest.mark.parametrize("version", range(3, 13))
    async def test_every_version_by_name(self, wire: Wire, version: int) -> None:
        await wire.create("t")
        assert [(await wire.produce("t", batch(2), version=version)).base_offset for _ in range(2)] == [0, 2]

    async def test_by_topic_id(self, wire: Wire) -> None:
        topic_id = await wire.create("t")
        for wanted, code in ((topic_id, 0), (b"\x01" * 16, errors.UnknownTopicId.code)):
            topics = [m.TopicProduceData(topic_id=wanted, partition_data=[m.PartitionProduceData(0, batch())])]
            answer = await wire.call(m.ProduceRequest(None, -1, 1000, topics), 13)
            assert answer.responses[0].topic_id == wanted
            assert answer.responses[0].partition_responses[0].error_code == code

    @pytest.mark.parametrize(
        ("records", "code"),
        [
            pytest.param(None, errors.InvalidRecord.code, id="null"),
            pytest.param(b"", errors.InvalidRecord.code, id="empty"),
            pytest.param(b"abc", errors.InvalidRecord.code, id="no-header"),
            pytest.param(batch()[:-5], errors.InvalidRecord.code, id="cut-short"),
            pytest.param(batch() + batch(), errors.InvalidRecord.code, id="two-batches"),
            pytest.param(batch()[:16] + b"\x01" + batch()[17:], errors.InvalidRecord.code, id="old-format"),
            pytest.param(batch(base_offset=5), errors.InvalidRecord.code, id="base-offset"),
            pytest.param(batch(is_control=True), errors.InvalidRecord.code, id="control"),
            pytest.param(
                batch(producer_id=1, producer_epoch=0, base_sequence=-1), errors.InvalidRecord.code, id="no-sequence"
            ),
            pytest.param(
                batch(is_transactional=True), errors.TransactionalIdAuthorizationFailed.code, id="no-transaction"
            ),
            pytest.param(damaged(), errors.CorruptMessage.code, id="checksum"),
        ],
    )
    async def test_bad_batches(self, wire: Wire, records: bytes | None, code: int) -> None:
        await wire.create("t")
        answer = await wire.produce("t", records)
        assert (answer.error_code, answer.base_offset, answer.error_message) == (code, -1, None)
        assert (await wire.list_offset("t", -1)).offset == 0

    async def test_zstd_needs_version_7(self, wire: Wire) -> None:
        await wire.create("t")
        packed = batch(compression="zstd")
        code = errors.UnsupportedCompressionType.code
        assert (await wire.produce("t", packed, version=6)).error_code == code
        assert (await wire.produce("t", packed, version=7)).error_code == 0

    async def test_unknown_partitions(self, wire: Wire) -> None:
        await wire.create("t")
        for topic, partition in (("nope", 0), ("t", 1), ("t", -1)):
            answer = await wire.produce(topic, batch(), partition=partition)
            assert answer.error_code == errors.UnknownTopicOrPartition.code

    async def test_a_batch_larger_than_the_topic_allows(self, wire: Wire) -> None:
        await wire.create("t", max_message_bytes="100")
        assert (await wire.produce("t", batch(20))).error_code == errors.MessageTooLarge.code

    async def test_timestamps_from_the_future_are_refused_one_by_one(self, wire: Wire) -> None:
        await wire.create("t", message_timestamp_after_max_ms="1000000")
        now = int(time.time() * 1000)
        records = [Record(b"k", b"v", timestamp=stamp) for stamp in (now, now + 2_000_000, now + 3_000_000)]
        answer = await wire.produce("t", write_batch(records))
        assert answer.error_code == errors.InvalidTimestamp.code
        assert [one.batch_index for one in answer.record_errors] == [1, 2]
        assert answer.error_message == "One or more records have been rejected due to invalid timestamp"

    async def test_timestamps_from_the_past_are_a_setting(self, wire: Wire) -> None:
        await wire.create("t", message_timestamp_before_max_ms="1000")
        assert (await wire.produce("t", batch(timestamp=1))).error_code == errors.InvalidTimestamp.code
        assert (await wire.produce("t", batch(timestamp=-1))).error_code == 0

    async def test_log_append_time(self, wire: Wire) -> None:
        await wire.create("t", message_timestamp_type="LogAppendTime")
        answer = await wire.produce("t", batch(timestamp=1))
        assert abs(answer.log_append_time_ms - time.time() * 1000) < 60_000
        fetched = await wire.fetch("t", 0)
        assert read_records(fetched.records or b"")[0].timestamp == answer.log_append_time_ms

    async def test_a_compacted_topic_wants_keys(self, wire: Wire) -> None:
        await wire.create("t", cleanup_policy="compact")
        assert (await wire.produce("t", batch(3))).error_code == 0
        answer = await wire.produce("t", batch(2, key=None))
        assert answer.error_code == errors.InvalidRecord.code
        assert [one.batch_index for one in answer.record_errors] == [0, 1]
        assert "without key in topic partition t-0" in str(answer.record_errors[0].batch_index_error_message)

    async def test_internal_topics_are_not_for_everybody(self, wire: Wire) -> None:
        await wire.create("__consumer_offsets", cleanup_policy="compact")
        answer = await wire.produce("__consumer_offsets", batch())
        assert answer.error_code == errors.InvalidTopicException.code

    async def test_without_acknowledgement_there_is_no_answer(self, wire: Wire) -> None:
        await wire.create("t")
        data = [m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, batch())])]
        for _ in range(3):
            wire.send(m.ProduceRequest(None, 0, 1000, data), 9)
        assert (await wire.list_offset("t", -1)).offset == 3

    async def test_other_acknowledgements_are_refused(self, wire: Wire) -> None:
        await wire.create("t")
        data = [m.TopicProduceData("t", partition_data=[m.PartitionProduceData(0, batch())])]
        answer = await wire.call(m.ProduceRequest(None, 2, 1000, data), 9)
        assert answer.responses[0].partition_responses[0].error_code == errors.InvalidRequiredAcks.code

    async def test_one_bad_partition_does_not_spoil_the_others(self, wire: Wire) -> None:
        await wire.create("t", 2)
        parts = [
            m.PartitionProduceData(0, b"x"),
            m.PartitionProduceData(1, batch()),
            m.PartitionProduceData(7, batch()),
        ]
        topics = [m.TopicProduceData("nope", partition_data=parts[:1]), m.TopicProduceData("t", partition_data=parts)]
        answer = await wire.call(m.ProduceRequest(None, -1, 1000, topics), 9)
        codes = [[part.error_code for part in topic.partition_responses] for topic in answer.responses]
        assert codes == [[3], [errors.InvalidRecord.code, 0, 3]]


class TestIdempotentProducers:
    async def test_ids_differ(self, wire: Wire) -> None:
        answers = [await wire.call(m.InitProducerIdRequest(None), 4) for _ in range(3)]
        assert len({answer.producer_id for answer in answers}) == 3
        assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}

    async def test_sequences(self, wire: Wire) -> None:
        await wire.create("t")

        async def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
            records = batch(3, producer_id=9, producer_epoch=epoch, base_sequence=sequence)
            answer = await wire.produce("t", records)
            return answer.error_code, answer.base_offset

        assert await send(0) == (0, 0)
        assert await send(3) == (0, 3)
        assert await send(0) == (0, 0)  # a repetition
        assert await send(9) == (errors.OutOfOrderSequenceNumber.code, -1)
        assert await send(0, epoch=1) == (0, 6)
        assert await send(6) == (errors.InvalidProducerEpoch.code, -1)


class TestFetch:
    @pytest.mark.parametrize("version", range(4, 13))
    async def test_every_version_by_name(self, wire: Wire, version: int) -> None:
        await wire.create("t")
        await wire.produce("t", batch(3))
        answer = await wire.fetch("t", 1, version=version)
        assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
        assert [record.offset for record in read_records(answer.records or b"")] == [0, 1, 2]

    @pytest.mark.parametrize("version", range(13, 19))
    async def test_by_topic_id(self, wire: Wire, version: int) -> None:
        topic_id = await wire.create("t")
        await wire.produce("t", batch())
        part = [FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)]
        topics = [FetchTopic(topic_id=topic_id, partitions=part), FetchTopic(topic_id=b"\x01" * 16, partitions=part)]
        answer = await wire.call(m.FetchRequest(max_wait_ms=0, topics=topics), version)
        known, unknown = (topic.partitions[0] for topic in answer.responses)
        assert len(read_records(known.records or b"")) == 1
        assert unknown.error_code == errors.UnknownTopicId.code

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            ({"offset": 2}, errors.OffsetOutOfRange.code),
            ({"offset": -1}, errors.OffsetOutOfRange.code),
            ({"offset": 0, "partition": 1}, errors.UnknownTopicOrPartition.code),
            ({"offset": 0, "topic": "nope"}, errors.UnknownTopicOrPartition.code),
            ({"offset": 0, "leader_epoch": 5}, errors.UnknownLeaderEpoch.code),
        ],
    )
    async def test_errors_do_not_wait(self, wire: Wire, arguments: dict[str, int], code: int) -> None:
        await wire.create("t")
        await wire.produce("t", batch())
        answer = await asyncio.wait_for(wire.fetch(**{"topic": "t", **arguments}, max_wait_ms=60_000), 30)  # type: ignore[arg-type]
        assert (answer.error_code, answer.high_watermark, answer.records) == (code, -1, b"")

    async def test_waits_for_the_first_record(self, broker: Broker, connect: Connect) -> None:
        reader, writer = await connect(broker), await connect(broker)
        await writer.create("t", 2)
        waiting = asyncio.ensure_future(reader.fetch("t", 0, partition=1, max_wait_ms=60_000))
        await writer.produce("t", batch())  # to another partition
        await writer.produce("t", batch(2), partition=1)
        answer = await asyncio.wait_for(waiting, 30)
        assert answer.high_watermark == 2

    async def test_waits_for_enough_bytes(self, broker: Broker, connect: Connect) -> None:
        reader, writer = await connect(broker), await connect(broker)
        await writer.create("t")
        await writer.produce("t", batch())
        size = len(batch())
        waiting = asyncio.ensure_future(reader.fetch("t", 0, max_wait_ms=60_000, min_bytes=3 * size))
        await writer.produce("t", batch())
        await writer.produce("t", batch())
        answer = await asyncio.wait_for(waiting, 30)
        assert len(answer.records or b"") == 3 * size

    async def test_gives_what_there_is_when_the_time_is_over(self, wire: Wire) -> None:
        await wire.create("t")
        await wire.produce("t", batch())
        begun = time.monotonic()
        answer = await wire.fetch("t", 0, max_wait_ms=100, min_bytes=1_000_000)
        assert len(read_records(answer.records or b"")) == 1
        assert time.monotonic() - begun >= 0.1

    async def test_a_deleted_topic_ends_the_wait(self, broker: Broker, connect: Connect) -> None:
        reader, other = await connect(broker), await connect(broker)
        await other.create("t")
        waiting = asyncio.ensure_future(reader.fetch("t", 0, max_wait_ms=60_000))
        log = broker.topics.partition("t", 0)
        while not log.waiters:  # type: ignore[union-attr]
            await other.list_offset("t", -1)
        await other.call(m.DeleteTopicsRequest(topic_names=["t"]), 5)
        answer = await asyncio.wait_for(waiting, 30)
        assert answer.error_code == errors.UnknownTopicOrPartition.code

    async def test_a_client_that_goes_away_leaves_no_waiter(self, broker: Broker, connect: Connect) -> None:
        reader, other = await connect(broker), await connect(broker)
        await other.create("t")
        part = FetchPartition(0, fetch_offset=0, partition_max_bytes=100)
        reader.send(m.FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic("t", partitions=[part])]), 12)
        log = log_of(broker, "t")
        while not log.waiters:
            await other.list_offset("t", -1)
        reader.writer.transport.abort()
        while log.waiters:
            await other.list_offset("t", -1)

    async def test_the_limits_of_an_answer(self, wire: Wire) -> None:
        await wire.create("t", 3)
        for partition in range(3):
            for _ in range(10):
                await wire.produce("t", batch(), partition=partition)
        size = len(batch())
        parts = [FetchPartition(index, fetch_offset=0, partition_max_bytes=4 * size) for index in range(3)]
        request = m.FetchRequest(max_wait_ms=0, max_bytes=6 * size, topics=[FetchTopic("t", partitions=parts)])
        answer = await wire.call(request, 12)
        counts = [len(list(iter_headers(part.records or b""))) for part in answer.responses[0].partitions]
        assert counts == [4, 2, 0]

    async def test_progress_past_any_limit(self, wire: Wire) -> None:
        await wire.create("t", 2)
        for partition in range(2):
            await wire.produce("t", batch(100), partition=partition)
        parts = [FetchPartition(index, fetch_offset=0, partition_max_bytes=1) for index in range(2)]
        request = m.FetchRequest(max_wait_ms=0, max_bytes=1, topics=[FetchTopic("t", partitions=parts)])
        answer = await wire.call(request, 12)
        assert len(read_records(answer.responses[0].partitions[0].records or b"")) == 100
        assert answer.responses[0].partitions[1].records == b""


class TestListOffsets:
    @pytest.mark.parametrize("version", range(1, 12))
    async def test_every_version(self, wire: Wire, version: int) -> None:
        await wire.create("t")
        await wire.produce("t", batch(3, timestamp=1000))
        epoch = 0 if version >= 4 else -1
        for wanted, found in (
            (-1, (-1, 3, epoch)),
            (-2, (-1, 0, epoch)),
            (1001, (1001, 1, epoch)),
            (5000, (-1, -1, -1)),
        ):
            answer = await wire.list_offset("t", wanted, version=version)
            assert (answer.timestamp, answer.offset, answer.leader_epoch) == found

    @pytest.mark.parametrize(
        ("timestamp", "since", "found"),
        [(-3, 7, (1002, 2)), (-4, 8, (-1, 0)), (-5, 9, (-1, -1)), (-6, 11, (-1, -1)), (-7, 99, None)],
    )
    async def test_special_timestamps(
        self, wire: Wire, timestamp: int, since: int, found: tuple[int, int] | None
    ) -> None:
        await wire.create("t")
        await wire.produce("t", batch(3, timestamp=1000))
        for version in (1, since - 1, since):
            if not 1 <= version <= 11:
                continue
            answer = await wire.list_offset("t", timestamp, version=version)
            if version < since:
                assert answer.error_code == errors.UnsupportedVersion.code
            else:
                assert (answer.timestamp, answer.offset) == found

    async def test_an_empty_partition(self, wire: Wire) -> None:
        await wire.create("t")
        for wanted, found in ((-1, 0), (-2, 0), (-3, -1), (0, -1)):
            assert (await wire.list_offset("t", wanted)).offset == found

    async def test_errors(self, wire: Wire) -> None:
        await wire.create("t")
        assert (await wire.list_offset("nope", -1)).error_code == errors.UnknownTopicOrPartition.code
        assert (await wire.list_offset("t", -1, partition=1)).error_code == errors.UnknownTopicOrPartition.code
        assert (await wire.list_offset("t", -1, leader_epoch=1)).error_code == errors.UnknownLeaderEpoch.code
