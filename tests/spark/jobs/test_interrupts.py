"""Ctrl-C ends a run at any moment: status 130, no traceback, no Java that stays, tables that the next run brings up to
date.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from groupkeeper.cli.main import main

COMMITS = 300
MOMENTS_S = (0.0, 1.0, 3.0, 5.0)
"""After Spark is started: before Java listens, before the session is there, while tables are made."""


@pytest.fixture
def committed(servers: str) -> str:
    """Brokers with commits of a group, and the topic."""
    topic = "interrupted"
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, "x")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False})
    for offset in range(COMMITS):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()
    return servers


@pytest.mark.long
@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_interrupt_leaves_nothing_behind(committed: str, tmp_path: Path, is_terminal: bool) -> None:
    """A terminal interrupts Java, too: all processes of the group."""
    words = ["pipeline", "snapshot", "--bootstrap-server", committed, "--tables", str(tmp_path / "tables")]
    for moment_s in MOMENTS_S:
        with subprocess.Popen(
            [sys.executable, "-m", "groupkeeper", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as child:
            try:
                assert child.stderr is not None
                while child.stderr.readline() not in ("starting Spark\n", ""):
                    pass
                time.sleep(moment_s)
                if is_terminal:
                    os.killpg(child.pid, signal.SIGINT)
                else:
                    child.send_signal(signal.SIGINT)
                # Java has the standard output, too: it ends when all have ended.
                output, errors = child.communicate(timeout=60)
            finally:
                child.kill()
        if child.returncode == 0:  # a quick machine
            break
        assert (child.returncode, output, "Traceback" in errors) == (130, "", False), errors
        assert errors.endswith("interrupted\n")
    assert main(words) == 0
