"""Plan, apply and undo on 10,000 groups × 8 partitions: wall time, CPU time of command and broker, memory.

Against the embedded broker in a process of its own; PLANS_GROUPS changes the number of groups.
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

from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.produce_response import ProduceResponse
from groupkeeper.protocol.record_batch import Record, write_batch

GROUPS = int(os.environ.get("PLANS_GROUPS", "10000"))
PARTITIONS = 8
TOPIC = "bench-plans"
TOOL = str(Path(sys.executable).parent / "groupkeeper")
RECORDS = 100


async def fill(servers: str) -> None:
    places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    async with Admin(servers) as admin:
        (await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, configs={"retention.ms": "-1"})])).all()
        await produce(servers)
        offsets = {place: OffsetAndMetadata(RECORDS // 2) for place in places}
        groups = {f"bench-plans-{number:05}": offsets for number in range(GROUPS)}
        (await admin.alter_offsets_of_groups(groups, timeout_ms=120_000)).all()


async def produce(servers: str) -> None:
    batch = write_batch([Record(b"key", b"value", timestamp=number) for number in range(RECORDS)])
    data = [PartitionProduceData(number, batch) for number in range(PARTITIONS)]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(TOPIC, partition_data=data)])
    connection = await open_connection(parse_bootstrap_servers(servers)[0], Settings(), Security(), 30)
    answer = await connection.ask(request, 9, ProduceResponse, 30)
    connection.abort()
    assert not any(one.error_code for one in answer.responses[0].partition_responses)


@contextmanager
def broker(folder: str) -> Iterator[tuple[str, int]]:
    """Its address, and its process id."""
    with subprocess.Popen(
        [TOOL, "broker", "--port", "0", "--data", folder], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            found = re.search(r"\S+:\d{2,5}\b", child.stdout.readline())
            if found is None:
                raise SystemExit("the broker ended before it was ready")
            yield found.group(), child.pid
        finally:
            child.terminate()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(name: str, pid: int, *words: str) -> None:
    """Run a command and print what it took, and what it took the broker."""
    started, before = time.perf_counter(), cpu_s(pid)
    child = subprocess.Popen([TOOL, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall, brokers = time.perf_counter() - started, cpu_s(pid) - before
    if child.returncode:
        raise SystemExit(f"{name} ended with {child.returncode}")
    own, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(
        f"{name:6} {wall:5.2f} s wall; CPU {own:5.2f} s, of the broker {brokers:5.2f} s; {memory:4.0f} MB", flush=True
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as folder, broker(folder) as (servers, pid):
        os.environ["GROUPKEEPER_JOURNAL"] = str(Path(folder, "journal.jsonl"))
        asyncio.run(fill(servers))
        plan, cluster = str(Path(folder, "plan.json")), ["--bootstrap-server", servers]
        print(f"{GROUPS} groups × {PARTITIONS} partitions")
        to = ["--all-topics", "--to-earliest", "--save", plan]
        measured("plan", pid, "plan", "reset", "bench-plans-*", *to, *cluster)
        measured("apply", pid, "apply", plan, "--execute", "--confirm", str(GROUPS), *cluster)
        measured("undo", pid, "undo", "--execute", "--confirm", str(GROUPS), *cluster)
