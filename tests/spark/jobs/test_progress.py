"""`groupkeeper pipeline snapshot` and `follow` at a terminal and in a pipe: what is shown while they work."""

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.acts import commit, new_topic
from tests.cli.framework.test_terminal import Terminal
from tests.patience import until
from tests.unit.cli.pipeline.test_watch import at_terminal

from groupkeeper.broker import Broker
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.runtime.executors import Stage, stage_of
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.testing.background import BackgroundBroker

PROPERTIES = {"offsets.topic.num.partitions": "8", "log.cleaner.enable": "false"}
PER_BATCH = 1000
AT_ONCE_S = 1.0


def show(text: str) -> str:
    """A regular expression for a progress line."""
    return r"\r\x1b\[K" + text


def test_something_is_shown_within_a_second() -> None:
    """Also when the cluster does not answer; the best of some tries, as other work may keep the machine busy."""
    tries: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        while len(tries) < 5 and min(tries, default=AT_ONCE_S) >= AT_ONCE_S:
            began = time.monotonic()
            terminal = Terminal("pipeline", "snapshot", "--bootstrap-server", address, "--tables", "/nowhere/tables")
            terminal.read("asking the clusters")
            tries.append(time.monotonic() - began)
            terminal.press("\x03")
            assert terminal.end() == 130
            assert terminal.shown.endswith("interrupted\r\n")
    assert min(tries) < AT_ONCE_S, tries


class Seen(Screen):
    """Notes how much of the records is said to be read, each time that somebody could look."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self.stages: list[Stage] = []
        self.stage = lambda: self._note(stage_of(spark))

    def _note(self, stage: Stage | None) -> Stage | None:
        if stage is not None:
            self.stages.append(stage)
        return stage


def write_commits(directory: Path, records: int) -> None:
    """So many in a broker's offsets topic."""

    async def write() -> None:
        async with Broker(directory=directory, properties=PROPERTIES) as broker:
            broker.groups.ensure_topic()
            now_ms = broker.now_ms()
            for number in range(records // PER_BATCH):
                group_id = f"group-{number % 8}"
                commits = [
                    Record(*encode_record(Entry(m.OffsetCommitKey(group_id, "orders", each % 9), value)), (), now_ms)
                    for each, value in enumerate([m.OffsetCommitValue(number, 3, "", now_ms)] * PER_BATCH)
                ]
                broker.groups.shard_of(group_id).log.append(write_batch(commits), now_ms)

    asyncio.run(write())


def hear(terminal: int, shown: list[bytes]) -> None:
    """Whatever a terminal shows, until nobody writes to it any more."""
    with contextlib.suppress(OSError):  # Linux says so that it is closed
        while text := os.read(terminal, 65536):
            shown.append(text)


@pytest.mark.conformance
@pytest.mark.timeout(400)
def test_rates_and_time_left_while_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    write_commits(tmp_path / "data", 480_000)
    with BackgroundBroker(directory=tmp_path / "data", properties=PROPERTIES) as broker, at_terminal() as terminal:
        screen = Seen(spark)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "cluster": "c",
            "maxRecordsPerPartition": "8000",
        }
        shown: list[bytes] = []
        threading.Thread(target=hear, args=(terminal, shown), daemon=True).start()
        with screen.shown():
            summary = snapshot(spark, options, str(tmp_path / "tables"), screen)
            screen.say("that is all")
        until(lambda: b"that is all" in b"".join(shown))
    assert (summary.problems, summary.new_rows["commits"]) == ([], 480_000)
    text = b"".join(shown).decode()
    rates = re.findall(show(r"reading 480 k records, (\d+)%, ([\d.,]+)( k| M)?/s, [^(%]+ left \("), text)
    assert len(rates) >= 2, text
    shares = [int(share) for share, _, _ in rates]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 100
    assert screen.stages[0].tasks >= 30
    assert "commits: 480,000 new rows\r\n" in text


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_commands_at_a_terminal_and_in_a_pipe(servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cli.framework.test_terminal.PATIENCE_S", 240.0)
    commit(servers, "watched", {(new_topic(servers), 0): 1})
    place = ["--bootstrap-server", f"c={servers}", "--tables", str(tmp_path / "tables")]
    terminal = Terminal("pipeline", "snapshot", *place)
    assert terminal.end() == 0, terminal.shown
    shown = terminal.shown
    assert re.search(r"cluster c: \d+ partitions, [\d,]+ records? at most\r\n", shown)
    assert len(set(re.findall(show(r"starting Spark \((\d+) s\)"), shown))) >= 2, shown  # the line goes on meanwhile
    assert re.search(show(r"making \d+ tables \("), shown)
    assert re.search(r"done in [\d.]+ s\r\n$", shown)

    follow = Terminal("pipeline", "follow", "--interval", "1s", *place)
    commit(servers, "watched", {(new_topic(servers), 0): 2})
    follow.read("\r\x1b[Kwaiting for more (")
    follow.press("\x03")
    assert follow.end() == 0, follow.shown

    words = [sys.executable, "-m", "groupkeeper", "pipeline", "snapshot", *place]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'tables'}\n"), done.stderr
    assert not re.search(r"[\x1b\r]|left|%", done.stderr)
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()[:3]] == ["asking", "cluster", "starting"]
