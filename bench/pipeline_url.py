"""Tables at a URL (viewfs over this machine's files) beside a path: first runs, refreshes, and refreshes in a session.

The former are commands, the latter as in `follow`. In each, 640 offsets of 20 groups are committed once.

PIPELINE_ROUNDS sets the number of rounds (5); the session has two more, which are not counted.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench._family import cost_of, cpu_of
from bench.pipeline_refresh import WARM_UP, commit, serving

GROUPS = 20


def places(directory: str) -> tuple[dict[str, str], str]:
    """Where tables are, and the setting of Spark without which the URL leads nowhere."""
    link = f"spark.hadoop.fs.viewfs.mounttable.bench.link./store={Path(directory).as_uri()}"
    return {"at a path": f"{directory}/tables", "at a URL": "viewfs://bench/store/at-a-url"}, link


def commands(servers: str, environment: dict[str, str], rounds: int) -> None:
    numbers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(1, rounds + 1):
        with tempfile.TemporaryDirectory() as directory:
            tables, link = places(directory)
            for what in ("first run", "refresh"):
                asyncio.run(commit(servers, GROUPS, number))
                for where, place in tables.items():
                    words = ["-m", "groupkeeper", "pipeline", "snapshot", "--bootstrap-server", f"bench={servers}"]
                    cost = cost_of([sys.executable, *words, "--tables", place, "--conf", link], environment)
                    numbers.setdefault((what, where), []).append((cost.cpu_s, cost.wall_s))
    for (what, where), costs in numbers.items():
        cpu_s, wall_s = map(median, zip(*costs, strict=True))
        print(f"{what} {where}, a command: {cpu_s:.1f} s CPU, {wall_s:.1f} s wall", flush=True)


def run(servers: str, rounds: int) -> None:
    """In this process."""
    from groupkeeper.pipeline.jobs.snapshot import snapshot
    from groupkeeper.pipeline.session import start_session

    with tempfile.TemporaryDirectory() as directory:
        tables, link = places(directory)
        spark = start_session("bench", settings=dict([link.split("=", 1)]), is_short=True, has_source=False)
        numbers: dict[str, list[tuple[float, float]]] = {where: [] for where in tables}
        for number in range(rounds + WARM_UP):
            asyncio.run(commit(servers, GROUPS, 100 + number))
            for where, place in tables.items():
                began = time.perf_counter()
                cpu_s = cpu_of(lambda place=place: snapshot(spark, _options(servers), place))  # type: ignore[misc]
                numbers[where].append((cpu_s, time.perf_counter() - began))
        for where, costs in numbers.items():
            cpu_s, wall_s = map(median, zip(*costs[WARM_UP:], strict=True))
            print(f"refresh {where}, in a session: {cpu_s:.1f} s CPU, {wall_s:.1f} s wall", flush=True)
        spark.stop()


def _options(servers: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "cluster": "bench"}


def main() -> None:
    rounds = int(os.environ.get("PIPELINE_ROUNDS", "5"))
    with serving() as (servers, environment):
        asyncio.run(commit(servers, GROUPS, 0))
        commands(servers, environment, rounds)
        subprocess.run([sys.executable, __file__, servers, str(rounds)], check=True, env=environment)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
