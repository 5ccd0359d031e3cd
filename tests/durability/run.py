"""A broker that is killed again and again, those who use it meanwhile, and what must hold."""

import math
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.conformance.brokers import RunningBroker, wait_for
from tests.durability.reading import PATIENCE_S, check_acknowledged, committed, read
from tests.durability.residents import STILL_SESSION_MS, RestlessClassic, RestlessConsumer, Still
from tests.durability.workers import PARTITIONS, Committer, Place, Writer
from tools.apache_kafka import cache_folder

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "java" / "Loop.java"
CLIENT_KILLS = 0.25
"""How often a client is killed together with the broker."""
DELIVERY_LIMIT = 10
LONG_S = 180
# Segments are small and cleaned often, so that the broker is also killed while it does that.
PROPERTIES = {
    "groupkeeper.internal.topics.roll.bytes": "32768",
    "log.cleaner.backoff.ms": "200",
    "log.segment.bytes": "1048576",
    "group.share.delivery.count.limit": str(DELIVERY_LIMIT),
    "group.share.record.lock.duration.ms": "3000",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.max.session.timeout.ms": str(STILL_SESSION_MS),
    "group.share.max.session.timeout.ms": str(STILL_SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}


@dataclass(frozen=True)
class Plan:
    """What a run does.

    Attributes:
        kills: of the broker.
        seed: of the random moments.
        java: whether a loop of the Java clients takes part.
        longest_s: the longest time between a restart and the next kill.
        minutes: after which no further kill is made.
    """

    kills: int
    seed: int = 1
    java: bool = False
    longest_s: float = 2.0
    minutes: float = math.inf


@dataclass
class Report:
    """What a run did; `str` for people."""

    kills: int = 0
    client_kills: int = 0
    hung: int = 0
    written: int = 0
    commits: int = 0
    transformed: int = 0
    rebalances: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of the broker, {self.client_kills} of clients ({self.hung} more hung) "
            f"in {self.seconds:.0f} s: "
            f"{self.written} records written, {self.transformed} read, transformed and written exactly once, "
            f"{self.commits} commits, {self.rebalances} rebalances; nothing was lost, nothing was there twice"
        )


class Child:
    """A client in a process of its own; after a kill another one takes its place."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self.hung = 0
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def check(self) -> None:
        """It works, or was ended because it hung."""
        code = self._process.poll()
        if code == -signal.SIGALRM:
            self.hung += 1
            self.replace()
            return
        assert code is None, f"{self._command} ended with {code}:\n{self._log.read_text(errors='replace')[-2000:]}"

    def replace(self) -> None:
        self.stop()
        self._process = self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Queue:
    """A share group that works off a topic, and its journals."""

    def __init__(self, servers: str, topic: str, directory: Path) -> None:
        self._directory = directory
        configure_group(servers, "queue", "share.auto.offset.reset", "earliest")
        journal = str(directory / "queue.journal")
        command = [sys.executable, "-m", "tests.conformance.broker.shares.worker", servers, "queue", topic, journal]
        self.worker = Child(command, directory / "queue.log")

    def _lines(self) -> Iterator[tuple[str, Place, int]]:
        journal = self._directory / "queue.journal"
        # A worker that is killed leaves half a line.
        for line in journal.read_text(encoding="ascii").splitlines() if journal.exists() else ():
            words = line.split()
            if len(words) == 4 and words[0] in "DSTAR":
                yield words[0], (int(words[1]), int(words[2])), int(words[3])

    def unfinished(self, places: Iterable[Place]) -> set[Place]:
        """Places that no worker has accepted or could accept once more."""
        done = {place for what, place, count in self._lines() if what in "ST" or count >= DELIVERY_LIMIT}
        return set(places) - done

    def check(self) -> None:
        """Nothing is acknowledged twice."""
        confirmed = Counter(place for what, place, _ in self._lines() if what == "A")
        assert confirmed, "nobody works"
        twice = sorted(place for place, count in confirmed.items() if count > 1)
        assert not twice, f"acknowledged twice: {twice[:5]}"


def configure_group(servers: str, group_id: str, name: str, value: str) -> None:
    """Gives a group a setting of its own."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(20)


class Scene:
    """Everybody who uses the broker."""

    def __init__(self, broker: RunningBroker, plan: Plan, directory: Path) -> None:
        self.servers = servers = broker.bootstrap_servers
        make_topics(servers)
        committed(servers, "committers", "written")  # whoever looks for a coordinator first makes the offsets topic
        configure_group(servers, "restless-consumer", "consumer.session.timeout.ms", "60000")
        for kind in ("consumer", "share"):
            configure_group(servers, f"still-{kind}", f"{kind}.session.timeout.ms", str(STILL_SESSION_MS))
        self.writer = Writer(servers, "written", 1000)
        self.feeder = Writer(servers, "in", 60)
        self.committer = Committer(servers, "written", "committers")
        self.restless = (RestlessClassic(servers), RestlessConsumer(servers, ["written", "in"]))
        self.workers = (self.writer, self.feeder, self.committer, *self.restless)
        self.still = Still(servers, "still")
        self.queue = Queue(servers, "in", directory)
        kinds = ["classic", "classic", "consumer"]
        self.loops = [self._python_loop(f"{kind}-{number}", kind, directory) for number, kind in enumerate(kinds)]
        self.kinds = {"classic", "consumer"}
        if plan.java:
            self.kinds.add("java")
            self.loops.append(self._java_loop(directory))
        self.children = [*self.loops, self.queue.worker]
        for worker in self.workers:
            worker.start()

    def _python_loop(self, name: str, protocol: str, directory: Path) -> Child:
        words = ["in", f"out-{protocol}", f"loop-{protocol}", name, protocol]
        return Child([sys.executable, "-m", "tests.durability.loop", self.servers, *words], directory / f"{name}.log")

    def _java_loop(self, directory: Path) -> Child:
        jars = f"{cache_folder()}/jars/*"
        subprocess.run(["javac", "-cp", jars, "-d", str(directory), str(SOURCE)], check=True)
        words = ["in", "out-java", "loop-java", "java", "consumer"]
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{directory}:{jars}"]
        return Child(["java", *options, "Loop", self.servers, *words], directory / "java.log")

    def wait_until_all_work(self) -> None:
        """Every one has done something."""
        wait_for(lambda: self.committer.acknowledged and len(self.writer.acknowledged) > 100, "acknowledgements")
        wait_for(lambda: all(one.rebalances for one in self.restless), "rebalances")
        for kind in self.kinds:
            wait_for(partial(self.has_read, kind), f"progress of {kind}", PATIENCE_S)

    def progress(self, kind: str) -> list[int]:
        """What the loops of a kind have committed."""
        return [max(offset, 0) for offset in committed(self.servers, f"loop-{kind}", "in")]

    def has_read(self, kind: str) -> bool:
        return sum(self.progress(kind)) > 0

    def check_alive(self) -> None:
        """Nobody has met what must not be."""
        for worker in self.workers:
            worker.check()
        for child in self.children:
            child.check()

    def stop(self) -> None:
        for child in self.children:
            child.stop()
        self.still.close()


