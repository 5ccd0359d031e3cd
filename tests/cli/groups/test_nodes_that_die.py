"""What commands show of a group while a node of the cluster is down: what can be reached, and reasons for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

SETTINGS = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "2", "num.partitions": "2"}


@pytest.fixture
def cluster() -> Iterator[BackgroundBroker]:
    """Two nodes; each leads a partition of `orders`, for which there are no other replicas, and a group has read one
    of two records in each.
    """
    with BackgroundBroker(properties=SETTINGS, brokers=2) as broker:
        servers: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
        producer = Producer(servers)
        AdminClient(servers).list_topics("orders", 20)  # makes it
        for number in range(4):
            producer.produce("orders", b"x", partition=number % 2)
        assert producer.flush(20) == 0
        consumer = Consumer({**servers, "group.id": "billing", "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition("orders", index, 1) for index in range(2)], asynchronous=False)
        consumer.close()
        yield broker


def shown(servers: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[int, dict[str, Any]]]:
    status = main(["groups", "offsets", "billing", "--bootstrap-server", servers, "--output", "json"])
    rows = json.loads(capsys.readouterr().out)["offsets"]
    return status, {row["partition"]: row for row in rows}


@pytest.mark.parametrize("down", [1, 2])
def test_offsets_of_what_can_be_reached(
    cluster: BackgroundBroker, capsys: pytest.CaptureFixture[str], down: int
) -> None:
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert (status, [rows[index]["lag"] for index in range(2)]) == (0, [1, 1])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    parts = admin.list_topics("orders", 20).topics["orders"].partitions
    (gone,) = (index for index, part in parts.items() if part.leader == down)
    cluster.kill_node(down)
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert rows[1 - gone]["lag"] == 1
    assert [rows[gone][name] for name in ("committed_offset", "lag", "status")] == [1, None, "no_leader"]
    cluster.start_node(down)
    status, rows = shown(cluster.bootstrap_servers, capsys)
    assert (status, [rows[index]["lag"] for index in range(2)]) == (0, [1, 1])
