"""`groupkeeper pipeline snapshot`: the tables on disk, as any reader of parquet finds them."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import ask, commit, new_topic, produce

from groupkeeper.broker.authorizer import RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs import history, refresh, shares, steps
from groupkeeper.pipeline.jobs.log_offsets import FEW
from groupkeeper.pipeline.jobs.shares import Build, Built, build
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.steps import STEPS, Job
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.storage.output import Output, Staged
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_RECORDS, GROUPS, LAG, Table
from groupkeeper.pipeline.tables.state import (
    CARRIED,
    COUNTS_OF_LAG,
    COUNTS_OF_OFFSETS,
    LAST_COMMITS,
    OFFSETS_READ,
    READERS,
    WAITING,
    WANTED,
)
from groupkeeper.testing.background import BackgroundBroker

PATIENCE_S = 60


def places(tables: Path, cluster: str | None = None) -> list[tuple[str, int, int]]:
    """Where the rows of both history tables are from."""
    rows = [row for table in (COMMITS, GROUP_RECORDS) for row in pq.read_table(tables / table.name).to_pylist()]
    found = [(row["cluster"], row["log_partition"], row["log_offset"]) for row in rows]
    return sorted(each for each in found if cluster in (None, each[0]))


def columns_of(tables: Path, name: str, *columns: str) -> list[str]:
    """The rows of a table, with these columns."""
    rows = pq.read_table(tables / name, columns=list(columns)).to_pylist()
    for row in rows:
        row["records"] = sorted(map(repr, row.get("records") or []))
    return sorted(map(repr, rows))


def carried_names() -> list[str]:
    return sorted(table.name.rpartition("/")[2] for table in CARRIED)


REFRESH = tuple(job.value for job in Job if job is not Job.ASKED)


OF_SHARES = {each.name for each in (READERS, OFFSETS_READ, WANTED, WAITING, COUNTS_OF_OFFSETS, COUNTS_OF_LAG)}
"""Tables with rows for each share of the groups."""


def jobs(spark: SparkSession) -> Counter[tuple[str, int]]:
    """The descriptions of all jobs of Spark so far, and how many tasks each has."""
    found = spark._jsc.sc().statusStore().jobsList(None)
    each = [found.apply(number) for number in range(found.size())]
    return Counter((job.description().get(), job.numTasks()) for job in each if job.description().isDefined())


def test_tables_are_written_and_replaced(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    tables = tmp_path / "tables"
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    for number in (1, 2):
        commit(servers, "snapshot", {(topic, 0): number})
        before = jobs(spark)
        summary = snapshot(spark, options, str(tables))
        assert {"reading the offsets topics", *REFRESH} <= {name for name, _ in jobs(spark) - before}
        assert not summary.problems
        rows = pq.read_table(tables / "current_offsets").to_pylist()
        (row,) = [each for each in rows if each["group_id"] == "snapshot"]
        assert (row["cluster"], row["topic"], row["committed_offset"]) == ("c", topic, number)
    for table in (COMMITS, GROUP_RECORDS, *(step.table for step in STEPS if step.is_published)):
        found = pq.read_table(tables / table.name)
        assert found.schema.names == table.names
        assert [each.type for each in found.schema] == [each.type for each in table.arrow] or table is not COMMITS
        assert all(each.suffix == ".parquet" for each in (tables / table.name).iterdir() if each.name[0] != ".")
        assert summary.rows.get(table.name, found.num_rows) == found.num_rows
    assert len(set(places(tables))) == len(places(tables))
    asked = ask(servers, lambda admin: admin.list_consumer_group_offsets({"snapshot": None}))
    assert [each.offset for each in asked.done["snapshot"].done.values() if each is not None] == [2]
    assert sorted(each.name for each in (tables / "_groupkeeper").iterdir()) == [*carried_names(), "ledger", "lock"]


@pytest.mark.long
def test_at_a_url_jobs_are_as_few(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Hadoop reaches the directory there. The tables are as at a path, and each job, of one task where rows are
    few, writes all that it builds.
    """
    link = "fs.viewfs.mounttable.snapshots.link./store"
    spark.sparkContext._jsc.hadoopConfiguration().set(link, tmp_path.as_uri())
    url, tables, fresh = "viewfs://snapshots/store/tables", tmp_path / "tables", tmp_path / "fresh"
    once = {(name, 1) for name in ("reading the offsets topics", "records of groups, and tombstones", *REFRESH)}
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        servers = broker.bootstrap_servers
        options, topic = {"kafka.bootstrap.servers": servers, "cluster": "c"}, new_topic(servers)
        for number in (1, 2):
            commit(servers, "at a url", {(topic, 0): number})
            before = jobs(spark)
            assert not snapshot(spark, options, url).problems
            found = jobs(spark) - before
            assert found == Counter(once & found.keys())
            assert {(name, 1) for name in REFRESH} <= found.keys()
        commit(servers, "at a url", {(topic, 0): 3})
        commit(servers, "another", {(topic, 0): 3})
        monkeypatch.setattr(refresh, "ROWS_PER_SHARE", 1)  # rows are exchanged
        summary = snapshot(spark, options, url)
        assert not summary.problems
        snapshot(spark, options, str(fresh))
    assert places(tables) == places(fresh)
    for table in (COMMITS, GROUP_RECORDS, *(step.table for step in STEPS if step.is_published)):
        there = [each.name for each in (tables / table.name).iterdir() if each.name[0] != "."]
        assert there
        assert all(each.endswith(".parquet") for each in there)
        found_rows = pq.read_table(tables / table.name)
        assert found_rows.schema.names == table.names
        assert summary.rows.get(table.name, found_rows.num_rows) == found_rows.num_rows
    for table in (CURRENT_OFFSETS, GROUPS, LAG):
        assert columns_of(tables, table.name, *table.key) == columns_of(fresh, table.name, *table.key)
    assert not list((tables / "_groupkeeper" / "staging").glob("*"))


