"""A cluster that is made again while it is followed: it is seen, nothing of it is mixed, and others go on."""

import json
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic
from tests.spark.jobs.test_snapshot import places

from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 200
ONE = {"offsets.topic.num.partitions": "1"}


class Seen(Watch):
    """What is said, and a place to wait for the tables."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._made = threading.Condition()

    def problem(self, problem: Problem) -> None:
        with self._made:
            self.problems.append(problem)
            self._made.notify_all()

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        with self._made:
            self._made.notify_all()

    def wait_for(self, tables: Path, cluster: str, offset: int | None) -> None:
        """Until the cluster has this committed offset; None: until it is said to be another one."""
        deadline = time.monotonic() + PATIENCE_S
        with self._made:
            while not self._is_so(tables, cluster, offset):
                assert self._made.wait(max(0, deadline - time.monotonic())), (cluster, offset, self.problems)

    def _is_so(self, tables: Path, cluster: str, offset: int | None) -> bool:
        if offset is None:
            return any("of another cluster, with the id" in each.message for each in self.problems)
        found = pq.read_table(tables / "current_offsets").to_pylist() if (tables / "current_offsets").exists() else []
        return any((row["cluster"], row["committed_offset"]) == (cluster, offset) for row in found)


@pytest.mark.long
def test_a_cluster_that_was_made_again_is_not_mixed_and_stops_no_other(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    tables, seen, stop = tmp_path / "tables", Seen(), threading.Event()
    topic = new_topic(servers)
    with BackgroundBroker(properties=ONE) as broker:
        address = broker.bootstrap_servers
        port = int(address.rpartition(":")[2])
        clusters = {"stays": {"kafka.bootstrap.servers": servers}, "goes": {"kafka.bootstrap.servers": address}}
        clusters["away"] = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "500"}
        options = {"clusters": json.dumps(clusters)}
        commit(address, "g", {(new_topic(address), 0): 7})
        commit(servers, "rebuilt", {(topic, 0): 11})
        following = threading.Thread(
            target=follow, args=(spark, options, str(tables), stop, seen), kwargs={"interval_s": 0.5, "refresh_s": 0.5}
        )
        following.start()
        try:
            seen.wait_for(tables, "goes", 7)
            seen.wait_for(tables, "stays", 11)
            before = places(tables, "goes")
            broker.stop()
            with BackgroundBroker(port=port, properties=ONE) as other:
                again = new_topic(other.bootstrap_servers)
                for offset in range(20, 40):  # its log becomes longer than the one before
                    commit(other.bootstrap_servers, "g", {(again, 0): offset})
                seen.wait_for(tables, "goes", None)
                commit(servers, "rebuilt", {(topic, 0): 12})
                seen.wait_for(tables, "stays", 12)
        finally:
            stop.set()
            following.join()
    assert places(tables, "goes") == before
    away = [each.message for each in seen.problems if each.cluster == "away"]
    assert len(away) == 1  # once for the outage
