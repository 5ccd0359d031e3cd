"""`groupkeeper pipeline report` over tables on disk."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.fleet_tables import EVIL, NOW, fleet, write

from groupkeeper.cli.main import main
from groupkeeper.pipeline.report.page import page
from groupkeeper.pipeline.report.reading import read_report


def test_the_report_is_of_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = fleet(20)
    for name, more in fleet(5, cluster="west").items():
        rows[name] += more
    rows["rewinds"].reverse()  # the latest comes first all the same
    tables = write(tmp_path / "tables", rows)
    assert main(["pipeline", "report", "--tables", str(tables)]) == 0
    told = capsys.readouterr()
    assert told.out.endswith(f"\nreport: {tables}/report.html\n")
    assert "\x1b" not in told.out
    assert not told.err
    text = (tables / "report.html").read_text()
    assert "9 of 25 groups need attention; the status of 2 is unknown." in text
    assert "9 of 25 groups need attention; the status of 2 is unknown." in told.out
    assert EVIL not in text
    report = read_report(str(tables), hours=24, top=10)
    east = report.clusters[0]
    lags = [row["lag"] for row in pq.read_table(tables / "lag").to_pylist() if row["cluster"] == "east"]
    assert (east.cluster, east.groups, east.lag) == ("east", 20, sum(each or 0 for each in lags))
    rates = pq.read_table(tables / "rates").to_pylist()
    commits = [row["offset_commits"] for row in rates if row["cluster"] == "east" and row["group_id"] is None]
    assert east.commits == sum(commits) == sum(report.activity[0].commits)
    assert [(each.group_id, each.from_offset, each.to_offset) for each in report.rewinds] == [
        ("billing-0008", 142_000, 122_000), ("billing-0018", 132_000, 112_000)
    ]  # fmt: skip
    assert {(each.group_id, each.reason, each.lost) for each in report.stale if each.cluster == "west"} == set()


def test_lag_over_time_ends_at_what_was_measured(tmp_path: Path) -> None:
    report = read_report(str(write(tmp_path / "t", fleet(10))), hours=24, top=3)
    assert len(report.lag_lines) == 3
    for line in report.lag_lines:
        (group,) = [each for each in report.groups if each.group_id == line.group_id]
        assert line.points[-1] == (NOW, group.lag)
        assert line.points[0][1] == 0
        assert line.points[0][0] < line.known_from < NOW
        waiting = [lag for _, lag in line.points[-12:] if lag is not None]
        assert len(waiting) == len(line.points[-12:])
        assert waiting == sorted(waiting)


def test_bins_begin_at_round_times(tmp_path: Path) -> None:
    report = read_report(str(write(tmp_path / "t", fleet(3, minutes=1500))), hours=24, top=3)
    (activity,) = report.activity
    assert (activity.minutes, activity.begin.minute % 15, len(activity.commits)) == (15, 0, 97)
    assert report.since is not None
    assert activity.begin <= report.since
    assert (sum(activity.covered), activity.covered[0], activity.covered[-1]) == (24 * 60 + 1, 15, 1)
    per_minute = [count / minutes for count, minutes in zip(activity.commits, activity.covered, strict=True)]
    assert min(per_minute) >= 12


def test_only_what_happened_in_the_window(tmp_path: Path) -> None:
    tables = str(write(tmp_path / "t", fleet(20)))
    report = read_report(tables, hours=0.75, top=3)
    assert [each.group_id for each in report.rewinds] == ["billing-0008"]
    assert sum(report.activity[0].commits) < sum(read_report(tables, hours=24, top=3).activity[0].commits)
    assert report.since is not None
    assert (NOW - report.since).total_seconds() == 45 * 60


def test_a_group_that_loses_records_is_in_front_and_not_among_the_stale_ones(tmp_path: Path) -> None:
    rows = fleet(20)
    first, second = dict.fromkeys(row["group_id"] for row in rows["stale"])
    for row in rows["status"]:
        if row["group_id"] == second:
            row["status"] = "losing"
    report = read_report(str(write(tmp_path / "t", rows)), hours=24, top=3)
    assert (report.findings[0].kind, second) in {(each.urgency, each.group_id) for each in report.groups}
    assert {(each.group_id, each.reason) for each in report.stale} == {
        (first, "below_log_start"), (first, "idle"), (second, "idle")
    }  # fmt: skip


def test_share_groups_have_what_their_state_says(tmp_path: Path) -> None:
    rows = fleet(3)
    place = {"cluster": "east", "topic": "jobs", "done_ahead": 0, "rejected": 0, "to_redeliver": 0}
    rows["share_offsets"] = [
        {**place, "group_id": "busy", "partition": 0, "start_offset": 5, "log_end_offset": 9, "lag": 4, "rejected": 1},
        {**place, "group_id": "busy", "partition": 1, "log_end_offset": 7},
        {**place, "group_id": "done", "partition": 0, "start_offset": 9, "log_end_offset": 9, "lag": 0},
    ]
    rows["groups"] += [
        {"cluster": "east", "group_id": name, "group_type": "share", "group_state": "Stable", "members": 1,
         "partitions": 0}
        for name in ("busy", "done", "new")
    ]  # fmt: skip
    report = read_report(str(write(tmp_path / "t", rows)), hours=24, top=10)
    found = {each.group_id: each for each in report.groups}
    assert [(each.status, each.lag, each.partitions, each.unknown) for each in map(found.get, ("busy", "done", "new"))
            if each is not None] == [("unknown", 4, 2, 1), ("ok", 0, 1, 0), ("unknown", None, 0, 0)]  # fmt: skip
    assert found["busy"].rule == (
        "4 records to read, which wait for a time that is not measured for share groups; 1 record rejected, or "
        "delivered too often; no member has read 1 partition"
    )
    places = report.details["east", "busy"].partitions
    assert [(each.partition, each.committed_offset, each.lag, each.problem) for each in places] == [
        (0, 5, 4, ""), (1, None, None, "no member has read it")
    ]  # fmt: skip
    assert all(each.group_id not in found or each.group_id not in ("busy", "done") for each in report.lag_lines)


def test_what_was_aborted_or_is_in_a_transaction_is_not_going_to_be_lost(tmp_path: Path) -> None:
    rows = fleet(20)
    soon = {"retention_margin_ms": 1000, "trend": "steady", "produced_per_s": 0.0, "consumed_per_s": 0.0}
    waiting = [row for row in rows["lag"] if row["lag"]]
    for number, row in enumerate(waiting):
        row.update(soon, committed_lag_ms=(None, 5, 0)[number % 3])
    found = read_report(str(write(tmp_path / "t", rows)), hours=24, top=10).findings
    told = {
        (each.group_id, each.partition)
        for each in found
        if each.kind in ("expiring", "slipping") and each.unit == "ms left"
    }
    assert told
    assert told <= {(row["group_id"], f"{row['topic']}-{row['partition']}")
                    for row in waiting if row["committed_lag_ms"] != 0}  # fmt: skip


def test_json_has_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = str(write(tmp_path / "t", fleet(10)))
    file = tmp_path / "page.html"
    words = ["pipeline", "report", "--tables", tables, "--output-file", str(file), "--output", "json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["report"], found["problems"]) == ("pipeline-report/1", str(file), [])
    assert found["clusters"][0]["groups"] == len(found["groups"]) == 10
    assert (found["groups"][0]["status"], found["groups"][0]["urgency"]) == ("rewound", "rest")
    assert file.read_text().startswith("<!DOCTYPE html>")


def test_tables_of_an_older_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = ["lag", "status", "rewinds", "stale", "log_offsets"]
    tables = write(tmp_path / "t", fleet(10), without=without)
    assert main(["pipeline", "report", "--tables", str(tables)]) == 0
    assert "not in the directory: lag, status, rewinds, stale, log_offsets" in capsys.readouterr().out
    assert "Not known without the table lag." in (tables / "report.html").read_text()


def test_an_empty_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = write(tmp_path / "t", {})
    assert main(["pipeline", "report", "--tables", str(tables)]) == 0
    assert "There are no consumer groups." in capsys.readouterr().out


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "report", "--tables", str(tmp_path)]) == 1
    assert f"error: {tmp_path} has no tables: " in capsys.readouterr().err
    tables = write(tmp_path / "t", fleet(3))
    words = ["pipeline", "report", "--tables", str(tables), "--output-file", str(tmp_path / "away" / "page.html")]
    assert main(words) == 1
    assert "error: cannot write " in capsys.readouterr().err
    (tables / "status" / "part-0.parquet").write_bytes(b"not parquet")
    assert main(["pipeline", "report", "--tables", str(tables)]) == 1
    assert "cannot be read: " in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "report", "--tables", "hdfs://nowhere/tables"])
    assert ended.value.code == 2


def test_a_large_fleet_is_a_small_page(tmp_path: Path) -> None:
    """A further group costs its packed row and section; what is not packed has a bound."""
    sizes = {}
    for groups in (200, 600):
        tables = write(tmp_path / str(groups), fleet(groups, minutes=20))
        text = page(read_report(str(tables), hours=24, top=10))
        sizes[groups] = len(text.encode())
        assert text.count('<details class="card group"') == 50
        assert (
            max(part.partition("</section>")[0].count("<li>") for part in text.split('class="card finding"')[1:]) <= 50
        )
    assert (sizes[600] - sizes[200]) / 400 < 1_000
    assert sizes[600] < 1_000_000
