"""Tables of Delta Lake or Apache Iceberg have the rows of the directory's, whatever happens to the runs."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.spark.kafka.test_source import ask, commit, new_topic

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.steps import STEPS
from groupkeeper.pipeline.storage import iceberg, ledger, mirror
from groupkeeper.pipeline.storage.formats import open_lake
from groupkeeper.pipeline.storage.lake import DAY, OPEN, LakePlace
from groupkeeper.pipeline.storage.output import LakeChoice, open_output
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    GROUP_EVENTS,
    GROUP_RECORDS,
    GROUPS,
    LAG,
    RATES,
    REWINDS,
    Table,
)
from groupkeeper.pipeline.tables.state import CARRIED

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TABLES = (COMMITS, GROUP_RECORDS, *(step.table for step in STEPS if step.is_published and step.table not in CARRIED))
WITH_OPEN = (GROUP_EVENTS, RATES, REWINDS)


class Directory:
    """An output directory with a lake, and the cluster that it is about."""

    def __init__(self, spark: SparkSession, servers: str, root: Path, lake_format: str) -> None:
        self.spark, self.servers, self.root = spark, servers, root
        self.place = LakePlace(lake_format)
        self.topic = new_topic(servers)
        self.offset = 0

    def commit_some(self) -> None:
        """Commits of which one moves back, one beyond the log, and one offset is deleted."""
        self.offset += 10
        for group in ("one", "two"):
            commit(self.servers, f"{group}-{self.topic}", {(self.topic, 0): self.offset})
        commit(self.servers, f"one-{self.topic}", {(self.topic, 0): self.offset - 5})
        group = f"two-{self.topic}"
        ask(self.servers, lambda admin: admin.delete_consumer_group_offsets(group, [TopicPartition(self.topic, 0)]))

    def snapshot(
        self, *, from_start: bool = False, lake: LakeChoice | None = None, keep_days: int | None = None
    ) -> list[str]:
        """The problems that it told."""
        options = {"kafka.bootstrap.servers": self.servers, "cluster": "c"}
        summary = snapshot(
            self.spark,
            options,
            str(self.root),
            from_start=from_start,
            lake=lake or LakeChoice(self.place),
            keep_days=keep_days,
        )
        return [each.message for each in summary.problems]

    def here(self, table: Table) -> list[str]:
        files = [str(path) for path in sorted((self.root / table.name).glob("*.parquet"))]
        rows = ds.dataset(files, schema=table.arrow).to_table().to_pylist() if files else []
        return sorted(map(repr, rows))

    def there(self, table: Table) -> list[str]:
        return sorted(map(repr, self.rows(table)))

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """Those of the lake."""
        frame = open_lake(self.spark, self.place, self.root.absolute().as_uri()).read(table)
        found: list[dict[str, Any]] = frame.toArrow().cast(table.arrow).to_pylist()
        return found

    def whole(self, table: Table) -> str:
        """The name of the lake's table in Spark, with all of its columns."""
        if self.place.format == "iceberg":
            return f"{iceberg._catalog_at(self.spark, f'{self.root.absolute().as_uri()}/iceberg')}.`{table.name}`"
        return f"delta.`{self.root.absolute().as_uri()}/delta/{table.name}`"

    def check(self) -> None:
        for table in TABLES:
            assert self.there(table) == self.here(table), table.name


@pytest.fixture
def directory(spark: SparkSession, servers: str, tmp_path: Path, lake_format: str) -> Directory:
    return Directory(spark, servers, tmp_path / "tables", lake_format)


