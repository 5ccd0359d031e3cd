"""The real client libraries, each behind the same small face, so that one test says what all of them must see."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import aiokafka
import confluent_kafka
import kafka
import kafka.codec
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

T = TypeVar("T")
PATIENCE_S = 20.0
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Sent(NamedTuple):
    """A record to produce; partition None lets the client choose, timestamp_ms None lets it take its clock."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int | None = None


class Received(NamedTuple):
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@dataclass(frozen=True)
class ProducerOptions:
    acks: str = "all"
    compression: str = "none"
    idempotent: bool = False


@dataclass(frozen=True)
class ConsumerOptions:
    """group None: no group, partitions by assign only; instance_id: a static member; extra: properties of the library;
    None takes one away.
    """

    group: str | None = None
    strategy: str = "range"
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    auto_commit: bool = False
    offset_reset: str = "earliest"
    extra: Mapping[str, Any] = field(default_factory=dict)


class Consumer(Protocol):
    """Committed offsets and offsets for times are None where there is none. All waits are bounded by PATIENCE_S."""

    def subscribe(self, topics: Sequence[str]) -> None: ...

    def assign(self, partitions: Sequence[TopicPartition]) -> None: ...

    def poll(self, timeout: float = 0.1) -> list[Received]: ...

    def assignment(self) -> set[TopicPartition]: ...

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None, metadata: str = "") -> None: ...

    def commit_async(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Send the commit without waiting; the answer is awaited by a later poll or commit."""

    def committed(self, partition: TopicPartition) -> int | None: ...

    def position(self, partition: TopicPartition) -> int: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...

    def pause(self, partitions: Sequence[TopicPartition]) -> None: ...

    def resume(self, partitions: Sequence[TopicPartition]) -> None: ...

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the one after the last."""

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int | None: ...

    def close(self) -> None: ...


class Client(Protocol):
    name: str
    strategies: tuple[str, ...]

    def compressions(self) -> set[str]:
        """What this installation of the library can compress with."""

    def produce(
        self, servers: str, topic: str, records: Iterable[Sent], options: ProducerOptions = ProducerOptions()
    ) -> list[tuple[int, int]]:
        """(partition, offset) of each record, in order; offsets are -1 or 0 with acks=0. Raises on any failure."""

    def consumer(self, servers: str, options: ConsumerOptions) -> Consumer: ...


# --------------------------------------------------------------------------------------------- confluent-kafka


# librdkafka reports these as events and tries again by itself.
PASSING_ERRORS = (
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.NOT_COORDINATOR,
    confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
    confluent_kafka.KafkaError._TRANSPORT,
)


class ConfluentConsumer:
    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "log_level": 2,
            "group.id": options.group or "unused",
            "partition.assignment.strategy": options.strategy,
            "session.timeout.ms": options.session_timeout_ms,
            "heartbeat.interval.ms": 300,
            "enable.auto.commit": options.auto_commit,
            "auto.commit.interval.ms": 200,
            "enable.auto.offset.store": True,
            "auto.offset.reset": options.offset_reset,
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if options.instance_id is not None:
            settings["group.instance.id"] = options.instance_id
        self._has_group = options.group is not None
        given = settings | dict(options.extra)
        self._c = confluent_kafka.Consumer({name: value for name, value in given.items() if value is not None})

    def subscribe(self, topics: Sequence[str]) -> None:
        self._c.subscribe(list(topics))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        # Without a group, librdkafka must not go and ask for committed offsets.
        start = confluent_kafka.OFFSET_INVALID if self._has_group else confluent_kafka.OFFSET_BEGINNING
        self._c.assign([confluent_kafka.TopicPartition(p.topic, p.partition, start) for p in partitions])

    def poll(self, timeout: float = 0.1) -> list[Received]:
        out = []
        for m in self._c.consume(500, timeout):
            if (error := m.error()) is not None:
                if error.retriable() or error.code() in PASSING_ERRORS:
                    continue
                raise confluent_kafka.KafkaException(error)
            headers = tuple(m.headers() or ())
            fields: Any = (m.topic(), m.partition(), m.offset(), m.key(), m.value(), headers, m.timestamp()[1])
            out.append(Received(*fields))
        return out

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(p.topic, p.partition) for p in self._c.assignment()}

    @staticmethod
    def _offsets(offsets: Mapping[TopicPartition, int], metadata: str = "") -> list[Any]:
        return [confluent_kafka.TopicPartition(p.topic, p.partition, o, metadata) for p, o in offsets.items()]

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None, metadata: str = "") -> None:
        if offsets is None:
            done = self._c.commit(asynchronous=False)
        else:
            done = self._c.commit(offsets=self._offsets(offsets, metadata), asynchronous=False)
        for p in done:
            if p.error is not None:
                raise confluent_kafka.KafkaException(p.error)

    def commit_async(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._c.commit(offsets=self._offsets(offsets), asynchronous=True)

    def committed(self, partition: TopicPartition) -> int | None:
        (p,) = self._c.committed([confluent_kafka.TopicPartition(*partition)], timeout=PATIENCE_S)
        if p.error is not None:
            raise confluent_kafka.KafkaException(p.error)
        return p.offset if p.offset >= 0 else None

    def position(self, partition: TopicPartition) -> int:
        (p,) = self._c.position([confluent_kafka.TopicPartition(*partition)])
        return int(p.offset)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._c.seek(confluent_kafka.TopicPartition(partition.topic, partition.partition, offset))

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self._c.pause([confluent_kafka.TopicPartition(*p) for p in partitions])

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self._c.resume([confluent_kafka.TopicPartition(*p) for p in partitions])

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        low, high = self._c.get_watermark_offsets(confluent_kafka.TopicPartition(*partition), timeout=PATIENCE_S)
        return low, high

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        asked = confluent_kafka.TopicPartition(partition.topic, partition.partition, timestamp_ms)
        (p,) = self._c.offsets_for_times([asked], timeout=PATIENCE_S)
        return p.offset if p.offset >= 0 else None

    def close(self) -> None:
        self._c.close()


class Confluent:
    name = "confluent"
    strategies: tuple[str, ...] = ("range", "roundrobin", "cooperative-sticky")

    def compressions(self) -> set[str]:
        return set(COMPRESSIONS)

    def produce(
        self, servers: str, topic: str, records: Iterable[Sent], options: ProducerOptions = ProducerOptions()
    ) -> list[tuple[int, int]]:
        producer = confluent_kafka.Producer({
            "bootstrap.servers": servers,
            "log_level": 2,
            "acks": options.acks,
            "compression.type": options.compression,
            "enable.idempotence": options.idempotent,
            "linger.ms": 2,
        })  # fmt: skip
        places: dict[int, tuple[int, int]] = {}
        errors: list[Any] = []

        def note(i: int, error: Any, message: Any) -> None:
            if error is not None:
                errors.append(error)
            else:
                places[i] = (message.partition(), message.offset())

        for i, r in enumerate(records):
            extra: dict[str, Any] = {}
            if r.partition is not None:
                extra["partition"] = r.partition
            if r.timestamp_ms is not None:
                extra["timestamp"] = r.timestamp_ms
            producer.produce(topic, value=r.value, key=r.key, headers=list(r.headers),
                             on_delivery=partial(note, i), **extra)  # fmt: skip
            producer.poll(0)
        left = producer.flush(PATIENCE_S)
        assert not left, f"{left} records without an answer"
        if options.acks == "0":
            producer.list_topics(topic, timeout=PATIENCE_S)  # a round trip, before the connection is cut
        if errors:
            raise confluent_kafka.KafkaException(errors[0])
        return [places[i] for i in sorted(places)]

    def consumer(self, servers: str, options: ConsumerOptions) -> Consumer:
        return ConfluentConsumer(servers, options)


def python_settings(servers: str, options: ConsumerOptions) -> dict[str, Any]:
    """The settings that kafka-python and aiokafka spell alike."""
    settings = {
        "bootstrap_servers": servers,
        "group_id": options.group,
        "group_instance_id": options.instance_id,
        "session_timeout_ms": options.session_timeout_ms,
        "heartbeat_interval_ms": 300,
        "enable_auto_commit": options.auto_commit,
        "auto_commit_interval_ms": 200,
        "auto_offset_reset": options.offset_reset,
        "fetch_max_wait_ms": 100,
        "metadata_max_age_ms": 1000,
    }
    return settings | dict(options.extra)


# ------------------------------------------------------------------------------------------------ kafka-python


LEAST_POLL_S = 0.5


def received(batches: Mapping[Any, Sequence[Any]]) -> list[Received]:
    """Of kafka-python or aiokafka, which have records by partition."""
    return [
        Received(m.topic, m.partition, m.offset, m.key, m.value, tuple(m.headers), m.timestamp)
        for batch in batches.values()
        for m in batch
    ]


class KafkaPythonConsumer:
    ASSIGNORS: ClassVar[Mapping[str, type]] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }

    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        self._c = kafka.KafkaConsumer(
            partition_assignment_strategy=[self.ASSIGNORS[options.strategy]], **python_settings(servers, options)
        )

    def subscribe(self, topics: Sequence[str]) -> None:
        # kafka-python 3.0 may join before it knows the topic, assign nothing, and not notice when it does know
        # (about one time in ten, on Apache Kafka too).
        self._c.topics()
        self._c.subscribe(list(topics))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._c.assign([kafka.TopicPartition(*p) for p in partitions])

    def poll(self, timeout: float = 0.1) -> list[Received]:
        # A step of joining that takes longer than the poll begins once more in the next one: on a busy machine a short
        # one would never get anywhere.
        batches = self._c.poll(timeout_ms=int(max(timeout, LEAST_POLL_S) * 1000), max_records=500)
        return received(batches)

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(p.topic, p.partition) for p in self._c.assignment()}

    @staticmethod
    def _offsets(offsets: Mapping[TopicPartition, int], metadata: str = "") -> dict[Any, Any]:
        return {kafka.TopicPartition(*p): kafka.OffsetAndMetadata(o, metadata, -1) for p, o in offsets.items()}

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None, metadata: str = "") -> None:
        self._c.commit(None if offsets is None else self._offsets(offsets, metadata), timeout_ms=PATIENCE_S * 1000)

    def commit_async(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._c.commit_async(self._offsets(offsets))

    def committed(self, partition: TopicPartition) -> int | None:
        return self._c.committed(kafka.TopicPartition(*partition), timeout_ms=PATIENCE_S * 1000)

    def position(self, partition: TopicPartition) -> int:
        return int(self._c.position(kafka.TopicPartition(*partition), timeout_ms=PATIENCE_S * 1000))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._c.seek(kafka.TopicPartition(*partition), offset)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self._c.pause(*(kafka.TopicPartition(*p) for p in partitions))

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self._c.resume(*(kafka.TopicPartition(*p) for p in partitions))

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        p = kafka.TopicPartition(*partition)
        return self._c.beginning_offsets([p])[p], self._c.end_offsets([p])[p]

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        p = kafka.TopicPartition(*partition)
        found = self._c.offsets_for_times({p: timestamp_ms})[p]
        return found.offset if found is not None else None

    def close(self) -> None:
        self._c.close(autocommit=self._c.config["enable_auto_commit"], timeout_ms=5000)


class KafkaPython:
    name = "kafka-python"
    strategies: tuple[str, ...] = ("range", "roundrobin", "sticky", "cooperative-sticky")

    def compressions(self) -> set[str]:
        return {"none"} | {c for c in COMPRESSIONS[1:] if getattr(kafka.codec, f"has_{c}")()}

    def produce(
        self, servers: str, topic: str, records: Iterable[Sent], options: ProducerOptions = ProducerOptions()
    ) -> list[tuple[int, int]]:
        producer = kafka.KafkaProducer(
            bootstrap_servers=servers,
            acks=options.acks if options.acks == "all" else int(options.acks),
            compression_type=None if options.compression == "none" else options.compression,
            enable_idempotence=options.idempotent,
            linger_ms=2,
        )
        try:
            futures = [
                producer.send(topic, value=r.value, key=r.key, partition=r.partition, headers=list(r.headers),
                              timestamp_ms=r.timestamp_ms)
                for r in records
            ]  # fmt: skip
            producer.flush(timeout=PATIENCE_S)
            done = [future.get(timeout=PATIENCE_S) for future in futures]
            return [(m.partition, m.offset) for m in done]
        finally:
            producer.close(timeout=5)

    def consumer(self, servers: str, options: ConsumerOptions) -> Consumer:
        return KafkaPythonConsumer(servers, options)


# ---------------------------------------------------------------------------------------------------- aiokafka


class LoopThread:
    """An event loop of its own thread, for the one client that needs one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float = PATIENCE_S) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


class AioKafkaConsumer:
    ASSIGNORS: ClassVar[Mapping[str, type]] = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}

    def __init__(self, servers: str, options: ConsumerOptions) -> None:
        self._loop = LoopThread()
        self._is_subscribed = False

        async def make() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(
                partition_assignment_strategy=(self.ASSIGNORS[options.strategy],), **python_settings(servers, options)
            )
            await consumer.start()
            return consumer

        self._c = self._loop.run(make())

    async def _call(self, method: str, *args: Any) -> Any:
        # Even the calls that are not coroutines look for the running loop.
        return getattr(self._c, method)(*args)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._loop.run(self._call("subscribe", list(topics)))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._loop.run(self._call("assign", [aiokafka.TopicPartition(*p) for p in partitions]))

    def poll(self, timeout: float = 0.1) -> list[Received]:
        batches = self._loop.run(self._c.getmany(timeout_ms=int(timeout * 1000), max_records=500))
        return received(batches)

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(p.topic, p.partition) for p in self._c.assignment()}

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None, metadata: str = "") -> None:
        wanted = None
        if offsets is not None:
            wanted = {aiokafka.TopicPartition(*p): (o, metadata) for p, o in offsets.items()}
        self._loop.run(self._c.commit(wanted))

    def commit_async(self, offsets: Mapping[TopicPartition, int]) -> None:
        wanted = {aiokafka.TopicPartition(*p): (o, "") for p, o in offsets.items()}
        asyncio.run_coroutine_threadsafe(self._c.commit(wanted), self._loop._loop)

    def committed(self, partition: TopicPartition) -> int | None:
        return self._loop.run(self._c.committed(aiokafka.TopicPartition(*partition)))

    def position(self, partition: TopicPartition) -> int:
        return self._loop.run(self._c.position(aiokafka.TopicPartition(*partition)))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._loop.run(self._call("seek", aiokafka.TopicPartition(*partition), offset))

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self._loop.run(self._call("pause", *(aiokafka.TopicPartition(*p) for p in partitions)))

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self._loop.run(self._call("resume", *(aiokafka.TopicPartition(*p) for p in partitions)))

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        p = aiokafka.TopicPartition(*partition)
        low = self._loop.run(self._c.beginning_offsets([p]))[p]
        return low, self._loop.run(self._c.end_offsets([p]))[p]

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        p = aiokafka.TopicPartition(*partition)
        found = self._loop.run(self._c.offsets_for_times({p: timestamp_ms}))[p]
        return found.offset if found is not None else None

    def close(self) -> None:
        try:
            self._loop.run(self._c.stop())
        finally:
            self._loop.close()


class AioKafka:
    name = "aiokafka"
    strategies: tuple[str, ...] = ("range", "roundrobin", "sticky")

    def compressions(self) -> set[str]:
        return set(COMPRESSIONS)

    def produce(
        self, servers: str, topic: str, records: Iterable[Sent], options: ProducerOptions = ProducerOptions()
    ) -> list[tuple[int, int]]:
        async def run() -> list[tuple[int, int]]:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=servers,
                acks=options.acks if options.acks == "all" else int(options.acks),
                compression_type=None if options.compression == "none" else options.compression,
                enable_idempotence=options.idempotent,
                linger_ms=2,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(topic, value=r.value, key=r.key, partition=r.partition, headers=list(r.headers),
                                        timestamp_ms=r.timestamp_ms)
                    for r in records
                ]  # fmt: skip
                done = await asyncio.wait_for(asyncio.gather(*futures), PATIENCE_S)
                return [(m.partition, m.offset) if m is not None else (-1, -1) for m in done]
            finally:
                await producer.stop()

        return asyncio.run(run())

    def consumer(self, servers: str, options: ConsumerOptions) -> Consumer:
        return AioKafkaConsumer(servers, options)


CLIENTS: dict[str, Client] = {c.name: c for c in (Confluent(), KafkaPython(), AioKafka())}


def wait_for_records(consumer: Consumer, count: int, timeout: float = PATIENCE_S) -> list[Received]:
    """Poll until there are `count` records, and once more to see that there are no others."""
    deadline = time.monotonic() + timeout
    got: list[Received] = []
    while len(got) < count:
        assert time.monotonic() < deadline, f"{len(got)} of {count} records within {timeout} s"
        got += consumer.poll(0.1)
    got += consumer.poll(0.02)
    assert len(got) == count
    return got
