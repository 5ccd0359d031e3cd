"""Queries of Structured Streaming in the tables, by recorded checkpoints."""

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.acts import commit, committed_offsets, make_topic, produce
from tests.patience import until
from tests.spark.written_rows import rows_of

from groupkeeper.cli.framework.values import NamedCheckpoint
from groupkeeper.cli.main import main
from groupkeeper.pipeline.checkpoints.folders import _hadoop_folders, find_folders
from groupkeeper.pipeline.checkpoints.listener import CommitsToKafka
from groupkeeper.pipeline.checkpoints.queries import read_query
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.following.job import follow
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.watch import Problem, Watch
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.testing.background import BackgroundBroker

RECORDED = Path(__file__).parents[2] / "cli/checkpoints"


def fill(servers: str, ends: dict[tuple[str, int], int]) -> None:
    for (topic, partition), end in ends.items():
        produce(servers, topic, "x" * end, [partition])


@pytest.fixture
def own() -> Iterator[str]:
    """A broker with the topics of the recorded checkpoints, which had 17, 5 and 3 records when they were stopped."""
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as broker:
        for topic, partitions in {"orders": 2, "payments": 1}.items():
            make_topic(broker.bootstrap_servers, topic, partitions)
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


@pytest.mark.long
@pytest.mark.timeout(300)
def test_queries_by_the_packages_own_source(
    spark: SparkSession, own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Streams that read two clusters, topics and the offsets topic, stopped; what they have read is known from what was
    written before and after.
    """
    with BackgroundBroker() as other:
        where = {"east": own, "west": other.bootstrap_servers}
        make_topic(where["west"], "orders")
        fill(where["west"], {("orders", 0): 6})
        clusters = json.dumps({name: {"kafka.bootstrap.servers": servers} for name, servers in where.items()})
        both = {"clusters": clusters, "subscribe": "orders"}
        listener = CommitsToKafka(own, interval_s=0.1, cluster="east")
        spark.streams.addListener(listener)
        united = read(spark, {**both, "startingOffsets": "earliest"}, "offset").union(
            read(spark, {"kafka.bootstrap.servers": own, "rows": "decoded"}, "log_offset as offset")
        )
        ended = {name: run(frame, tmp_path / name) for name, frame in {
            "both": read(spark, {**both, "startingOffsets": "earliest"}, "offset"), "united": united,
        }.items()}  # fmt: skip
        assert ended["both"] == 20 + 5 + 6
        until(lambda: committed_offsets(own, "spark-both") == {("orders", 0): 20, ("orders", 1): 5})
        until(lambda: committed_offsets(own, "spark-united") == {("orders", 0): 20, ("orders", 1): 5})
        listener.close()
        spark.streams.removeListener(listener)
        fill(own, {("orders", 0): 4, ("payments", 0): 1})
        fill(where["west"], {("orders", 0): 2})
        lag = {name: shown(capsys, servers, f"{name}:={tmp_path / 'both'}") for name, servers in where.items()}
        assert lag == {"east": {("orders", 0): (20, 4), ("orders", 1): (5, 0)}, "west": {("orders", 0): (6, 2)}}
        of_united = shown(capsys, own, f"east:={tmp_path / 'united'}")
        behind = of_united.pop(("__consumer_offsets", 0))
        assert of_united == lag["east"]
        offsets = {"kafka.bootstrap.servers": own, "rows": "decoded"}
        written = [row.log_offset for row in read(spark, offsets, "log_offset", is_stream=False).collect()]
        assert behind == (ended["united"] - ended["both"], max(written) + 1 - (ended["united"] - ended["both"]))
        # a query that goes on where the other one is
        assert (
            main(["spark", "starting-offsets", "--checkpoint", f"east:={tmp_path / 'both'}", "--bootstrap-server", own])
            == 0
        )
        starts = capsys.readouterr().out
        later = {"kafka.bootstrap.servers": own, "subscribe": "orders", "startingOffsets": starts}
        assert run(read(spark, later, "offset"), tmp_path / "later") == 4
        # as groups in the tables
        tables, options = tmp_path / "tables", {"kafka.bootstrap.servers": own, "cluster": "east"}
        asked = [NamedCheckpoint(None, None, str(tmp_path / name)) for name in ("united", "later")]
        summary = snapshot(spark, options, str(tables), checkpoints=asked)
        assert summary.problems == []
        rows = {(row["group_id"], row["topic"], row["partition"]): row for row in rows_of(tables, "lag")}
        found = {key: row["lag"] for key, row in rows.items() if key[0] in ("united", "later")}
        assert [row for row in rows_of(tables, "stale") if row["group_id"] in ("united", "later")] == []
        end = max(row["log_offset"] for row in rows_of(tables, "commits")) + 1
        assert found.pop(("united", "__consumer_offsets", 0)) >= end - behind[0]
        assert found == {("united", "orders", 0): 4, ("united", "orders", 1): 0, ("later", "orders", 0): 0,
                         ("later", "orders", 1): 0}  # fmt: skip


def read(spark: SparkSession, options: dict[str, str], column: str, *, is_stream: bool = True) -> DataFrame:
    reader = spark.readStream if is_stream else spark.read
    return reader.format("groupkeeper").options(**options).load().selectExpr(column)


def run(frame: DataFrame, checkpoint: Path) -> int:
    """How many rows a query reads that is called as its checkpoint."""
    rows: list[int] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.append(batch.count())).queryName(checkpoint.name)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(rows)


def shown(capsys: pytest.CaptureFixture[str], servers: str, checkpoint: str) -> dict[tuple[str, int], tuple[int, int]]:
    assert main(["spark", "lag", checkpoint, "--bootstrap-server", servers, "--output", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["notes"] == []
    return {(row["topic"], row["partition"]): (row["next_offset"], row["lag"]) for row in report["offsets"]}


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
    (its_own,) = find_folders(f"{tables}/_groupkeeper/checkpoint/*")
    with pytest.raises(SourceError, match="how far 'groupkeeper pipeline follow' has read is in its tables"):
        read_query(its_own, "follow")
