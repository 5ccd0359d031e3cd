"""CPU time and memory of the pipeline against the number of records; a plot in docs/pipeline-growth.svg.

Every size is read in a new process with a new Spark session, whose start counts, from a broker in a process of its own,
which does not: its log grows from size to size (bench/_fleet_log.py). Ten times a second the memory of Java, of the
process that started it (the driver) and of Spark's Python workers is looked at; Java's log of its collections tells of
its heap, which the session bounds (spark.driver.memory).

The figures go to docs/pipeline-growth.csv, anew after every size but the first. PIPELINE_GROWTH sets other sizes than
1000000,2000000,5000000,10000000,20000000: then they are written only where PIPELINE_GROWTH_TO says, a directory.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import _plot
from bench._family import Cost, cost_of
from bench._fleet_log import Filled

SIZES = (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
WORKS = ("Kafka to current_offsets", "Kafka to commits, in parquet", "groupkeeper pipeline snapshot")


@contextmanager
def growing() -> Iterator[tuple[Callable[[int], Filled], dict[str, str]]]:
    """A broker whose offsets topic grows to the records that it is called with, and the environment of its readers."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}
    with tempfile.TemporaryDirectory() as directory:
        words = [sys.executable, str(HERE / "_fleet_log.py"), directory]
        broker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        assert broker.stdin is not None
        assert broker.stdout is not None
        into, out = broker.stdin, broker.stdout

        def grow(records: int) -> Filled:
            into.write(f"{records}\n")
            into.flush()
            return Filled(*json.loads(out.readline()))

        try:
            yield grow, environment
        finally:
            broker.terminate()
            broker.wait()


def read(work: str, servers: str, commits: int) -> None:
    """In this process."""
    from tests.spark.commits import commits_in

    from groupkeeper.pipeline.session import start_session
    from groupkeeper.pipeline.tables import CURRENT_OFFSETS
    from groupkeeper.pipeline.transforms.latest import latest

    spark = start_session("growth")
    given = {"kafka.bootstrap.servers": servers, "cluster": "bench", "rows": "decoded"}
    reader = spark.read.format("groupkeeper").options(**given, maxRecordsPerPartition="1000000")
    if work == WORKS[0]:
        written = commits_in(reader.option("latestOnly", "true").load())
        assert latest(written, CURRENT_OFFSETS.key).count() > 0
    else:
        with tempfile.TemporaryDirectory() as directory:
            commits_in(reader.load()).write.parquet(f"{directory}/commits")
            assert spark.read.parquet(f"{directory}/commits").count() == commits
    spark.stop()


def measured(work: str, filled: Filled, environment: dict[str, str]) -> Cost:
    if work != WORKS[2]:
        words = [sys.executable, str(Path(__file__).resolve()), work, filled.servers, str(filled.commits)]
        return cost_of(words, environment)
    from groupkeeper.pipeline.tables import OFFSETS_AS_OF, SCAN_TIME, TABLES

    with tempfile.TemporaryDirectory() as directory:
        words = [
            sys.executable, "-m", "groupkeeper", "pipeline", "snapshot", "--bootstrap-server",
            f"bench={filled.servers}", "--tables", f"{directory}/tables",
        ]  # fmt: skip
        cost = cost_of(words, environment)
        made = {each.name for each in Path(f"{directory}/tables").iterdir() if any(each.glob("*.parquet"))}
        assert {table.name for table in TABLES} - made == {OFFSETS_AS_OF.name, SCAN_TIME.name}, made
        return cost


def main() -> None:
    given = os.environ.get("PIPELINE_GROWTH")
    sizes = sorted(int(size) for size in given.split(",")) if given else SIZES
    target = os.environ.get("PIPELINE_GROWTH_TO", "" if given else str(DOCS))
    found: dict[str, dict[int, Cost]] = {work: {} for work in WORKS}
    with growing() as (grow, environment):
        for size in sizes:
            filled = grow(size)
            for work in WORKS:
                found[work][size] = cost = measured(work, filled, environment)
                print(
                    f"{size:10,} records  {work:29}  wall {cost.wall_s:5.0f} s, CPU {cost.cpu_s:5.0f} s, "
                    f"{cost.memory_mb:5.0f} MB: Java {cost.java_mb:.0f} (heap {cost.heap_mb:.0f}, in use "
                    f"{cost.used_mb:.0f}), driver {cost.driver_mb:.0f}, workers {cost.workers_mb:.0f}",
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
            _plot.Panel("CPU time in seconds", (10.0, 1000.0), time_s),
            _plot.Panel("most memory in MB", (1000.0, 10_000.0), memory),
        ),
        encoding="utf-8",
    )
    print(f"written: {directory}/pipeline-growth.csv and .svg", flush=True)


if __name__ == "__main__":
    read(sys.argv[1], sys.argv[2], int(sys.argv[3]))
