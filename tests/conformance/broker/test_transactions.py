"""Transactions of real producers: what readers of committed records see. tests/durability has kills in their midst."""

import asyncio
import time
import uuid
from collections import Counter

import aiokafka
import kafka
import kafka.structs
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.acts import begin_transaction, produce
from tests.conformance.brokers import RunningBroker, wait_for
from tests.conformance.conftest import make_topic

PATIENCE = 20.0

pytestmark = pytest.mark.timeout(120)


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def new_producer(servers: str, transactional_id: str) -> Producer:
    times: dict[str, str | int | float | bool] = {"transaction.timeout.ms": 30_000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": servers, "transactional.id": transactional_id, **times})
    producer.init_transactions(PATIENCE)
    return producer


def new_consumer(servers: str, group: str, isolation: str = "read_committed") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "session.timeout.ms": 6_000,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )


def read_all(servers: str, topic: str, partitions: int, isolation: str = "read_committed") -> list[bytes]:
    """The values that a reader finds up to the end of every partition."""
    consumer = new_consumer(servers, new_name("reader"), isolation)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"no end of {topic} in sight"
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.append(message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            partition = message.partition()
            assert partition is not None
            ended.add(partition)
        else:
            raise KafkaException(error)
    consumer.close()
    return values


def committed(servers: str, group: str, topic: str, partition: int = 0) -> int:
    """The committed offset, as a consumer asks for it: it waits while a transaction has it pending."""
    consumer = new_consumer(servers, group)
    (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=PATIENCE)
    consumer.close()
    return int(found.offset)


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = new_name("txn")
    make_topic(admin, name, 2)
    return name


@pytest.fixture
def output(admin: AdminClient) -> str:
    name = new_name("out")
    make_topic(admin, name, 2)
    return name


class TestOneProducer:
    def test_committed_records_are_seen_and_aborted_ones_are_not(self, broker: RunningBroker, topic: str) -> None:
        servers = broker.bootstrap_servers
        producer = new_producer(servers, new_name("id"))
        for number in range(10):
            producer.begin_transaction()
            for partition in range(2):
                producer.produce(topic, str(number).encode(), partition=partition)
            if number % 2:
                producer.abort_transaction(PATIENCE)
            else:
                producer.commit_transaction(PATIENCE)
        expected = Counter({str(number).encode(): 2 for number in range(0, 10, 2)})
        assert Counter(read_all(servers, topic, 2)) == expected
        everything = Counter(read_all(servers, topic, 2, "read_uncommitted"))
        # An abort may overtake what was not sent yet.
        assert everything & expected == expected

    def test_an_open_transaction_hides_what_follows(self, broker: RunningBroker, topic: str) -> None:
        servers = broker.bootstrap_servers
        slow = begin_transaction(servers, new_name("id"), topic, [b"slow"])
        produce(servers, topic, [b"later"])
        assert read_all(servers, topic, 2) == []
        assert read_all(servers, topic, 2, "read_uncommitted") == [b"slow", b"later"]
        slow.commit_transaction(PATIENCE)
        assert read_all(servers, topic, 2) == [b"slow", b"later"]

    def test_a_second_producer_of_the_same_id_fences_the_first(self, broker: RunningBroker, topic: str) -> None:
        servers, transactional_id = broker.bootstrap_servers, new_name("id")
        first = begin_transaction(servers, transactional_id, topic, [b"first"])
        second = new_producer(servers, transactional_id)
        with pytest.raises(KafkaException) as caught:
            first.commit_transaction(PATIENCE)
        assert caught.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
        assert caught.value.args[0].fatal()
        second.begin_transaction()
        second.produce(topic, b"second", partition=0)
        second.commit_transaction(PATIENCE)
        assert read_all(servers, topic, 2) == [b"second"]

    def test_a_transaction_that_takes_too_long_is_aborted(self, broker: RunningBroker, topic: str) -> None:
        servers = broker.bootstrap_servers
        producer = begin_transaction(servers, new_name("id"), topic, [b"late"], **{"transaction.timeout.ms": 1_000})
        produce(servers, topic, [b"later"])
        wait_for(lambda: read_all(servers, topic, 2) == [b"later"], "the late transaction is aborted", 30)
        with pytest.raises(KafkaException):
            producer.commit_transaction(PATIENCE)


class TestOffsets:
    # GO-23, GO-40, GO-41
    def test_offsets_are_published_by_the_commit_and_dropped_by_an_abort(
        self, broker: RunningBroker, topic: str
    ) -> None:
        servers, group = broker.bootstrap_servers, new_name("group")
        consumer = new_consumer(servers, group)
        producer = new_producer(servers, new_name("id"))
        for offset, end, expected in ((5, "commit", 5), (7, "abort", 5), (9, "commit", 9)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), PATIENCE
            )
            if end == "commit":
                producer.commit_transaction(PATIENCE)
            else:
                producer.abort_transaction(PATIENCE)
            assert committed(servers, group, topic) == expected
        consumer.close()

    def test_each_input_has_one_output(self, broker: RunningBroker, topic: str, output: str) -> None:
        """Consume, transform, produce; some transactions are aborted and their input is read again."""
        servers, group = broker.bootstrap_servers, new_name("group")
        produce(servers, topic, map(str, range(300)), (0, 1), client={"enable.idempotence": "true"})
        loop = Loop(servers, topic, output, group)
        aborted = 0
        while len(loop.done) < 300:
            aborted += not loop.turn(aborts=aborted < 5 and len(loop.done) >= 50 * aborted)
        loop.close()
        assert aborted == 5
        assert Counter(read_all(servers, output, 2)) == Counter(b"%d!" % number for number in range(300))
        assert sum(committed(servers, group, topic, index) for index in range(2)) == 300


