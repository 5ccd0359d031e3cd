"""Ctrl-C and SIGTERM end a run at any moment: their status, no traceback, no Java and no file that stays but the log of
Spark at work, which is named, tables that the next run brings up to date. A kill leaves the log only. A program of
one's own leaves it when it fails.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.acts import produce

from groupkeeper.cli.main import main

COMMITS = 300
MOMENTS_S = (0.0, 1.0, 3.0, 5.0)
"""After Spark is started: before Java listens, before the session is there, while tables are made."""


@pytest.fixture
def committed(servers: str) -> str:
    """Brokers with commits of a group, and the topic."""
    topic = "interrupted"
    produce(servers, topic, ["x"])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False})
    for offset in range(COMMITS):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()
    return servers


def started(words: list[str], temporary: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own, whose temporary files are there."""
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "groupkeeper", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def wait_for(child: subprocess.Popen[str], said: str) -> None:
    assert child.stderr is not None
    while said not in (line := child.stderr.readline()) and line:
        pass


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_interrupt_leaves_nothing_behind(
    committed: str, tmp_path: Path, is_terminal: bool, number: signal.Signals
) -> None:
    """A terminal, `timeout` and systemd interrupt all processes of the group."""
    words = ["pipeline", "snapshot", "--bootstrap-server", committed, "--tables", str(tmp_path / "tables")]
    for moment_s in MOMENTS_S:
        temporary = tmp_path / f"after {moment_s} s"
        with started(words, temporary) as child:
            try:
                wait_for(child, "starting Spark\n")
                time.sleep(moment_s)
                if is_terminal:
                    os.killpg(child.pid, number)
                else:
                    child.send_signal(number)
                # Java has the standard output, too: it ends when all have ended.
                output, errors = child.communicate(timeout=60)
            finally:
                child.kill()
        left = [f" (Spark's log: {path})" for path in temporary.iterdir()]
        if child.returncode in (0, -number):  # a quick machine; or nothing was there to be stopped yet
            assert left == []
            continue
        assert (child.returncode, output, "Traceback" in errors) == (128 + number, "", False), errors
        assert errors.endswith(f"interrupted{''.join(left)}\n"), left
    assert main(words) == 0


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", ["snapshot", "follow"])
def test_where_no_executor_comes_the_log_is_named(
    committed: str, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    """`follow` waits for what is under way, until it is told for the second time."""
    temporary = tmp_path / "temporary"
    words = ["pipeline", name, "--bootstrap-server", committed, "--tables", str(tmp_path / "tables")]
    with started([*words, "--master", "local-cluster[0,1,1024]"], temporary) as child:
        log = temporary / f"groupkeeper-spark-{child.pid}.log"
        try:
            wait_for(child, "note: no executor has taken a task")
            while "Initial job has not accepted any resources" not in log.read_text() and child.poll() is None:
                time.sleep(0.1)
            child.send_signal(number)
            if name == "follow":
                wait_for(child, "stopping after the current refresh")
                child.send_signal(number)
            _, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, errors) == (128 + number, f"interrupted (Spark's log: {log})\n")
    assert log.exists()


@pytest.mark.long
def test_what_no_executor_reads_is_left_for_the_next_run(committed: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    words = ["pipeline", "follow", "--bootstrap-server", committed, "--tables", str(tmp_path / "tables")]
    with started([*words, "--master", "local-cluster[0,1,1024]"], temporary) as child:
        try:
            wait_for(child, "note: no executor has taken a task")
            child.send_signal(signal.SIGTERM)
            _, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    said = [line.partition("Z ")[2] for line in errors.splitlines()]
    assert (child.returncode, [*temporary.iterdir()]) == (0, []), errors
    assert re.fullmatch(r"note: up to [\d,]+ new records are left for the next run", said[1]), errors


@pytest.mark.long
def test_a_second_interrupt_does_not_wait_for_a_refresh(committed: str, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    words = ["pipeline", "follow", "--bootstrap-server", committed, "--tables", str(tables)]
    with started(words, tmp_path / "temporary") as child:
        try:
            while not [*tables.glob("commits/*")] and child.poll() is None:
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            wait_for(child, "stopping after the current refresh")
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, errors[:11], errors.count("\n")) == (130, "interrupted", 1), errors
    assert main(["pipeline", "snapshot", *words[2:]]) == 0


@pytest.mark.long
def test_a_kill_leaves_the_log(committed: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    words = ["pipeline", "snapshot", "--bootstrap-server", committed, "--tables", str(tmp_path / "tables")]
    with started(words, temporary) as child:
        wait_for(child, "reading")
        child.kill()
        child.communicate(timeout=60)
    assert [each.name for each in temporary.iterdir()] == [f"groupkeeper-spark-{child.pid}.log"]


@pytest.mark.long
@pytest.mark.parametrize("ends", ["", "import sys; sys.excepthook = lambda *told: None; raise ValueError"])
def test_a_program_of_ones_own_leaves_the_log_when_it_fails(tmp_path: Path, ends: str) -> None:
    program = "from groupkeeper.pipeline.session import start_session\n"
    program += f"start_session(master='local[1]', is_short=True, has_source=False)\n{ends}\n"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    left = [*tmp_path.iterdir()]
    assert (ran.returncode, len(left)) == ((1, 1) if ends else (0, 0)), ran.stderr
    assert [line for line in ran.stderr.splitlines() if "log" in line] == [f"Spark's log: {path}" for path in left]
