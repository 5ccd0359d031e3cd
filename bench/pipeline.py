"""The data pipeline: fetching and decoding outside Spark, and the same inside a warm session, in CPU seconds.

Sizes by the environment: PIPELINE_COMMITS (default 2000000), PIPELINE_ROUNDS (4). The offsets topic is served by the
embedded broker in a process of its own: 8 partitions, 2,000 keys whose offsets each grow at a pace of their own,
batches of 10 commits.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench._family import cpu_of
from groupkeeper.broker import Broker
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 8
GROUPS = 200
PER_BATCH = 10


async def serve(commits: int, directory: str) -> None:
    properties = {"log.cleaner.enable": "false", "offsets.topic.num.partitions": str(PARTITIONS)}
    async with Broker(directory=directory, properties=properties) as broker:
        broker.groups.ensure_topic()
        topic = broker.topics.get("__consumer_offsets")
        assert topic is not None
        rng = random.Random(1)
        offsets: defaultdict[tuple[str, int], int] = defaultdict(lambda: rng.randrange(100_000_000))
        for number in range(commits // PER_BATCH):
            group_id = f"group-{rng.randrange(GROUPS):05d}"
            log = topic.partitions[hash_of(group_id)]
            now_ms = 1_700_000_000_000 + number
            entries = []
            for each in range(PER_BATCH):
                offsets[group_id, each] += rng.randrange(1000)
                value = OffsetCommitValue(offsets[group_id, each], 3, "", now_ms)
                entries.append(Entry(OffsetCommitKey(group_id, "orders-topic", each), value))
            log.append(write_batch([Record(*encode_record(entry), (), now_ms) for entry in entries]), now_ms)
        print(broker.bootstrap_servers, flush=True)
        await asyncio.Event().wait()


def hash_of(group_id: str) -> int:
    return int(group_id[-5:]) % PARTITIONS


def measure(what: str, commits: int, work: Callable[[], object]) -> None:
    """CPU seconds of the best of some rounds, the first one not counted: it warms up."""
    best = float("inf")
    for round_number in range(1 + int(os.environ.get("PIPELINE_ROUNDS", "4"))):
        cost = cpu_of(work)
        if round_number:
            best = min(best, cost)
    print(f"{what}: {best:.2f} s CPU, {commits / best / 1e6:.2f} M records/s per core", flush=True)


def measure_by_turns(commits: int, works: dict[str, Callable[[], object]]) -> None:
    """As `measure`, with more rounds, of works that are compared with the first of them: who else runs disturbs all of
    them alike, and Java's compiler goes on for half a dozen rounds. How many times the first one's cost: best by best,
    and the median of the rounds.
    """
    costs: dict[str, list[float]] = {what: [] for what in works}
    for _ in range(1 + 3 * int(os.environ.get("PIPELINE_ROUNDS", "4"))):
        for what, work in works.items():
            costs[what].append(cpu_of(work))
    first = costs[next(iter(works))][1:]
    for what, rounds in costs.items():
        best = min(rounds[1:])
        middle = median(cost / paired for cost, paired in zip(rounds[1:], first, strict=True))
        rate = commits / best / 1e6
        print(
            f"{what}: {best:.2f} s CPU, {rate:.2f} M records/s per core, {best / min(first):.2f} times, "
            f"in the median {middle:.2f}",
            flush=True,
        )


def run(servers: str, commits: int) -> None:
    from tests.spark.commits import commits_in

    from groupkeeper.pipeline.jobs.scan_time import scan
    from groupkeeper.pipeline.kafka.options import parse_options
    from groupkeeper.pipeline.kafka.planning import plan_or_raise
    from groupkeeper.pipeline.kafka.source import read_ranges
    from groupkeeper.pipeline.session import start_session
    from groupkeeper.pipeline.tables import CURRENT_OFFSETS
    from groupkeeper.pipeline.transforms.decoded import decode_archive, decode_key_value
    from groupkeeper.pipeline.transforms.latest import latest as latest_of

    given = {"kafka.bootstrap.servers": servers, "cluster": "bench", "rows": "decoded"}
    options = parse_options(given)
    ranges = asyncio.run(plan_or_raise(options))

    def outside() -> None:
        assert sum(batch.num_rows for batch in read_ranges(ranges, options)) == commits

    measure("fetch and decode, outside Spark", commits, outside)
    never_ms = 2_000_000_000_000  # behind all records, so that every batch is looked at
    scanned = parse_options({"kafka.bootstrap.servers": servers, "cluster": "bench", "subscribe": "__consumer_offsets"})
    measure("scan for a time, outside Spark", commits, lambda: scan(ranges, scanned, never_ms))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"peak of the process until then: {peak} MB")
    began = time.perf_counter()
    spark = start_session("bench", settings={"spark.driver.memory": "2g"})
    print(f"session started after {time.perf_counter() - began:.1f} s")
    source = spark.read.format("groupkeeper").options(**given)
    latest = latest_of(commits_in(source.option("latestOnly", "true").load()), CURRENT_OFFSETS.key)
    everything = spark.read.format("groupkeeper").options(**given).load()

    measure_by_turns(
        commits,
        {
            "fetch and decode, outside Spark": outside,
            "Kafka to current_offsets, inside Spark (at most 2.5 times)": latest.count,
            "Kafka to history, in parquet files (at most 1.5 times)": lambda: _ingest(spark, given, commits),
            "every record decoded, into Spark": lambda: _drain(everything),
        },
    )
    with tempfile.TemporaryDirectory() as directory:
        raw = spark.read.format("groupkeeper").options(**given | {"rows": "records", "subscribe": "__consumer_offsets"})
        raw.load().write.parquet(f"{directory}/archive")
        archive = spark.read.parquet(f"{directory}/archive")
        decoded = decode_archive(spark, f"{directory}/archive")
        by_spark = decode_key_value(archive)
        measure_by_turns(
            commits,
            {
                "archived parquet, Spark's raw scan": lambda: _drain(archive),
                "archived parquet, every record decoded (at most 3 times)": lambda: _drain(decoded),
                "archived parquet, read by Spark and then decoded": lambda: _drain(by_spark),
            },
        )
    spark.stop()


def _ingest(spark: SparkSession, given: dict[str, str], commits: int) -> None:
    from groupkeeper.pipeline.jobs.snapshot import update_history
    from groupkeeper.pipeline.jobs.watch import Run
    from groupkeeper.pipeline.storage.output import open_output
    from groupkeeper.pipeline.tables import COMMITS

    wanted = {name: value for name, value in given.items() if name != "rows"}
    with tempfile.TemporaryDirectory() as directory, open_output(spark, directory) as output:
        update_history(output, wanted, Run(None))
        assert output.count(COMMITS) == commits


def _drain(frame: object) -> None:
    frame.write.format("noop").mode("overwrite").save()  # type: ignore[attr-defined]


@contextmanager
def serving(commits: int) -> Iterator[tuple[str, dict[str, str]]]:
    """A broker in a process of its own with so many commits: its address, and the environment for who reads them.

    Readers are processes of their own too, so that the broker is not among the descendants whose CPU counts.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    with tempfile.TemporaryDirectory() as directory:
        words = [sys.executable, str(Path(__file__).resolve()), "serve", str(commits), directory]
        broker = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert broker.stdout is not None
            yield broker.stdout.readline().strip(), environment
        finally:
            broker.terminate()
            broker.wait()


def main() -> None:
    commits = int(os.environ.get("PIPELINE_COMMITS", "2000000"))
    with serving(commits) as (servers, environment):
        subprocess.run([sys.executable, __file__, "run", servers, str(commits)], check=True, env=environment)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve(int(sys.argv[2]), sys.argv[3]))
    else:
        run(sys.argv[2], int(sys.argv[3]))
