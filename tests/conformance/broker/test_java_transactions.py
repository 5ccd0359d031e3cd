"""Transactions of the Java clients, with epochs of their own (transaction.version 2) and without."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.conformance.brokers import GroupkeeperBroker
from tests.conformance.conftest import make_topic
from tools.apache_kafka import cache_folder

SOURCE = Path(__file__).parent / "java" / "Transactions.java"

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(240)]


@pytest.fixture(params=[2, 0])
def broker_of_version(request: pytest.FixtureRequest) -> Iterator[GroupkeeperBroker]:
    broker = GroupkeeperBroker({"feature.transaction.version": str(request.param)})
    broker.start()
    yield broker
    broker.stop()


def test_commits_aborts_fencing_and_exactly_once(apache_jars: None, broker_of_version: GroupkeeperBroker) -> None:
    servers = broker_of_version.bootstrap_servers
    for topic in ("in", "out"):
        make_topic(AdminClient({"bootstrap.servers": servers}), topic, 3)
    command = ["java", "-XX:+UseSerialGC", "-cp", f"{cache_folder()}/jars/*", str(SOURCE), servers, "in", "out"]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", timeout=200)
    found = done.stdout.splitlines()
    assert found == ["input 150", "output 150 distinct 150", "fenced ProducerFencedException", "input 151"]
