"""What a refresh costs after 32,000 new commits, over histories of different lengths, by turns in one session.

64,000 offsets are live (2,000 groups with 32 partitions). Each history begins with their commits, read from an embedded
broker in a process of its own; the rest of it is generated as files of the table `commits`, as earlier refreshes would
have left them. In a round 32,000 offsets are committed once, and each directory is brought up to date in turn, by what
`snapshot` does in a session that is there already. The first rounds warm Java up and are not counted.

PIPELINE_HISTORY sets other lengths than 500000,4000000,20000000,200000000; PIPELINE_ROUNDS the number of rounds (5).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench._family import cpu_of, held
from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.pipeline.tables import COMMITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve()
SIZES = (500_000, 4_000_000, 20_000_000, 200_000_000)
GROUPS, PARTITIONS, NEW_GROUPS = 2_000, 32, 1_000
TOPIC = "orders"
PER_FILE = 4_000_000
WARM_UP = 2
AT_A_TIME = 250


async def serve(directory: str) -> None:
    async with Broker(directory=directory) as broker:
        print(broker.bootstrap_servers, flush=True)
        await asyncio.Event().wait()


async def commit(servers: str, groups: int, offset: int) -> None:
    """An offset of every partition, by so many groups."""
    async with Admin(servers) as admin:
        if not offset:
            (await admin.create_topics([NewTopic(TOPIC, PARTITIONS)])).all()
        offsets = {TopicPartition(TOPIC, number): OffsetAndMetadata(offset) for number in range(PARTITIONS)}
        names = [f"group-{number:05}" for number in range(groups)]
        for start in range(0, groups, AT_A_TIME):
            some = dict.fromkeys(names[start : start + AT_A_TIME], offsets)
            for each in (await admin.alter_offsets_of_groups(some, timeout_ms=60_000)).all().values():
                each.all()


def lengthen(spark: SparkSession, directory: str, rows: int) -> None:
    """So many commits of long ago come to the history, as files that refreshes have seen."""
    from groupkeeper.pipeline.storage.ledger import Tables
    from groupkeeper.pipeline.storage.output import open_output

    with open_output(spark, directory) as output:
        folder = Path(directory) / output.staging / "generated"
        folder.mkdir(parents=True)
        for start in range(0, rows, PER_FILE):
            pq.write_table(_commits(start - rows, min(PER_FILE, rows - start)), folder / f"{start:012}.parquet")
        files = [f"{output.staging}/generated/{path.name}" for path in sorted(folder.iterdir())]
        made_to = output.ledger.made_to
        assert made_to is not None
        output.ledger.append({COMMITS.name: files}, {})
        output.refresh(Tables({}, {}, {}), made_to)
        assert not output.ledger.fresh_files(COMMITS.name)


def _commits(first: int, count: int) -> pa.Table:
    number = np.arange(first, first + count, dtype=np.int64)
    time_us = 1_700_000_000_000_000 + (number + 1_000_000_000) * 100
    group = pa.DictionaryArray.from_arrays(
        (number % GROUPS).astype(np.int32), [f"group-{each:05}" for each in range(GROUPS)]
    )
    given = {
        "cluster": pa.array(["bench"]).take(pa.array(np.zeros(count, np.int8))),
        "log_partition": (number % 50).astype(np.int32),
        "log_offset": number,
        "log_time": time_us,
        "group_id": group,
        "topic": pa.array([TOPIC]).take(pa.array(np.zeros(count, np.int8))),
        "partition": (number // GROUPS % PARTITIONS).astype(np.int32),
        "committed_offset": number + 1_000_000_000,
        "commit_time": time_us,
        "is_tombstone": np.zeros(count, bool),
        "is_transactional": np.zeros(count, bool),
    }
    columns = [
        pa.array(given[name]).cast(kind) if name in given else pa.nulls(count, kind)
        for name, kind in zip(COMMITS.names, COMMITS.arrow.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=COMMITS.arrow)


def run(servers: str) -> None:
    from groupkeeper.pipeline.jobs.snapshot import snapshot
    from groupkeeper.pipeline.session import start_session

    sizes = [int(each) for each in os.environ.get("PIPELINE_HISTORY", "").split(",") if each] or list(SIZES)
    rounds = int(os.environ.get("PIPELINE_ROUNDS", "5"))
    options = {"kafka.bootstrap.servers": servers, "cluster": "bench"}
    spark = start_session("bench")
    asyncio.run(commit(servers, GROUPS, 0))
    with tempfile.TemporaryDirectory() as directory:
        folders = {size: f"{directory}/{size}" for size in sizes}

        def refresh(folder: str) -> None:
            summary = snapshot(spark, options, folder)
            assert not summary.problems, summary.problems

        for size, folder in folders.items():
            refresh(folder)
            lengthen(spark, folder, size - GROUPS * PARTITIONS)
        cpu: dict[int, list[float]] = {size: [] for size in sizes}
        wall: dict[int, list[float]] = {size: [] for size in sizes}
        for number in range(1, WARM_UP + rounds + 1):
            asyncio.run(commit(servers, NEW_GROUPS, number))
            for size, folder in folders.items():
                began = time.perf_counter()
                cpu_s = cpu_of(lambda folder=folder: refresh(folder))  # type: ignore[misc]
                if number > WARM_UP:
                    cpu[size].append(cpu_s)
                    wall[size].append(time.perf_counter() - began)
        for size in sizes:
            ratios = (
                median(one / first for one, first in zip(found[size], found[sizes[0]], strict=True))
                for found in (cpu, wall)
            )
            told = "{:.2f} times the CPU and {:.2f} the wall of the shortest".format(*ratios)
            print(
                f"refresh over {size:,} rows: {median(cpu[size]):.1f} s CPU, {median(wall[size]):.1f} s wall; {told}",
                flush=True,
            )
        # Of one size at a time: what refreshes of others have taken is kept.
        print("; ".join(f"{name} {each.memory_mb:.0f} MB" for name, each in held().items()), flush=True)
    spark.stop()


@contextmanager
def serving() -> Iterator[tuple[str, dict[str, str]]]:
    """The broker of `serve` in a process of its own: its address, and the environment for other processes of these
    benchmarks.
    """
    environment = os.environ | {"PYTHONPATH": str(HERE.parent.parent)}
    with tempfile.TemporaryDirectory() as directory:
        words = [sys.executable, str(HERE), "serve", directory]
        broker = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert broker.stdout is not None
            yield broker.stdout.readline().strip(), environment
        finally:
            broker.terminate()
            broker.wait()


def main() -> None:
    with serving() as (servers, environment):
        subprocess.run([sys.executable, str(HERE), "run", servers], check=True, env=environment)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(sys.argv[2]))
    elif sys.argv[1:2] == ["run"]:
        run(sys.argv[2])
    else:
        main()