class TestOtherClients:
    def test_kafka_python(self, broker: RunningBroker, topic: str) -> None:
        servers, group = broker.bootstrap_servers, new_name("group")
        producer = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id=new_name("id"))
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, str(number).encode(), partition=0)
            place = kafka.TopicPartition(topic, 0)
            producer.send_offsets_to_transaction({place: kafka.structs.OffsetAndMetadata(number, "", -1)}, group)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()
        assert read_all(servers, topic, 2) == [b"0", b"2", b"4"]
        assert committed(servers, group, topic) == 4

    async def test_aiokafka(self, broker: RunningBroker, topic: str) -> None:
        servers, group = broker.bootstrap_servers, new_name("group")
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id=new_name("id")) as producer:
            for number in range(6):
                await producer.begin_transaction()
                await producer.send(topic, str(number).encode(), partition=0)
                await producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): number}, group)
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        async with consumer:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            values = [(await asyncio.wait_for(consumer.getone(), PATIENCE)).value for _ in range(3)]
        assert values == [b"0", b"2", b"4"]
        assert await asyncio.to_thread(committed, servers, group, topic) == 4


class Loop:
    """Reads a topic, writes each value with an exclamation mark to another one, exactly once."""

    def __init__(
        self, servers: str, topic: str, output: str, group: str, transactional_id: str = "", *, batch: int = 25
    ) -> None:
        self.done: set[bytes] = set()
        self._batch = batch
        self._servers = servers
        self._topic = topic
        self._output = output
        self._group = group
        self._transactional_id = transactional_id or new_name("id")
        self._open()

    def _open(self) -> None:
        self._producer = new_producer(self._servers, self._transactional_id)
        self._consumer = new_consumer(self._servers, self._group)
        self._consumer.subscribe([self._topic])

    def turn(self, *, aborts: bool = False) -> bool:
        """One transaction; whether it was committed."""
        found = [message for message in self._consumer.consume(self._batch, 0.5) if message.error() is None]
        if not found:
            return True
        self._producer.begin_transaction()
        for message in found:
            value, partition = (message.value() or b"") + b"!", message.partition()
            assert partition is not None
            self._producer.produce(self._output, value, partition=partition)
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()), self._consumer.consumer_group_metadata(), PATIENCE
        )
        if aborts:
            self._producer.abort_transaction(PATIENCE)
            self.again()
            return False
        self._producer.commit_transaction(PATIENCE)
        self.done.update(message.value() or b"" for message in found)
        return True

    def again(self) -> None:
        """Back to what is committed."""
        self._consumer.close()
        self._consumer = new_consumer(self._servers, self._group)
        self._consumer.subscribe([self._topic])

    def close(self) -> None:
        self._consumer.close()
