"""What is said while a job of the pipeline runs."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import until

from groupkeeper.cli.pipeline.watch import FollowScreen, Screen
from groupkeeper.pipeline.jobs.watch import Problem
from groupkeeper.pipeline.runtime.executors import Stage


def test_lines_for_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    with screen.shown():
        screen.reading(12_345)
        screen.making(10)
        screen.table("commits", 0, is_appended=True)
        screen.table("group_records", 3, is_appended=True)
        screen.table("lag", 0)
        screen.note("gone")
        screen.problem(Problem("c", "cluster c: away"))
        screen.reading(0)
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "reading 12.3 k records", "group_records: 3 new rows", "lag: 0 rows", "note: gone", "error: cluster c: away",
        "nothing new to read",
    ]  # fmt: skip
    assert not told.out


def test_a_stage_that_gets_no_executor_is_told_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupkeeper.cli.pipeline.watch._PATIENCE_S", 0.05)
    for name in ("_INTERVAL_S", "_LOOK_S"):
        monkeypatch.setattr(f"groupkeeper.cli.pipeline.watch.{name}", 0.005)
    asked: list[int] = []

    def told(stage: Stage | None) -> int:
        screen, most = Screen(), len(asked) + 20
        screen.stage = lambda: asked.append(1) or stage  # type: ignore[func-returns-value]
        with screen.shown():
            until(lambda: len(asked) > most)
        return capsys.readouterr().err.count("note: no executor has taken a task")

    assert [told(Stage(3, 0, 2, 0)), told(Stage(3, 0, 2, 1)), told(Stage(3, 1, 2, 0)), told(None)] == [1, 0, 0, 0]


def test_a_job_without_an_end_tells_of_each_refresh(capsys: pytest.CaptureFixture[str]) -> None:
    screen = FollowScreen()
    with screen.shown():
        screen.reading(93)
        for rows in (20, 0, 10):
            screen.table("commits", rows, is_appended=True)
        screen.table("group_records", 0, is_appended=True)
        screen.problem(Problem("c", "2 of 50 partitions cannot be read"))
        for _ in range(2):
            screen.making(2)
            screen.table("lag", 7)
            screen.table("status", 9)
            screen.waiting()
        screen.waiting()  # nothing was made
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line) for line in lines)
    told = [re.sub(r" in \d\.\d s", " in 0.1 s", line.split(" ", 1)[1]) for line in lines]
    assert told == [
        "reading 93 records", "error: cluster c: 2 of 50 partitions cannot be read",
        "2 tables refreshed in 0.1 s: 30 new rows of commits", "2 tables refreshed in 0.1 s: no new rows",
    ]  # fmt: skip


@contextmanager
def at_terminal() -> Iterator[int]:
    """What standard error shows to a person is read here."""
    ours, theirs = os.openpty()
    with pytest.MonkeyPatch.context() as patch, open(theirs, "w") as stderr:
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", stderr)
        yield ours
    os.close(ours)


def read(terminal: int, until: str, text: str = "") -> str:
    while not re.search(until, text):  # a read waits for the next half second's line
        text += os.read(terminal, 4096).decode()
    return text


def test_a_line_at_a_terminal_says_how_far_it_is() -> None:
    with at_terminal() as terminal:
        screen = Screen()
        screen.stage = lambda: Stage(7, 1, 4, 1)
        with screen.shown():
            screen.reading(2_000_000)
            text = read(terminal, "left")
            screen.say("a line that stays")
            text = read(terminal, "stays\r\n", text)
    assert re.search(r"\r\x1b\[Kreading 2 M records, 25%, [\d.]+( [kM])?/s, .+ left \(.+\)\r", text)
    assert "\r\x1b[Ka line that stays\r\n" in text


def test_what_goes_on_is_shown_at_once_and_while_standard_error_is_away(tmp_path: Path) -> None:
    """As Spark's start keeps it from what Java writes."""
    with at_terminal() as terminal:
        screen = Screen()
        with screen.shown():
            screen.doing("starting Spark")
            assert read(terminal, r"\)").endswith("starting Spark (0 s)")
            kept = os.dup(sys.stderr.fileno())
            with (tmp_path / "log").open("w") as log:
                os.dup2(log.fileno(), sys.stderr.fileno())
            read(terminal, r"starting Spark \([1-9]\d* s\)")
            os.dup2(kept, sys.stderr.fileno())
            os.close(kept)
    assert not (tmp_path / "log").read_text()


def test_how_far_reading_is() -> None:
    """By the stage that reads; a stage that writes is no step back."""
    with at_terminal() as terminal:
        screen = Screen()
        with screen.shown():
            stages = iter([Stage(3, 1, 4, 1), Stage(3, 1, 4, 1), Stage(3, 2, 4, 1)])
            screen.stage = lambda: next(stages, Stage(4, 0, 2, 1))
            screen.reading(10_000_000)
            text = read(terminal, "all read")
    assert re.findall(r"records, (\d+)%", text) == ["25", "50"]  # the first was seen at once, when no time had passed


def test_nothing_but_lines_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    screen.stage = lambda: Stage(1, 1, 2, 1)
    with screen.shown():
        screen.reading(2_000_000)
        screen.waiting()
    assert capfd.readouterr().err == "reading 2 M records\n"
