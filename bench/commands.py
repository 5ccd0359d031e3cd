"""The commands beside the official tools and kafka-python, on one Apache Kafka 4.4.0 with 10,000 groups × 8 partitions.

All run in turns on the same broker, the official tools with the settings of their own scripts. What both print is
compared. BENCH_GROUPS sets another number of groups.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import OFFICIAL_JVM, ApacheKafka, ApacheKafkaUnavailable, tool_command

from bench._filling import GROUP_ID, PARTITIONS, fill
from bench._measure import Cost, cost_of

GROUPS = int(os.environ.get("BENCH_GROUPS", "10000"))
COMMANDS = Path(sys.executable).parent
ROUNDS = 5

KAFKA_PYTHON = """
import sys
from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec
client = KafkaAdminClient(bootstrap_servers=sys.argv[1])
group_ids = sys.argv[2:] or [group["group_id"] for group in client.list_groups()]
committed = client.list_group_offsets(dict.fromkeys(group_ids))
ends = client.list_partition_offsets({tp: OffsetSpec.LATEST for offsets in committed.values() for tp in offsets})
for group_id, offsets in committed.items():
    for tp, offset in offsets.items():
        print(group_id, tp.topic, tp.partition, offset.offset, ends[tp].offset, ends[tp].offset - offset.offset)
"""


class Contender(NamedTuple):
    """Who does the work, how, and how often: the official tool takes a minute and differs little."""

    name: str
    command: Sequence[str]
    rounds: int = ROUNDS


class Work(NamedTuple):
    """What is to be done. `is_ordered`: the lines of ours and of the official tool come in the same order."""

    title: str
    contenders: Sequence[Contender]
    is_ordered: bool = True


def works(address: str) -> list[Work]:
    def ours(*arguments: str) -> list[str]:
        return [str(COMMANDS / "kafka-consumer-groups"), "--bootstrap-server", address, *arguments]

    def better(*arguments: str) -> list[str]:
        return [str(COMMANDS / "groupkeeper"), "groups", *arguments, "--bootstrap-server", address]

    def official(*arguments: str) -> list[str]:
        words = ("--bootstrap-server", address, *arguments)
        return tool_command("consumer-groups", *words, heap="256m", jvm=OFFICIAL_JVM)

    def kafka_python(*arguments: str) -> list[str]:
        return [sys.executable, "-c", KAFKA_PYTHON, address, *arguments]

    everything = ("--describe", "--all-groups", "--offsets")
    one = ("--describe", "--group", GROUP_ID.format(7))
    listing = [sys.executable, "-m", "kafka.admin", "-b", address, "groups", "list"]
    return [
        Work(
            f"describe {GROUPS:,} groups × {PARTITIONS}",
            [
                Contender("kafka-consumer-groups (ours)", ours(*everything)),
                Contender("kafka-consumer-groups (official)", official(*everything), 1),
                Contender("groupkeeper groups offsets", better("offsets", "--all-groups")),
                Contender("kafka-python's API", kafka_python()),
            ],
        ),
        Work(
            f"list {GROUPS:,} groups",
            [
                Contender("kafka-consumer-groups (ours)", ours("--list")),
                Contender("kafka-consumer-groups (official)", official("--list")),
                Contender("groupkeeper groups list", better("list")),
                Contender("kafka-python's command", listing),
            ],
            is_ordered=False,
        ),
        Work(
            "describe one group",
            [
                Contender("kafka-consumer-groups (ours)", ours(*one)),
                Contender("kafka-consumer-groups (official)", official(*one)),
                Contender("groupkeeper groups offsets", better("offsets", GROUP_ID.format(7))),
                Contender("kafka-python's API", kafka_python(GROUP_ID.format(7))),
            ],
        ),
    ]


def measure(work: Work, folder: Path) -> dict[str, Cost]:
    """The median of each contender's rounds, and the most memory of any."""
    costs: dict[str, list[Cost]] = {}
    for turn in range(ROUNDS):
        for contender in work.contenders:
            if turn < contender.rounds:
                costs.setdefault(contender.name, []).append(
                    cost_of([*contender.command], str(folder / contender.name.replace(" ", "-").replace("'", "")))
                )
    return {name: of_all(some) for name, some in costs.items()}


def of_all(costs: Sequence[Cost]) -> Cost:
    def median(value: Callable[[Cost], float]) -> float:
        return statistics.median(map(value, costs))

    return Cost(
        median(lambda cost: cost.first_s),
        median(lambda cost: cost.wall_s),
        median(lambda cost: cost.cpu_s),
        max(cost.memory_mb for cost in costs),
    )


def show(work: Work, costs: dict[str, Cost], folder: Path) -> None:
    base = next(iter(costs.values()))
    print(f"{work.title:36} {'wall s':>8} {'CPU s':>8} {'MB':>6}   times ours: wall, CPU")
    for name, cost in costs.items():
        times = f"{cost.wall_s / base.wall_s:10.1f} {cost.cpu_s / base.cpu_s:8.1f}"
        print(f"  {name:34} {cost.wall_s:8.2f} {cost.cpu_s:8.2f} {cost.memory_mb:6.0f}   {times}", flush=True)
    texts = [(folder / f"kafka-consumer-groups-({who})").read_bytes().splitlines() for who in ("ours", "official")]
    same = texts[0] == texts[1] if work.is_ordered else sorted(texts[0]) == sorted(texts[1])
    order = "" if work.is_ordered else ", but for the brokers' order"
    print(f"  ours and the official print the same{order}: {'yes' if same else 'NO'}", flush=True)


def main() -> None:
    try:
        with ApacheKafka() as kafka, tempfile.TemporaryDirectory() as folder:
            took_s = asyncio.run(fill(kafka.bootstrap_servers, GROUPS))
            print(f"{GROUPS:,} groups × {PARTITIONS} offsets committed in {took_s:.1f} s")
            for work in works(kafka.bootstrap_servers):
                show(work, measure(work, Path(folder)), Path(folder))
    except ApacheKafkaUnavailable as unavailable:
        print(f"left out: {unavailable}")


if __name__ == "__main__":
    main()
