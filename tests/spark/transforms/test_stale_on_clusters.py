"""What is stale by what clusters say: how long they keep offsets, where logs begin, which topics there are."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.acts import ask, commit, cut, new_topic, produce
from tests.apache_kafka import require as require_apache_kafka
from tests.patience import until
from tests.spark.kafka.test_source import PATIENCE_S
from tools.apache_kafka import ApacheKafka

from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.testing.background import BackgroundBroker

MINUTE_MS = 60_000
APACHE = pytest.param("apache", marks=[pytest.mark.conformance, pytest.mark.timeout(400)])
RECORDS = 500
ID_OF_ANOTHER = b"another topic id"


def started(stack: ExitStack, kind: str, minutes: int, **more: str) -> str:
    """A broker that keeps offsets for so long."""
    properties = {"offsets.retention.minutes": str(minutes), "log.retention.ms": "-1", **more}
    if kind == "groupkeeper":
        return stack.enter_context(BackgroundBroker(properties=properties)).bootstrap_servers
    require_apache_kafka()
    return stack.enter_context(ApacheKafka(properties)).bootstrap_servers


def a_topic(servers: str, begins_at: int) -> str:
    """Records of which the first are gone."""
    topic = new_topic(servers, 1)
    produce(servers, topic, "v" * RECORDS)
    cut(servers, topic, begins_at)
    return topic


def log_of_groups(servers: str, topic: str, now_ms: int) -> str:
    """A topic with what an offsets topic holds of groups that committed some time ago."""
    log = new_topic(servers, 1)
    producer = Producer({"bootstrap.servers": servers})

    def put(entry: Entry, ago_ms: int) -> None:
        key, value = encode_record(entry)
        producer.produce(log, value, key, partition=0, timestamp=now_ms - ago_ms)

    def put_commit(group_id: str, name: str, offset: int, minutes: int, **more: Any) -> None:
        value = m.OffsetCommitValue(offset, commit_timestamp=now_ms - minutes * MINUTE_MS, **more)
        put(Entry(m.OffsetCommitKey(group_id, name, 0), value), minutes * MINUTE_MS)

    put_commit("simple", topic, RECORDS, 50)
    put_commit("behind", topic, 100, 5)
    put_commit("orphan", "no-such-topic", 3, 5)
    put_commit("made-anew", topic, RECORDS, 5, topic_id=ID_OF_ANOTHER)
    put_commit("emptied", topic, RECORDS, 300)
    emptied = m.GroupMetadataValue("consumer", 4, None, None, now_ms - 40 * MINUTE_MS, [])
    put(Entry(m.GroupMetadataKey("emptied"), emptied), 40 * MINUTE_MS)
    assert producer.flush(PATIENCE_S) == 0
    return log


@pytest.fixture(params=["groupkeeper", APACHE])
def clusters(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """One that keeps offsets for an hour, and one that keeps them for a month."""
    with ExitStack() as stack:
        short = started(stack, request.param, 60)
        yield {"short": short, "long": started(stack, "groupkeeper", 30 * 24 * 60)}


@pytest.mark.long
def test_each_cluster_by_its_own_settings(spark: SparkSession, clusters: dict[str, str], tmp_path: Path) -> None:
    now_ms = time.time_ns() // 10**6
    topics = {name: a_topic(servers, 320) for name, servers in clusters.items()}
    logs = {name: log_of_groups(servers, topics[name], now_ms) for name, servers in clusters.items()}
    asked = {name: {"kafka.bootstrap.servers": servers, "subscribe": logs[name]} for name, servers in clusters.items()}
    for name, options in asked.items():
        assert not snapshot(spark, {**options, "cluster": name}, str(tmp_path / name)).problems
    rows = [row for name in clusters for row in pq.read_table(tmp_path / name / "stale").to_pylist()]
    found = {(row["cluster"], row["group_id"], row["reason"]): row for row in rows}
    everywhere = {("behind", "below_log_start"), ("orphan", "topic_deleted"), ("made-anew", "topic_deleted")}
    # All of them expire within the day where offsets are kept for an hour.
    expiring = {(group_id, "expiring") for group_id in ("simple", "behind", "orphan", "made-anew", "emptied")}
    assert set(found) == {("long", *each) for each in everywhere} | {("short", *each) for each in everywhere | expiring}
    assert len(rows) == len(found)
    for name in clusters:
        lost = found[name, "behind", "below_log_start"]
        assert (lost["topic"], lost["partition"], lost["lost"]) == (topics[name], 0, 320 - 100)
        assert found[name, "orphan", "topic_deleted"]["topic"] == "no-such-topic"
    # An hour from the commit, or from when the group became empty (GO-71).
    for group_id, ago in (("simple", 50), ("behind", 5), ("emptied", 40)):
        expires_ms = round(found["short", group_id, "expiring"]["expires_time"].timestamp() * 1000)
        assert expires_ms == now_ms + (60 - ago) * MINUTE_MS, group_id
    report = read_report(str(tmp_path / "short"), hours=24, top=10)
    # A group that is in use is not called stale: it stands in front, with what it loses.
    assert "below_log_start" not in {each.reason for each in report.stale}
    assert (report.groups[0].group_id, report.groups[0].status) == ("behind", "losing")
    assert "220" in report.groups[0].rule


def has_offsets(servers: str, group_id: str) -> bool:
    found = ask(servers, lambda admin: admin.list_consumer_group_offsets({group_id: None})).done.get(group_id)
    return found is not None and any(each is not None for each in found.done.values())


@pytest.mark.conformance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["groupkeeper", "apache"])
def test_what_is_about_to_expire_goes_when_it_was_said(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = started(stack, kind, 1, **{"offsets.retention.check.interval.ms": "1000"})
        topic = new_topic(servers)
        commit(servers, "leaving", {(topic, 0): 5})
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        assert not snapshot(spark, options, str(tmp_path)).problems
        (row,) = pq.read_table(tmp_path / "stale").to_pylist()
        assert (row["group_id"], row["topic"], row["reason"]) == ("leaving", topic, "expiring")
        until(lambda: not has_offsets(servers, "leaving"), within_s=180)
        assert not snapshot(spark, options, str(tmp_path)).problems
    commits = pq.read_table(tmp_path / "commits").to_pylist()
    (gone,) = [each for each in commits if each["is_tombstone"]]
    late_s = (gone["log_time"] - row["expires_time"]).total_seconds()
    assert (gone["removed_by"], 0 <= late_s < 15) == ("expired", True), late_s
    assert pq.read_table(tmp_path / "stale").num_rows == 0
