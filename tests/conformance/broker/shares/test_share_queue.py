"""A queue: several workers of a share group, of which some crash, and a broker that is killed in between.

QUEUE_RECORDS says how many records (default 20,000), QUEUE_SEED where the random moments begin.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from tests.acts import ask, begin_with_the_first_record
from tests.conformance.brokers import RunningBroker, kinds_under_test, new_broker
from tests.conformance.conftest import make_topic
from tools.apache_kafka import cache_folder

RECORDS = int(os.environ.get("QUEUE_RECORDS", "20000"))
SEED = int(os.environ.get("QUEUE_SEED", "1"))
PARTITIONS = 3
KILLS = 3
DELIVERY_LIMIT = 5
PATIENCE_S = 120 + RECORDS // 200
SOURCE = Path(__file__).parent / "java" / "ShareWorker.java"
ROOT = Path(__file__).resolve().parents[4]

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(60 + 2 * PATIENCE_S)]

Place = tuple[int, int]


@pytest.fixture(params=kinds_under_test())
def mortal(request: pytest.FixtureRequest, apache_jars: None) -> Iterator[RunningBroker]:
    """A broker of the test's own, to be killed; locks are short."""
    limits = {
        "group.share.record.lock.duration.ms": "3000",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.delivery.count.limit": str(DELIVERY_LIMIT),
        "group.share.session.timeout.ms": "2000",
        "group.share.min.session.timeout.ms": "2000",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.heartbeat.interval.ms": "500",
        "group.share.assignment.interval.ms": "0",
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    made = new_broker(request.param, limits)
    made.start()
    yield made
    made.stop()


class Crew:
    """Workers as processes of their own; one that ended is replaced."""

    def __init__(self, servers: str, name: str, directory: Path, kinds: list[str]) -> None:
        self._servers = servers
        self._name = name
        self._directory = directory
        self._workers = [(kind, self._start(kind)) for kind in kinds]
        self.crashes = 0

    def _start(self, kind: str) -> subprocess.Popen[bytes]:
        journal = self._directory / f"{time.monotonic_ns()}.journal"
        command = [sys.executable, "-m", "tests.conformance.broker.shares.worker"]
        if kind == "java":
            command = ["java", "-XX:+UseSerialGC", "-cp", f"{cache_folder()}/jars/*", str(SOURCE)]
        return subprocess.Popen(
            [*command, self._servers, self._name, self._name, str(journal)], cwd=ROOT, stderr=subprocess.DEVNULL
        )

    def replace_dead(self) -> None:
        for index, (kind, child) in enumerate(self._workers):
            if child.poll() is not None:
                self.crashes += 1
                self._workers[index] = kind, self._start(kind)

    def kill_one(self, chance: random.Random) -> None:
        _, child = chance.choice(self._workers)
        child.kill()
        child.wait()

    def stop(self) -> None:
        for _, child in self._workers:
            child.kill()
            child.wait()

    def lines(self) -> Iterator[tuple[str, Place, int]]:
        for path in self._directory.glob("*.journal"):
            for line in path.read_text(encoding="ascii").split("\n")[:-1]:
                what, partition, offset, count = line.split()
                yield what, (int(partition), int(offset)), int(count)


def test_a_queue_is_worked_off(mortal: RunningBroker, name: str, tmp_path: Path) -> None:
    places = fill(mortal.bootstrap_servers, name)
    chance = random.Random(SEED)
    crew = Crew(mortal.bootstrap_servers, name, tmp_path, ["java", "librdkafka", "librdkafka"])
    try:
        kill_at = [
            RECORDS * chance.randrange(100 * kill + 20, 100 * kill + 100) // (100 * KILLS) for kill in range(KILLS)
        ]
        deadline = time.monotonic() + PATIENCE_S
        while (left := unfinished(crew, places)) and time.monotonic() < deadline:
            crew.replace_dead()
            if kill_at and len(places) - len(left) > kill_at[0]:
                kill_at.pop(0)
                mortal.kill()
                mortal.start()
                crew.kill_one(chance)
            time.sleep(0.5)
        # The last acceptances may have been sent by somebody who was killed: they are done when the broker says so.
        while lag(mortal.bootstrap_servers, name) and time.monotonic() < deadline:
            crew.replace_dead()
            time.sleep(0.5)
        assert lag(mortal.bootstrap_servers, name) == 0
    finally:
        crew.stop()
    check(crew, places, unfinished(crew, places))
    assert not kill_at


def fill(servers: str, name: str) -> dict[Place, str]:
    """Produces the queue; what its records say by where they are."""
    make_topic(AdminClient({"bootstrap.servers": servers}), name, PARTITIONS)
    begin_with_the_first_record(servers, name)
    values = ["later" if number % 500 == 7 else "bad" if number % 1000 == 9 else "work" for number in range(RECORDS)]
    values[RECORDS // 3] = "poison"
    # Small batches: whoever gets the poisoned record takes few others with it.
    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 20, "linger.ms": 5})
    places: dict[Place, str] = {}

    def note(error: object, message: Message) -> None:
        assert error is None
        places[message.partition() or 0, message.offset() or 0] = (message.value() or b"").decode()

    for number, value in enumerate(values):
        producer.produce(name, value.encode(), partition=number % PARTITIONS, on_delivery=note)
        if number % 1000 == 0:
            producer.flush(30)
    assert producer.flush(30) == 0
    assert len(places) == RECORDS
    return places


def unfinished(crew: Crew, places: dict[Place, str]) -> set[Place]:
    """Records of which nobody can say that they are done."""
    done = {place for what, place, count in crew.lines() if what in "ST" or count >= DELIVERY_LIMIT}
    return set(places) - done


def check(crew: Crew, places: dict[Place, str], left: set[Place]) -> None:
    """Every record is acknowledged once, or archived after its last delivery."""
    assert not left, f"{len(left)} records were lost, {sorted(left)[:5]}"
    confirmed = Counter(place for what, place, _ in crew.lines() if what in "AR")
    assert [place for place, count in confirmed.items() if count > 1] == []
    assert all(count <= DELIVERY_LIMIT for _, _, count in crew.lines())
    rejected = {place for what, place, _ in crew.lines() if what == "R"}
    assert rejected <= {place for place, value in places.items() if value == "bad"}
    poison = next(place for place, value in places.items() if value == "poison")
    assert max(count for what, place, count in crew.lines() if place == poison) == DELIVERY_LIMIT
    assert poison not in confirmed
    released = [place for place, value in places.items() if value == "later"]
    counts = Counter(place for what, place, _ in crew.lines() if what == "D")
    assert all(counts[place] >= 2 for place in released)


def lag(servers: str, name: str) -> int:
    """Records that the group is not done with, as the broker says."""
    [offsets] = ask(servers, lambda admin: admin.list_share_group_offsets({name: None})).all().values()
    return sum(RECORDS if found is None else found.lag or 0 for found in offsets.all().values())
