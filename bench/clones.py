"""A clone of 10,000 groups × 8 partitions, each group at a place of its own: CPU time of command and brokers, memory.

Between two embedded brokers, with 100,000 records a partition; in the target they have other offsets, the same, or
other offsets and other times.
CLONES_GROUPS changes the number of groups.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench._measure import cost_of
from bench.plans import TOOL, broker, cpu_s
from groupkeeper.client.addresses import parse_bootstrap_servers
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.client.opener import open_connection
from groupkeeper.client.security.transport import Security
from groupkeeper.client.settings import Settings
from groupkeeper.operations.plans.document import read
from groupkeeper.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from groupkeeper.protocol.messages.produce_response import ProduceResponse
from groupkeeper.protocol.record_batch import Record, write_batch

GROUPS = int(os.environ.get("CLONES_GROUPS", "10000"))
PARTITIONS = 8
RECORDS = 100_000
BATCH = 500
FIRST_MS = 1_700_000_000_000
SAME, MOVED, LATE = "bench-same", "bench-moved", "bench-late"
OTHERS = 20_000
"""Of another producer, before the copies that have other times."""
LATER_MS = 3_600_000


async def fill(servers: str, topic: str, *, others: int = 0, first_ms: int = FIRST_MS) -> None:
    """Records that all differ, four of each millisecond, behind `others`."""
    connection = await open_connection(parse_bootstrap_servers(servers)[0], Settings(), Security(), 30)
    sizes = [min(BATCH, others - start) for start in range(0, others, BATCH)]
    batches = [[Record(b"", b"another's", timestamp=FIRST_MS - 1)] * size for size in sizes]
    for start in range(0, RECORDS, BATCH):
        numbers = range(start, start + BATCH)
        batches.append([Record(b"%d" % (n % 97), b"value %d" % n, timestamp=first_ms + n // 4) for n in numbers])
    for batch in map(write_batch, batches):
        data = [PartitionProduceData(number, batch) for number in range(PARTITIONS)]
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=data)])
        answer = await connection.ask(request, 9, ProduceResponse, 30)
        assert not any(one.error_code for one in answer.responses[0].partition_responses)
    connection.abort()


async def set_up(here: str, there: str) -> None:
    for servers in (here, there):
        async with Admin(servers) as admin:
            topics = [NewTopic(name, PARTITIONS, 1, configs={"retention.ms": "-1"}) for name in (SAME, MOVED, LATE)]
            (await admin.create_topics(topics)).all()
    await asyncio.gather(*(fill(servers, SAME) for servers in (here, there)))
    await asyncio.gather(fill(here, MOVED), fill(there, MOVED, others=3))
    await asyncio.gather(fill(here, LATE), fill(there, LATE, others=OTHERS, first_ms=FIRST_MS + LATER_MS))
    async with Admin(here) as admin:
        for topic in (SAME, MOVED, LATE):
            offsets = {f"{topic}-{number:05}": _places(topic, number) for number in range(GROUPS)}
            (await admin.alter_offsets_of_groups(offsets, timeout_ms=120_000)).all()


def _places(topic: str, number: int) -> dict[TopicPartition, OffsetAndMetadata]:
    at = [RECORDS - 1 - (number * 9 + partition) % RECORDS for partition in range(PARTITIONS)]
    return {TopicPartition(topic, partition): OffsetAndMetadata(offset) for partition, offset in enumerate(at)}


def measured(name: str, topic: str, pids: Sequence[int], plan: str, where: Sequence[str]) -> None:
    before = sum(map(cpu_s, pids))
    cost = cost_of([TOOL, "plan", "clone", "--all-groups", "--topic", topic, "--save", plan, *where])
    brokers = sum(map(cpu_s, pids)) - before
    changes = [one for group in read(Path(plan).read_text()).groups for one in group.changes.values()]
    exact = sum(one.certainty in ("identity", "header", "content") for one in changes)
    print(
        f"{name:18} {cost.wall_s:6.2f} s wall; CPU {cost.cpu_s:6.2f} s, of the brokers {brokers:6.2f} s; "
        f"{cost.memory_mb:4.0f} MB; exact {exact:,} of {len(changes):,}",
        flush=True,
    )


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as folder,
        broker(str(Path(folder, "here"))) as (here, pid),
        broker(str(Path(folder, "there"))) as (there, other_pid),
    ):
        os.environ["GROUPKEEPER_JOURNAL"] = "off"
        asyncio.run(set_up(here, there))
        plan, where = str(Path(folder, "plan.json")), ["--from-bootstrap-server", here, "--bootstrap-server", there]
        print(f"{GROUPS:,} groups × {PARTITIONS} partitions of {RECORDS:,} records")
        measured("at other offsets", MOVED, (pid, other_pid), plan, where)
        measured("with other times", LATE, (pid, other_pid), plan, where)
        measured("at the same offsets", SAME, (pid, other_pid), plan, where)
