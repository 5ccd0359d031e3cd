"""The broker beside Apache Kafka 4.4.0: starting, records, pipelined requests, and how long commits take.

The same clients measure all in the same run, by turns, in `BROKER_ROUNDS` rounds (default 5; of records at most 5): the
broker, the compiled one and the one on PyPy where `make compiled` and `make pypy` have made their environments, and
Apache Kafka where `tools/apache_kafka.py` can start it. CPU time is the broker's. Apache's runs with 1 GB of heap and
the other settings of its own start script.

`BROKER_ONLY` names some parts (`records`, `requests`, `commits`), `BROKER_KINDS` some brokers (`groupkeeper`,
`compiled`, `pypy`, `apache`), with commas between them.
"""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tools import pypy
from tools.apache_kafka import OFFICIAL_JVM, ApacheKafka, ApacheKafkaUnavailable

from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from groupkeeper.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.protocol.uuids import uuid_text

COMPILED = pypy.ROOT / "build/compiled/bin/python"
RECORDS = 100_000
RECORD_SIZE = 1024
MOST_ROUNDS_OF_RECORDS = 5
REQUESTS = 10_000
AT_A_TIME = 200
TOPIC = "bench-broker"
GROUP = "bench-broker"
CLIENTS = 50
COMMITS_OF_EACH = 200
ROUNDS = int(os.environ.get("BROKER_ROUNDS", "5"))
PARTS = os.environ.get("BROKER_ONLY", "records,requests,commits").split(",")
KINDS = os.environ.get("BROKER_KINDS", "groupkeeper,compiled,pypy,apache").split(",")
PATIENCE_S = 60.0


