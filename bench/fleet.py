"""One command over many clusters: 20 embedded brokers with 1,000 groups of 8 partitions each.

BENCH_FLEET sets another number of clusters and of groups, as in 20,1000.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench._filling import PARTITIONS, fill
from bench._measure import cost_of
from bench.broker import running_broker

CLUSTERS, GROUPS = map(int, os.environ.get("BENCH_FLEET", "20,1000").split(","))
GROUPKEEPER = str(Path(sys.executable).parent / "groupkeeper")
ROUNDS = 5
WORKS = (
    ["groups", "list"],
    ["groups", "offsets", "--all-groups"],
    ["groups", "offsets", "--all-groups", "--sort", "readable"],
    ["groups", "describe", "--all-groups", "--view", "state"],
    ["check", "--max-lag", "1000000"],
)


def main() -> None:
    with ExitStack() as stack:
        os.environ["XDG_CONFIG_HOME"] = stack.enter_context(tempfile.TemporaryDirectory())
        for number in range(CLUSTERS):
            address, _ = stack.enter_context(running_broker())
            asyncio.run(fill(address, GROUPS))
            cost_of([GROUPKEEPER, "context", "add", f"c{number:02}", "--bootstrap-server", address])
        print(f"{CLUSTERS} clusters with {GROUPS:,} groups of {PARTITIONS} partitions each; the best of {ROUNDS} runs")
        for words in WORKS:
            command = [GROUPKEEPER, *words, "--context", "*"]
            costs = [cost_of(command) for _ in range(ROUNDS)]
            wall_s, cpu_s = min(one.wall_s for one in costs), min(one.cpu_s for one in costs)
            memory_mb = max(one.memory_mb for one in costs)
            print(f"{' '.join(words):50} wall {wall_s:5.2f} s, CPU {cpu_s:5.2f} s, {memory_mb:4.0f} MB", flush=True)
