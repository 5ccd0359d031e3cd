"""Transactions over sockets: what each request is told, and what readers see."""

import asyncio
import time
from collections.abc import Sequence

import pytest
from tests.broker.conftest import Connect, Start, Wire
from tests.broker.held import log_of, topic_of
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.describe_producers_request import TopicRequest
from groupkeeper.protocol.messages.describe_transactions_response import TransactionState
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.protocol.record_batch import Record, iter_headers, write_batch

ID = "tx"
NOW = int(time.time() * 1000)
OLD_PRODUCE, VERIFYING_PRODUCE, ADDING_PRODUCE = 10, 11, 12


class Producer:
    """A transactional producer that speaks raw messages; `epoch` and `sequence` are what it believes."""

    def __init__(self, wire: Wire, transactional_id: str = ID) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequence: dict[tuple[str, int], int] = {}

    async def init(self, *, timeout_ms: int = 60_000, version: int = 4) -> int:
        """Takes over the transactional id; returns the error's code."""
        request = m.InitProducerIdRequest(self.transactional_id, timeout_ms)
        answer = await self.wire.call(request, version)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequence.clear()
        return answer.error_code

    async def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        """Adds partitions; returns the codes."""
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[m.AddPartitionsToTxnTopic(topic, partitions)],
        )
        answer = await self.wire.call(request, version)
        (found,) = answer.results_by_topic_v3_and_below
        return [one.partition_error_code for one in found.results_by_partition]

    async def produce(
        self, topic: str, *values: str, partition: int = 0, version: int = OLD_PRODUCE, topic_id: bytes = bytes(16)
    ) -> m.PartitionProduceResponse:
        (answer,) = await self.produce_to(topic, partition, values=values, version=version, topic_id=topic_id)
        return answer

    async def produce_to(
        self, topic: str, *partitions: int, values: Sequence[str], version: int, topic_id: bytes = bytes(16)
    ) -> Sequence[m.PartitionProduceResponse]:
        """Writes the same to several partitions, by one request."""
        parts = []
        for partition in partitions:
            records = write_batch(
                [Record(None, value.encode(), (), NOW) for value in values],
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=self.sequence.get((topic, partition), 0),
                is_transactional=True,
            )
            parts.append(m.PartitionProduceData(partition, records))
        request = m.ProduceRequest(self.transactional_id, -1, 1000, [m.TopicProduceData(topic, topic_id, parts)])
        answers = (await self.wire.call(request, version)).responses[0].partition_responses
        for answer in answers:
            if answer.error_code == 0:
                place = topic, answer.index
                self.sequence[place] = self.sequence.get(place, 0) + len(values)
        return answers

    async def end(self, *, commit: bool, version: int = 4) -> int:
        request = m.EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commit)
        answer = await self.wire.call(request, version)
        if version >= 5 and answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequence.clear()
        return answer.error_code

    async def add_offsets(self, group: str, version: int = 3) -> int:
        request = m.AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group)
        return (await self.wire.call(request, version)).error_code

    async def commit_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        version: int = 3,
        partition: int = 0,
        generation: int = -1,
        topic_id: bytes = ZERO_UUID,
    ) -> int:
        request = m.TxnOffsetCommitRequest(
            self.transactional_id,
            group,
            self.producer_id,
            self.epoch,
            generation,
            topics=[
                m.TxnOffsetCommitRequestTopic(topic, topic_id, [m.TxnOffsetCommitRequestPartition(partition, offset)])
            ],
        )
        answer = await self.wire.call(request, version)
        return answer.topics[0].partitions[0].error_code


@pytest.fixture
async def producer(wire: Wire) -> Producer:
    """A producer that owns its transactional id, and a topic `t` of two partitions."""
    await wire.create("t", 2)
    await find_coordinator(wire)
    made = Producer(wire)
    assert await made.init() == 0
    return made


async def find_coordinator(wire: Wire, key_type: int = 1, key: str = ID) -> None:
    """Asks until the internal topic is there."""
    assert [await wire.find(key, key_type) for _ in range(2)][-1] == 0


