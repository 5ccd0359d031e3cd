"""Queries of Structured Streaming in the tables, by recorded checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.spark.kafka.test_source import commit, new_topic
from tests.spark.written_rows import rows_of

from groupkeeper.cli.framework.values import NamedCheckpoint
from groupkeeper.pipeline.checkpoints.folders import _hadoop_folders, find_folders
from groupkeeper.pipeline.checkpoints.queries import read_query
from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.testing.background import BackgroundBroker

RECORDED = Path(__file__).parents[2] / "cli/checkpoints"


def fill(servers: str, ends: dict[tuple[str, int], int]) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for (topic, partition), end in ends.items():
        for number in range(end):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(60) == 0


@pytest.fixture
def own() -> Iterator[str]:
    """A broker with the topics of the recorded checkpoints, which had 17, 5 and 3 records when they were stopped."""
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as broker:
        for topic, partitions in {"orders": 2, "payments": 1}.items():
            new_topic(broker.bootstrap_servers, partitions, topic)
        fill(broker.bootstrap_servers, {("orders", 0): 20, ("orders", 1): 5, ("payments", 0): 4})
        commit(broker.bootstrap_servers, "billing", {("orders", 0): 12})
        yield broker.bootstrap_servers


@pytest.mark.long
def test_queries_are_among_the_groups(spark: SparkSession, own: str, tmp_path: Path) -> None:
    tables, options = tmp_path / "tables", {"kafka.bootstrap.servers": own, "cluster": "c"}
    taken = tmp_path / "billing"
    shutil.copytree(RECORDED / "orders", taken)
    asked = [
        NamedCheckpoint(None, "etl", str(RECORDED / "two-sources")),
        NamedCheckpoint("c", None, (RECORDED / "fail*").as_uri().replace("%2A", "*")),
        NamedCheckpoint(None, None, str(taken)),
        NamedCheckpoint(None, None, str(tmp_path / "nowhere")),
        NamedCheckpoint("other", None, str(taken)),
    ]
    for _ in range(2):
        summary = snapshot(spark, options, str(tables), checkpoints=asked)
    texts = [each.message for each in summary.problems]
    assert len(texts) == 3
    assert "name its cluster" in texts[0]
    assert "nowhere: there is no such folder" in texts[1]
    assert "there is a group billing" in texts[2]
    lag = {(row["group_id"], row["topic"], row["partition"]): row for row in rows_of(tables, "lag")}
    assert {key: (row["committed_offset"], row["lag"]) for key, row in lag.items()} == {
        ("billing", "orders", 0): (12, 8),
        ("etl", "orders", 0): (17, 3),
        ("etl", "orders", 1): (5, 0),
        ("etl", "payments", 0): (3, 1),
        ("failing", "orders", 0): (0, 20),
        ("failing", "orders", 1): (0, 5),
    }
    assert {row["lag_basis"] for row in lag.values()} == {"exact"}
    current = {(row["group_id"], row["topic"], row["partition"]): row for row in rows_of(tables, "current_offsets")}
    of_etl = current["etl", "orders", 0]
    query_id = json.loads((RECORDED / "two-sources/metadata").read_text())["id"]
    assert json.loads(of_etl["metadata"]) == {"query": query_id, "batch": 1}
    assert (of_etl["log_partition"], of_etl["expire_time"]) == (None, None)
    types = {row["group_id"]: (row["group_type"], row["partitions"]) for row in rows_of(tables, "groups")}
    assert types == {"billing": ("simple", 1), "etl": ("spark", 3), "failing": ("spark", 2)}
    assert {row["group_id"] for row in rows_of(tables, "status")} == {"billing", "etl", "failing"}
    assert {row["group_id"] for row in rows_of(tables, "stale") if row["reason"] == "expiring"} <= {"billing"}
    report = read_report(str(tables), hours=24, top=5)
    told = {group.group_id: (group.group_type, group.lag) for group in report.groups}
    assert told["etl"] == ("spark", 4)
    (line,) = [each for each in report.lag_lines if each.group_id == "etl"]
    assert line.points[-1][1] == 4
    assert snapshot(spark, options, str(tables)).problems == []
    assert {row["group_id"] for row in rows_of(tables, "current_offsets")} == {"billing"}  # of those that are named


def test_a_query_is_shown_as_it_was_at_the_instant(spark: SparkSession, tmp_path: Path) -> None:
    copy = tmp_path / "orders"
    shutil.copytree(RECORDED / "orders", copy)
    now = time.time()
    for number, age in {0: 100, 1: 10}.items():
        os.utime(copy / f"commits/{number}", (now - age, now - age))
    (here,) = find_folders(str(copy))
    (there,) = _hadoop_folders(spark, f"file://{tmp_path}/ord*")
    assert read_query(here, "q", at_ms=int((now - 50) * 1000)).batch_id == 0
    assert read_query(here, "q", at_ms=int((now - 500) * 1000)).batch_id == 1  # it does not go back so far
    assert read_query(there, "q") == read_query(here, "q")._replace(path=there.path)


class OneBatchMore(Watch):
    """Looks at the tables after each refresh, lets the query come on, and then removes its checkpoint."""

    def __init__(self, tables: Path, checkpoint: Path, servers: str, stop: threading.Event) -> None:
        self.tables, self.checkpoint, self.servers, self.stop = tables, checkpoint, servers, stop
        self.seen: list[dict[int, tuple[int, int]]] = []
        self.others: list[int] = []
        self.problems: list[str] = []

    def problem(self, problem: Problem) -> None:
        self.problems.append(problem.message)

    def waiting(self) -> None:
        lag = rows_of(self.tables, "lag")
        found = {row["partition"]: (row["committed_offset"], row["lag"]) for row in lag if row["group_id"] == "q"}
        self.others = [row["committed_offset"] for row in lag if row["group_id"] == "billing"]
        if self.seen and found == self.seen[-1]:
            return
        self.seen.append(found)
        if len(self.seen) == 1:
            planned = (self.checkpoint / "offsets/1").read_text()
            (self.checkpoint / "offsets/2").write_text(planned.replace('"0":17', '"0":19'))
            shutil.copy(self.checkpoint / "commits/1", self.checkpoint / "commits/2")
        elif len(self.seen) == 2:
            commit(self.servers, "billing", {("orders", 0): 15})
            shutil.rmtree(self.checkpoint)
        else:
            self.stop.set()


@pytest.mark.long
def test_follow_shows_queries_beside_groups_as_they_come_on(spark: SparkSession, own: str, tmp_path: Path) -> None:
    checkpoint, tables = tmp_path / "q", tmp_path / "tables"
    shutil.copytree(RECORDED / "orders", checkpoint)
    stop = threading.Event()
    watch = OneBatchMore(tables, checkpoint, own, stop)
    patience = threading.Timer(150, stop.set)
    patience.start()
    follow(
        spark, {"kafka.bootstrap.servers": own, "cluster": "c"}, str(tables), stop, watch,
        interval_s=0.5, refresh_s=0.5, checkpoints=[NamedCheckpoint(None, None, str(checkpoint))],
    )  # fmt: skip
    patience.cancel()
    assert watch.seen == [{0: (17, 3), 1: (5, 0)}, {0: (19, 1), 1: (5, 0)}, {}]
    assert watch.others == [15]
    assert watch.problems
    assert all("q: there is no such folder" in text for text in watch.problems)
    kept = [row["lag"] for row in rows_of(tables, "lag_history") if (row["group_id"], row["partition"]) == ("q", 0)]
    assert 3 in kept
