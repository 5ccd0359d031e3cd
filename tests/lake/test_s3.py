"""An output directory on S3: a real server, Hadoop's own way to it."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession
from tests.spark.kafka.test_source import commit, new_topic

from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.storage.files import files_of
from groupkeeper.pipeline.storage.formats import open_lake
from groupkeeper.pipeline.storage.lake import Place
from groupkeeper.pipeline.storage.lease import Busy
from groupkeeper.pipeline.storage.output import LakeChoice, open_output
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_tables_are_on_s3_and_those_of_a_lake_follow(spark: SparkSession, servers: str, lake_format: str) -> None:
    root, topic = "s3a://fleet/tables", new_topic(servers)
    options = {"kafka.bootstrap.servers": servers, "cluster": "c"}
    for offset in (5, 9):
        commit(servers, "s3", {(topic, 0): offset})
        summary = snapshot(spark, options, root, lake=LakeChoice(Place(lake_format)))
        assert summary.problems == []
        with open_output(spark, root) as output:
            (row,) = output.read(CURRENT_OFFSETS).where("group_id = 's3'").collect()
            assert row.committed_offset == offset
        lake = open_lake(spark, Place(lake_format), root)
        assert lake.read(CURRENT_OFFSETS).where("group_id = 's3'").collect() == [row]
    assert [each.committed_offset for each in lake.read(COMMITS).orderBy("log_offset").collect()] == [5, 9]


def test_a_second_run_is_refused(spark: SparkSession) -> None:
    held = "s3a://fleet/held"
    with open_output(spark, held), pytest.raises(Busy, match="writes to it"), open_output(spark, held):
        pass
    with open_output(spark, held):
        pass


def test_of_writers_at_the_same_moment_one_creates_the_file(spark: SparkSession) -> None:
    writers = [files_of(spark, "s3a://fleet/race", is_remote=False) for _ in range(6)]
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