@pytest.mark.long
def test_many_tasks_build_what_one_builds(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job of a refresh is run by one task that reads files, by five, and by three for which Spark exchanges the
    rows that tasks have read: the rows are the same.
    """
    compared: list[str] = []

    def rows(output: Output, found: Mapping[str, Staged | Exception]) -> dict[str, list[str]]:
        texts = {}
        for name, each in found.items():
            assert isinstance(each, Staged), each
            if name not in OF_SHARES:
                texts[name] = sorted(map(repr, loaded(output.rows(each.table, each.all_files)).to_pylist()))
        return texts

    def each_way(output: Output, description: str, make: Build, inputs: Any, wanted: Any, *_: int, **__: bool) -> Any:
        assert isinstance(make, partial)
        found = build(output, description, make, inputs, wanted)
        if description != Job.CLUSTERS.value:
            for shares, is_exchanged in ((5, False), (3, True)):
                many = partial(make.func, make.args[0]._replace(shares=shares))
                others = build(output, description, many, inputs, wanted, shares, is_exchanged=is_exchanged)
                assert rows(output, others) == rows(output, found)
            compared.extend(found)
        return found

    monkeypatch.setattr(refresh, "build", each_way)
    monkeypatch.delattr(Output, "frame_of")  # Spark's own reader of parquet costs several times as much
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        servers = broker.bootstrap_servers
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        topic = new_topic(servers)
        for offset in (5, 2, 9):
            for number in range(12):
                commit(servers, f"g{number}", {(topic, 0): offset + number % 3})
            assert not snapshot(spark, options, str(tmp_path / "tables")).problems
    assert {"lag", "status", "rewinds", "current_offsets", "members", "edges"} <= set(compared)


@pytest.mark.long
def test_the_driver_holds_no_offsets(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads rows of partitions, topics and checks. Where offsets are many, tasks ask for the records at them: the
    rows are the same.
    """
    in_driver: dict[str, int] = {}
    rows = Output.rows

    def seen(output: Output, table: Table, files: Sequence[str]) -> Rows:
        found = rows(output, table, files)
        in_driver[table.name] = max(in_driver.get(table.name, 0), len(loaded(found)))
        return found

    monkeypatch.setattr(Output, "rows", seen)
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        produce(servers, topic, map(str, range(9)))
        for number in range(12):
            commit(servers, f"g{number}", {(topic, 0): number % 4, (topic, 1): 0})
        made = []
        for few in (FEW, 1):
            monkeypatch.setattr(steps, "FEW", few)
            in_driver.clear()
            tables = tmp_path / str(few)
            assert not snapshot(spark, {"kafka.bootstrap.servers": servers, "cluster": "c"}, str(tables)).problems
            made.append([
                columns_of(tables, "log_offsets", "topic", "partition", "log_end_offset", "records", "problem"),
                columns_of(tables, "lag", "group_id", "partition", "committed_offset", "lag", "lag_basis"),
                columns_of(tables, "quality", "table_name", "check_name", "result", "found", "detail"),
            ])  # fmt: skip
    assert made[0] == made[1]
    assert in_driver == {READERS.name: 1, WAITING.name: 0, "topics": 0, "quality": in_driver["quality"]}


@pytest.mark.long
@pytest.mark.parametrize("most", [0, shares.ROWS_PER_SHARE], ids=["exchanged", "files"])
def test_what_is_carried_is_made_again_of_the_history(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Where it is lost, and by a rebuild; why an offset was removed is told right in between."""
    monkeypatch.setattr(refresh, "ROWS_PER_SHARE", most or 3)
    monkeypatch.setattr(history, "ROWS_PER_SHARE", most or 3)
    tables = tmp_path / "tables"
    added = ("group_events", "rates", "rewinds")

    def rows() -> list[list[str]]:
        return [sorted(map(repr, pq.read_table(tables / name).to_pylist())) for name in added]

    with BackgroundBroker(properties={"offsets.topic.num.partitions": "2"}) as broker:
        servers = broker.bootstrap_servers
        options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
        topic = new_topic(servers)
        commit(servers, "g", {(topic, 0): 5})
        commit(servers, "g", {(topic, 0): 2})
        assert not snapshot(spark, options, str(tables)).problems
        shutil.rmtree(tables / LAST_COMMITS.name)
        ask(servers, lambda admin: admin.delete_consumer_group_offsets("g", [TopicPartition(topic, 0)]))
        assert not snapshot(spark, options, str(tables)).problems
        causes = [row["removed_by"] for row in pq.read_table(tables / "commits").to_pylist()]
        assert sorted(filter(None, causes)) == ["deleted"]
        once = rows()
        assert [len(each) for each in once][2] == 1
        assert not snapshot(spark, options, str(tables), from_start=True).problems
        assert rows() == once


@pytest.mark.long
def test_what_one_cluster_fails_of_does_not_keep_the_others_from_being_read(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """A batch that is damaged on one cluster's disk, a cluster that is not there, one that lets nobody in, and one that
    has never had groups; a rerun goes on.
    """
    tables, damaged = tmp_path / "tables", tmp_path / "damaged"
    properties = {"offsets.topic.num.partitions": "1", "default.api.timeout.ms": "1000"}
    with (
        BackgroundBroker(directory=damaged, properties={"offsets.topic.num.partitions": "1"}) as other,
        BackgroundBroker(authorizer=RuleAuthorizer()) as locked,
        BackgroundBroker() as bare,
    ):
        commit(other.bootstrap_servers, "g", {(new_topic(other.bootstrap_servers), 0): 5})
        commit(servers, "whole", {(new_topic(servers), 0): 6})
        addresses = {"whole": servers, "damaged": other.bootstrap_servers, "away": "127.0.0.1:1"}
        addresses |= {"locked": locked.bootstrap_servers, "bare": bare.bootstrap_servers}
        shared = {"kafka.default.api.timeout.ms": properties["default.api.timeout.ms"]}
        options = {
            "clusters": json.dumps({name: {"kafka.bootstrap.servers": each} for name, each in addresses.items()}),
            **shared,
        }
        (log,) = (damaged / "__consumer_offsets-0").glob("*.log")
        good = log.read_bytes()
        with log.open("r+b") as file:
            file.seek(len(good) - 3)
            file.write(bytes([good[-3] ^ 0xFF]))
        summary = snapshot(spark, options, str(tables))
        messages = {problem.cluster: problem.message for problem in summary.problems}
        assert sorted(messages, key=str) == ["away", "bare", "damaged", "locked"]
        assert messages["bare"].startswith("cluster bare: topic __consumer_offsets: it does not exist: the first group")
        assert messages["locked"].startswith("cluster locked: topic __consumer_offsets: not authorized")
        assert messages["away"].startswith("cluster away: 127.0.0.1:1: connection refused")
        assert messages["damaged"].startswith("cluster damaged, partition __consumer_offsets-0, offset ")
        assert "corrupt batch" in messages["damaged"]
        before = places(tables)
        assert {name for name, _, _ in before} == {"whole"}
        log.write_bytes(good)
        summary = snapshot(spark, options, str(tables))
        assert sorted(str(problem.cluster) for problem in summary.problems) == ["away", "bare", "locked"]
    assert [each for each in places(tables) if each[0] == "whole"] == before
    assert places(tables, "damaged")
    other_log = {"kafka.bootstrap.servers": servers, "cluster": "damaged"}
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as empty:
        topic = new_topic(empty.bootstrap_servers)
        other_log["kafka.bootstrap.servers"] = empty.bootstrap_servers
        for number in range(20):  # its log is longer than the tables
            commit(empty.bootstrap_servers, "g", {(topic, 0): number})
        summary = snapshot(spark, other_log, str(tables))
    (problem,) = summary.problems
    assert problem.message.startswith("cluster damaged: the tables are of another cluster, with the id ")


@pytest.mark.long
def test_clusters_without_names_are_called_by_their_ids_and_never_taken_for_each_other(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """Several at once, alone, one by two addresses: the history has each once, and each is asked about its own."""
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as other:
        mine = new_topic(servers)
        commit(servers, "nameless", {(mine, 0): 1})
        commit(other.bootstrap_servers, "nameless", {(new_topic(other.bootstrap_servers), 0): 2})
        ids = [
            str(ask(each, lambda admin: admin.describe_cluster()).cluster_id)
            for each in (servers, other.bootstrap_servers)
        ]
        addresses = [servers, other.bootstrap_servers, servers.replace("127.0.0.1", "localhost")]
        options = {"clusters": json.dumps([{"kafka.bootstrap.servers": each} for each in addresses])}
        summary = snapshot(spark, options, str(tmp_path))
        assert summary.problems == [(addresses[2], f"cluster {addresses[2]}: it is {ids[0]}, as {addresses[0]} is")]
        before = places(tmp_path)
        assert {name for name, _, _ in before} == set(ids)
        summary = snapshot(spark, {"kafka.bootstrap.servers": other.bootstrap_servers}, str(tmp_path))
    assert (summary.problems, places(tmp_path)) == ([], before)
    logs = {(row["cluster"], row["topic"]): row for row in pq.read_table(tmp_path / "log_offsets").to_pylist()}
    left_out = logs[ids[0], mine]
    assert left_out["problem"] == f"cluster {ids[0]} is not among the given ones"
    assert not left_out["is_deleted"]


def test_records_of_unknown_types_and_versions_are_kept_and_counted(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic = new_topic(servers, 1)
    commit_key = b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x00"
    produce(servers, topic, [b"later", b"\x00\x63later"], keys=[b"\x7f\xff\x00", commit_key])
    options = {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": topic}
    summary = snapshot(spark, options, str(tmp_path))
    assert summary.notes == ["2 records could not be decoded: the table rejects has the reasons"]
    rows = pq.read_table(tmp_path / "group_records").to_pylist()
    assert [row["raw_value"] for row in rows] == [b"later", b"\x00\x63later"]


def test_a_directory_that_cannot_be_written_is_said(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SourceError, match=f"{file}/tables cannot be written: Not a directory"):
        snapshot(spark, {"kafka.bootstrap.servers": servers}, str(file / "tables"))
    with pytest.raises(SourceError, match=r"^nothing://here is out of reach: Hadoop knows no nothing://$"):
        snapshot(spark, {"kafka.bootstrap.servers": servers}, "nothing://here")
    with pytest.raises(SystemExit, match="2"):
        main(["pipeline", "snapshot", "--bootstrap-server", servers, "--tables", ""])


def test_a_cluster_out_of_reach_is_said_before_spark_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=300\n")
    words = ["pipeline", "snapshot", "--bootstrap-server", "west=127.0.0.1:1", "--tables", str(tmp_path / "tables")]
    assert main([*words, "--command-config", str(config)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("error: cluster west: 127.0.0.1:1: connection refused")
    assert main([*words, "--command-config", str(config), "--output", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "pipeline-snapshot/1"
    assert told["problems"][0]["message"].startswith("cluster west: 127.0.0.1:1: connection refused")
    assert not (tmp_path / "tables").exists()


def test_why_it_takes_long_is_said_soon_and_the_name_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=4000\n")
    words = ["pipeline", "snapshot", "--bootstrap-server", "127.0.0.1:1", "--tables", str(tmp_path / "tables")]
    assert main([*words, "--command-config", str(config)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == [
        "note: connection refused by 127.0.0.1:1; trying until 4 s have passed",
        "error: cluster 127.0.0.1:1: connection refused: no broker listens there",
    ]


def test_a_job_that_fails_is_a_problem_and_the_next_refresh_goes_on(
    spark: SparkSession, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(servers)
    tables, options = tmp_path / "tables", {"kafka.bootstrap.servers": servers, "cluster": "c"}

    def broken(*_: object) -> Built:
        raise RuntimeError("a defect")

    commit(servers, "breaks", {(topic, 0): 1})
    with monkeypatch.context() as patch:
        patch.setattr(refresh, "built", broken)
        problems = [each.message for each in snapshot(spark, options, str(tables)).problems]
    assert any("lag" in text.partition(":")[0] for text in problems), problems
    assert not list((tables / "_groupkeeper").glob("staging/*/*"))
    assert not snapshot(spark, options, str(tables)).problems
    rows = pq.read_table(tables / "current_offsets").to_pylist()
    assert [row["committed_offset"] for row in rows if row["group_id"] == "breaks"] == [1]
