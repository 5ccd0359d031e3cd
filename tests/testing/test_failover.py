"""Real clients of three nodes, of which one goes down and comes back: nothing is lost, nothing comes twice."""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker.conftest import Wire

from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3", "min.insync.replicas": "2",
            "broker.session.timeout.ms": "200"}  # fmt: skip
RETRIES = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100}


@pytest.fixture
def cluster() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=SETTINGS, brokers=3) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(PATIENCE_S)
        yield broker


class Reader(threading.Thread):
    """Consumes and commits as a member of a group until it has seen a number of records."""

    def __init__(self, servers: str, count: int) -> None:
        super().__init__(daemon=True)
        self.seen: Counter[bytes] = Counter()
        self.has_joined = threading.Event()
        self._count = count
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                # The search for a coordinator waits behind a fetch. If it takes longer than `retry.backoff.ms`,
                # librdkafka tries a commit whose coordinator has gone again and again, and never ends.
                "fetch.wait.max.ms": 5,
                **RETRIES,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe(["orders"], on_assign=lambda *_: self.has_joined.set())
        deadline = time.monotonic() + PATIENCE_S
        while len(self.seen) < self._count and time.monotonic() < deadline:
            message = self._consumer.poll(1.0)
            if message is not None and message.error() is None and (value := message.value()):
                self.seen[value] += 1
        while time.monotonic() < deadline:
            try:
                self._consumer.commit(asynchronous=False)
                break
            except KafkaException:  # no coordinator at present
                continue
        self._consumer.close()


@pytest.mark.parametrize("way", ["stop_node", "kill_node", "pause_node", "cut_off_node"])
def test_producers_and_consumers_go_on_while_every_node_goes_down_in_turn(cluster: BackgroundBroker, way: str) -> None:
    count = 300
    reader = Reader(cluster.bootstrap_servers, count)
    reader.start()
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1, **RETRIES}
    )
    for number in range(count):
        producer.produce("orders", b"%d" % number, partition=number % 3)
        node, step = divmod(number, 100)
        if step == 30:
            producer.flush(0.05)
            getattr(cluster, way)(node + 1)
        elif step == 70:
            producer.flush(0.05)
            back = cluster.start_node if way in ("stop_node", "kill_node") else cluster.resume_node
            back(node + 1)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert reader.seen == Counter(b"%d" % number for number in range(count))
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "billing"})
    committed = consumer.committed([TopicPartition("orders", index) for index in range(3)], timeout=PATIENCE_S)
    assert [one.offset for one in committed] == [100, 100, 100]
    consumer.close()


def test_a_transaction_survives_the_move_of_its_coordinator(cluster: BackgroundBroker) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x", **RETRIES})
    producer.init_transactions(PATIENCE_S)
    for node in (2, 3):
        producer.begin_transaction()
        producer.produce("orders", b"%d" % node, partition=0)
        cluster.move_transaction_coordinator("x", node)
        cluster.move_leader("orders", 0, node)
        producer.commit_transaction(PATIENCE_S)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert [message.value() for message in consumer.consume(2, PATIENCE_S)] == [b"2", b"3"]
    consumer.close()


def test_a_client_whose_bootstrap_address_is_dead(cluster: BackgroundBroker) -> None:
    cluster.kill_node(1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **RETRIES})
    producer.produce("orders", b"one")
    assert producer.flush(PATIENCE_S) == 0


class Deliveries:
    """What became of records."""

    def __init__(self) -> None:
        self.acknowledged: list[bytes] = []
        self.errors: list[str] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(message.value() or b"")
        else:
            self.errors.append(f"{message.value()!r}: {error}")


async def reassign(server: str, partition: int, nodes: list[int]) -> int:
    """Gives a partition of orders these replicas; returns the error code."""
    wire = await Wire.open(server)
    topics = [m.ReassignableTopic("orders", [m.ReassignablePartition(partition, nodes)])]
    answer = await wire.call(m.AlterPartitionReassignmentsRequest(topics=topics), 0)
    await wire.close()
    return answer.responses[0].partitions[0].error_code


@pytest.mark.timeout(200)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_or_doubled_whatever_happens_to_nodes(
    cluster: BackgroundBroker, seed: int
) -> None:
    """At random nodes stop, die, are suspended or cut off, and return; leaders, coordinators and replicas move. What
    else is appended with `acks=1` may be lost.
    """
    chance, count = random.Random(seed), 200
    reader = Reader(cluster.bootstrap_servers, count)
    reader.start()
    assert reader.has_joined.wait(PATIENCE_S)  # librdkafka may wait for metadata without end if a node goes meanwhile
    servers = {"bootstrap.servers": cluster.bootstrap_servers, **RETRIES}
    producer = Producer({**servers, "enable.idempotence": True})
    careless = Producer({**servers, "acks": 1, "message.timeout.ms": 1000})
    deliveries = Deliveries()
    unwell: dict[int, str] = {}
    replicas = {index: [1, 2, 3] for index in range(3)}

    def help_one() -> None:
        node, way = unwell.popitem()
        (cluster.start_node if way in ("stop", "kill") else cluster.resume_node)(node)

    for number in range(count):
        producer.produce("orders", b"%d" % number, partition=number % 3, on_delivery=deliveries)
        careless.produce("orders", b"", partition=number % 3)
        producer.poll(0.005)
        careless.poll(0)
        up = [node for node in (1, 2, 3) if node not in unwell]
        match chance.randrange(24):
            case 0 | 6 if not unwell:
                node = chance.choice(up)
                unwell[node] = chance.choice(("stop", "kill", "pause", "cut_off", "hide"))
                getattr(cluster, f"{unwell[node]}_node")(node)
            case 1 | 2 if unwell:
                help_one()
            case 3 | 4:
                index = chance.randrange(3)
                cluster.move_leader("orders", index, chance.choice([one for one in replicas[index] if one in up]))
            case 5:
                cluster.move_coordinator("billing", chance.choice(up))
            case 7 | 8:
                index = chance.randrange(3)
                replicas[index] = chance.sample([1, 2, 3], chance.choice((2, 3)))
                server = cluster.bootstrap_servers.split(",")[up[0] - 1]
                assert asyncio.run(reassign(server, index, replicas[index])) == 0
    while unwell:
        help_one()
    assert producer.flush(PATIENCE_S) == 0
    assert deliveries.errors == []
    careless.flush(PATIENCE_S)
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert sorted(deliveries.acknowledged) == sorted(b"%d" % number for number in range(count))
    assert reader.seen == Counter(deliveries.acknowledged)
