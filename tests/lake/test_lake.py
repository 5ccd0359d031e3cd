"""Tables of Delta Lake or Apache Iceberg are the directory's own files, whatever happens to the runs."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import ask, commit, new_topic

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.steps import STEPS
from groupkeeper.pipeline.storage import format_log, iceberg
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.format_log import open_lake
from groupkeeper.pipeline.storage.lake import FileFacts, Lake, LakePlace, Listed
from groupkeeper.pipeline.storage.output import LakeChoice, Output, open_output
from groupkeeper.pipeline.storage.stored import Stored
from groupkeeper.pipeline.tables import COMMITS, CURRENT_OFFSETS, GROUP_RECORDS, GROUPS, LAG, RATES, Table
from groupkeeper.pipeline.tables.state import CARRIED

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TABLES = (COMMITS, GROUP_RECORDS, *(step.table for step in STEPS if step.is_published and step.table not in CARRIED))


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
        return sorted(map(repr, Stored(str(self.root)).dataset(table).to_table().to_pylist()))

    def there(self, table: Table) -> list[str]:
        return sorted(map(repr, self.rows(table)))

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """As readers of the format see them."""
        found: list[dict[str, Any]] = self.lake().read(table).toArrow().cast(table.arrow).to_pylist()
        return found

    def lake(self) -> Lake:
        return open_lake(
            self.spark, self.place, self.root.absolute().as_uri(), lambda table, name: FileFacts(name, 0, 0, 0)
        )

    def whole(self, table: Table) -> str:
        """The name of the table in Spark."""
        if self.place.format == "iceberg":
            return f"{iceberg._catalog_at(self.spark, f'{self.root.absolute().as_uri()}/iceberg')}.`{table.name}`"
        return f"delta.`{self.root.absolute().as_uri()}/{table.name}`"

    def in_version(self, table: Table, before: int) -> int:
        """How many rows there were, this many versions before the last."""
        name = self.whole(table)
        if self.place.format == "iceberg":
            found = self.spark.table(f"{name}.snapshots").orderBy("committed_at").collect()
            version = found[-1 - before].snapshot_id
        else:
            version = self.spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0].version - before
        return self.spark.sql(f"SELECT 1 FROM {name} VERSION AS OF {version}").count()

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


def test_readers_of_the_format_have_the_rows_of_the_directory(directory: Directory) -> None:
    counts = []
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
        directory.check()
        counts.append(len(directory.here(COMMITS)))
    before = {table.name: versions(directory, table) for table in (COMMITS, GROUP_RECORDS)}
    assert directory.snapshot() == []
    directory.check()
    assert {table.name: versions(directory, table) for table in (COMMITS, GROUP_RECORDS)} == before
    assert [directory.in_version(COMMITS, back) for back in (2, 1, 0)] == counts
    assert directory.snapshot(from_start=True) == []
    directory.check()


def test_no_row_is_written_twice_and_no_job_more_is_run(directory: Directory) -> None:
    directory.commit_some()
    assert directory.snapshot() == []
    jobs = directory.spark.sparkContext.statusTracker().getJobIdsForGroup
    before = set(jobs(None))
    directory.commit_some()
    assert directory.snapshot() == []
    assert len(set(jobs(None)) - before) == 5  # as without a format
    copies = [*(directory.root / directory.place.format).rglob("*.parquet")]
    assert copies == []


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_a_run_that_ends_in_the_midst_is_made_up_for(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    """At each of the format's commits, before and after it."""
    directory.commit_some()
    assert directory.snapshot() == []
    real = format_log.FormatLog._update
    for number in (1, 5, 9):
        directory.commit_some()
        left = [number]

        def update(own: format_log.FormatLog, wanted: Listed, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0 and is_after:
                real(own, wanted)
            if left[0] <= 0:
                raise SourceError("killed")
            real(own, wanted)

        with monkeypatch.context() as patch:
            patch.setattr(format_log.FormatLog, "_update", update)
            assert [text for text in directory.snapshot() if "killed" in text]
        if number != 5:  # else the next run has two refreshes to make up for
            assert directory.snapshot() == []
            directory.check()
    assert directory.snapshot() == []
    directory.check()


def test_what_other_programs_change_is_taken_back(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    """And stays, when the versions of before go."""
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
    wanted = directory.there(COMMITS)
    directory.spark.sql(f"DELETE FROM {directory.whole(COMMITS)} WHERE group_id = 'one-{directory.topic}'")
    directory.spark.sql(f"DELETE FROM {directory.whole(LAG)}")
    assert set(directory.there(COMMITS)) < set(wanted)
    assert directory.snapshot() == []
    directory.check()
    assert set(wanted) <= set(directory.there(COMMITS))
    monkeypatch.setattr(format_log, "TABLES", (COMMITS,))
    with open_output(directory.spark, str(directory.root)) as output:
        assert output.format_log is not None
        output.format_log.purge()
    directory.check()


def test_merged_files_are_no_new_rows_for_those_who_follow_a_table(directory: Directory) -> None:
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
    with open_output(directory.spark, str(directory.root)) as output:
        assert output.merge(COMMITS, many=2) >= 2
        assert output.format_log is not None
        output.format_log.update()
    directory.check()
    if directory.place.format == "iceberg":
        last = directory.spark.table(f"{directory.whole(COMMITS)}.snapshots").orderBy("committed_at").collect()[-1]
        assert last.operation == "replace"
    else:
        log = sorted((directory.root / "commits/_delta_log").glob("*.json"))[-1].read_text()
        assert '"dataChange":false' in log
        assert '"dataChange":true' not in log


def test_versions_are_kept_for_a_time(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        directory.commit_some()
        assert directory.snapshot() == []
    folder = directory.root / "lag"
    assert len([*folder.glob("*.parquet")]) >= 3
    monkeypatch.setattr(format_log, "_TIDY_MS", 0)
    monkeypatch.setattr(format_log, "TABLES", (COMMITS, LAG))
    directory.commit_some()
    assert directory.snapshot(lake=LakeChoice(directory.place, 0.0001)) == []
    left = {path.name for path in folder.glob("*.parquet")}
    assert set(Stored(str(directory.root)).files["lag"]) <= left
    assert len(left) <= 2  # Iceberg: what the last version replaced goes with it
    assert directory.there(COMMITS) == directory.here(COMMITS)
    assert directory.there(LAG) == directory.here(LAG)


def test_of_old_days_the_state_stays(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        directory.commit_some()
        assert directory.snapshot(keep_days=3) == []
    wanted = {table: directory.here(table) for table in (CURRENT_OFFSETS, GROUPS)}
    last = state_of(directory.rows(COMMITS))
    assert 0 < len(last) < len(directory.rows(COMMITS))
    with monkeypatch.context() as patch:  # a run in five days
        now_ns = time.time_ns()
        patch.setattr("groupkeeper.pipeline.jobs.refresh.time.time_ns", lambda: now_ns + 5 * 86_400 * 10**9)
        patch.setattr(format_log.FormatLog, "_expire", lambda *rest: None)  # is tested above
        assert directory.snapshot() == []
        assert sorted((row["log_partition"], row["log_offset"]) for row in directory.rows(COMMITS)) == last
        assert directory.snapshot(from_start=True) == []
    assert {table: directory.here(table) for table in wanted} == wanted
    directory.check()


def test_columns_that_a_table_lacks_come_to_it(spark: SparkSession, lake_format: str, tmp_path: Path) -> None:
    """As an earlier version has left it."""
    older = RATES._replace(columns=RATES.columns[:-1])
    row = dict.fromkeys(RATES.names)
    output = Output(spark, str(tmp_path), LocalFiles(tmp_path))
    (tmp_path / "rates").mkdir()
    lake = open_lake(spark, LakePlace(lake_format), tmp_path.as_uri(), output.facts)
    files: list[str] = []
    for number, table in enumerate((older, RATES), 1):
        before = [*files]
        files.append(f"{number:010}-000.parquet")
        pq.write_table(pa.Table.from_pylist([row], table.arrow), tmp_path / "rates" / files[-1])
        lake.update(Listed(table, "history", number, [*files], before))
    assert lake.read(RATES).toArrow().cast(RATES.arrow).to_pylist() == [row, row]


def test_what_is_not_of_the_directory_is_refused(directory: Directory) -> None:
    """A table of someone else, and one of a history that began before this one."""
    directory.commit_some()
    assert directory.snapshot() == []
    other = {"delta": "iceberg", "iceberg": "delta"}[directory.place.format]
    with pytest.raises(SourceError, match=f"followed by {directory.place.format}, not by {other}"):
        directory.snapshot(lake=LakeChoice(LakePlace(other)))
    with open_output(directory.spark, str(directory.root)) as output:
        lake = open_lake(directory.spark, directory.place, directory.root.absolute().as_uri(), output.facts)
    with pytest.raises(SourceError, match="is of another directory, or of this one before it was emptied"):
        lake.update(Listed(LAG, "another", 9, [], []))
