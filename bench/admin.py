"""The Admin on 10,000 groups × 8 partitions: wall time, and CPU time of the client alone.

Against the embedded broker in a process of its own, or against the servers in BENCH_BOOTSTRAP_SERVERS: the groups
`bench-group-…` are made there when they are missing.
"""

import asyncio
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench._filling import PARTITIONS, TOPIC, fill
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec, TopicPartition

GROUPS = 10_000
ROUNDS = 5


@contextmanager
def bootstrap_servers() -> Iterator[str]:
    given = os.environ.get("BENCH_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as folder:
        command = [str(Path(sys.executable).parent / "groupkeeper"), "broker", "--port", "0", "--data", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
            assert broker.stdout is not None
            try:
                found = re.search(r"\S+:\d{2,5}\b", broker.stdout.readline())
                if found is None:
                    raise SystemExit("the broker ended before it was ready")
                yield found.group()
            finally:
                broker.terminate()


async def measure(name: str, call: Callable[[], Awaitable[object]]) -> None:
    runs = []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        await call()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall = min(wall for wall, _ in runs) * 1000
    cpu = min(cpu for _, cpu in runs) * 1000
    print(f"{name:45} best of {ROUNDS}: {wall:7.1f} ms wall, {cpu:6.1f} ms CPU of the client", flush=True)


async def run(servers: str) -> None:
    async with Admin(servers) as admin:
        took_s = await fill(servers, GROUPS)
        print(f"{GROUPS} groups × {PARTITIONS} offsets committed in {took_s:.1f} s")
        groups = [group_id for group_id in (await admin.list_groups()).all() if group_id.startswith("bench-group-")]
        latest = {TopicPartition(TOPIC, index): OffsetSpec.latest() for index in range(PARTITIONS)}

        async def listing() -> None:
            async with Admin(servers) as fresh:
                (await fresh.list_groups()).all()

        await measure("list_groups, connecting included", listing)
        await measure(
            "list_consumer_group_offsets of all", lambda: admin.list_consumer_group_offsets(dict.fromkeys(groups))
        )
        await measure("describe_consumer_groups of all", lambda: admin.describe_consumer_groups(groups))
        await measure("find_coordinators of all", lambda: admin.find_coordinators(groups))
        await measure("list_offsets of one topic", lambda: admin.list_offsets(latest))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB resident at most")


def main() -> None:
    with bootstrap_servers() as servers:
        asyncio.run(run(servers))