async def read(
    wire: Wire, topic: str, *, offset: int = 0, committed: bool = True, max_wait_ms: int = 0
) -> PartitionData:
    topics = [FetchTopic(topic, partitions=[FetchPartition(0, -1, offset, partition_max_bytes=1 << 20)])]
    request = m.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, isolation_level=int(committed), topics=topics)
    return (await wire.call(request, 12)).responses[0].partitions[0]


def spans(data: PartitionData) -> list[tuple[int, int]]:
    return [(header.base_offset, header.next_offset) for _, header in iter_headers(data.records or b"")]


def aborted(data: PartitionData) -> Sequence[tuple[int, int]] | None:
    if data.aborted_transactions is None:
        return None
    return [(one.producer_id, one.first_offset) for one in data.aborted_transactions]


async def end_offset(wire: Wire, topic: str, *, committed: bool) -> int:
    request = m.ListOffsetsRequest(-1, int(committed), [m.ListOffsetsTopic(topic, [m.ListOffsetsPartition(0, -1, -1)])])
    return (await wire.call(request, 8)).topics[0].partitions[0].offset


async def fetch_offset(wire: Wire, group: str, topic: str, *, stable: bool = False) -> tuple[int, int]:
    """Committed offset and code."""
    asked = m.OffsetFetchRequestGroup(group, topics=[m.OffsetFetchRequestTopics(topic, partition_indexes=[0])])
    answer = await wire.call(m.OffsetFetchRequest(groups=[asked], require_stable=stable), 8)
    (found,) = answer.groups[0].topics[0].partitions
    return found.committed_offset, found.error_code


async def describe(wire: Wire, transactional_id: str = ID) -> TransactionState:
    answer = await wire.call(m.DescribeTransactionsRequest([transactional_id]), 0)
    return answer.transaction_states[0]


class TestReading:
    async def test_a_commit_makes_records_stable(self, wire: Wire, producer: Producer) -> None:
        assert await producer.add("t", 0) == [0]
        assert (await producer.produce("t", "a", "b")).base_offset == 0
        hidden = await read(wire, "t")
        assert (spans(hidden), hidden.last_stable_offset, hidden.high_watermark) == ([], 0, 2)
        assert spans(await read(wire, "t", committed=False)) == [(0, 2)]
        assert (await end_offset(wire, "t", committed=True), await end_offset(wire, "t", committed=False)) == (0, 2)
        assert await producer.end(commit=True) == 0
        shown = await read(wire, "t")
        assert (spans(shown), aborted(shown), shown.last_stable_offset) == ([(0, 2), (2, 3)], [], 3)
        assert await end_offset(wire, "t", committed=True) == 3

    async def test_aborted_records_are_named(self, wire: Wire, producer: Producer) -> None:
        for number in range(3):
            assert await producer.add("t", 0) == [0]
            await producer.produce("t", "a")
            assert await producer.end(commit=number == 1) == 0
        shown = await read(wire, "t")
        assert aborted(shown) == [(producer.producer_id, 0), (producer.producer_id, 4)]
        assert aborted(await read(wire, "t", offset=2)) == [(producer.producer_id, 4)]
        assert aborted(await read(wire, "t", committed=False)) is None

    async def test_a_waiting_reader_is_woken_by_the_marker(
        self, broker: Broker, connect: Connect, producer: Producer
    ) -> None:
        await producer.add("t", 0)
        await producer.produce("t", "a")
        reader = await connect(broker)
        reading = asyncio.ensure_future(read(reader, "t", max_wait_ms=20_000))
        await producer.end(commit=True)
        assert spans(await asyncio.wait_for(reading, 10)) == [(0, 1), (1, 2)]

    async def test_open_and_aborted_transactions_outlive_the_broker(
        self, start: Start, connect: Connect, tmp_path: object
    ) -> None:
        broker = await start(directory=tmp_path)
        wire = await connect(broker)
        await wire.create("t", 2)
        await find_coordinator(wire)
        first, second = Producer(wire, "first"), Producer(wire, "second")
        for one in (first, second):
            assert await one.init() == 0
            await one.add("t", 0)
            await one.produce("t", "a")
        assert await first.end(commit=False) == 0
        await broker.stop()
        broker = await start(directory=tmp_path)
        wire = second.wire = await connect(broker)
        shown = await read(wire, "t")
        assert (spans(shown), aborted(shown), shown.last_stable_offset) == ([(0, 1)], [(first.producer_id, 0)], 1)
        assert (await describe(wire, "second")).transaction_state == "Ongoing"
        assert await second.end(commit=True) == 0
        assert (await read(wire, "t")).last_stable_offset == 4
        assert (await describe(wire, "first")).transaction_state == "CompleteAbort"


