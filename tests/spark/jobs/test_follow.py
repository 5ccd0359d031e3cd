"""`groupkeeper pipeline follow`: what is written while it runs is in the tables, once."""

import json
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic, transactions
from tests.spark.jobs.test_snapshot import places
from tests.spark.kafka.test_source import PATIENCE_S

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.testing.background import BackgroundBroker


def abort_commit(servers: str, group_id: str, topic: str) -> None:
    """An offset that is committed in a transaction which is aborted."""
    with transactions(servers, group_id) as begin:
        begin({(topic, 0): 7}).abort_transaction(PATIENCE_S)


class Script(Watch):
    """Commits an offset each time that the tables have what was committed before, and then stops."""

    def __init__(self, servers: str, tables: Path, offsets: list[int]) -> None:
        self.stop = threading.Event()
        self.told: list[Problem] = []
        self.left_aside: list[str] = []
        self._topic = new_topic(servers)
        self._servers = servers
        self._tables = tables
        self._offsets = offsets
        self._next()

    def table(self, name: str, rows: int, *, is_appended: bool = False) -> None:
        if is_appended:
            self.left_aside += [each.name for each in (self._tables / "_groupkeeper" / "staging").glob("*/*-decoded")]
        if name == "current_offsets":
            found = pq.read_table(self._tables / name).to_pylist()
            if [row for row in found if row["topic"] == self._topic and row["committed_offset"] == self._last]:
                self._next()

    def problem(self, problem: Problem) -> None:
        self.told.append(problem)

    def _next(self) -> None:
        if not self._offsets:
            self.stop.set()
            return
        self._last = self._offsets.pop(0)
        commit(self._servers, "followed", {(self._topic, 0): self._last})


@pytest.mark.long
def test_what_is_written_meanwhile_arrives_once(spark: SparkSession, tmp_path: Path) -> None:
    """Also with a run of snapshot in between, a cluster that is away, and a second run."""
    tables = tmp_path / "tables"
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        servers = broker.bootstrap_servers
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}

        def run(offsets: list[int]) -> Script:
            script = Script(servers, tables, offsets)
            follow(spark, options, str(tables), script.stop, script, interval_s=0.2, refresh_s=0.2)
            assert not script.told
            assert not script.left_aside
            return script

        abort_commit(servers, "aborted", new_topic(servers))  # fewer rows than offsets, as compaction makes them too
        run([1])
        commit(servers, "between", {(new_topic(servers), 0): 9})
        snapshot(spark, options, str(tables))
        run([2, 3])
        assert len(set(places(tables))) == len(places(tables))
        fresh = tmp_path / "fresh"
        snapshot(spark, options, str(fresh))
        assert places(tables) == places(fresh)
        kept = {each.name for each in (tables / "_groupkeeper").iterdir() if not each.name.startswith("carried_")}
        assert kept == {"checkpoint", "ledger", "lock"}


@pytest.mark.long
def test_what_is_written_at_a_url_arrives_once(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks see no directory there: their rows are written by Spark."""
    link = "fs.viewfs.mounttable.followed.link./store"
    spark.sparkContext._jsc.hadoopConfiguration().set(link, tmp_path.as_uri())
    tables = tmp_path / "tables"
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "cluster": "c"}
        script = Script(broker.bootstrap_servers, tables, [1, 2])
        follow(spark, options, "viewfs://followed/store/tables", script.stop, script, interval_s=0.2, refresh_s=0.2)
        assert not script.told
        snapshot(spark, options, str(tmp_path / "fresh"))
    assert places(tables) == places(tmp_path / "fresh")
    assert not list((tables / "_groupkeeper" / "staging").glob("*"))


@pytest.mark.long
def test_one_run_at_a_time(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    refused: list[str] = []

    class Second(Script):
        def _next(self) -> None:
            super()._next()
            if self.stop.is_set():
                with pytest.raises(SourceError) as caught:
                    snapshot(spark, options, str(tmp_path))
                refused.append(str(caught.value))

    script = Second(servers, tmp_path, [1])
    follow(spark, options, str(tmp_path), script.stop, script, interval_s=0.2, refresh_s=0.2)
    (told,) = refused
    assert told.startswith(f"{tmp_path}: another run writes to it: wait for its end (follow is ended by ")


@pytest.mark.long
def test_a_cluster_that_is_away_keeps_no_other_from_its_first_tables(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """However long it is tried to be reached."""
    away = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "3600000"}
    clusters = {"here": {"kafka.bootstrap.servers": servers}, "away": away}
    script = Script(servers, tmp_path, [5])
    follow(spark, {"clusters": json.dumps(clusters)}, str(tmp_path), script.stop, script, interval_s=0.2)
    assert [each.cluster for each in script.told] == ["away"], script.told
    statuses = {row["cluster"] for row in pq.read_table(tmp_path / "status").to_pylist()}
    assert statuses == {"here"}
