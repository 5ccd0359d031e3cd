"""Tables where only Spark's Hadoop reaches: here its own way to the files of this machine."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.storage.files import HadoopFiles, LocalFiles, explained, files_of
from groupkeeper.pipeline.storage.ledger import Ledger


def put(root: Path, path: str, text: str) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return path


def test_files_are_as_on_this_machine(spark: SparkSession, tmp_path: Path) -> None:
    files = HadoopFiles(spark, f"file://{tmp_path}/")
    assert files.names("lag") == []
    assert files.write_new("deep/down/entry", "один") is True
    assert files.write_new("deep/down/entry", "another") is False
    assert files.read("deep/down/entry") == "один"
    assert files.names("deep/down") == ["entry"]
    files.move("is not there", "lag/part.parquet")
    files.remove("is not there")
    for number, is_there in enumerate((False, True)):
        put(tmp_path, "new/part.parquet", f"rows {number}")
        put(tmp_path, "new/_SUCCESS", "")
        assert bool(files.names("lag")) is is_there
        files.replace("new", "lag")
        assert (tmp_path / "lag" / "part.parquet").read_text() == f"rows {number}"
        assert files.names("lag") == ["part.parquet"]
        assert files.names("") == ["deep", "lag"]


def test_a_run_leaves_what_another_writes_aside(spark: SparkSession, tmp_path: Path) -> None:
    """No lock keeps two runs apart there: only what is days old is of a run that was killed."""
    staging = "_groupkeeper/staging"
    for name in ("own", "other", "killed"):
        put(tmp_path, f"{staging}/{name}/part.parquet", "")
    days_ago = time.time() - 5 * 86400
    os.utime(tmp_path / staging / "killed", (days_ago, days_ago))
    files = HadoopFiles(spark, f"file://{tmp_path}")
    files.clean(staging, f"{staging}/own")
    assert files.names(staging) == ["other"]
    put(tmp_path, "one/part.parquet", "")
    files.move("one/part.parquet", "lag/part.parquet")
    files.move("one/part.parquet", "lag/part.parquet")  # the other run has moved it


def test_history_is_appended_to(spark: SparkSession, tmp_path: Path) -> None:
    for number, read_to in enumerate((3, 5), 1):
        ledger = Ledger(HadoopFiles(spark, f"file://{tmp_path}"), "DIR")
        staged = put(tmp_path, f"_groupkeeper/staging/{number}/part.parquet", f"run {number}")
        ledger.append({"commits": [staged]}, {"c": {0: read_to}})
    other = Ledger(LocalFiles(tmp_path), "DIR")
    assert (other.next_offsets, other.id) == ({"c": {0: 5}}, ledger.id)
    assert [(tmp_path / "commits" / name).read_text() for name in other.files("commits")] == ["run 1", "run 2"]


class AtRename:
    """Hadoop's renames, of which the first lets another run go first."""

    def __init__(self, hadoop: Any, acts: list[Callable[[], None]]) -> None:
        self._hadoop = hadoop
        self._acts = acts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hadoop, name)

    def rename(self, *words: Any) -> Any:
        while self._acts:
            self._acts.pop()()
        return self._hadoop.rename(*words)


def test_an_entry_that_two_runs_race_for_is_of_the_first_one(spark: SparkSession, tmp_path: Path) -> None:
    """The other run writes its entry at the worst moment: when this one has found that there is none yet."""
    files, others_files = (HadoopFiles(spark, f"file://{tmp_path}") for _ in range(2))
    ledger, other = Ledger(files, "DIR"), Ledger(others_files, "DIR")

    def first() -> None:
        other.append({"commits": [put(tmp_path, "_groupkeeper/staging/other/part.parquet", "other")]}, {"c": {0: 7}})

    acts = [first]
    files._files, files._context = AtRename(files._files, acts), AtRename(files._context, acts)
    staged = put(tmp_path, "_groupkeeper/staging/one/part.parquet", "one")
    with pytest.raises(SourceError, match="DIR: another run has written to it meanwhile: run again"):
        ledger.append({"commits": [staged]}, {"c": {0: 5}})
    after = Ledger(LocalFiles(tmp_path), "DIR")
    assert (after.next_offsets, after.id) == ({"c": {0: 7}}, other.id)
    assert [(tmp_path / "commits" / name).read_text() for name in after.files("commits")] == ["other"]
    assert files.names("_groupkeeper/ledger") == ["0000000001.json"]
    assert (tmp_path / staged).exists()  # so that nothing of this run is lost before it runs again


class Connected:
    """A session of Spark Connect, as far as it is asked."""

    @property
    def sparkContext(self) -> None:  # noqa: N802
        raise PySparkException("not with Connect")


def test_a_place_out_of_reach_is_named(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match="nowhere://host/tables is out of reach: Hadoop knows no nowhere://"):
        files_of(spark, "nowhere://host/tables")
    with pytest.raises(SourceError, match="with --remote, the directory must also be accessible from this machine"):
        files_of(cast(Any, Connected()), "hdfs://host/tables")


def test_a_way_that_hadoop_does_not_have_is_told_with_the_way_out() -> None:
    no_way = "Spark has no org.apache.hadoop.fs.{}: give its package, --conf spark.jars.packages=".format
    no_class = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.{} not found".format
    assert [explained(reason, "3.5.0") for reason in (
        'No FileSystem for scheme "s3"', "f=null: No AbstractFileSystem configured for scheme: http",
        no_class("s3a.S3AFileSystem"), no_class("gs.GoogleHadoopFileSystem"), "denied",
    )] == [
        "Hadoop knows no s3://; S3 is s3a://", "Hadoop knows no http://",
        f"{no_way('s3a.S3AFileSystem')}org.apache.hadoop:hadoop-aws:3.5.0",
        f"{no_way('gs.GoogleHadoopFileSystem')}GROUP:NAME:VERSION",
        "denied",
    ]  # fmt: skip
