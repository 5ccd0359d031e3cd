"""How far behind `follow` is with many clusters: by commit, from its record's time until the history has it, which is
looked at four times a second.

So many embedded brokers, in two processes, each with a group that commits all the time. One of them answers each fetch
late, and one address has nobody behind it. Figures are told of the time after the first refresh: from time to time what
the job, Java and its workers hold (memory, descriptors, threads), and the files of the directory.

PIPELINE_CLUSTERS sets their number (20), PIPELINE_COMMITS the commits of each per second (50), PIPELINE_REFRESH how
often tables are made, in seconds (30), PIPELINE_SECONDS how long it is followed after the first refresh (120). With
3600 it is a soak: what is held and what is on disk must be flat after the first third.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench._family import cpu_of, held
from groupkeeper.broker import Broker
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import NewTopic, OffsetAndMetadata, TopicPartition

HERE = Path(__file__).resolve()
CLUSTERS = int(os.environ.get("PIPELINE_CLUSTERS", "20"))
COMMITS = int(os.environ.get("PIPELINE_COMMITS", "50"))
SECONDS = int(os.environ.get("PIPELINE_SECONDS", "120"))
PROCESSES = 2
INTERVAL_S, REFRESH_S = 5, int(os.environ.get("PIPELINE_REFRESH", "30"))
SLOW_MS = 3_000
LOOKS = 12
ARRIVALS_S = 0.25
DEAD = "127.0.0.1:9"
TOPIC = "orders"
APPENDED = ("commits", "group_records", "lag_history", "log_ends")


async def serve(directory: str, first: int, count: int) -> None:
    """The brokers of one process; their addresses are printed."""
    brokers = [Broker(directory=f"{directory}/{first + number}") for number in range(count)]
    for broker in brokers:
        await broker.start()
    if not first:
        brokers[0].faults.delay("Fetch", SLOW_MS)
    print(json.dumps([broker.bootstrap_servers for broker in brokers]), flush=True)
    await asyncio.gather(*(_commit(broker.bootstrap_servers) for broker in brokers))


async def _commit(servers: str) -> None:
    async with Admin(servers) as admin:
        (await admin.create_topics([NewTopic(TOPIC, COMMITS)])).all()
        offset = 0
        while True:
            began = time.monotonic()
            offset += 1
            offsets = {TopicPartition(TOPIC, number): OffsetAndMetadata(offset) for number in range(COMMITS)}
            for each in (await admin.alter_offsets_of_groups({"reader": offsets}, timeout_ms=60_000)).all().values():
                each.all()
            await asyncio.sleep(max(0.0, began + 1 - time.monotonic()))


def follow_them(addresses: list[str], directory: str) -> None:
    from groupkeeper.pipeline.jobs.following.job import follow
    from groupkeeper.pipeline.jobs.watch import Watch
    from groupkeeper.pipeline.session import start_session

    class Told(Watch):
        refreshed: list[float] = []  # noqa: RUF012
        problems: list[str] = []  # noqa: RUF012

        def waiting(self) -> None:
            self.refreshed.append(time.time())

        def problem(self, problem: object) -> None:
            self.problems.append(str(problem))

    spark = start_session("bench")
    options = {
        "clusters": json.dumps(
            {f"c{number}": {"kafka.bootstrap.servers": address} for number, address in enumerate(addresses)}
        )
    }
    told, stop = Told(), threading.Event()
    began = time.time()
    done: list[object] = []
    thread = threading.Thread(
        target=lambda: done.append(
            follow(spark, options, directory, stop, told, interval_s=INTERVAL_S, refresh_s=REFRESH_S)
        )
    )
    thread.start()
    while not told.refreshed and thread.is_alive():
        time.sleep(0.2)
    first = time.time()
    print(f"{len(addresses)} clusters: first refresh after {first - began:.1f} s", flush=True)
    words = [sys.executable, str(HERE), "arrivals", directory]
    # In a process of its own: what it holds and reads is none of the job's.
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as arrivals:
        cpu_s = cpu_of(lambda: _look(directory, arrivals.pid))
        delays_of = json.loads(arrivals.communicate("")[0])
    stop.set()
    thread.join()
    print(
        f"CPU of Spark and its workers: {cpu_s / SECONDS:.2f} cores; refreshes: {len(told.refreshed) - 1}", flush=True
    )
    for name, delays in delays_of.items():
        if delays:
            p50, p95, most = (float(np.percentile(delays, each)) for each in (50, 95, 100))
            print(f"{name}: {len(delays)} commits; behind by p50 {p50:.1f} s, p95 {p95:.1f} s, at most {most:.1f} s")
        else:
            print(f"{name}: no commits")
    for text in dict.fromkeys(told.problems):
        print(f"told: {text} ({told.problems.count(text)} times)")
    spark.stop()


def _look(directory: str, beside: int) -> None:
    """What is held and what is on disk, from time to time; not what the process `beside` holds, which measures."""
    began = time.monotonic()
    for number in range(LOOKS + 1):
        time.sleep(max(0.0, began + number * SECONDS / LOOKS - time.monotonic()))
        parts = ", ".join(
            f"{name} {each.memory_mb:.0f} MB {each.descriptors} fd {each.threads} threads"
            for name, each in held(without=beside).items()
        )
        on_disk = ", ".join(f"{name} {files} files {size / 2**20:.1f} MB" for name, (files, size) in _sizes(directory))
        print(f"after {time.monotonic() - began:.0f} s: {parts}; {on_disk}", flush=True)


def _sizes(directory: str) -> list[tuple[str, tuple[int, int]]]:
    """Number and bytes of files: what is appended to, what is carried from refresh to refresh, and all others."""
    found = dict.fromkeys((*APPENDED, "state", "others"), (0, 0))
    for folder, _, names in os.walk(directory):
        first = Path(folder).relative_to(directory).parts[:1]
        kind = first[0] if first and first[0] in APPENDED else "state" if first == ("_groupkeeper",) else "others"
        for name in names:
            with suppress(OSError):  # replaced meanwhile
                files, size = found[kind]
                found[kind] = files + 1, size + os.stat(os.path.join(folder, name)).st_size
    return list(found.items())


class Arrivals(threading.Thread):
    """Notes when each commit was seen in the history first; files are merged later, which is no arrival."""

    def __init__(self, directory: str) -> None:
        super().__init__(daemon=True, name="arrivals")
        self._folder = Path(directory) / "commits"
        self._is_over = threading.Event()
        self._files: set[Path] = set()
        self._seen: dict[tuple[str, int], int] = {}
        """By cluster and log partition: the highest offset of its records."""
        self._delays: dict[str, list[float]] = {"slow cluster": [], "other clusters": []}

    def run(self) -> None:
        since = time.time()
        while not self._is_over.wait(ARRIVALS_S):
            new = set(self._folder.glob("*.parquet")) - self._files
            now = time.time()
            self._files |= new
            for path in sorted(new):
                try:
                    rows = pq.read_table(path, columns=["cluster", "log_partition", "log_offset", "log_time"])
                except OSError:  # it was merged meanwhile
                    continue
                self._take(rows.sort_by("log_offset"), since, now)

    def _take(self, rows: pa.Table, since: float, now: float) -> None:
        written = pc.divide(rows["log_time"].cast("int64"), 1e6).to_pylist()
        columns = (rows[name].to_pylist() for name in ("cluster", "log_partition", "log_offset"))
        for cluster, partition, offset, time_s in zip(*columns, written, strict=True):
            if offset > self._seen.get((cluster, partition), -1):
                self._seen[cluster, partition] = offset
                if time_s >= since:
                    self._delays["slow cluster" if cluster == "c0" else "other clusters"].append(now - time_s)

    def end(self) -> dict[str, list[float]]:
        """Delays, in seconds, of commits since the beginning, by whether their cluster is slow."""
        self._is_over.set()
        self.join()
        return self._delays


def see_arrivals(directory: str) -> None:
    """Until the standard input ends; prints the delays."""
    arrivals = Arrivals(directory)
    arrivals.start()
    sys.stdin.read()
    print(json.dumps(arrivals.end()))


def main() -> None:
    environment = os.environ | {"PYTHONPATH": str(HERE.parent.parent)}
    per_process = -(-CLUSTERS // PROCESSES)
    with tempfile.TemporaryDirectory() as directory:
        brokers = [
            subprocess.Popen(
                [sys.executable, str(HERE), "serve", directory, str(first), str(min(per_process, CLUSTERS - first))],
                stdout=subprocess.PIPE, text=True, env=environment,
            )
            for first in range(0, CLUSTERS, per_process)
        ]  # fmt: skip
        try:
            addresses = [each for broker in brokers if broker.stdout for each in json.loads(broker.stdout.readline())]
            words = [sys.executable, str(HERE), "follow", f"{directory}/tables", *addresses, DEAD]
            subprocess.run(words, check=True, env=environment | {"MIMALLOC_ALLOW_THP": "0"})  # as the command has it
        finally:
            for broker in brokers:
                broker.terminate()
            for broker in brokers:
                broker.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", directory, first, count]:
            asyncio.run(serve(directory, int(first), int(count)))
        case ["follow", directory, *addresses]:
            follow_them(addresses, directory)
        case ["arrivals", directory]:
            see_arrivals(directory)
        case _:
            main()
