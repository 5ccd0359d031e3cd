"""Who moved offsets: rewinds found again in journals, and folded for the report."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fleet_tables import NOW, fleet, write

from groupkeeper.cli.main import main
from groupkeeper.cli.pipeline.report import summary_text
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.changes import ApplyResult, Head, Lost
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.pipeline.decode.privacy import DROP, Privacy
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.present.changes import journals_of, read_changes
from groupkeeper.pipeline.present.moved import with_change_columns
from groupkeeper.pipeline.report.moves import made_by, moves_of, sums
from groupkeeper.pipeline.report.reading import read_report
from groupkeeper.pipeline.tables import REWINDS

NOW_MS = int(NOW.timestamp() * 1000)
IDS = {"east": "id-east", "west": "id-west"}


def head(change_id: str, at_s: float = 0, **columns: Any) -> Head:
    given = {"cluster_id": "id-east", "kind": "reset", "user": "ana", "host": "ops1",
             "command": ("groupkeeper", "groups", "reset", "a b"), **columns}  # fmt: skip
    return Head(change_id, NOW_MS + round(at_s * 1000), **given)


def write_down(
    file: Path,
    change: Head,
    group: str,
    *moves: tuple[int, int | None, int],
    result: ApplyResult = ApplyResult.APPLIED,
    lost: tuple[Lost, ...] = (),
) -> None:
    """A change of partitions of a topic: (partition, before, after)."""
    pairs = {
        TopicPartition("orders", number): (
            None if before is None else OffsetAndMetadata(before, None, ""), OffsetAndMetadata(after, None, "")
        )
        for number, before, after in moves
    }  # fmt: skip
    journal = Journal(file)
    journal.begin(change, [(group, pairs)])
    journal.end(change.id, change.time_ms + 5, 1, result, lost)


def moved(
    number: int, before: int, after: int, at_s: float = 1, *, cluster: str = "east", place: int = 0, **columns: Any
) -> dict[str, Any]:
    return {"cluster": cluster, "group_id": "g", "topic": "orders", "partition": number, "from_offset": before,
            "to_offset": after, "records": before - after, "direction": "back" if after < before else "ahead",
            "rewind_time": NOW + timedelta(seconds=at_s), "was_empty": True, "log_partition": 0, "log_offset": place,
            **columns}  # fmt: skip


def told(folder: Path, *rows: dict[str, Any]) -> list[str | None]:
    """The ids of the changes that made these rows."""
    changes, notes = read_changes([str(folder)], IDS)
    assert not notes
    found = with_change_columns(pa.Table.from_pylist(list(rows), REWINDS.arrow), changes).to_pylist()
    by_place = {row["log_offset"]: row["change_id"] for row in found}
    assert len(found) == len(rows)
    return [by_place[row["log_offset"]] for row in rows]


def test_a_rewind_is_told_by_the_change_of_the_same_offsets_at_that_time(tmp_path: Path) -> None:
    write_down(tmp_path / "ops1" / "journal.jsonl", head("one"), "g", (0, 900, 100), (1, None, 50), (2, 10, 10))
    write_down(tmp_path / "ops2.jsonl", head("again", 600, host="ops2"), "g", (0, 900, 100))
    rows = [
        moved(0, 900, 100, place=1),
        moved(1, 700, 50, place=2),  # the offset had been removed before
        moved(0, 900, 100, 601, place=3),
        moved(0, 900, 100, 900, place=4),  # the group itself did the same once more
        moved(0, 901, 100, place=5),
        moved(0, 900, 101, place=6),
        moved(0, 900, 100, cluster="west", place=7),
        moved(0, 900, 100, 7300, place=8),
        moved(0, 900, 100, place=9, group_id="other"),
    ]
    assert told(tmp_path, *rows) == ["one", "one", "again", None, None, None, None, None, None]


def test_what_brokers_refused_was_done_by_others(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    lost = Lost("g", "orders", 0, "GROUP_IS_ACTIVE", "no")
    late = Lost("g", "orders", 1, "REQUEST_TIMED_OUT", "?")
    write_down(file, head("partly"), "g", (0, 9, 1), (1, 9, 1), (2, 9, 1), result=ApplyResult.PARTLY, lost=(lost, late))
    write_down(file, head("refused"), "g", (3, 9, 1), result=ApplyResult.REFUSED)
    write_down(file, head("share", kind="share-reset"), "g", (4, 9, 1))
    rows = [moved(number, 9, 1, place=number) for number in range(5)]
    assert told(tmp_path, *rows) == [None, "partly", "partly", None, None]


def test_what_is_known_stays_and_a_cluster_without_an_id_may_be_any(tmp_path: Path) -> None:
    write_down(tmp_path / "a.jsonl", head("x", cluster_id=None), "g", (0, 9, 1), (1, 9, 1))
    rows = [moved(0, 9, 1, place=0, change_id="earlier"), moved(1, 9, 1, place=1, cluster="west")]
    assert told(tmp_path, *rows) == ["earlier", "x"]


def test_journals_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    write_down(file, head("x"), "g", (0, 9, 1))
    with file.open("a") as opened:
        opened.write("?\n\n")
    rows, (strange, gone) = read_changes([str(file), str(tmp_path / "gone")], IDS, Privacy(hosts=DROP))
    assert strange == f"{file}: 2 lines without sense, passed over"
    assert gone.startswith(f"{tmp_path / 'gone'}: no such journal")
    (row,) = rows.to_pylist()
    assert (row["changed_by"], row["changed_on"], row["command"]) == ("ana", None, "groupkeeper groups reset 'a b'")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="the folder has no journal"):
        journals_of(str(tmp_path / "empty"))


def test_the_report_folds_an_undo_with_what_it_undid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of tables whose runs had no journal."""
    rows = fleet(3)
    rows["rewinds"] = [
        *(moved(number, 900 + number, 100, -600, place=number) for number in range(3)),
        *(moved(number, 100, 900 + number, -300, place=3 + number) for number in range(3)),
        moved(7, 50, 40, -200, place=6, was_empty=False), moved(8, 50, 40, -190, place=7, was_empty=False),
        moved(7, 50, 40, -60, place=8, was_empty=False), moved(9, 5, 900, -10, place=9, was_empty=None),
        moved(7, 40, 35, -180, place=10, was_empty=False),
    ]  # fmt: skip
    tables = write(tmp_path / "tables", rows)
    journals = tmp_path / "journals"
    write_down(journals / "a.jsonl", head("R", -600.5), "g", *((n, 900 + n, 100) for n in range(3)))
    write_down(journals / "b.jsonl", head("U", -300.5, kind="undo", undoes="R", user="bob", host="ops2",
               command=("groupkeeper", "undo", "R"), principal="User:bob", through="ops"), "g",
               *((n, 100, 900 + n) for n in range(3)))  # fmt: skip
    report = read_report(str(tables), hours=24, top=3, journals=[str(journals)])
    moves = moves_of(report.rewinds)
    assert [(each.partitions, sums(each.rewinds), made_by(each)) for each in moves] == [
        (1, (0, 895), "by the group, or a reset: no journal entry is known"),
        (1, (10, 0), "by the group, which had members: no journal entry is known"),
        (2, (25, 0), "by the group, which had members: no journal entry is known"),
        (3, (2403, 0), "reset by ana on ops1"),
    ]
    assert re.search("WHEN +GROUP +PARTITIONS", summary_text(report))
    of_two_clusters = report._replace(clusters=report.clusters * 2)
    assert re.search("WHEN +CLUSTER +GROUP +PARTITIONS", summary_text(of_two_clusters))
    ((undo,),) = [each.undone for each in moves if each.undone]
    assert made_by(undo) == "undo by bob through ops as User:bob on ops2, of R"
    words = ["pipeline", "report", "--tables", str(tables), "--journal", str(journals)]
    assert main(words) == 0
    assert "reset by ana on ops1" in capsys.readouterr().out
    page = (tables / "report.html").read_text()
    assert "<code>groupkeeper groups reset &#x27;a b&#x27;</code>" in page
    assert page.index("reset by ana") < page.index("<b>undone</b>") < page.index("<code>groupkeeper undo R</code>")
    assert main([*words, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["change_id"] for each in found["rewinds"]} == {"R", "U", None}
    assert pq.read_table(tables / "rewinds")["change_id"].null_count == 11


def test_a_journal_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "report", "--tables", str(tmp_path), "--journal", str(tmp_path)])
    assert f"argument --journal: '{tmp_path}': there is no journal" in capsys.readouterr().err
