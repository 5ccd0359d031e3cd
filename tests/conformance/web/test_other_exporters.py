"""Under the names of other exporters `groupkeeper serve` tells what these tell: $KMINION, $KAFKA_EXPORTER."""

import asyncio
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from bench._exporters import OTHERS
from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families as families
from tests.live.stage import arrange
from tests.patience import until
from tests.web.serving import serving
from tools.apache_kafka import free_port

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 40.0
Series = Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]

pytestmark = pytest.mark.conformance

OUR_LABELS = {"cluster"}
NOT_KNOWN = -1.0
"""kafka_exporter's word where nothing is committed; here there is no such series."""

TOLD_OTHERWISE = {
    "kminion_exporter_up",  # 1 with another version
    "kminion_kafka_cluster_info",  # without the version and the controller
    "kminion_kafka_consumer_group_info",  # a group without members has its protocol's type, too
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        arrange(broker.bootstrap_servers)
        settings = {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
        member = Consumer({**settings, "group.id": "team", "client.id": "member"})
        member.subscribe(["orders"])
        until(lambda: member.poll(0.1) is not None)
        member.commit(asynchronous=False)
        asyncio.run(commit_elsewhere(broker.bootstrap_servers))
        yield broker.bootstrap_servers
        member.close()


async def commit_elsewhere(servers: str) -> None:
    """Logs of partitions that no group has are not looked at."""
    async with Admin(servers) as admin:
        places = {TopicPartition("payments", number): OffsetAndMetadata(0) for number in range(2)}
        (await admin.alter_consumer_group_offsets("audit", places)).all()


def read(text: str) -> Series:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in OUR_LABELS}
            found.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return found


@pytest.mark.parametrize(("variable", "names"), [("KMINION", "kminion"), ("KAFKA_EXPORTER", "kafka_exporter")])
def test_the_same_series_have_the_same_values(servers: str, tmp_path: Path, variable: str, names: str) -> None:
    if variable not in os.environ:
        pytest.skip(f"${variable} names no program of {names}")
    _, command, is_ready = OTHERS[variable][0]
    port = free_port()
    words, environment = command(servers, port, tmp_path)
    env = {**os.environ, **environment}
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            theirs = read(_until(f"http://127.0.0.1:{port}/metrics", is_ready.decode()))
            with serving("--bootstrap-server", servers, "--interval", "300ms", "--metric-names", names) as served:
                ours = read(served.until(lambda text: 'topic="orders"' in text or 'topic_name="orders"' in text))
        finally:
            other.terminate()
    compared = 0
    for name, values in theirs.items():
        if name not in ours or name in TOLD_OTHERWISE or name.startswith("process_"):
            continue
        for labels, value in values.items():
            is_of_groups = "__consumer_offsets" not in dict(labels).values()
            if value != NOT_KNOWN and is_of_groups:
                assert ours[name].get(labels) == value, (name, labels)
                compared += 1
    assert compared >= 20


def _until(url: str, word: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                text: str = answer.read().decode()
            if word in text and 'team"' in text:
                return text
        except OSError:
            pass
        assert time.monotonic() < deadline, url
        time.sleep(0.2)
