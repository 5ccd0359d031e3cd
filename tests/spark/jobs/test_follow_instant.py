"""Lag of `follow` is that of the instant at which a cluster was measured, whatever is read before tables are made."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic, produce
from tests.apache_kafka import require as require_apache_kafka
from tools.apache_kafka import ApacheKafka, run_tool

from groupkeeper.pipeline.jobs.following.job import BatchTaker, Refreshing, follow
from groupkeeper.pipeline.jobs.watch import Watch
from groupkeeper.pipeline.kafka.instants import Instants
from groupkeeper.testing.background import BackgroundBroker

pytestmark = pytest.mark.long

MINUTE_MS = 60_000
ONE = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}

Row = tuple[str, str, str, str, str, str]
"""Group, topic, partition, committed offset, end and lag, as `--describe` prints them."""


@pytest.fixture(params=["embedded", pytest.param("apache", marks=[pytest.mark.conformance, pytest.mark.timeout(500)])])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        if request.param == "embedded":
            yield stack.enter_context(BackgroundBroker(properties=ONE)).bootstrap_servers, "ours"
        else:
            require_apache_kafka()
            yield stack.enter_context(ApacheKafka(ONE)).bootstrap_servers, "official"


def described(servers: str, tool: str) -> set[Row]:
    """What `kafka-consumer-groups --describe` prints now: the official one on Apache Kafka."""
    words = ["--bootstrap-server", servers, "--describe", "--all-groups", "--offsets"]
    if tool == "official":
        text = run_tool("kafka-consumer-groups", *words).stdout
    else:
        command = [str(Path(sys.executable).with_name("kafka-consumer-groups")), *words]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = (row.split() for row in text.splitlines())
    return {
        (each[0], each[1], each[2], each[3], each[4], each[5]) for each in found if len(each) == 9 and each[2].isdigit()
    }


class Script:
    """What happens at a refresh; the result of `meanwhile` is added to the clock of the instants, in ms."""

    def meanwhile(self) -> int:
        """After clusters are measured and read, before tables are made."""
        return 0


class Made(Watch):
    """Stops after the first refresh."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def waiting(self) -> None:
        self.stop.set()


def run(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    servers: str,
    tables: Path,
    script: Script,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Follows until tables are made; with `more` options of the source."""

    class Refreshed(Refreshing):
        def refresh(self, of: BatchTaker, instants: Instants) -> bool:
            later_ms = script.meanwhile()
            later = {name: each._replace(measured_ms=each.measured_ms + later_ms) for name, each in instants.items()}
            return super().refresh(of, later)

    monkeypatch.setattr("groupkeeper.pipeline.jobs.following.job.Refreshing", Refreshed)
    made = Made()
    options = {"kafka.bootstrap.servers": servers, "cluster": "c", **more}
    # Due again at once: each batch is measured.
    follow(spark, options, str(tables), made.stop, made, interval_s=0.2, refresh_s=0.0)


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    return list(pq.read_table(tables / name).to_pylist())


def test_six_minutes_of_delay_change_no_lag(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, cluster: tuple[str, str], tmp_path: Path
) -> None:
    """The clock of the tables is six minutes before the instant, and more is committed before they are made."""
    servers, tool = cluster
    topic = new_topic(servers, 2)
    produce(servers, topic, "v" * 200, (0, 1))
    commit(servers, "reads-on", {(topic, 0): 30, (topic, 1): 99})
    commit(servers, "at-the-end", {(topic, 0): 100, (topic, 1): 100})
    said: list[set[Row]] = []

    class Delay(Script):
        def meanwhile(self) -> int:
            said.append(described(servers, tool))
            produce(servers, topic, "v" * 700, (0, 1))
            commit(servers, "reads-on", {(topic, 0): 420, (topic, 1): 421})
            commit(servers, "came-later", {(topic, 0): 7})
            return -6 * MINUTE_MS

    run(spark, monkeypatch, servers, tmp_path, Delay())
    names = ("group_id", "topic", "partition", "committed_offset", "log_end_offset", "lag")
    found = {tuple(str(row[name]) for name in names) for row in rows(tmp_path, "lag")}
    assert found == said[0]
    assert {row[5] for row in found} == {"70", "1", "0"}