def state_of(commits: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Places of the last commit of each key, and of its removal, if it is removed."""
    found = {}
    for row in sorted(commits, key=lambda row: row["log_offset"]):
        key = row["group_id"], row["topic"], row["partition"]
        if row["is_tombstone"]:
            found[key, "removed"] = row["log_partition"], row["log_offset"]
        else:
            found[key, "live"] = row["log_partition"], row["log_offset"]
            found.pop((key, "removed"), None)
    return sorted(found.values())


def versions(directory: Directory, table: Table) -> int:
    name = directory.whole(table)
    if directory.place.format == "iceberg":
        return directory.spark.table(f"{name}.snapshots").count()
    return directory.spark.sql(f"DESCRIBE HISTORY {name}").count()


def test_the_lake_has_the_rows_of_the_directory(directory: Directory) -> None:
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
        directory.check()
    before = {table.name: versions(directory, table) for table in (COMMITS, GROUP_RECORDS)}
    assert directory.snapshot() == []
    directory.check()
    assert {table.name: versions(directory, table) for table in (COMMITS, GROUP_RECORDS)} == before
    days = directory.spark.table(directory.whole(COMMITS)).select(DAY, F.to_date("log_time")).distinct().collect()
    assert days
    assert all(day == other for day, other in days)
    opened = directory.spark.table(directory.whole(RATES)).where(OPEN).count()
    assert 0 < opened <= len(directory.here(RATES))
    assert directory.snapshot(from_start=True) == []
    directory.check()


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_run_that_ends_in_the_midst_is_made_up_for(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    """At each of the lake's commits, before and after it."""
    directory.commit_some()
    assert directory.snapshot() == []
    real = mirror.Mirror._write
    for number in (1, 5, 9):
        directory.commit_some()
        left = [number]

        def write(own: mirror.Mirror, here: mirror._MirroredHere, *rest: object, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0 and is_after:
                real(own, here, *rest)  # type: ignore[arg-type]
            if left[0] <= 0:
                raise SourceError("killed")
            real(own, here, *rest)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(mirror.Mirror, "_write", write)
            assert [text for text in directory.snapshot() if "killed" in text]
        if number != 5:  # else the next run has two refreshes to make up for
            assert directory.snapshot() == []
            directory.check()
    assert directory.snapshot() == []
    directory.check()


def test_rows_that_only_the_lake_has_are_rebuilt_from(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_HERE_HOURS", 0)
    monkeypatch.setattr(ledger, "_HOUR_MS", 0)
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
    with open_output(directory.spark, str(directory.root)) as output:
        assert output.ledger.aged_to(COMMITS.name)
        everything = sorted(map(repr, output.read(COMMITS).toArrow().cast(COMMITS.arrow).to_pylist()))
    assert len(directory.here(COMMITS)) < len(everything)
    assert directory.there(COMMITS) == everything
    events = directory.there(GROUP_EVENTS)
    rewinds = directory.there(REWINDS)
    assert directory.snapshot(from_start=True) == []
    assert directory.there(GROUP_EVENTS) == directory.here(GROUP_EVENTS)
    assert set(events) <= set(directory.here(GROUP_EVENTS))  # the broker removes groups without offsets, in the end
    assert directory.there(REWINDS) == directory.here(REWINDS) == rewinds
    directory.spark.sql(f"DROP TABLE {directory.whole(COMMITS)}" if directory.place.format == "iceberg" else "SELECT 1")
    if directory.place.format == "delta":
        shutil.rmtree(directory.root / "delta" / "commits")
    (problem,) = directory.snapshot()
    assert "lacks rows that are nowhere else" in problem


def test_versions_are_kept_for_a_time_and_rows_for_days(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        directory.commit_some()
        assert directory.snapshot() == []
    assert versions(directory, LAG) >= 2
    lake = open_lake(directory.spark, directory.place, directory.root.absolute().as_uri())
    for table in (COMMITS, LAG):
        mark = lake.mark(table)
        assert mark is not None
        lake.tidy(table, mark, 0)
    if directory.place.format == "iceberg":
        assert versions(directory, LAG) == 1
    directory.check()
    monkeypatch.setattr("groupkeeper.pipeline.storage.mirror._TIDY_MS", 0)
    directory.commit_some()
    assert directory.snapshot(keep_days=400, lake=LakeChoice(directory.place, mirror.Keeping(1))) == []
    directory.check()
    directory.commit_some()
    assert directory.snapshot() == []
    directory.check()


def test_of_old_days_the_state_stays(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        directory.commit_some()
        assert directory.snapshot(keep_days=3) == []
    wanted = {table: directory.here(table) for table in (CURRENT_OFFSETS, GROUPS)}
    last = state_of(directory.rows(COMMITS))
    assert 0 < len(last) < len(directory.rows(COMMITS))
    with monkeypatch.context() as patch:  # a run in five days
        now_ns = time.time_ns()
        patch.setattr("groupkeeper.pipeline.storage.mirror.time.time_ns", lambda: now_ns + 5 * 86_400 * 10**9)
        patch.setattr(mirror.Mirror, "tidy", lambda *rest: None)  # which takes long, and is tested above
        assert directory.snapshot() == []
        assert sorted((row["log_partition"], row["log_offset"]) for row in directory.rows(COMMITS)) == last
        assert directory.rows(RATES) == []
        assert directory.snapshot(from_start=True) == []
    assert {table: directory.here(table) for table in wanted} == wanted


def test_columns_that_a_table_lacks_come_to_it(directory: Directory) -> None:
    directory.commit_some()
    assert directory.snapshot() == []
    lost = {COMMITS: "leader_epoch", REWINDS: "change_id", LAG: None}  # added to, with rows that are replaced, replaced
    for table, column in lost.items():
        name = directory.whole(table)
        if directory.place.format == "delta":
            directory.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        if column is not None:
            directory.spark.sql(f"ALTER TABLE {name} DROP COLUMN {column}")
    directory.commit_some()
    assert directory.snapshot() == []
    assert len(directory.there(COMMITS)) == len(directory.here(COMMITS))
    assert directory.there(REWINDS) == directory.here(REWINDS)
    assert directory.there(LAG) == directory.here(LAG)


def test_what_is_not_of_the_directory_is_refused(directory: Directory) -> None:
    """A table of someone else, and one of a history that began before this one."""
    directory.commit_some()
    assert directory.snapshot() == []
    other = {"delta": "iceberg", "iceberg": "delta"}[directory.place.format]
    with pytest.raises(SourceError, match=f"followed by {directory.place.format}, not by {other}"):
        directory.snapshot(lake=LakeChoice(LakePlace(other)))
    for path in directory.root.iterdir():
        if path.name != directory.place.format:
            shutil.rmtree(path)
    problems = directory.snapshot()  # of the cluster's new rows, and of the tables
    assert problems
    for problem in problems:
        assert "is of another directory, or of this one before it was emptied" in problem