class TestCoordinator:
    async def test_errors_of_init(self, wire: Wire, producer: Producer) -> None:
        for request, code in (
            (m.InitProducerIdRequest("", 1000), errors.InvalidRequest.code),
            (m.InitProducerIdRequest(ID, 0), errors.InvalidTransactionTimeout.code),
            (m.InitProducerIdRequest(ID, 900_001), errors.InvalidTransactionTimeout.code),
            (m.InitProducerIdRequest(ID, 1000, 5, -1), errors.InvalidRequest.code),
            (m.InitProducerIdRequest(None, 1000, 5, -1), errors.InvalidRequest.code),
            (m.InitProducerIdRequest(ID, 1000, 999, 0), errors.ProducerFenced.code),
            (m.InitProducerIdRequest(ID, 1000, producer.producer_id, 7), errors.ProducerFenced.code),
        ):
            assert (await wire.call(request, 4)).error_code == code
        old = m.InitProducerIdRequest(ID, 1000, 999, 0)
        assert (await wire.call(old, 3)).error_code == errors.InvalidProducerEpoch.code

    async def test_a_new_producer_fences_the_old_one_and_aborts_its_transaction(
        self, wire: Wire, producer: Producer
    ) -> None:
        await producer.add("t", 0)
        await producer.produce("t", "a")
        second = Producer(wire)
        assert await second.init() == errors.ConcurrentTransactions.code
        assert await second.init() == 0
        assert (second.producer_id, second.epoch) == (producer.producer_id, producer.epoch + 2)
        assert (await read(wire, "t")).last_stable_offset == 2
        assert (await producer.produce("t", "b")).error_code == errors.InvalidProducerEpoch.code
        assert await producer.add("t", 0) == [errors.ProducerFenced.code]
        assert await producer.add("t", 0, version=1) == [errors.InvalidProducerEpoch.code]
        assert await producer.end(commit=True) == errors.ProducerFenced.code
        assert await producer.end(commit=True, version=1) == errors.InvalidProducerEpoch.code
        assert await producer.add_offsets("g") in (errors.ProducerFenced.code, errors.CoordinatorNotAvailable.code)

    async def test_add_partitions(self, wire: Wire, producer: Producer) -> None:
        refused = [errors.OperationNotAttempted.code, errors.UnknownTopicOrPartition.code]
        assert await producer.add("t", 0, 7) == refused
        assert await producer.add("__transaction_state", 0) == [errors.TopicAuthorizationFailed.code]
        stranger = Producer(wire, "other")
        assert await stranger.add("t", 0) == [errors.InvalidProducerIdMapping.code]
        assert (await describe(wire)).transaction_state == "Empty"
        # Brokers ask with version 4 and later.
        topics = [m.AddPartitionsToTxnTopic("t", [0, 1])]
        asked = m.AddPartitionsToTxnTransaction(ID, producer.producer_id, producer.epoch, True, topics)
        await producer.add("t", 1)
        answer = await wire.call(m.AddPartitionsToTxnRequest([asked]), 4)
        (topic,) = answer.results_by_transaction[0].topic_results
        codes = {one.partition_index: one.partition_error_code for one in topic.results_by_partition}
        assert codes == {0: errors.TransactionAbortable.code, 1: 0}

    async def test_end(self, wire: Wire, producer: Producer) -> None:
        assert await producer.end(commit=True) == errors.InvalidTxnState.code
        await producer.add("t", 0)
        assert await producer.end(commit=True) == 0
        assert await producer.end(commit=True) == 0, "a repeated request is answered alike"
        assert await producer.end(commit=False) == errors.InvalidTxnState.code
        assert (await read(wire, "t")).high_watermark == 1, "one marker"

    async def test_epochs_of_their_own(self, wire: Wire, producer: Producer) -> None:
        """transaction.version 2: partitions are added by writing, every transaction has its own epoch."""
        epoch = producer.epoch
        topic_id = await wire.create("u")
        assert (await producer.produce("u", "a", version=13, topic_id=topic_id)).error_code == 0
        assert (await describe(wire)).transaction_state == "Ongoing"
        assert await producer.end(commit=True, version=5) == 0
        assert producer.epoch == epoch + 1
        producer.epoch = epoch
        assert await producer.end(commit=True, version=5) == 0, "a repeated request is answered alike"
        assert producer.epoch == epoch + 1
        assert await producer.end(commit=True, version=5) == errors.InvalidTxnState.code
        assert await producer.end(commit=False, version=5) == 0, "aborting nothing is allowed"
        assert producer.epoch == epoch + 2
        assert (await producer.produce("u", "b", version=ADDING_PRODUCE)).error_code == 0
        assert await producer.end(commit=False, version=5) == 0
        shown = await read(wire, "u")
        assert (spans(shown), aborted(shown)) == ([(0, 1), (1, 2), (2, 3), (3, 4)], [(producer.producer_id, 2)])

    async def test_a_timeout_aborts(self, start: Start, connect: Connect) -> None:
        interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        broker = await start(properties={interval: "20"})
        wire = await connect(broker)
        await wire.create("t", 2)
        await find_coordinator(wire)
        producer = Producer(wire)
        await producer.init(timeout_ms=50)
        await producer.add("t", 0)
        await producer.produce("t", "a")
        await becomes(lambda: log_of(broker, "t").log_end_offset > 1)
        assert aborted(await read(wire, "t")) == [(producer.producer_id, 0)]
        assert await producer.end(commit=True) == errors.ProducerFenced.code

    async def test_markers_that_cannot_be_written_are_written_later(
        self, broker: Broker, wire: Wire, producer: Producer
    ) -> None:
        topic = topic_of(broker, "t")
        await producer.add("t", 0, 1)
        await producer.produce("t", "a")
        topic.partitions[1].failure = "the disk is away"
        assert await producer.end(commit=True) == 0, "it is decided"
        assert (await describe(wire)).transaction_state == "PrepareCommit"
        assert (await read(wire, "t")).last_stable_offset == 2
        assert await producer.add("t", 0) == [errors.ConcurrentTransactions.code]
        assert await producer.end(commit=True) == errors.ConcurrentTransactions.code
        topic.partitions[1].failure = None
        await becomes(lambda: topic.partitions[1].log_end_offset > 0)
        assert (await describe(wire)).transaction_state == "CompleteCommit"
        assert (await read(wire, "t")).high_watermark == 2, "one marker"

    async def test_describe_and_list(self, wire: Wire, producer: Producer) -> None:
        await producer.add("t", 0, 1)
        state = await describe(wire)
        assert (state.error_code, state.transaction_state, state.producer_id) == (0, "Ongoing", producer.producer_id)
        assert [(topic.topic, list(topic.partitions)) for topic in state.topics] == [("t", [0, 1])]
        assert (await describe(wire, "nobody")).error_code == errors.TransactionalIdNotFound.code
        for request, expected in (
            (m.ListTransactionsRequest(), [ID]),
            (m.ListTransactionsRequest(["Ongoing"]), [ID]),
            (m.ListTransactionsRequest(["Empty"]), []),
            (m.ListTransactionsRequest(producer_id_filters=[12345]), []),
            (m.ListTransactionsRequest(duration_filter=600_000), []),
        ):
            answer = await wire.call(request, 2)
            assert [one.transactional_id for one in answer.transaction_states] == expected
        answer = await wire.call(m.ListTransactionsRequest(["Sleepy"]), 2)
        assert (list(answer.unknown_state_filters), list(answer.transaction_states)) == (["Sleepy"], [])

    async def test_list_by_a_pattern(self, wire: Wire, producer: Producer) -> None:
        pytest.importorskip("re2", reason="not made for PyPy")
        await producer.add("t", 0, 1)
        for pattern, expected in (("t.*", [ID]), ("y.*", [])):
            request = m.ListTransactionsRequest(transactional_id_pattern=pattern)
            answer = await wire.call(request, 2)
            assert [one.transactional_id for one in answer.transaction_states] == expected
        broken = await wire.call(m.ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert broken.error_code == errors.InvalidRegularExpression.code


class TestWriting:
    @pytest.mark.parametrize(
        ("version", "code"),
        [(OLD_PRODUCE, errors.InvalidTxnState.code), (VERIFYING_PRODUCE, errors.TransactionAbortable.code)],
    )
    async def test_a_partition_must_be_part_of_the_transaction(
        self, wire: Wire, producer: Producer, version: int, code: int
    ) -> None:
        await producer.add("t", 1)
        assert (await producer.produce("t", "a", version=version)).error_code == code
        assert (await read(wire, "t", committed=False)).high_watermark == 0

    async def test_transactional_records_need_a_transactional_id(self, wire: Wire) -> None:
        await wire.create("t")
        records = [Record(None, b"a")]
        batch = write_batch(records, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
        assert (await wire.produce("t", batch)).error_code == errors.TransactionalIdAuthorizationFailed.code

    async def test_other_records_of_the_producer_are_refused_while_a_transaction_is_open(
        self, wire: Wire, producer: Producer
    ) -> None:
        await producer.add("t", 0)
        await producer.produce("t", "a")
        records = [Record(None, b"b", (), NOW)]
        batch = write_batch(records, producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1)
        assert (await wire.produce("t", batch)).error_code == errors.InvalidTxnState.code

    async def test_markers_by_hand(self, wire: Wire, producer: Producer) -> None:
        await producer.add("t", 0)
        await producer.produce("t", "a")
        answer = await wire.call(m.DescribeProducersRequest([TopicRequest("t", [0])]), 0)
        (found,) = answer.topics[0].partitions[0].active_producers
        assert (found.producer_id, found.current_txn_start_offset, found.last_sequence) == (producer.producer_id, 0, 0)
        topics = [m.WritableTxnMarkerTopic("t", [0, 9])]
        marker = m.WritableTxnMarker(producer.producer_id, producer.epoch, False, topics, 0)
        wrote = await wire.call(m.WriteTxnMarkersRequest([marker]), 1)
        codes = [one.error_code for one in wrote.markers[0].topics[0].partitions]
        assert codes == [0, errors.UnknownTopicOrPartition.code]
        assert aborted(await read(wire, "t")) == [(producer.producer_id, 0)]

    @pytest.mark.parametrize("version", [1, 2])
    async def test_a_marker_that_was_under_way_for_long_ends_nothing(
        self, wire: Wire, producer: Producer, version: int
    ) -> None:
        await producer.produce("t", "a", version=ADDING_PRODUCE)
        old_epoch = producer.epoch
        assert await producer.end(commit=True, version=5) == 0
        await producer.produce("t", "b", version=ADDING_PRODUCE)
        for epoch in (old_epoch, producer.epoch):
            late = m.WritableTxnMarker(producer.producer_id, epoch, True, [m.WritableTxnMarkerTopic("t", [0])], 0, 2)
            answer = await wire.call(m.WriteTxnMarkersRequest([late]), version)
            # Version 1 doesn't say that transactions have epochs of their own.
            code = 0 if version == 1 and epoch == producer.epoch else errors.InvalidProducerEpoch.code
            assert answer.markers[0].topics[0].partitions[0].error_code == code


class TestOffsets:
    # GO-20, GO-23, GO-40, GO-41
    async def test_offsets_wait_for_the_end(self, wire: Wire, producer: Producer) -> None:
        await find_coordinator(wire, 0, "g")
        assert await producer.add_offsets("g") == 0
        assert await producer.commit_offset("g", "t", 5) == 0
        assert await fetch_offset(wire, "g", "t") == (-1, 0)
        assert await fetch_offset(wire, "g", "t", stable=True) == (-1, errors.UnstableOffsetCommit.code)
        assert await producer.end(commit=True) == 0
        assert await fetch_offset(wire, "g", "t", stable=True) == (5, 0)
        await producer.add_offsets("g")
        await producer.commit_offset("g", "t", 9)
        assert await producer.end(commit=False) == 0
        assert await fetch_offset(wire, "g", "t", stable=True) == (5, 0)

    # GO-21
    async def test_refusals(self, wire: Wire, producer: Producer) -> None:
        await find_coordinator(wire, 0, "g")
        assert await producer.commit_offset("g", "t", 5) == errors.InvalidTxnState.code
        assert await producer.commit_offset("g", "t", 5, version=4) == errors.TransactionAbortable.code
        assert await producer.commit_offset("g", "t", 5, partition=9) == errors.UnknownTopicOrPartition.code
        assert await producer.commit_offset("g", "nothing", 5) == errors.UnknownTopicOrPartition.code
        assert await producer.commit_offset("", "t", 5) == errors.InvalidGroupId.code
        await producer.add_offsets("g")
        # GO-22
        assert await producer.commit_offset("g", "t", 5, generation=3) == errors.IllegalGeneration.code
        producer.epoch -= 1
        assert await producer.commit_offset("g", "t", 5) == errors.InvalidProducerEpoch.code

    async def test_version_5_adds_the_group_by_itself(self, wire: Wire, producer: Producer) -> None:
        await find_coordinator(wire, 0, "g")
        assert await producer.commit_offset("g", "t", 5, version=5) == 0
        assert await producer.end(commit=True, version=5) == 0
        assert await fetch_offset(wire, "g", "t", stable=True) == (5, 0)

    async def test_version_6_names_topics_by_id_and_says_what_is_wrong(self, wire: Wire, producer: Producer) -> None:
        await find_coordinator(wire, 0, "g")
        answer = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name="t")]), 12)
        topic_id = answer.topics[0].topic_id
        assert await producer.commit_offset("g", "", 5, version=6, topic_id=topic_id) == 0
        found = await producer.commit_offset("g", "", 5, partition=9, version=6, topic_id=topic_id)
        assert found == errors.UnknownTopicOrPartition.code
        assert await producer.commit_offset("g", "", 5, version=6, topic_id=b"?" * 16) == errors.UnknownTopicId.code
        told = await producer.commit_offset("new", "", 5, generation=1, version=6, topic_id=topic_id)
        assert told == errors.GroupIdNotFound.code
        assert await producer.commit_offset("new", "t", 5, generation=1, version=5) == errors.IllegalGeneration.code

    # GR-03, GR-07
    async def test_pending_offsets_outlive_the_broker(self, start: Start, connect: Connect, tmp_path: object) -> None:
        broker = await start(directory=tmp_path)
        wire = await connect(broker)
        await wire.create("t", 2)
        await find_coordinator(wire)
        await find_coordinator(wire, 0, "g")
        producer = Producer(wire)
        await producer.init()
        await producer.add_offsets("g")
        await producer.commit_offset("g", "t", 5)
        await broker.stop()
        broker = await start(directory=tmp_path)
        wire = producer.wire = await connect(broker)
        assert await fetch_offset(wire, "g", "t", stable=True) == (-1, errors.UnstableOffsetCommit.code)
        assert await producer.end(commit=True) == 0
        assert await fetch_offset(wire, "g", "t", stable=True) == (5, 0)