def make_topics(servers: str) -> None:
    names = ("written", "in", "out-classic", "out-consumer", "out-java", "still")
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        made.result(20)


def run(broker: RunningBroker, plan: Plan, directory: Path, tell: Callable[[str], None] = lambda line: None) -> Report:
    """Runs a plan on a broker that was started; AssertionError when anything is lost or there twice."""
    began = time.monotonic()
    scene = Scene(broker, plan, directory)
    try:
        scene.wait_until_all_work()
        report = Report()
        kill_again_and_again(broker, scene, plan, report, tell)
        finish(scene, report)
        verify_all(scene)
        # What a start after an orderly stop reads is the same.
        broker.stop(keep=True)
        broker.start()
        verify_all(scene)
        report.seconds = time.monotonic() - began
        return report
    finally:
        scene.stop()


def kill_again_and_again(
    broker: RunningBroker, scene: Scene, plan: Plan, report: Report, tell: Callable[[str], None]
) -> None:
    chance = random.Random(plan.seed)
    checked: set[Place] = set()
    end = time.monotonic() + plan.minutes * 60
    while report.kills < plan.kills and time.monotonic() < end:
        until = time.monotonic() + chance.uniform(0.0, plan.longest_s)
        wait_for(partial(is_past, until), "the moment to kill")
        if chance.random() < CLIENT_KILLS:
            chance.choice(scene.children).replace()
            report.client_kills += 1
        broker.kill()
        report.kills += 1
        written, offset = dict(scene.writer.acknowledged), scene.committer.acknowledged
        broker.start()
        scene.check_alive()
        scene.still.check()
        found = committed(scene.servers, "committers", "written")
        # What is under way may be there or not.
        assert all(offset <= one <= scene.committer.tried for one in found), (found, offset, scene.committer.tried)
        check_acknowledged(scene.servers, "written", {p: v for p, v in written.items() if p not in checked})
        checked = set(written)
        if report.kills % 10 == 0:
            tell(f"{report.kills} kills, {len(written)} records written, {offset} commits")


def is_past(moment_s: float) -> bool:
    return time.monotonic() > moment_s


def finish(scene: Scene, report: Report) -> None:
    """Lets everybody end what was begun."""

    def has_ended(kind: str) -> bool:
        scene.check_alive()
        scene.still.check()  # its sessions must not end
        return sum(scene.progress(kind)) == scene.feeder.sent

    for worker in scene.workers:
        worker.end()
    report.written, report.commits = scene.writer.sent, scene.committer.acknowledged
    report.transformed = scene.feeder.sent * len(scene.kinds)
    report.rebalances = sum(one.rebalances for one in scene.restless)
    for kind in scene.kinds:
        wait_for(partial(has_ended, kind), f"the end of {kind}", LONG_S)
    wait_for(lambda: not scene.queue.unfinished(scene.feeder.acknowledged), "the end of the queue", LONG_S)
    for child in scene.children:
        child.check()
        child.stop()
    report.hung = sum(child.hung for child in scene.children)


def verify_all(scene: Scene) -> None:
    """Each acknowledged record is where it was, each record is there once, and in the order of sending."""
    for writer, topic in ((scene.writer, "written"), (scene.feeder, "in")):
        there = check_acknowledged(scene.servers, topic, writer.acknowledged)
        assert len(there) == writer.sent, f"{topic}: {writer.sent} records were written and {len(there)} are there"
        for partition in range(PARTITIONS):
            values = [int(there[place]) for place in sorted(there) if place[0] == partition]
            assert values == sorted(values), f"{topic}-{partition} is out of order"
    expected = Counter(b"%d!" % number for number in range(scene.feeder.sent))
    for kind in scene.kinds:
        found = Counter(read(scene.servers, f"out-{kind}").values())
        assert found == expected, differences(f"out-{kind}", expected, found)
        assert sum(scene.progress(kind)) == scene.feeder.sent
    assert min(committed(scene.servers, "committers", "written")) >= scene.committer.acknowledged
    scene.queue.check()
    scene.still.check()


def differences(topic: str, expected: Counter[bytes], found: Counter[bytes]) -> str:
    missing, more = expected - found, found - expected
    return f"{topic}: {missing.total()} are missing {list(missing)[:5]}, {more.total()} are too many {list(more)[:5]}"
