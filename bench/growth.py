"""Time and memory of the commands against the number of groups, on the embedded broker; a plot in docs/growth.svg.

The figures go to docs/growth.csv. BENCH_GROWTH sets other numbers of groups than 100,1000,10000,100000: then nothing
is written.
"""

from __future__ import annotations

import asyncio
import csv
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import _plot
from bench._filling import PARTITIONS, fill
from bench._measure import Cost, cost_of
from bench.broker import running_broker

SIZES = (100, 1_000, 10_000, 100_000)
COMMANDS = Path(sys.executable).parent
DOCS = Path(__file__).parent.parent / "docs"
ROUNDS = 3

WORKS = {
    "kafka-consumer-groups --list": ["kafka-consumer-groups", "--list"],
    "kafka-consumer-groups --describe --all-groups --offsets": [
        "kafka-consumer-groups", "--describe", "--all-groups", "--offsets",
    ],
    "groupkeeper groups list": ["groupkeeper", "groups", "list"],
    "groupkeeper groups offsets --all-groups": ["groupkeeper", "groups", "offsets", "--all-groups"],
    "groupkeeper groups offsets --all-groups --output json": [
        "groupkeeper", "groups", "offsets", "--all-groups", "--output", "json",
    ],
}  # fmt: skip


def measure(sizes: Sequence[int]) -> dict[str, dict[int, Cost]]:
    """The cheapest of a few runs by command and number of groups."""
    found: dict[str, dict[int, Cost]] = {title: {} for title in WORKS}
    with running_broker() as (address, _):
        for size in sizes:
            asyncio.run(fill(address, size))
            for title, words in WORKS.items():
                command = [str(COMMANDS / words[0]), *words[1:], "--bootstrap-server", address]
                rounds = ROUNDS if size < sizes[-1] else 1
                cost = min((cost_of(command) for _ in range(rounds)), key=lambda one: one.cpu_s)
                found[title][size] = cost
                print(
                    f"{size:7,} groups  {title:56} first output {cost.first_s:5.2f} s, wall {cost.wall_s:6.2f} s, "
                    f"CPU {cost.cpu_s:5.2f} s, {cost.memory_mb:4.0f} MB",
                    flush=True,
                )
    return found


def main() -> None:
    given = os.environ.get("BENCH_GROWTH")
    sizes = [int(size) for size in given.split(",")] if given else SIZES
    print(f"each group has offsets in {PARTITIONS} partitions; the cheapest of {ROUNDS} runs, one run of the largest")
    found = measure(sizes)
    if given:
        return
    write(found)


def write(found: dict[str, dict[int, Cost]]) -> None:
    """The figures and the plot, for docs/performance.md."""
    with (DOCS / "growth.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["command", "groups", *Cost._fields])
        writer.writerows(
            [title, size, *(round(value, 3) for value in cost)]
            for title, costs in found.items()
            for size, cost in costs.items()
        )
    time = {title: {size: cost.cpu_s for size, cost in costs.items()} for title, costs in found.items()}
    memory = {title: {size: cost.memory_mb for size, cost in costs.items()} for title, costs in found.items()}
    (DOCS / "growth.svg").write_text(
        _plot.side_by_side(
            "groups",
            _plot.Panel("CPU time in seconds", (0.05, 10.0), time),
            _plot.Panel("most memory in MB", (10.0, 1000.0), memory),
        ),
        encoding="utf-8",
    )
    print("written: docs/growth.csv, docs/growth.svg")


if __name__ == "__main__":
    main()
