"""Tables are of one instant of each cluster, whatever is written while Spark works and however long that takes."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic, produce, transactions
from tests.spark.kafka.test_source import PATIENCE_S

from groupkeeper.pipeline.jobs.refresh import make_tables
from groupkeeper.pipeline.jobs.snapshot import snapshot, update_history
from groupkeeper.pipeline.jobs.watch import Run
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.kafka.planning import ReadPlan, plan
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.testing.background import BackgroundBroker

MINUTE_MS = 60_000


def options_of(servers: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "cluster": "c"}


def asked(servers: str, later_ms: int = 0) -> ReadPlan:
    """The cluster as it is now, by a clock that is later."""
    found = asyncio.run(plan(parse_options({**options_of(servers), "rows": "decoded"})))
    instants = {name: each._replace(measured_ms=each.measured_ms + later_ms) for name, each in found.instants.items()}
    return found._replace(instants=instants)


def rows(tables: Path, name: str, group_id: str, topic: str) -> list[dict[str, Any]]:
    found = pq.read_table(tables / name).to_pylist()
    return [each for each in found if each["group_id"] == group_id and each["topic"] == topic]


@pytest.mark.long
def test_lag_is_that_of_the_instant_whatever_happens_until_it_is_computed(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic = new_topic(servers)
    produce(servers, topic, "v" * 40)
    commit(servers, "instant", {(topic, 0): 30})
    found = asked(servers)
    produce(servers, topic, "v" * 700)  # while Spark starts
    commit(servers, "instant", {(topic, 0): 735})
    snapshot(spark, options_of(servers), str(tmp_path), ask=lambda: found)
    (lag,) = rows(tmp_path, "lag", "instant", topic)
    assert (lag["committed_offset"], lag["log_end_offset"], lag["lag"]) == (30, 40, 10)
    assert lag["measured_time"].timestamp() * 1000 == found.instants["c"].measured_ms
    measured = {
        table: set(pq.read_table(tmp_path / table)["measured_time"].to_pylist()) for table in ("lag", "freshness")
    }
    assert measured["freshness"] == measured["lag"] - {None} == {lag["measured_time"]}


@pytest.mark.long
def test_what_the_history_has_from_after_the_instant_is_for_the_next_time(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """As in `follow`, whose queries go on while tables are made; only this cluster's rows are left out."""
    topic = new_topic(servers)
    produce(servers, topic, "v" * 40)
    commit(servers, "cut", {(topic, 0): 30})
    before = asked(servers)
    commit(servers, "cut", {(topic, 0): 40})
    with open_output(spark, str(tmp_path)) as output:
        update_history(output, {**options_of(servers), "cluster": "other"}, Run(None))
        given = update_history(output, options_of(servers), Run(None))
        clusters = given.clusters._replace(instants=before.instants)
        make_tables(output, given._replace(clusters=clusters), Run(None))
    found = {each["cluster"]: each for each in rows(tmp_path, "current_offsets", "cut", topic)}
    assert {name: each["committed_offset"] for name, each in found.items()} == {"c": 30, "other": 40}
    lag = {each["cluster"]: each["lag"] for each in rows(tmp_path, "lag", "cut", topic)}
    assert lag == {"c": 10, "other": None}


@pytest.fixture
def hanging(tmp_path: Path) -> Any:
    """A broker whose one partition of the offsets topic has a transaction that stays open."""
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        produce(servers, topic, "v" * 100)
        commit(servers, "reads on", {(topic, 0): 20})
        with transactions(servers, "copies") as begin:
            producer = begin({(topic, 0): 7})
            yield servers, topic
            producer.abort_transaction(PATIENCE_S)


@pytest.mark.long
def test_a_group_whose_latest_commits_cannot_be_read_is_unknown_and_not_stopped(
    spark: SparkSession, hanging: tuple[str, str], tmp_path: Path
) -> None:
    """It reads on, but a transaction of another group keeps its commits from being read."""
    servers, topic = hanging
    commit(servers, "reads on", {(topic, 0): 95})
    for minutes, wanted in ((0, ("ok", 80)), (30, ("unknown", None))):
        snapshot(spark, options_of(servers), str(tmp_path), ask=partial(asked, servers, minutes * MINUTE_MS))
        (lag,) = rows(tmp_path, "lag", "reads on", topic)
        (status,) = rows(tmp_path, "status", "reads on", topic)
        assert (status["status"], lag["lag"]) == wanted
    (fresh,) = pq.read_table(tmp_path / "freshness").to_pylist()
    assert fresh["read_to"] == fresh["last_stable_offset"] < fresh["log_end_offset"]
    assert 30 * MINUTE_MS <= fresh["behind_ms"] < 40 * MINUTE_MS
    held = f"an open transaction holds back __consumer_offsets-0 from offset {fresh['read_to']} on"
    assert fresh["problem"].startswith("the commits of the last 30 min")
    assert fresh["problem"].endswith(f" are not known: {held}")
    assert status["rule"] == lag["problem"] == fresh["problem"]
    assert (lag["lag_ms"], lag["lag_basis"], lag["log_end_offset"]) == (None, "unknown", 100)
