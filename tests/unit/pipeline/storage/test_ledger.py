"""The ledger of the history tables: a run that is killed at any of its steps loses nothing and doubles nothing."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.storage.files import LocalFiles
from groupkeeper.pipeline.storage.lease import Busy
from groupkeeper.pipeline.storage.ledger import ENTRIES, Ledger, Tables
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.storage.stored import Stored


class Killed(BaseException):
    """What a SIGKILL is to the one who is writing."""


class DyingFiles(LocalFiles):
    """The run dies before its step of this number, or behind it."""

    def __init__(self, root: Path, number: int, *, is_behind: bool) -> None:
        super().__init__(root)
        self._left = number
        self._is_behind = is_behind

    def write_new(self, path: str, text: str) -> bool:
        with self._step():
            return super().write_new(path, text)

    def move(self, source: str, target: str) -> None:
        with self._step():
            super().move(source, target)

    def replace(self, source: str, target: str) -> None:
        with self._step():
            super().replace(source, target)

    def remove(self, path: str) -> None:
        with self._step():
            super().remove(path)

    def _step(self) -> Step:
        self._left -= 1
        return Step(self._left == 0, self._is_behind)


class Step:
    def __init__(self, is_last: bool, is_behind: bool) -> None:
        self._dies = (is_last and not is_behind, is_last and is_behind)

    def __enter__(self) -> None:
        if self._dies[0]:
            raise Killed

    def __exit__(self, *error: object) -> None:
        if self._dies[1]:
            raise Killed


def stage(root: Path, name: str, text: str) -> str:
    path = root / "_groupkeeper" / "staging" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return f"_groupkeeper/staging/{name}"


def run(files: LocalFiles, root: Path, run_name: str, log: list[str]) -> None:
    """Append to the tables what of the log is not there, in two files."""
    ledger = Ledger(files, str(root))
    start = ledger.next_offsets.get("c", {}).get(0, 0)
    new = log[start:]
    if new:
        middle = len(new) // 2
        parts = [stage(root, f"{run_name}-{n}", "".join(part)) for n, part in enumerate((new[:middle], new[middle:]))]
        ledger.append({"commits": parts}, {"c": {0: len(log)}})


def runs(files: LocalFiles, root: Path, log: list[str]) -> None:
    for end in (5, 6, 7):
        run(files, root, f"run{end}", log[:end])


def rows(root: Path) -> str:
    return "".join(path.read_text() for path in sorted((root / "commits").glob("*.parquet")))


STEPS = 16
"""Of the runs below, which move again what was moved last."""


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("number", range(1, STEPS + 1))
def test_killed_at_any_step(tmp_path: Path, number: int, is_behind: bool) -> None:
    log = list("abcdefgh")
    run(LocalFiles(tmp_path), tmp_path, "first", log[:4])
    dying = DyingFiles(tmp_path, number, is_behind=is_behind)
    with pytest.raises(Killed):
        runs(dying, tmp_path, log)
    run(LocalFiles(tmp_path), tmp_path, "last", log)
    assert rows(tmp_path) == "abcdefgh"
    assert Ledger(LocalFiles(tmp_path), str(tmp_path)).next_offsets == {"c": {0: 8}}


def three_runs(root: Path) -> list[str]:
    """Two records each, of a log that has two more."""
    log = list("abcdefgh")
    for end in (2, 4, 6):
        run(LocalFiles(root), root, f"run{end}", log[:end])
    return log


TORN = {
    "emptied": b"",
    "cut off": b'{"id": "x", "fil',
    "zeros": bytes(300),
    "garbage": b"\xff\xfe{}",
    "other": b"[1, 2]",
}


@pytest.mark.parametrize("torn", TORN.values(), ids=TORN)
def test_after_an_entry_that_cannot_be_read_the_one_before_counts(tmp_path: Path, torn: bytes) -> None:
    log = three_runs(tmp_path)
    entries = tmp_path / ENTRIES
    (entries / "0000000003.json").write_bytes(torn)
    assert Stored(str(tmp_path)).number == 2
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert (ledger.number, ledger.next_offsets, ledger.made_to) == (2, {"c": {0: 4}}, None)
    assert f"{tmp_path}/_groupkeeper/ledger/0000000003.json cannot be read" in str(ledger.loss)
    assert (rows(tmp_path), (entries / "0000000003.json.unreadable").read_bytes()) == ("abcd", torn)
    run(LocalFiles(tmp_path), tmp_path, "last", log)
    assert rows(tmp_path) == "abcdefgh"
    assert Ledger(LocalFiles(tmp_path), str(tmp_path)).loss is None


def test_an_unreadable_entry_of_a_merge_loses_no_row(tmp_path: Path) -> None:
    log = three_runs(tmp_path)
    merge(LocalFiles(tmp_path), tmp_path, "one")
    (tmp_path / ENTRIES / "0000000004.json").write_bytes(b"")
    run(LocalFiles(tmp_path), tmp_path, "last", log)
    assert rows(tmp_path) == "abcdefgh"
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert sorted(ledger.files("commits")) == sorted(each.name for each in (tmp_path / "commits").glob("*.parquet"))


def test_where_no_entry_can_be_read_the_file_is_named(tmp_path: Path) -> None:
    run(LocalFiles(tmp_path), tmp_path, "first", list("ab"))
    (tmp_path / ENTRIES / "0000000001.json").write_bytes(b"")
    for open_it in (Stored, lambda directory: Ledger(LocalFiles(tmp_path), directory)):
        with pytest.raises(SourceError, match=r"0000000001[.]json cannot be read, and no earlier entry either"):
            open_it(str(tmp_path))
    assert rows(tmp_path) == "ab"


def merge(files: LocalFiles, root: Path, *names: str) -> None:
    """All files but the last become one; once for each name."""
    for name in names:
        ledger = Ledger(files, str(root))
        *small, last = ledger.files("commits")
        stage(root, f"{name}/0-{name}.parquet", "".join((root / "commits" / each).read_text() for each in small))
        files.link(f"commits/{last}", f"_groupkeeper/staging/{name}/{last}")
        ledger.replace({"commits": f"_groupkeeper/staging/{name}"})


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("number", range(1, 7))
def test_killed_at_any_step_of_a_merge(tmp_path: Path, number: int, is_behind: bool) -> None:
    log = three_runs(tmp_path)
    dying = DyingFiles(tmp_path, number, is_behind=is_behind)
    with pytest.raises(Killed):
        merge(dying, tmp_path, "one", "two")
    assert rows(tmp_path) == "abcdef"
    Ledger(LocalFiles(tmp_path), str(tmp_path))
    shutil.rmtree(tmp_path / "_groupkeeper" / "staging")  # as the next run does
    run(LocalFiles(tmp_path), tmp_path, "last", log)
    merge(LocalFiles(tmp_path), tmp_path, "three")
    assert rows(tmp_path) == "abcdefgh"
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert ledger.files("commits") == sorted(path.name for path in (tmp_path / "commits").iterdir())
    assert len(ledger.files("commits")) == 2


def refresh(files: LocalFiles, root: Path, run_name: str) -> None:
    """Make a table that rows are added to, with one row that is only for now, and carry all rows that were seen."""
    ledger = Ledger(files, str(root))
    made_to = ledger.made_to
    seen = next((root / "_groupkeeper" / "carried_rows").iterdir()).read_text() if made_to else ""
    fresh = ledger.fresh_files("commits") if made_to else ledger.files("commits")
    text = "".join((root / "commits" / name).read_text() for name in sorted(fresh))
    new = text[text.index(seen[-1]) + 1 :] if seen and seen[-1] in text else text
    stage(root, f"{run_name}-carried/{run_name}.parquet", seen + new)
    tables = Tables(
        {"_groupkeeper/carried_rows": f"_groupkeeper/staging/{run_name}-carried"},
        {"events": [stage(root, f"{run_name}-events", new)]},
        {"events": [stage(root, f"{run_name}-open", f"<{seen + new}>")]},
        rebuilt=() if made_to else ["events"],
    )
    ledger.refresh(tables, ledger.next_offsets)


def refreshes(files: LocalFiles, root: Path, log: list[str]) -> None:
    for end in (5, 6, 7):
        run(files, root, f"run{end}", log[:end])
        refresh(files, root, f"refresh{end}")


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("number", range(1, 38))
def test_killed_at_any_step_of_a_refresh(tmp_path: Path, number: int, is_behind: bool) -> None:
    log = list("abcdefgh")
    run(LocalFiles(tmp_path), tmp_path, "first", log[:4])
    refresh(LocalFiles(tmp_path), tmp_path, "first-refresh")
    dying = DyingFiles(tmp_path, number, is_behind=is_behind)
    with pytest.raises(Killed):
        refreshes(dying, tmp_path, log)
    run(LocalFiles(tmp_path), tmp_path, "last", log)
    refresh(LocalFiles(tmp_path), tmp_path, "last-refresh")
    texts = [path.read_text() for path in sorted((tmp_path / "events").iterdir())]
    assert "".join(text for text in texts if text[:1] != "<") == "abcdefgh"
    assert [text for text in texts if text[:1] == "<"] == ["<abcdefgh>"]
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert ledger.files("events") == sorted(path.name for path in (tmp_path / "events").iterdir())
    assert (ledger.made_to, ledger.fresh_files("commits")) == ({"c": {0: 8}}, [])


def test_rows_behind_the_instant_are_for_the_next_refresh(tmp_path: Path) -> None:
    run(LocalFiles(tmp_path), tmp_path, "first", list("ab"))
    run(LocalFiles(tmp_path), tmp_path, "second", list("abcd"))
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    first, second = ledger.files("commits")[:2], ledger.files("commits")[2:]
    ledger.refresh(Tables({}, {}, {}), {"c": {0: 2}})
    for each in (ledger, Ledger(LocalFiles(tmp_path), str(tmp_path))):
        assert each.fresh_files("commits") == second
    ledger.refresh(Tables({}, {}, {}), {"c": {0: 3}})
    assert (ledger.fresh_files("commits"), ledger.made_to) == (second, {"c": {0: 3}})
    assert ledger.files("commits") == [*first, *second]


def test_a_table_that_lost_a_file_is_made_of_the_whole_history(tmp_path: Path) -> None:
    run(LocalFiles(tmp_path), tmp_path, "first", list("ab"))
    refresh(LocalFiles(tmp_path), tmp_path, "one")
    run(LocalFiles(tmp_path), tmp_path, "second", list("abcd"))
    ledger = Ledger(LocalFiles(tmp_path), str(tmp_path))
    assert (ledger.made_to, len(ledger.fresh_files("commits"))) == ({"c": {0: 2}}, 2)
    next((tmp_path / "events").iterdir()).unlink()
    assert Ledger(LocalFiles(tmp_path), str(tmp_path)).made_to is None
    refresh(LocalFiles(tmp_path), tmp_path, "two")
    assert sorted(path.read_text() for path in (tmp_path / "events").iterdir()) == ["<abcd>", "abcd"]


def test_two_runs_do_not_write_the_same_entry(tmp_path: Path) -> None:
    one, other = (Ledger(LocalFiles(tmp_path), "DIR") for _ in range(2))
    one.append({"commits": [stage(tmp_path, "one", "a")]}, {"c": {0: 1}})
    with pytest.raises(SourceError, match="DIR: another run has written to it meanwhile: run again"):
        other.append({"commits": [stage(tmp_path, "other", "a")]}, {"c": {0: 1}})
    assert rows(tmp_path) == "a"
    with (
        LocalFiles(tmp_path).lock(),
        pytest.raises(Busy, match="another run writes to it"),
        LocalFiles(tmp_path).lock(),
    ):
        pass


class FullFiles(LocalFiles):
    """A disk on which the second file that is moved finds no room, once."""

    moved = 0

    def move(self, source: str, target: str) -> None:
        self.moved += 1
        if self.moved == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().move(source, target)


def test_files_that_could_not_be_moved_are_moved_by_the_next_append(tmp_path: Path) -> None:
    ledger = Ledger(FullFiles(tmp_path), "DIR")
    with pytest.raises(OSError, match="No space left"):
        ledger.append({"commits": [stage(tmp_path, name, name) for name in "ab"]}, {"c": {0: 2}})
    assert (rows(tmp_path), ledger.is_settled) == ("a", False)
    ledger.append({"commits": [stage(tmp_path, "c", "c")]}, {"c": {0: 3}})
    assert (rows(tmp_path), ledger.is_settled) == ("abc", True)


def test_what_is_written_aside_stays_until_it_is_in_its_place(tmp_path: Path) -> None:
    spark: Any = None  # which nothing here asks

    def fail() -> None:
        with open_output(spark, str(tmp_path)) as output:
            output.ledger = Ledger(FullFiles(tmp_path), str(tmp_path))
            output.ledger.append({"commits": [stage(tmp_path, name, name) for name in "ab"]}, {"c": {0: 2}})

    with pytest.raises(SourceError, match="cannot be written: No space left"):
        fail()
    assert rows(tmp_path) == "a"
    with open_output(spark, str(tmp_path)):
        assert rows(tmp_path) == "ab"
    assert not (tmp_path / "_groupkeeper" / "staging").exists()


def test_entries_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", str(source))

    monkeypatch.setattr(os, "link", link)
    files = LocalFiles(tmp_path)
    assert [files.write_new("deep/entry", text) for text in ("one", "two")] == [True, False]
    assert (files.read("deep/entry"), files.names("deep")) == ("one", ["entry"])


def test_partitions_are_never_taken_back(tmp_path: Path) -> None:
    """A stream does again what a run between had read already."""
    ledger = Ledger(LocalFiles(tmp_path), "DIR")
    ledger.append({}, {"c": {0: 9, 1: 5}})
    ledger.append({}, {"c": {0: 4, 1: 6}, "d": {0: 1}})
    for each in (ledger, Ledger(LocalFiles(tmp_path), "DIR")):
        assert each.next_offsets == {"c": {0: 9, 1: 6}, "d": {0: 1}}


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    run(LocalFiles(tmp_path), tmp_path, "first", ["a", "b"])
    (tmp_path / "commits" / "0000000001-001.parquet").unlink()
    with pytest.raises(SourceError, match=r"commits: the file 0000000001-001.parquet is missing: restore it"):
        Ledger(LocalFiles(tmp_path), str(tmp_path))


@pytest.mark.parametrize("is_there", [False, True])
def test_a_directory_takes_the_place_of_another(tmp_path: Path, is_there: bool) -> None:
    files = LocalFiles(tmp_path)
    for name, text in (("new", "new"), *([("groups", "old")] if is_there else [])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.parquet").write_text(text)
        (tmp_path / name / "_SUCCESS").write_text("")
    files.replace("new", "groups")
    assert [path.name for path in tmp_path.iterdir()] == ["groups"]
    assert [(path.name, path.read_text()) for path in (tmp_path / "groups").iterdir()] == [("part.parquet", "new")]
