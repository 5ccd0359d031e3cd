"""Applications over three nodes: leaders and coordinators move, and nodes die and return. Nothing is lost, nothing
comes twice.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.acts import produce
from tests.apache_kafka import require_streams
from tests.conformance.brokers import PROPERTIES, wait_for
from tests.conformance.streams_application import WordCount, counted

from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

THREE = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "4",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
ROUND = [f"word-{number % 5}" for number in range(30)]


@pytest.fixture
def cluster() -> Iterator[BackgroundBroker]:
    with BackgroundBroker(properties=PROPERTIES | THREE, brokers=3) as broker:
        yield broker


def total(servers: str) -> int:
    return sum(map(len, counted(servers, "out").values()))


def test_kafka_streams_counts_once(apache_jars: None, cluster: BackgroundBroker, tmp_path: Path) -> None:
    require_streams()
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    for each in admin.create_topics([NewTopic("in", 2, 3), NewTopic("out", 1, 3)]).values():
        each.result(20)
    settings = {"processing.guarantee": "exactly_once_v2", "replication.factor": "3", "group.protocol": "classic"}
    with WordCount(servers, "counts", "in", "out", tmp_path, settings) as running:
        for rounds, node in enumerate((1, 2, 3), 1):
            produce(servers, "in", ROUND, (0, 1))
            cluster.move_coordinator("counts", node)
            cluster.move_leader("out", 0, node)
            cluster.kill_node(node)
            produce(servers, "in", ROUND, (0, 1))
            cluster.start_node(node)
            wait_for(lambda: total(servers) == rounds * 2 * len(ROUND), f"round {rounds}", 90)  # noqa: B023
        running.stop()
    times = 6 * len(ROUND) // 5
    assert counted(servers, "out") == {f"word-{number}": list(range(1, times + 1)) for number in range(5)}
