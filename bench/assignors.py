"""The assignors beside Apache Kafka's own: balance, moved partitions and time over the life of large groups.

The jars of Apache Kafka 4.4.0 are taken as `tools/apache_kafka.py` does; without Java the comparison is left out.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.apache_kafka import ApacheKafkaUnavailable, fetch, why_unavailable

from groupkeeper.coordinator.assignors import ASSIGNORS
from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment

SOURCE = Path(__file__).parent / "java" / "Assignors.java"
ROUNDS = 3
MEMBERS = 10_000
TOPICS, PARTITIONS = 100, 1_000


class Group(NamedTuple):
    """What is to be assigned: topics with their numbers of partitions, members with the topics they subscribe to."""

    title: str
    topics: Mapping[int, int]
    members: Mapping[str, frozenset[int]]
    is_homogeneous: bool


class Outcome(NamedTuple):
    """Loads by member, partitions that moved, and the best time in milliseconds."""

    loads: Mapping[str, int]
    moved: int
    milliseconds: float

    @property
    def spread(self) -> str:
        """How the loads are spread: least, most, and the sum of their squares, which is least when they are even."""
        squares = sum(load * load for load in self.loads.values())
        return f"{min(self.loads.values())}-{max(self.loads.values())} ({squares})"


def life(topics: Mapping[int, int], *, is_homogeneous: bool) -> Iterator[Group]:
    """A group that forms, loses members, gets others, and sees its topics grow."""
    chance = random.Random(1)

    def subscription() -> frozenset[int]:
        some = topics if is_homogeneous else chance.sample(sorted(topics), len(topics) // 2)
        return frozenset(some)

    members = {f"member-{index:05}": subscription() for index in range(MEMBERS)}
    yield Group("forming", topics, dict(members), is_homogeneous)
    yield Group("again", topics, dict(members), is_homogeneous)
    for member_id in chance.sample(sorted(members), MEMBERS // 10):
        del members[member_id]
    yield Group("a tenth leaves", topics, dict(members), is_homogeneous)
    members |= {f"other-{index:05}": subscription() for index in range(MEMBERS // 10)}
    yield Group("others come", topics, dict(members), is_homogeneous)
    grown = {topic: count + 50 for topic, count in topics.items()}
    yield Group("topics grow", grown, dict(members), is_homogeneous)


class Ours:
    """Our assignor, with the assignment it made last."""

    def __init__(self, assignor: str) -> None:
        self._assign = ASSIGNORS[assignor]
        self._targets: dict[str, TargetAssignment] = {}

    def run(self, group: Group) -> Outcome:
        members = {
            member_id: MemberSpec(frozenset(map(_topic_id, topics)), self._targets.get(member_id, {}))
            for member_id, topics in group.members.items()
        }
        counts = {_topic_id(topic): count for topic, count in group.topics.items()}
        spec = GroupSpec(members, counts, group.is_homogeneous)
        best = float("inf")
        for _ in range(ROUNDS):
            started = time.process_time()
            assigned = self._assign(spec)
            best = min(best, (time.process_time() - started) * 1000)
        owners = {
            (topic_id, one): member_id
            for member_id, target in self._targets.items()
            for topic_id, some in target.items()
            for one in some
        }
        moved = sum(
            owners.get((topic_id, one), member_id) != member_id
            for member_id, target in assigned.items()
            for topic_id, some in target.items()
            for one in some
        )
        self._targets = assigned
        return Outcome({one: sum(map(len, target.values())) for one, target in assigned.items()}, moved, best)


def _topic_id(topic: int) -> bytes:
    return topic.to_bytes(16, "big")


class Theirs:
    """Apache Kafka's assignor in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], assignor: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._assignor = assignor

    def run(self, group: Group) -> Outcome:
        kind = "homogeneous" if group.is_homogeneous else "heterogeneous"
        self._input.write(f"group {self._assignor} {kind} {ROUNDS}\n")
        self._input.writelines(f"topic {topic} {count}\n" for topic, count in group.topics.items())
        self._input.writelines(
            f"member {member_id} {','.join(map(str, topics))}\n" for member_id, topics in group.members.items()
        )
        self._input.write("end\n")
        self._input.flush()
        loads = {}
        while (words := self._output.readline().split())[0] == "load":
            loads[words[1]] = int(words[2])
        return Outcome(loads, int(words[1]), float(words[2]))


@contextmanager
def apache(assignor: str) -> Iterator[Theirs | None]:
    """Apache's assignor, or None where it cannot run."""
    try:
        reason = why_unavailable()
        jars = None if reason else fetch()
    except ApacheKafkaUnavailable as unavailable:
        reason, jars = str(unavailable), None
    if jars is None:
        print(f"without Apache Kafka's: {reason}")
        yield None
        return
    command = ["java", "-Xmx2g", "-cp", f"{jars}/*", str(SOURCE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Theirs(process, assignor)
        assert process.stdin is not None
        process.stdin.close()


def compare(assignor: str, *, is_homogeneous: bool) -> None:
    topics = dict.fromkeys(range(TOPICS), PARTITIONS)
    kind = "same subscriptions" if is_homogeneous else "different subscriptions"
    print(f"{assignor}, {MEMBERS} members, {TOPICS * PARTITIONS} partitions of {TOPICS} topics, {kind}")
    ours = Ours(assignor)
    totals = defaultdict[str, float](float)
    with apache(assignor) as theirs:
        for group in life(topics, is_homogeneous=is_homogeneous):
            own = ours.run(group)
            totals["ours"] += own.milliseconds
            line = f"  {group.title:16} load {own.spread}, moved {own.moved}, {own.milliseconds:.0f} ms"
            if theirs is not None:
                other = theirs.run(group)
                totals["theirs"] += other.milliseconds
                line += f" | Apache {other.spread}, {other.moved}, {other.milliseconds:.0f} ms"
            print(line, flush=True)
    if totals["theirs"]:
        print(f"  time {totals['ours'] / totals['theirs']:.1f} times Apache's")


def main() -> None:
    for assignor in ("uniform", "range"):
        compare(assignor, is_homogeneous=True)
        compare(assignor, is_homogeneous=False)


if __name__ == "__main__":
    main()
