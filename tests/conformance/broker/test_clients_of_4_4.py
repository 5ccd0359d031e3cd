"""What clients of Kafka 4.4.0 bring: verifiable clients, a static member of Kafka Streams that describes its topology,
and a Java share consumer whose rejected records go to a dead-letter queue.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.acts import ask, produce
from tests.apache_kafka import require_streams
from tests.conformance.brokers import GroupkeeperBroker, RunningBroker, wait_for
from tests.conformance.conftest import make_topic
from tests.conformance.streams_application import WordCount, counted
from tools.apache_kafka import run_tool

from groupkeeper.client.admin.streams_types import StreamsGroupDescription

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

PROPERTIES = {
    "group.streams.topology.description.plugin.class": (
        "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
    ),
    "group.streams.initial.rebalance.delay.ms": "0",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
RECORDS = 20


@pytest.fixture(scope="module")
def servers(apache_jars: None) -> Iterator[str]:
    broker: RunningBroker = GroupkeeperBroker(PROPERTIES)
    broker.start()
    yield broker.bootstrap_servers
    broker.stop()


def run(name: str, servers: str, *arguments: str) -> list[dict[str, object]]:
    """What a verifiable client says."""
    done = run_tool(name, "--bootstrap-server", servers, *arguments, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_clients(servers: str, protocol: str) -> None:
    topic = f"verified-{protocol}"
    make_topic(AdminClient({"bootstrap.servers": servers}), topic, 1)
    said = run("verifiable-producer", servers, "--topic", topic, "--max-messages", str(RECORDS))
    assert sum(one["name"] == "producer_send_success" for one in said) == RECORDS
    heard = run("verifiable-consumer", servers, "--topic", topic, "--group-id", topic, "--group-protocol", protocol,
                "--max-messages", str(RECORDS), "--reset-policy", "earliest")  # fmt: skip
    assert sum(int(str(one["count"])) for one in heard if one["name"] == "records_consumed") == RECORDS


def test_rejected_records_of_a_share_consumer(servers: str) -> None:
    make_topic(AdminClient({"bootstrap.servers": servers}), "jobs", 1)
    run("verifiable-producer", servers, "--topic", "jobs", "--max-messages", str(RECORDS))
    settings = "share.auto.offset.reset=earliest,errors.deadletterqueue.topic.name=dlq.jobs"
    run("configs", servers, "--alter", "--group", "workers", "--add-config", settings)
    run("verifiable-share-consumer", servers, "--topic", "jobs", "--group-id", "workers", "--max-messages",
        str(RECORDS), "--acknowledgement-mode", "sync", "--ack-pattern", "accept,reject")  # fmt: skip
    letters: set[int] = set()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "auto.offset.reset": "earliest"})
    try:
        wait_for(lambda: "dlq.jobs" in consumer.list_topics(timeout=20).topics, "the dead-letter queue")
        consumer.assign([TopicPartition("dlq.jobs", 0, 0)])
        while len(letters) < RECORDS // 2:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            letters.add(int(dict(message.headers() or [])["__dlq.errors.offset"] or b""))
    finally:
        consumer.close()
    assert letters == set(range(1, RECORDS, 2))


def described(servers: str) -> StreamsGroupDescription:
    found = ask(servers, lambda admin: admin.describe_streams_groups(["counts"], include_topology=True))
    return found.result("counts")


def test_a_static_member_of_streams_and_its_topology(servers: str, tmp_path: Path) -> None:
    require_streams()
    admin = AdminClient({"bootstrap.servers": servers})
    make_topic(admin, "words", 2)
    make_topic(admin, "counts-out", 1)
    produce(servers, "words", ["a", "b", "a", "b"], (0, 1))
    static = {"group.protocol": "streams", "group.instance.id": "one"}
    with WordCount(servers, "counts", "words", "counts-out", tmp_path, static) as running:
        wait_for(lambda: sum(map(len, counted(servers, "counts-out").values())) >= 4, "counts", 60)
        wait_for(lambda: described(servers).topology is not None, "the description of the topology", 60)
        assert {(member.instance_id or "").partition("-")[0] for member in described(servers).members} == {"one"}
        running.stop()
