"""What a client was told is done survives kill -9 of the broker, at any moment.

DURABILITY_ROUNDS says how many kills (default 3), DURABILITY_SEED where the random moments begin.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import RunningBroker, kinds_under_test, new_broker, wait_for
from tests.conformance.clients import CLIENTS, ConsumerOptions, Received, Sent, TopicPartition
from tests.conformance.conftest import make_topic
from tests.conformance.member import Member

ROUNDS = int(os.environ.get("DURABILITY_ROUNDS", "3"))
SEED = int(os.environ.get("DURABILITY_SEED", "1"))
PARTITIONS = 3
RECORDS_PER_SECOND = 2000

pytestmark = pytest.mark.timeout(60 + 20 * ROUNDS)


@pytest.fixture(params=kinds_under_test())
def mortal(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker of the test's own, to be killed."""
    if request.param == "apache":
        request.getfixturevalue("apache_jars")
    made = new_broker(request.param)
    made.start()
    yield made
    made.stop()


def restart(broker: RunningBroker) -> None:
    broker.kill()
    broker.start()


class Worker(threading.Thread):
    """Does `step` again and again until `end`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ending = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step()
            self.close()
        except BaseException as error:  # raised again by end()
            self.error = error

    def end(self) -> None:
        self._ending.set()
        self.join(60)
        assert not self.is_alive(), "does not end"
        if self.error is not None:
            raise self.error

    def step(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Writer(Worker):
    """An idempotent producer that goes on through every restart."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        self._topic = topic
        self.sent = 0
        self._began = time.monotonic()
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._producer = confluent_kafka.Producer({
            "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1, "log_level": 0,
            "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20,
        })  # fmt: skip

    def step(self) -> None:
        # No more than can be read again in the time of a test.
        if len(self._producer) < 100 and self.sent < (time.monotonic() - self._began) * RECORDS_PER_SECOND:
            value = b"%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._note)
            self.sent += 1
            self._producer.poll(0)
        else:
            self._producer.poll(0.002)

    def _note(self, error: Any, message: Any) -> None:
        assert error is None, error
        place = (message.partition(), message.offset())
        assert place not in self.acknowledged, f"two records at {place}"
        self.acknowledged[place] = message.value()

    def close(self) -> None:
        assert self._producer.flush(30) == 0