@contextmanager
def running_broker(*options: str, python: str = sys.executable) -> Iterator[tuple[str, int]]:
    """Address and process id of a broker of our own, with more options of its command line."""
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as folder:
        command = [python, "-m", "groupkeeper", "broker", "--port", "0", "--data", folder]
        command += ["--property", "group.initial.rebalance.delay.ms=0", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
            assert broker.stdout is not None
            try:
                found = re.search(r"\S+:\d{2,5}\b", broker.stdout.readline())
                if found is None:
                    raise SystemExit("the broker ended before it was ready")
                yield found.group(0), broker.pid
            finally:
                broker.terminate()


def used_cpu_s(pid: int) -> float:
    """CPU time of a process's threads so far, to the microsecond; 0 where the system does not tell."""
    return _of_threads(pid, 0)


def used_memory_mb(pid: int) -> float:
    """Resident memory; 0 where the system has no /proc."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def waited_s(pid: int) -> float:
    """How long its threads have waited for a processor so far, all together; 0 where the system doesn't tell."""
    return _of_threads(pid, 1)


def _of_threads(pid: int, column: int) -> float:
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            total += int(path.read_text().split()[column])
    return total / 1e9


Rounds: TypeAlias = list[list[float]]


class Running(NamedTuple):
    """A broker that is measured."""

    name: str
    address: str
    pid: int


def in_turns(
    brokers: Sequence[Running], rounds: int, cost: Callable[[Running], list[float]]
) -> list[list[list[float]]]:
    """What a round costs: by broker and round. Every second round they come in the reverse order."""
    found: list[list[list[float]]] = [[] for _ in brokers]
    for turn in range(rounds):
        order = list(zip(brokers, found, strict=True))
        for broker, costs in reversed(order) if turn % 2 else order:
            costs.append(cost(broker))
    return found


def show(title: str, unit: str, brokers: Sequence[Running], costs: Sequence[Sequence[float]]) -> None:
    """The least and the median of each broker's rounds, and the median of their ratios to the first broker's."""
    parts = []
    for broker, mine in zip(brokers, costs, strict=True):
        ratio = statistics.median(one / other for one, other in zip(mine, costs[0], strict=True))
        beside = f" ({ratio:.2f})" if mine is not costs[0] else ""
        parts.append(f"{broker.name} {min(mine):.2f}, {statistics.median(mine):.2f}{beside}")
    print(f"{title:24} {unit}: {'; '.join(parts)}", flush=True)


def measure_records(brokers: Sequence[Running]) -> None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        print("records: skipped, confluent-kafka is not installed")
        return
    found = in_turns(brokers, min(ROUNDS, MOST_ROUNDS_OF_RECORDS), cost_of_records)
    megabytes = RECORDS * RECORD_SIZE / 1e6
    for index, title in enumerate(("produce", "consume", "its CPU of both")):
        show(f"{megabytes:.0f} MB, {title}", "s", brokers, [[each[index] for each in rounds] for rounds in found])


def cost_of_records(broker: Running) -> list[float]:
    """Seconds of producing, of consuming, and of the broker's CPU."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = f"{TOPIC}-{time.time_ns()}"
    cpu = used_cpu_s(broker.pid)
    value = os.urandom(RECORD_SIZE)
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5, "queue.buffering.max.kbytes": 1 << 20})
    started = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, value)
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("records were not acknowledged")
    produced = time.perf_counter() - started
    # A queue that takes everything: a full one makes librdkafka pause for a second.
    queue = {"queued.max.messages.kbytes": 1 << 20, "queued.min.messages": RECORDS}
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": GROUP, "enable.auto.commit": False, **queue})
    consumer.assign([TopicPartition(topic, 0, 0)])
    started = time.perf_counter()
    seen = 0
    while seen < RECORDS:
        seen += len(consumer.consume(10_000, 1))
    consumed = time.perf_counter() - started
    consumer.close()
    return [produced, consumed, used_cpu_s(broker.pid) - cpu]


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def receive(self) -> bytes:
        return await self.reader.readexactly(int.from_bytes(await self.reader.readexactly(4), "big"))

    async def call(self, message: RootMessage, version: int) -> RootMessage:
        self.writer.write(encode_request(1, "bench", message, version))
        return decode_response(response_class(message.API_KEY), await self.receive(), version)[1]


async def connected(address: str) -> Wire:
    host, port = address.rsplit(":", 1)
    return Wire(*await asyncio.open_connection(host, int(port)))


async def joined(address: str, group_id: str) -> tuple[Wire, int, str]:
    """A connection, the generation and the id of the only member of a group."""
    wire = await connected(address)
    await wire.call(CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)], 30_000), 7)
    await wire.call(MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12)
    join = JoinGroupRequest(group_id, 60_000, 60_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        await wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
        answer = await wire.call(join, 3)
        assert isinstance(answer, JoinGroupResponse)
        if answer.error_code == 0:
            generation, member = answer.generation_id, answer.member_id
            assignments = [SyncGroupRequestAssignment(member)]
            await wire.call(SyncGroupRequest(group_id, generation, member, None, None, None, assignments), 3)
            return wire, generation, member
        await asyncio.sleep(0.1)  # the coordinator is being made
    raise SystemExit(f"{address}: no coordinator in time")


def commit_of(group_id: str, generation: int, member: str) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(0, 5, -1, "")
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
    return OffsetCommitRequest(group_id, generation, member, None, -1, topics)


class Pipelined(NamedTuple):
    """A connection of a broker, and what is sent on it again and again."""

    wire: Wire
    frames: list[bytes]


REQUESTED = (
    "Metadata", "FindCoordinator", "ListGroups", "Heartbeat", "OffsetCommit", "OffsetFetch", "Produce", "Fetch",
    "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
)  # fmt: skip


async def pipelined(broker: Running) -> Pipelined:
    wire, generation, member = await joined(broker.address, GROUP)
    batch = write_batch([Record(b"key", b"v" * 100, (), int(time.time() * 1000))])
    produced = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])
    fetched = FetchTopic(TOPIC, partitions=[FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)])
    offsets = OffsetFetchRequestGroup(GROUP, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])])
    consumer = ConsumerGroupHeartbeatRequest(f"{GROUP}-consumer", uuid_text(os.urandom(16)), 0)
    consumer.rebalance_timeout_ms, consumer.subscribed_topic_names, consumer.topic_partitions = 60_000, [TOPIC], []
    share = ShareGroupHeartbeatRequest(f"{GROUP}-share", uuid_text(os.urandom(16)), 0)
    share.subscribed_topic_names = [TOPIC]
    for beat in (consumer, share):
        await wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[beat.group_id]), 4)
        answer = await wire.call(beat, 1)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse)
        if answer.error_code:
            raise SystemExit(f"{broker.name}: {beat.group_id}: error {answer.error_code}")
        beat.member_epoch, beat.subscribed_topic_names = answer.member_epoch, None
    consumer.topic_partitions, consumer.rebalance_timeout_ms = None, -1
    messages: list[tuple[RootMessage, int]] = [
        (MetadataRequest([]), 12),
        (FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4),
        (ListGroupsRequest(), 4),
        (HeartbeatRequest(GROUP, generation, member), 4),
        (commit_of(GROUP, generation, member), 8),
        (OffsetFetchRequest(groups=[offsets]), 8),
        (ProduceRequest(None, 1, 30_000, [produced]), 9),
        (FetchRequest(max_bytes=1 << 20, topics=[fetched]), 12),
        (consumer, 1),
        (share, 1),
    ]
    return Pipelined(wire, [encode_request(1, "bench", message, version) for message, version in messages])


async def cost_of_requests(broker: Running, place: Pipelined) -> list[float]:
    """Microseconds of the broker's CPU for each kind of request."""
    found = []
    for frame in place.frames:
        cpu = used_cpu_s(broker.pid)
        for _ in range(REQUESTS // AT_A_TIME):
            place.wire.writer.write(frame * AT_A_TIME)
            for _ in range(AT_A_TIME):
                await place.wire.receive()
        found.append((used_cpu_s(broker.pid) - cpu) / REQUESTS * 1e6)
    return found


def measure_requests(brokers: Sequence[Running]) -> None:
    with asyncio.Runner() as runner:
        places = {broker: runner.run(pipelined(broker)) for broker in brokers}
        found = in_turns(brokers, ROUNDS, lambda one: runner.run(cost_of_requests(one, places[one])))
        for place in places.values():
            place.wire.writer.close()
    for index, title in enumerate(REQUESTED):
        show(title, "µs of CPU", brokers, [[each[index] for each in rounds] for rounds in found])


async def commit_times(address: str) -> list[float]:
    """Seconds that commits of many clients took, each of which waits for its answer before the next; sorted."""
    members = [await joined(address, f"{GROUP}-{index}") for index in range(CLIENTS)]
    times: list[float] = []

    async def work(index: int) -> None:
        wire, generation, member = members[index]
        frame = encode_request(1, "bench", commit_of(f"{GROUP}-{index}", generation, member), 8)
        for _ in range(COMMITS_OF_EACH):
            started = time.perf_counter()
            wire.writer.write(frame)
            await wire.receive()
            times.append(time.perf_counter() - started)

    await asyncio.gather(*map(work, range(CLIENTS)))  # warms up
    times.clear()
    await asyncio.gather(*map(work, range(CLIENTS)))
    for index, (wire, _, member) in enumerate(members):
        await wire.call(LeaveGroupRequest(f"{GROUP}-{index}", members=[MemberIdentity(member)]), 3)
        wire.writer.close()
    return sorted(times)


class Round(NamedTuple):
    """Latencies of a round's commits; rounds are compared by `most_ms`. `waited`: the part of the time for which the
    broker's threads waited for a processor, all together.
    """

    most_ms: float
    """The 99th percentile."""
    half_ms: float
    mean_ms: float
    waited: float


def measure_latency(brokers: Sequence[Running]) -> None:
    """The brokers take turns, so that what else the machine does is the same for all."""
    rounds: dict[str, list[Round]] = {name: [] for name, _, _ in brokers}

    def cost(broker: Running) -> list[float]:
        waited, started = waited_s(broker.pid), time.perf_counter()
        times = asyncio.run(commit_times(broker.address))
        share = (waited_s(broker.pid) - waited) / (time.perf_counter() - started)
        half, most = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
        rounds[broker.name].append(Round(most, half, sum(times) / len(times) * 1000, share))
        return [half, most]

    found = in_turns(brokers, ROUNDS, cost)
    for index, title in enumerate(("median", "99th percentile")):
        title = f"{CLIENTS} clients, {title}"
        show(title, "ms", brokers, [[each[index] for each in costs] for costs in found])
    for name, each in rounds.items():
        middle = sorted(each)[len(each) // 2]
        print(
            f"{name:12} the median round: half within {middle.half_ms:.1f} ms, 99 % within {middle.most_ms:.1f} ms, "
            f"{middle.mean_ms:.1f} ms on average; its threads waited {middle.waited:.0%} of the time for a processor",
            flush=True,
        )


def main() -> None:
    with ExitStack() as running:
        brokers = []
        pythons = {"groupkeeper": sys.executable}
        if COMPILED.exists():
            pythons["compiled"] = str(COMPILED)
        if pypy.is_made():
            pythons["pypy"] = str(pypy.PYTHON)
        for name, python in pythons.items():
            if name in KINDS:
                started = time.perf_counter()
                address, pid = running.enter_context(running_broker(python=python))
                print(f"{name:12} ready after {time.perf_counter() - started:.2f} s, {used_memory_mb(pid):.0f} MB then")
                brokers.append(Running(name, address, pid))
        if "apache" in KINDS and (apache := apache_kafka(running)) is not None:
            brokers.append(apache)
        for part, measure in (
            ("records", measure_records),
            ("requests", measure_requests),
            ("commits", measure_latency),
        ):
            if part in PARTS:
                measure(brokers)


def apache_kafka(running: ExitStack) -> Running | None:
    try:
        other = running.enter_context(ApacheKafka(jvm=OFFICIAL_JVM))
    except ApacheKafkaUnavailable as unavailable:
        print(f"without Apache Kafka: {unavailable}")
        return None
    other.stop(keep=True)
    started = time.perf_counter()
    other.start()  # a second time: the directory is formatted already
    print(f"Apache Kafka ready after {time.perf_counter() - started:.2f} s, {used_memory_mb(other.pid):.0f} MB")
    return Running("Apache Kafka", other.bootstrap_servers, other.pid)


if __name__ == "__main__":
    main()
