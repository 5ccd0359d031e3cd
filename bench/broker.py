"""The broker beside Apache Kafka 4.4.0: starting, records, pipelined requests, and how long commits take.

The same clients measure all in the same run: the broker, the compiled one and the one on PyPy where `make compiled` and
`make pypy` have made their environments, and Apache Kafka where `tools/apache_kafka.py` can start it. CPU time is the
broker's. Apache's runs with 1 GB of heap and the other settings of its own start script.

`BROKER_ONLY_COMMITS=1` measures only how long commits take, in `BROKER_ROUNDS` rounds (default 5).
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tools import pypy
from tools.apache_kafka import OFFICIAL_JVM, ApacheKafka, ApacheKafkaUnavailable

from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from groupkeeper.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from groupkeeper.protocol.primitives import RootMessage

COMPILED = pypy.ROOT / "build/compiled/bin/python"
RECORDS = 100_000
RECORD_SIZE = 1024
REQUESTS = 20_000
AT_A_TIME = 200
TOPIC = "bench-broker"
GROUP = "bench-broker"
CLIENTS = 50
COMMITS_OF_EACH = 200
ROUNDS = int(os.environ.get("BROKER_ROUNDS", "5"))
ONLY_COMMITS = bool(os.environ.get("BROKER_ONLY_COMMITS"))
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


def used_cpu_s(pid: int | None) -> float:
    """CPU time of a process so far; 0 where the system has no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def used_memory_mb(pid: int) -> float:
    """Resident memory; 0 where the system has no /proc."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def waited_s(pid: int) -> float:
    """How long its threads have waited for a processor so far, all together; 0 where the system doesn't tell."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            total += int(path.read_text().split()[1])
    return total / 1e9


def measure_records(name: str, address: str, pid: int | None) -> None:
    try:
        from confluent_kafka import Consumer, Producer, TopicPartition
    except ImportError:
        print("records: skipped, confluent-kafka is not installed")
        return
    topic = f"{TOPIC}-{time.time_ns()}"
    megabytes = RECORDS * RECORD_SIZE / 1e6
    cpu = used_cpu_s(pid)
    value = os.urandom(RECORD_SIZE)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.kbytes": 1 << 20})
    started = time.perf_counter()
    for _ in range(RECORDS):
        producer.produce(topic, value)
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit("records were not acknowledged")
    produced = time.perf_counter() - started
    # A queue that takes everything: a full one makes librdkafka pause for a second.
    queue = {"queued.max.messages.kbytes": 1 << 20, "queued.min.messages": RECORDS}
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP, "enable.auto.commit": False, **queue})
    consumer.assign([TopicPartition(topic, 0, 0)])
    started = time.perf_counter()
    seen = 0
    while seen < RECORDS:
        seen += len(consumer.consume(10_000, 1))
    consumed = time.perf_counter() - started
    consumer.close()
    print(
        f"{name:12} {megabytes:.0f} MB of 1 KB records: produce {megabytes / produced:.0f} MB/s, "
        f"consume {megabytes / consumed:.0f} MB/s" + (f", its CPU {used_cpu_s(pid) - cpu:.2f} s" if pid else "")
    )


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


async def measure_requests(name: str, address: str, pid: int) -> None:
    wire, generation, member = await joined(address, GROUP)
    for title, message, version in (
        ("Metadata", MetadataRequest([]), 12),
        ("Heartbeat", HeartbeatRequest(GROUP, generation, member), 4),
        ("OffsetCommit", commit_of(GROUP, generation, member), 8),
    ):
        frame = encode_request(1, "bench", message, version)
        best = (float("inf"), float("inf"))
        for _ in range(3):  # the first warms a virtual machine up
            cpu, started = used_cpu_s(pid), time.perf_counter()
            for _ in range(REQUESTS // AT_A_TIME):
                wire.writer.write(frame * AT_A_TIME)
                for _ in range(AT_A_TIME):
                    await wire.receive()
            best = min(best, (used_cpu_s(pid) - cpu, time.perf_counter() - started))
        cpu, elapsed = best
        print(
            f"{name:12} {title:12} {REQUESTS / elapsed:8.0f}/s on one connection, {cpu / REQUESTS * 1e6:5.1f} µs of "
            f"its CPU each: {REQUESTS / cpu:.0f}/s on one core",
            flush=True,
        )
    wire.writer.close()


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


def measure_latency(brokers: Sequence[tuple[str, str, int]]) -> None:
    """The brokers take turns, so that what else the machine does is the same for all."""
    rounds: dict[str, list[Round]] = {name: [] for name, _, _ in brokers}
    for _ in range(ROUNDS):
        for name, address, pid in brokers:
            waited = waited_s(pid)
            started = time.perf_counter()
            times = asyncio.run(commit_times(address))
            share = (waited_s(pid) - waited) / (time.perf_counter() - started)
            half, most = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
            rounds[name].append(Round(most, half, sum(times) / len(times) * 1000, share))
    for name, found in rounds.items():
        best, middle = min(found), sorted(found)[len(found) // 2]
        print(
            f"{name:12} commits of {CLIENTS} clients, best of {ROUNDS} rounds: half within {best.half_ms:.1f} ms, 99 % "
            f"within {best.most_ms:.1f} ms, {best.mean_ms:.1f} ms on average (its threads waited {best.waited:.0%} of "
            f"the time for a processor); the median round: {middle.half_ms:.1f}, {middle.most_ms:.1f} and "
            f"{middle.mean_ms:.1f} ms ({middle.waited:.0%})",
            flush=True,
        )


def measure(name: str, address: str, pid: int) -> None:
    if ONLY_COMMITS:
        return
    measure_records(name, address, pid)
    asyncio.run(measure_requests(name, address, pid))


def main() -> None:
    with ExitStack() as running:
        brokers = []
        pythons = {"groupkeeper": sys.executable}
        if COMPILED.exists():
            pythons["compiled"] = str(COMPILED)
        if pypy.is_made():
            pythons["on PyPy"] = str(pypy.PYTHON)
        for name, python in pythons.items():
            started = time.perf_counter()
            address, pid = running.enter_context(running_broker(python=python))
            print(f"{name:12} ready after {time.perf_counter() - started:.2f} s, {used_memory_mb(pid):.0f} MB then")
            brokers.append((name, address, pid))
            measure(*brokers[-1])
        try:
            other = running.enter_context(ApacheKafka(jvm=OFFICIAL_JVM))
        except ApacheKafkaUnavailable as unavailable:
            print(f"without Apache Kafka: {unavailable}")
        else:
            other.stop(keep=True)
            started = time.perf_counter()
            other.start()  # a second time: the directory is formatted already
            print(f"Apache Kafka ready after {time.perf_counter() - started:.2f} s, {used_memory_mb(other.pid):.0f} MB")
            brokers.append(("Apache Kafka", other.bootstrap_servers, other.pid))
            measure(*brokers[-1])
        measure_latency(brokers)


if __name__ == "__main__":
    main()
