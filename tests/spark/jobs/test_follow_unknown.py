"""What `follow` cannot know of a group it calls unknown, with the reason: never stopped, never ok."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic, produce
from tests.spark.jobs import test_follow_instant as instant
from tests.spark.jobs.test_follow_instant import MINUTE_MS, Script
from tests.spark.kafka.test_instant import hanging, rows

from groupkeeper.protocol.java_hash import partition_of_group
from groupkeeper.testing.background import BackgroundBroker

pytestmark = pytest.mark.long
__all__ = ["hanging"]


class Later(Script):
    """Tables are made by a clock that is half an hour ahead, so that what is missing is old."""

    def meanwhile(self) -> int:
        return 30 * MINUTE_MS


def told(tables: Path, group_id: str, topic: str) -> tuple[str, int | None, str]:
    """Status, lag and reason of the topic's one partition with a commit."""
    (lag,) = rows(tables, "lag", group_id, topic)
    (status,) = rows(tables, "status", group_id, topic)
    assert status["status"] == "ok" or lag["problem"] == status["rule"]
    return status["status"], lag["lag"], status["rule"]


def test_a_transaction_that_stays_open(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, hanging: tuple[str, str], tmp_path: Path
) -> None:
    """It holds back commits of a group that reads on."""
    servers, topic = hanging
    commit(servers, "reads on", {(topic, 0): 95})
    instant.run(spark, monkeypatch, servers, tmp_path, Later())
    status, lag, why = told(tmp_path, "reads on", topic)
    assert (status, lag) == ("unknown", None)
    assert why.startswith("the commits of the last 30 min")
    assert "an open transaction holds back __consumer_offsets-0 from offset" in why


def test_a_cluster_that_is_read_slowly(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The history lacks its last commits when tables are made."""
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        produce(servers, topic, "v" * 100)
        commit(servers, "reads on", {(topic, 0): 20})

        class Slow(Script):
            refreshes = 0

            def meanwhile(self) -> int:
                self.refreshes += 1
                return 30 * MINUTE_MS if self.refreshes > 1 else 0

        class Made(instant.Made):
            made = 0

            def waiting(self) -> None:
                self.made += 1
                if self.made > 1:
                    self.stop.set()
                    return
                broker.faults.delay("Fetch", 12_000)
                commit(servers, "reads on", {(topic, 0): 95})

        monkeypatch.setattr(instant, "Made", Made)
        instant.run(spark, monkeypatch, servers, tmp_path, Slow())
        broker.faults.clear()
    status, lag, why = told(tmp_path, "reads on", topic)
    assert (status, lag) == ("unknown", None)
    assert why.endswith("only")
    assert "are not known: __consumer_offsets-0 has been read to offset" in why


def test_a_partition_of_the_offsets_topic_that_is_dead(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where its groups are now is unknown; those of the other one are known."""
    data, tables = tmp_path / "data", tmp_path / "tables"
    settings = {"offsets.topic.num.partitions": "2"}
    with BackgroundBroker(directory=data, properties=settings) as broker:
        topic = new_topic(broker.bootstrap_servers)
        produce(broker.bootstrap_servers, topic, "v" * 100)
        for name in ("a", "b", "c", "d"):
            commit(broker.bootstrap_servers, name, {(topic, 0): 100})
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        instant.run(spark, monkeypatch, broker.bootstrap_servers, tables, Script())
        assert {told(tables, name, topic)[0] for name in ("a", "b", "c", "d")} == {"ok"}
    (segment,) = (data / "__consumer_offsets-1").glob("*.log")
    segment.unlink()
    segment.mkdir()  # it cannot be read
    with BackgroundBroker(directory=data, port=port, properties=settings) as broker:
        hasty = {"kafka.default.api.timeout.ms": "3000"}
        instant.run(spark, monkeypatch, broker.bootstrap_servers, tables, Later(), hasty)
    dead = {name for name in ("a", "b", "c", "d") if partition_of_group(name, 2) == 1}
    assert len(dead) == 2
    for name in ("a", "b", "c", "d"):
        status, lag, why = told(tables, name, topic)
        assert (status, lag) == (("unknown", None) if name in dead else ("ok", 0))
        assert ("__consumer_offsets-1 could not be queried" in why) == (name in dead)
