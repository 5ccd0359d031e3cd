"""CPU time and memory of the pipeline against the number of records; a plot in docs/pipeline-growth.svg.

Every size is read in a new process with a new Spark session, whose start counts. Memory is the most that the process,
Java and the Python workers had resident together, looked at ten times a second. The figures go to
docs/pipeline-growth.csv, anew after every size but the first. PIPELINE_GROWTH sets other sizes than
1000000,2000000,5000000,10000000,20000000: then they are written only where PIPELINE_GROWTH_TO says, a directory.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench import _plot
from bench.pipeline import serving, usage

SIZES = (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
DOCS = Path(__file__).resolve().parent.parent / "docs"
LOOK_S = 0.1
WORKS = ("Kafka to current_offsets", "Kafka to commits, in parquet")


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float
    memory_mb: float


class Meter(threading.Thread):
    """Looks at the memory of this process and its descendants until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most_mb = 0.0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(LOOK_S):
            self.most_mb = max(self.most_mb, usage().memory_mb)


def read(work: str, servers: str, size: int) -> Cost:
    """About so many records from the beginning of the log: the same share of every partition."""
    from groupkeeper.pipeline.options import parse_options
    from groupkeeper.pipeline.planning import plan_or_raise
    from groupkeeper.pipeline.session import start_session
    from groupkeeper.pipeline.transforms.current_offsets import current_offsets_of_decoded
    from groupkeeper.pipeline.transforms.history import commits

    began, meter = time.perf_counter(), Meter()
    meter.start()
    given = {"kafka.bootstrap.servers": servers, "cluster": "bench", "rows": "decoded"}
    ranges = asyncio.run(plan_or_raise(parse_options(given)))
    total = sum(each.size for each in ranges)
    ends = {str(each.partition): each.size * size // total for each in ranges}
    spark = start_session("growth")
    reader = spark.read.format("groupkeeper").options(**given, maxRecordsPerPartition="1000000")
    reader = reader.option("endingOffsets", json.dumps({"__consumer_offsets": ends}))
    if work == WORKS[0]:
        assert current_offsets_of_decoded(reader.option("latestOnly", "true").load()).count() > 0
    else:
        with tempfile.TemporaryDirectory() as directory:
            commits(reader.load()).write.parquet(f"{directory}/commits")
            assert spark.read.parquet(f"{directory}/commits").count() == sum(ends.values())
    cost = Cost(time.perf_counter() - began, usage().cpu_s, meter.most_mb)
    meter.stopped.set()
    spark.stop()
    return cost


def main() -> None:
    given = os.environ.get("PIPELINE_GROWTH")
    sizes = [int(size) for size in given.split(",")] if given else SIZES
    target = os.environ.get("PIPELINE_GROWTH_TO", "" if given else str(DOCS))
    found: dict[str, dict[int, Cost]] = {work: {} for work in WORKS}
    with serving(sizes[-1]) as (servers, environment):
        for size in sizes:
            for work in WORKS:
                words = [sys.executable, str(Path(__file__).resolve()), work, servers, str(size)]
                run = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=environment)
                found[work][size] = cost = Cost(*json.loads(run.stdout.splitlines()[-1]))
                print(
                    f"{size:10,} records  {work:28}  wall {cost.wall_s:6.1f} s, CPU {cost.cpu_s:6.1f} s, "
                    f"{cost.memory_mb:5.0f} MB",
                    flush=True,
                )
            if target and size > sizes[0]:  # one size alone is no plot
                write(found, Path(target))


def write(found: dict[str, dict[int, Cost]], directory: Path) -> None:
    """The figures and the plot, for docs/performance.md."""
    with (directory / "pipeline-growth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["work", "records", *Cost._fields])
        for work, costs in found.items():
            writer.writerows([work, size, *(round(value, 1) for value in cost)] for size, cost in costs.items())
    time_s = {work: {size: cost.cpu_s for size, cost in costs.items()} for work, costs in found.items()}
    memory = {work: {size: cost.memory_mb for size, cost in costs.items()} for work, costs in found.items()}
    (directory / "pipeline-growth.svg").write_text(
        _plot.side_by_side(
            "records",
            _plot.Panel("CPU time in seconds", (1.0, 1000.0), time_s),
            _plot.Panel("most memory in MB", (100.0, 10_000.0), memory),
        ),
        encoding="utf-8",
    )
    print(f"written: {directory}/pipeline-growth.csv and .svg", flush=True)


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
