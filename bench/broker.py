"""The broker: records through confluent-kafka, and pipelined requests through its sockets, with the CPU time it takes.

With BENCH_BOOTSTRAP_SERVERS (an Apache Kafka, say) the same clients measure that cluster in the same run.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groupkeeper.protocol.framing import decode_response, encode_request, response_class
from groupkeeper.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from groupkeeper.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from groupkeeper.protocol.primitives import RootMessage

RECORDS = 100_000
RECORD_SIZE = 1024
REQUESTS = 20_000
AT_A_TIME = 200
TOPIC = "bench-broker"
GROUP = "bench-broker"


@contextmanager
def running_broker() -> Iterator[tuple[str, int]]:
    """Address and process id of a broker of our own."""
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as folder:
        command = [str(Path(sys.executable).parent / "groupkeeper"), "broker", "--port", "0", "--data", folder]
        command += ["--property", "group.initial.rebalance.delay.ms=0"]
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


async def measure_requests(address: str, pid: int) -> None:
    host, port = address.rsplit(":", 1)
    wire = Wire(*await asyncio.open_connection(host, int(port)))
    await wire.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
    await wire.call(MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12)
    join = JoinGroupRequest(GROUP, 60_000, 60_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
    joined = await wire.call(join, 3)
    assert isinstance(joined, JoinGroupResponse)
    generation, member = joined.generation_id, joined.member_id
    await wire.call(
        SyncGroupRequest(GROUP, generation, member, None, None, None, [SyncGroupRequestAssignment(member)]), 3
    )
    part = OffsetCommitRequestPartition(0, 5, -1, "")
    commit = OffsetCommitRequest(
        GROUP, generation, member, None, -1, [OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
    )
    for name, message, version in (
        ("Metadata", MetadataRequest([]), 12),
        ("Heartbeat", HeartbeatRequest(GROUP, generation, member), 4),
        ("OffsetCommit", commit, 8),
    ):
        frame = encode_request(1, "bench", message, version)
        cpu, started = used_cpu_s(pid), time.perf_counter()
        for _ in range(REQUESTS // AT_A_TIME):
            wire.writer.write(frame * AT_A_TIME)
            for _ in range(AT_A_TIME):
                await wire.receive()
        elapsed, cpu = time.perf_counter() - started, used_cpu_s(pid) - cpu
        each = cpu / REQUESTS * 1e6
        print(f"{name:12} {REQUESTS / elapsed:8.0f}/s on one connection, {each:5.1f} µs of the broker's CPU each")
    wire.writer.close()


def main() -> None:
    with running_broker() as (address, pid):
        measure_records("groupkeeper", address, pid)
        asyncio.run(measure_requests(address, pid))
    other = os.environ.get("BENCH_BOOTSTRAP_SERVERS")
    if other:
        measure_records("the other", other, None)


if __name__ == "__main__":
    main()
