"""`groupkeeper pipeline snapshot` and `follow` at a terminal and in a pipe: what is shown while they work."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.test_terminal import Terminal

from groupkeeper.broker import Broker
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.testing.background import BackgroundBroker

PROPERTIES = {"offsets.topic.num.partitions": "8", "log.cleaner.enable": "false"}
RECORDS = 800_000
PER_BATCH = 1000
AT_ONCE_S = 1.0


def show(text: str) -> str:
    """A regular expression for a progress line."""
    return r"\r\x1b\[K" + text


def test_something_is_shown_within_a_second() -> None:
    """Also when the cluster does not answer; the best of some tries, as other work may keep the machine busy."""
    tries = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        while len(tries) < 5 and min(tries, default=AT_ONCE_S) >= AT_ONCE_S:
            began = time.monotonic()
            terminal = Terminal("pipeline", "snapshot", "--bootstrap-server", address, "--output", "/nowhere/tables")
            terminal.read("asking the clusters")
            tries.append(time.monotonic() - began)
            terminal.press("\x03")
            assert terminal.end() == 130
            assert terminal.shown.endswith("interrupted\r\n")
    assert min(tries) < AT_ONCE_S, tries


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with so many commits in its offsets topic."""
    directory = tmp_path_factory.mktemp("large")

    async def write() -> None:
        async with Broker(directory=directory, properties=PROPERTIES) as broker:
            broker.groups.ensure_topic()
            now_ms = broker.now_ms()
            for number in range(RECORDS // PER_BATCH):
                group_id = f"group-{number % 64}"
                commits = [
                    Record(*encode_record(Entry(OffsetCommitKey(group_id, "orders", each), value)), (), now_ms)
                    for each, value in enumerate([OffsetCommitValue(number, 3, "", now_ms)] * PER_BATCH)
                ]
                broker.groups.log_of(group_id).append(write_batch(commits), now_ms)

    asyncio.run(write())
    with BackgroundBroker(directory=directory, properties=PROPERTIES) as broker:
        yield broker.bootstrap_servers


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_rates_and_time_left_at_a_terminal(large: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cli.test_terminal.PATIENCE_S", 240.0)
    place = ["--bootstrap-server", f"c={large}", "--output", str(tmp_path / "tables")]
    terminal = Terminal("pipeline", "snapshot", *place)
    assert terminal.end() == 0, terminal.shown
    shown = terminal.shown
    assert f"cluster c: 8 partitions, {RECORDS} records at most\r\n" in shown
    starting = re.findall(show(r"starting Spark \((\d+) s\)"), shown)
    assert len(set(starting)) >= 2, shown  # the line goes on meanwhile
    rates = re.findall(show(r"reading 800 k records, (\d+)%, ([\d.]+)( k| M)?/s, [^(]+ left \("), shown)
    assert rates, shown
    shares = [int(share) for share, _, _ in rates]
    assert shares == sorted(shares)
    assert f"commits: {RECORDS} new rows\r\n" in shown
    assert re.search(show(r"making \d+ tables \("), shown)
    assert re.search(r"done in [\d.]+ s\r\n$", shown)

    follow = Terminal("pipeline", "follow", "--interval", "1", *place)
    follow.read("\r\x1b[Kwaiting for more (")
    follow.press("\x03")
    assert follow.end() == 0, follow.shown


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_lines_only_where_there_is_no_terminal(large: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "groupkeeper", "pipeline", "snapshot", "--bootstrap-server", f"c={large}"]
    done = subprocess.run([*words, "--output", str(tmp_path)], capture_output=True, text=True, timeout=400, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}\n"), done.stderr
    assert not re.search(r"[\x1b\r]|left|%", done.stderr)
    assert done.stderr.splitlines()[:4] == [
        "asking the clusters", f"cluster c: 8 partitions, {RECORDS} records at most", "starting Spark",
        "reading 800 k records",
    ]  # fmt: skip
