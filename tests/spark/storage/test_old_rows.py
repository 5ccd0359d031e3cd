"""Rows that are older than is kept go; what is known of now, and of times since then, stays the same."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.acts import new_topic
from tests.spark.jobs.test_quality import BAD_KEY, BAD_VALUE, PATIENCE_S

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.jobs.as_of import as_of
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import (
    COMMITS,
    CURRENT_OFFSETS,
    EDGES,
    GROUP_RECORDS,
    GROUPS,
    LAG,
    REJECTS,
    STATUS,
    Table,
)

DAY_MS = 24 * 3600 * 1000
KEPT_DAYS = 12
OF_NOW = (CURRENT_OFFSETS, GROUPS, LAG, STATUS, EDGES, REJECTS)
MEASURED = {"measured_time", "refreshed", "first_seen", "last_seen", "found_time"}


class Log:
    """An offsets topic whose records are as old as a test wants."""

    def __init__(self, spark: SparkSession, servers: str, root: Path) -> None:
        self.spark, self.root = spark, root
        self.topic = new_topic(servers)
        self.options = {"kafka.bootstrap.servers": servers, "cluster": "c", "subscribe": self.topic}
        self.producer = Producer({"bootstrap.servers": servers})
        self.now_ms = time.time_ns() // 1_000_000

    def ago(self, days: float) -> int:
        return self.now_ms - int(days * DAY_MS)

    def commit(self, days: float, group: str, offset: int | None) -> None:
        """So many days ago; None: the offset was deleted."""
        name, at_ms = group.encode(), self.ago(days)
        key = b"\x00\x01" + len(name).to_bytes(2, "big") + name + b"\x00\x01t" + bytes(4)
        value = None
        if offset is not None:
            value = b"\x00\x03" + offset.to_bytes(8, "big") + b"\xff" * 4 + b"\x00\x00" + at_ms.to_bytes(8, "big")
        self.send(days, key, value)

    def send(self, days: float, key: bytes, value: bytes | None) -> None:
        self.producer.produce(self.topic, value, key, timestamp=self.ago(days))

    def snapshot(self, *, keep_days: int | None = None, from_start: bool = False) -> list[str]:
        assert self.producer.flush(PATIENCE_S) == 0
        found = snapshot(self.spark, self.options, str(self.root), keep_days=keep_days, from_start=from_start)
        assert found.problems == []
        return [each for each in found.notes if "old row" in each]

    def rows(self, table: Table) -> list[dict[str, object]]:
        files = [str(path) for path in (self.root / table.name).glob("*.parquet")]
        rows: pa.Table = pads.dataset(files, schema=table.arrow).to_table()
        names = [name for name in table.names if name not in MEASURED and not name.endswith("_ms")]
        return sorted(rows.select(names).to_pylist(), key=repr)

    def as_of(self, days: float) -> dict[str, int]:
        found = as_of(self.spark, self.options, str(self.root), self.ago(days), wants=lambda group: True)
        return {each.group_id: each.committed_offset for each in found.offsets.get("c", [])}

    def remove_old(self, days: float) -> dict[str, int]:
        """As a run does it after so many days."""
        with open_output(self.spark, str(self.root)) as output:
            return output.remove_old(self.ago(-days))


@pytest.fixture
def log(spark: SparkSession, servers: str, tmp_path: Path) -> Log:
    log = Log(spark, servers, tmp_path / "tables")
    log.send(30, BAD_KEY, BAD_VALUE)
    log.commit(30, "busy", 1)
    log.commit(29, "quiet", 7)
    log.commit(28, "gone", 3)
    log.commit(20, "busy", 2)
    log.commit(16, "gone", None)
    log.commit(13.5, "busy", 3)
    log.commit(10, "busy", 4)
    log.commit(1, "busy", 5)
    return log


@pytest.mark.long
def test_rows_that_are_older_go(log: Log) -> None:
    assert log.snapshot(keep_days=KEPT_DAYS) == []
    now = {table.name: log.rows(table) for table in OF_NOW}
    then = {days: log.as_of(days) for days in (11, 10.5, 5, 0)}
    assert then[11] == {"busy": 3, "quiet": 7}
    assert then[5] == {"busy": 4, "quiet": 7}

    removed = log.remove_old(1.1)
    assert removed["commits"] == 2  # 1 and 2 of busy
    assert removed.keys() == {"commits", "rates"}
    left = [(row["group_id"], row["committed_offset"]) for row in log.rows(COMMITS)]
    assert sorted(left, key=repr) == sorted(
        [("busy", 3), ("busy", 4), ("busy", 5), ("gone", 3), ("gone", None), ("quiet", 7)], key=repr
    )
    assert len(log.rows(GROUP_RECORDS)) == 1  # rejects has it for good
    assert log.remove_old(1.5) == {}  # once a day
    with pytest.raises(SourceError, match=r"rows from before \S+T00:00:00.* are gone \(--keep-rows\)"):
        log.as_of(15)

    for from_start in (False, True):
        assert log.snapshot(from_start=from_start) == []
        tables = [table for table in OF_NOW if not (from_start and table is EDGES)]  # counts what the history has
        assert {table.name: log.rows(table) for table in tables} == {table.name: now[table.name] for table in tables}
        assert {days: log.as_of(days) for days in then if days < 11} == {days: then[days] for days in then if days < 11}
    strange = [each.check_name for each in check_directory(str(log.root))[0] if each.result != "ok"]
    assert strange == ["rejects"]


def test_a_later_day_takes_what_is_old_by_then(log: Log) -> None:
    log.snapshot(keep_days=KEPT_DAYS)
    log.remove_old(1.1)
    log.commit(0, "busy", 6)
    log.snapshot()
    assert log.remove_old(4)["commits"] == 1  # 3 of busy: 4 is the state there by now
    assert log.as_of(7) == {"busy": 4, "quiet": 7}
    assert log.remove_old(1000)["commits"] == 2
    assert [row["committed_offset"] for row in log.rows(COMMITS)] == [3, None, 7, 6]
    log.snapshot(from_start=True)
    assert {row["group_id"]: row["committed_offset"] for row in log.rows(CURRENT_OFFSETS)} == {"busy": 6, "quiet": 7}


def test_nothing_goes_unless_it_was_asked_for(log: Log) -> None:
    log.snapshot()
    assert log.remove_old(1000) == {}
    log.snapshot(keep_days=KEPT_DAYS)
    log.snapshot(keep_days=0)
    assert log.remove_old(1000) == {}
    assert len(log.rows(COMMITS)) == 8


def test_a_file_without_statistics_is_read(spark: SparkSession, log: Log) -> None:
    """As Spark writes times by default."""
    log.snapshot(keep_days=KEPT_DAYS)
    for path in (log.root / COMMITS.name).glob("*.parquet"):
        pq.write_table(pq.read_table(path), path, use_deprecated_int96_timestamps=True)
    assert log.remove_old(1.1)["commits"] == 2


def test_days_begin_at_midnight(log: Log) -> None:
    log.snapshot(keep_days=KEPT_DAYS)
    log.remove_old(1.1)
    with open_output(log.spark, str(log.root)) as output:
        kept_from = datetime.fromtimestamp(output.ledger.kept_from_ms / 1000, UTC)
    today = datetime.fromtimestamp(log.ago(-1.1) / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert kept_from == today - timedelta(days=KEPT_DAYS)
