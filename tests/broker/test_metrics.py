"""The metrics under Kafka's names, in Python and for Prometheus."""

import asyncio
import contextlib
import os
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families
from tests.broker.conftest import Start, Wire

from groupkeeper.broker import Broker
from groupkeeper.broker.meters import DeadLetters
from groupkeeper.broker.observing.metrics_table import METRICS
from groupkeeper.protocol import messages as m
from groupkeeper.testing.background import BackgroundBroker

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
LATER = {"last-pruned-offset", *(one.value for one in DeadLetters)}
COORDINATOR = "kafka_server_group_coordinator_metrics_"


@pytest.fixture
async def broker(start: Start) -> Broker:
    broker = await start(properties=SETTINGS)
    broker.groups.ensure_topic()
    broker.topics.create("t", 3)
    return broker


async def commit(wire: Wire, group_id: str, *offsets: int, metadata: str = "") -> None:
    parts = [m.OffsetCommitRequestPartition(index, offset, -1, metadata) for index, offset in enumerate(offsets)]
    topics = [m.OffsetCommitRequestTopic("t", partitions=parts)]
    await wire.call(m.OffsetCommitRequest(group_id, topics=topics), 9)


async def scraped(url: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())
    return {
        family.name: {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


async def test_all_are_there_from_the_start(start: Start) -> None:  # GT-01
    broker = await start()
    samples = broker.metrics.samples()
    assert {sample.metric.name for sample in samples} == METRICS.keys() - LATER
    assert {sample.value for sample in samples if sample.metric.name != "thread-idle-ratio-avg"} == {0}
    assert broker.metrics.value("thread-idle-ratio-avg") == 1


async def test_the_meters_of_kip_496(broker: Broker, wire: Wire) -> None:
    # K496-60 K496-61
    value = broker.metrics.value
    await commit(wire, "g", 1, 2, 3)
    await commit(wire, "g", 4)
    await commit(wire, "h", 5, metadata="x" * 5000)
    assert value("offset-commit-count") == 4
    assert value("offset-commit-rate") > 0
    assert value("NumOffsets") == value("offset-count") == 3  # GT-02
    topics = [m.OffsetDeleteRequestTopic("t", [m.OffsetDeleteRequestPartition(index) for index in (0, 1)])]
    await wire.call(m.OffsetDeleteRequest("g", topics), 0)
    assert (value("offset-deletion-count"), value("NumOffsets")) == (2, 1)
    broker.topics.delete("t")
    assert (value("offset-deletion-count"), value("NumOffsets"), value("offset-expiration-count")) == (2, 0, 0)
    assert value("batch-flush-rate") > 0
    assert value("batch-flush-time-ms-max") >= value("batch-flush-time-ms-p50") > 0
    assert value("event-processing-time-ms-max") >= value("event-processing-time-ms-p999") > 0
    assert 0 <= value("thread-idle-ratio-avg") < 1


async def test_groups_by_state(broker: Broker, wire: Wire) -> None:
    value = broker.metrics.value
    await commit(wire, "simple", 1)
    protocols = [m.JoinGroupRequestProtocol("range", b"")]
    request = m.JoinGroupRequest("g", 10_000, 60_000, "", "i", "consumer", protocols)
    joined = await wire.call(request, 9)
    assert (value("NumGroups"), value("NumGroupsCompletingRebalance"), value("NumGroupsEmpty")) == (2, 1, 1)
    await wire.call(m.SyncGroupRequest("g", 1, joined.member_id, None, "consumer", "range"), 5)
    assert (value("NumGroupsStable"), value("group-completed-rebalance-count")) == (1, 1)
    assert (value("group-count", protocol="classic"), value("group-count", protocol="consumer")) == (2, 0)


async def test_a_partition_that_moves_takes_its_counts_with_it(broker: Broker, wire: Wire) -> None:  # GT-03
    value = broker.metrics.value
    await commit(wire, "g", 1, 2)
    assert value("num-partitions", state="active") == 4
    with broker.faults.move_coordinator("g", away_ms=None):
        assert (value("NumGroups"), value("NumOffsets"), value("num-partitions", state="active")) == (0, 0, 3)
    while value("num-partitions", state="active") < 4:
        await wire.call(m.MetadataRequest([]), 13)
    assert (value("NumGroups"), value("NumOffsets"), value("offset-commit-count")) == (1, 2, 2)
    assert value("partition-load-time-max") >= value("partition-load-time-avg") > 0


async def test_prometheus(broker: Broker, wire: Wire) -> None:
    await commit(wire, "g", 1, 2)
    endpoint = await broker.metrics.serve()
    try:
        url = f"http://127.0.0.1:{endpoint.port}/metrics"
        found = await scraped(url)
        assert found.keys() == {metric.prometheus_name for metric in METRICS.values()}
        assert found[COORDINATOR + "offset_commit_count"] == {(): 2}
        assert found[COORDINATOR + "group_count"][("protocol", "classic"),] == 1
        assert found["kafka_coordinator_group_groupmetadatamanager_numoffsets"] == {(): 2}
    finally:
        await endpoint.close()
    with pytest.raises(urllib.error.URLError):
        await scraped(url)


def _port_beside_the_ephemeral_ones() -> int:
    """Free, and the system gives it to no connection in the meantime."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


async def test_the_setting(start: Start, tmp_path: Path) -> None:
    port = _port_beside_the_ephemeral_ones()
    properties = {"groupkeeper.metrics.port": port}
    taken = await start(properties=properties)
    with pytest.raises(OSError, match=f"127.0.0.1:{port} for metrics"):
        await start(properties=properties, directory=tmp_path)
    await taken.stop()
    broker = await start(properties=properties, directory=tmp_path)
    assert COORDINATOR + "offset_commit_count" in await scraped(f"http://127.0.0.1:{port}/metrics")
    scraping = asyncio.ensure_future(scraped(f"http://127.0.0.1:{port}/metrics"))
    await asyncio.sleep(0)
    await broker.stop()
    await asyncio.gather(scraping, return_exceptions=True)


def test_from_the_thread_of_a_test(groupkeeper_broker: BackgroundBroker) -> None:
    servers = groupkeeper_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("t", b"one")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    assert groupkeeper_broker.metric("group-count", protocol="classic") == 1
    assert groupkeeper_broker.metric("NumOffsets") == 1
    with pytest.raises(KeyError):
        groupkeeper_broker.metric("no-such-metric")
