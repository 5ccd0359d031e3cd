"""What is said while a job of the pipeline runs."""

from __future__ import annotations

import os
import re
import sys

import pytest

from groupkeeper.cli.pipeline_watch import Screen
from groupkeeper.pipeline.jobs.watch import Problem


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


def test_a_line_at_a_terminal_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with open(theirs, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        screen = Screen()
        screen.tasks = lambda: (1, 4)
        with screen.shown():
            screen.reading(2_000_000)
            text = ""
            while not text.endswith(")"):  # a read waits for the next half second's line
                text += os.read(ours, 4096).decode()
            screen.say("a line that stays")
            while "stays\r\n" not in text:
                text += os.read(ours, 4096).decode()
    os.close(ours)
    assert re.search(r"\r\x1b\[Kreading 2 M records, 25%, [\d.]+( [kM])?/s, .+ left \(.+\)\r", text)
    assert "\r\x1b[Ka line that stays\r\n" in text
