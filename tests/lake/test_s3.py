"""An output directory on S3: a real server, Hadoop's own way to it."""

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, make_topic, new_topic, produce

from groupkeeper.cli.framework.values import NamedCheckpoint
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.storage.files import files_of
from groupkeeper.pipeline.storage.format_log import open_lake
from groupkeeper.pipeline.storage.lake import FileFacts, LakePlace
from groupkeeper.pipeline.storage.lease import Busy
from groupkeeper.pipeline.storage.output import LakeChoice, open_output
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, LAG

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_tables_of_a_format_are_on_s3(spark: SparkSession, servers: str, lake_format: str) -> None:
    root, topic = "s3a://fleet/tables", new_topic(servers)
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    for offset in (5, 9):
        commit(servers, "s3", {(topic, 0): offset})
        summary = snapshot(spark, options, root, lake=LakeChoice(LakePlace(lake_format)))
        assert summary.problems == []
        with open_output(spark, root) as output:
            (row,) = output.read(CURRENT_OFFSETS).where("group_id = 's3'").collect()
            assert row.committed_offset == offset
        lake = open_lake(spark, LakePlace(lake_format), root, lambda table, name: FileFacts(name, 0, 0, 0))
        assert lake.read(CURRENT_OFFSETS).where("group_id = 's3'").collect() == [row]
    assert [each.committed_offset for each in lake.read(COMMITS).orderBy("log_offset").collect()] == [5, 9]


def test_a_second_run_is_refused(spark: SparkSession) -> None:
    held = "s3a://fleet/held"
    with open_output(spark, held), pytest.raises(Busy, match="writes to it"), open_output(spark, held):
        pass
    with open_output(spark, held):
        pass


def test_of_writers_at_the_same_moment_one_creates_the_file(spark: SparkSession) -> None:
    writers = [files_of(spark, "s3a://fleet/race") for _ in range(6)]
    together = threading.Barrier(len(writers))
    won: list[int] = []

    def write(number: int) -> None:
        together.wait()
        if writers[number].write_new("entry", str(number)):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(writers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert writers[0].read("entry") == str(won[0])


CHECKPOINTS = Path(__file__).parents[1] / "cli/checkpoints"


def test_checkpoints_are_on_s3(spark: SparkSession, servers: str) -> None:
    """As a query leaves them there: by name and by a glob, the tables beside them."""
    root, names = "s3a://fleet/checkpoints", ("orders", "two-sources")
    for topic, partitions in (("orders", 2), ("payments", 1)):
        make_topic(servers, topic, partitions)
    produce(servers, "orders", "x" * 20)
    commit(servers, "billing", {("orders", 0): 12})
    store = files_of(spark, root)
    for name in names:
        for file in sorted(each for each in (CHECKPOINTS / name).rglob("*") if each.is_file()):
            assert store.write_new(f"{name}/{file.relative_to(CHECKPOINTS / name)}", file.read_text())
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    asked = [NamedCheckpoint(None, "etl", f"{root}/two-sources"), NamedCheckpoint("c", None, f"{root}/ord*")]
    tables = "s3a://fleet/tables-of-queries"
    summary = snapshot(spark, options, tables, checkpoints=[*asked, NamedCheckpoint(None, None, f"{root}/none")])
    (problem,) = summary.problems
    assert problem.message.endswith(f"{root}/none: there is no such folder")
    with open_output(spark, tables) as output:
        rows = output.read(LAG).where("group_id IN ('etl', 'orders')").collect()
    assert {(row.group_id, row.topic, row.partition): (row.committed_offset, row.lag) for row in rows} == {
        ("etl", "orders", 0): (17, 3),
        ("etl", "orders", 1): (5, 0),
        ("etl", "payments", 0): (3, 0),
        ("orders", "orders", 0): (17, 3),
        ("orders", "orders", 1): (5, 0),
    }