class Committer(Worker):
    """Commits 1, 2, 3, … for each partition, and remembers what was acknowledged and what was tried."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        super().__init__()
        self._topic = topic
        self.tried = 0
        self.acknowledged = 0
        self._consumer = confluent_kafka.Consumer({
            "bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, "log_level": 0,
            "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100,
        })  # fmt: skip

    def step(self) -> None:
        self.tried += 1
        wanted = [confluent_kafka.TopicPartition(self._topic, p, self.tried) for p in range(PARTITIONS)]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # not acknowledged: it may or may not be there
        if all(p.error is None for p in done):
            self.acknowledged = self.tried

    def close(self) -> None:
        self._consumer.close()


def check_records(broker: RunningBroker, acknowledged: dict[tuple[int, int], bytes]) -> list[Received]:
    """Every acknowledged record is at its place; returns all records from the lowest of these places on."""
    first = [min((o for p, o in acknowledged if p == partition), default=0) for partition in range(PARTITIONS)]
    last = [max((o for p, o in acknowledged if p == partition), default=-1) for partition in range(PARTITIONS)]
    consumer = CLIENTS["kafka-python"].consumer(broker.bootstrap_servers, ConsumerOptions())
    partitions = [TopicPartition("durable", p) for p in range(PARTITIONS)]
    consumer.assign(partitions)
    for tp, offset in zip(partitions, first, strict=True):
        consumer.seek(tp, offset)
    there: dict[tuple[int, int], Received] = {}

    def has_all() -> bool:
        there.update({(r.partition, r.offset): r for r in consumer.poll(0.1)})
        return all(consumer.position(tp) > offset for tp, offset in zip(partitions, last, strict=True))

    wait_for(has_all, f"records up to {last}")
    consumer.close()
    lost = {place: v for place, v in acknowledged.items() if place not in there or there[place].value != v}
    assert not lost, f"{len(lost)} acknowledged records are not where they were: {sorted(lost.items())[:5]}"
    return [there[place] for place in sorted(there)]


def test_nothing_acknowledged_is_lost(mortal: RunningBroker) -> None:
    chance = random.Random(SEED)
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, "log_level": 0})
    make_topic(admin, "durable", PARTITIONS)
    writer = Writer(mortal.bootstrap_servers, "durable")
    committer = Committer(mortal.bootstrap_servers, "durable", "committers")
    workers = (writer, committer)
    for worker in workers:
        worker.start()
    wait_for(lambda: writer.acknowledged and committer.acknowledged, "the first acknowledgements")
    checked: set[tuple[int, int]] = set()
    for _ in range(ROUNDS):
        before, until = len(writer.acknowledged), time.monotonic() + chance.uniform(0.05, 1.0)
        wait_for(lambda before=before, until=until: time.monotonic() > until and len(writer.acknowledged) > before,
                 "the moment to kill")  # fmt: skip
        mortal.kill()
        written, committed = dict(writer.acknowledged), committer.acknowledged
        mortal.start()
        check_records(mortal, {place: v for place, v in written.items() if place not in checked})
        checked = set(written)
        consumer = CLIENTS["kafka-python"].consumer(mortal.bootstrap_servers, ConsumerOptions(group="committers"))
        found = [consumer.committed(TopicPartition("durable", p)) for p in range(PARTITIONS)]
        consumer.close()
        assert all(committed <= (offset or 0) <= committer.tried for offset in found), (found, committed)
    for worker in workers:
        worker.end()
    assert len(writer.acknowledged) == writer.sent
    got = check_records(mortal, writer.acknowledged)
    # Idempotent through every restart: each record once, in the order of sending.
    assert len(got) == writer.sent
    for p in range(PARTITIONS):
        values = [int(r.value or b"-1") for r in got if r.partition == p]
        assert values == sorted(values)


def test_groups_come_back_as_they_were(mortal: RunningBroker) -> None:
    """GR-03, GP-04: members, generation and assignment; the members notice a pause and no rebalance."""
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, "log_level": 0})
    make_topic(admin, "t", 4)
    options = ConsumerOptions(group="live", session_timeout_ms=20_000)

    def describe() -> Any:
        found = admin.describe_consumer_groups(["live"], request_timeout=20)["live"].result(20)
        shares = {m.member_id: {p.partition for p in m.assignment.topic_partitions} for m in found.members}
        return found.state.name, found.partition_assignor, shares

    with (
        Member(CLIENTS["confluent"], mortal.bootstrap_servers, options, ["t"]) as a,
        Member(CLIENTS["confluent"], mortal.bootstrap_servers, options, ["t"]) as b,
    ):
        wait_for(lambda: len(a.assignment) == len(b.assignment) == 2, "the assignment")
        records = [Sent(b"%d" % i, partition=i % 4) for i in range(8)]
        CLIENTS["confluent"].produce(mortal.bootstrap_servers, "t", records)
        wait_for(lambda: len(a.records) == len(b.records) == 4, "the records")
        a.ask(lambda consumer: consumer.commit())
        before, changes = describe(), (len(a.assignments), len(b.assignments))
        restart(mortal)
        assert describe() == before
        CLIENTS["confluent"].produce(mortal.bootstrap_servers, "t", [Sent(b"new", partition=p) for p in range(4)])
        wait_for(lambda: len(a.records) == len(b.records) == 6, "the records after the restart")
        a.ask(lambda consumer: consumer.commit())
        assert (len(a.assignments), len(b.assignments)) == changes, "a rebalance"
        a.stop()
        b.stop()
    restart(mortal)
    assert describe()[0] == "EMPTY"
    consumer = CLIENTS["confluent"].consumer(mortal.bootstrap_servers, ConsumerOptions(group="live"))
    committed = {p: consumer.committed(TopicPartition("t", p)) for p in range(4)}
    consumer.close()
    assert {p: o for p, o in committed.items() if o is not None} == {p.partition: 3 for p in a.assignments[-1]}


def test_topics_come_back_as_they_were(mortal: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap_servers, "log_level": 0})
    for name in ("kept", "gone"):
        make_topic(admin, name, 2)
    CLIENTS["confluent"].produce(mortal.bootstrap_servers, "kept", [Sent(b"one")])
    admin.delete_topics(["gone"])["gone"].result(20)
    (kept,) = admin.describe_topics(confluent_kafka.TopicCollection(["kept"])).values()
    cluster = admin.describe_cluster().result(20).cluster_id
    restart(mortal)
    (again,) = admin.describe_topics(confluent_kafka.TopicCollection(["kept"])).values()
    assert str(again.result(20).topic_id) == str(kept.result(20).topic_id)
    assert len(again.result(20).partitions) == 2
    assert "gone" not in admin.list_topics(timeout=10).topics
    assert admin.describe_cluster().result(20).cluster_id == cluster
    make_topic(admin, "gone", 1)  # the name is free, and empty
    consumer = CLIENTS["confluent"].consumer(mortal.bootstrap_servers, ConsumerOptions())
    assert consumer.bounds(TopicPartition("gone", 0)) == (0, 0)
    assert consumer.bounds(TopicPartition("kept", 0)) == (0, 1)
    consumer.close()
