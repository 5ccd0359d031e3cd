"""A report is of one set of tables, however often a run puts new ones in their places meanwhile."""

import queue
import shutil
import threading
import time
import uuid
from pathlib import Path

import pytest
from tests.fleet_tables import fleet, write

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.report.model import Report
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.ledger import Ledger
from groupkeeper.pipeline.tables import TABLES

READS = 10
PATIENCE_S = 50


def stage(root: Path, number: int) -> dict[str, str]:
    """Tables aside, of which each says in its way that it is of the set of this number."""
    rows = fleet(10, minutes=30)
    for name, column, value in (
        ("status", "rule", f"set {number}"), ("lag", "lag", number), ("groups", "members", number),
        ("rewinds", "records", number), ("stale", "lost", number),
    ):  # fmt: skip
        for row in rows[name]:
            row[column] = value
    at = f"_groupkeeper/staging/{number}"
    write(root / at, rows)
    for table in TABLES:  # as Spark does, whose names never come back
        (file,) = (root / at / table.name).iterdir()
        file.rename(file.with_name(f"part-{uuid.uuid4().hex}.parquet"))
    return {table.name: f"{at}/{table.name}" for table in TABLES}


def sets_of(report: Report) -> set[int]:
    """Of which sets the page's parts are."""
    return {
        *(int(each.rule.removeprefix("set ")) for each in report.groups),
        *(each.members for each in report.groups),
        *(each.lag or 0 for each in report.groups),
        *(each.records or 0 for each in report.rewinds),
        *(each.lost or 0 for each in report.stale if each.reason == "below_log_start"),
    }


def test_all_of_a_report_is_of_one_set(tmp_path: Path) -> None:
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    ledger.replace(stage(tmp_path, 1))
    reads: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def refresh() -> None:
        number = 1
        while True:
            number += 1
            staged = stage(tmp_path, number)
            if not reads.get(timeout=PATIENCE_S):
                return
            ledger.replace(staged)  # while the report is read

    refreshing = threading.Thread(target=refresh)
    refreshing.start()
    seen: list[set[int]] = []
    ends = time.monotonic() + PATIENCE_S
    try:
        # A busy machine may read ten times before the first of the new sets is there.
        while len(seen) < READS or (len(set.union(*seen)) == 1 and time.monotonic() < ends):
            if len(seen) < READS:
                reads.put(True)
            seen.append(sets_of(read_report(str(tmp_path), hours=24, top=3)))
    finally:
        reads.put(False)
        refreshing.join()
    assert [each for each in seen if len(each) != 1] == []
    assert len(set.union(*seen)) > 1


def test_a_set_that_a_killed_run_left_half_is_said(tmp_path: Path) -> None:
    Ledger(LocalFiles(tmp_path), str(tmp_path)).replace(stage(tmp_path, 1))
    shutil.rmtree(tmp_path / "lag")
    with pytest.raises(SourceError, match="its tables are of different times, as after a run that was killed while"):
        read_report(str(tmp_path), hours=24, top=3)
