"""Output that cannot be written or encoded: one line and an exit status, never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupkeeper.cli.reports import Report, as_json

FULL = Path("/dev/full")
TOOLS = {
    "groupkeeper": "main",
    "kafka-consumer-groups": "kafka_consumer_groups",
    "kafka-get-offsets": "kafka_get_offsets",
    "kafka-groups": "kafka_groups",
}


def call(line: str, redirection: str, **environment: str) -> subprocess.CompletedProcess[str]:
    tool, *words = line.split()
    program = f"from groupkeeper.cli.{TOOLS[tool]} import main; raise SystemExit(main())"
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


LINES = [
    "groupkeeper --help",
    "groupkeeper --version",
    "groupkeeper groups list --help",
    "groupkeeper groups list --output json --timeout 300 --bootstrap-server 127.0.0.1:1",
    "kafka-consumer-groups --version",
    "kafka-groups --version",
    "kafka-get-offsets --version",
    "kafka-consumer-groups --validate-regex a",
]


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("line", LINES)
def test_a_full_disk_is_one_line(line: str) -> None:
    done = call(line, f">{FULL}")
    assert (done.returncode, done.stderr) == (1, "cannot write the output: No space left on device\n")


@pytest.mark.parametrize("line", LINES)
def test_a_closed_output_is_one_line(line: str) -> None:
    done = call(line, ">&-")
    assert (done.returncode, done.stderr) == (1, "cannot write the output: Bad file descriptor\n")


def test_a_closed_standard_error_changes_no_exit_status() -> None:
    assert call("kafka-groups --list", "2>&-").returncode == 1
    assert call("groupkeeper groups list", "2>&-").returncode == 2
    assert call("kafka-groups --help", "2>&-").returncode == 1


def test_a_reader_who_has_enough_is_no_failure() -> None:
    done = call("groupkeeper --help", "| true")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["", " broker", " groups", *(f" groups {name}" for name in ("list", "reset"))])
def test_help_is_plain_ascii(line: str) -> None:
    done = call(f"groupkeeper{line} --help", "", PYTHONIOENCODING="ascii:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert "\\" not in done.stdout


def test_letters_that_the_output_lacks() -> None:
    done = call("kafka-consumer-groups --validate-regex 東京", "", PYTHONIOENCODING="ascii:strict")
    assert (done.returncode, done.stdout) == (0, "The regular expression `??` is valid.\n")


def test_json_stays_json_where_letters_are_lacking() -> None:
    report = Report("groups", ["group"], [{"group": "é東🙂"}])
    assert "é東🙂" in as_json(report)
    text = as_json(report, encoding="ascii")
    assert text.isascii()
    assert json.loads(text)["groups"] == [{"group": "é東🙂"}]
    assert json.loads(as_json(report, encoding="latin-1")) == json.loads(text)
