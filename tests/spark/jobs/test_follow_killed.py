"""`groupkeeper pipeline follow` as a process that is killed at random moments, while offsets are committed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.acts import new_topic
from tests.patience import until
from tests.spark.jobs.test_snapshot import places

from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(3000)]

START = [sys.executable, "-c", "import sys; from groupkeeper.cli.main import main; sys.exit(main())"]
KILLS = int(os.environ.get("PIPELINE_KILLS", "4"))
PATIENCE_S = 600


def commit_on_and_on(servers: str, topic: str, stop: threading.Event, done: list[int]) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "committer"})
    while not stop.wait(0.05):
        consumer.commit(offsets=[TopicPartition(topic, 0, len(done))], asynchronous=False)
        done.append(len(done))
    consumer.close()


def entries(tables: Path) -> int:
    """Number of the ledger's last entry."""
    return max((int(path.stem) for path in (tables / "_groupkeeper" / "ledger").glob("*.json")), default=0)


def wait_for(what: str, is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    until(lambda: is_so() or process.poll() is not None, what, within_s=PATIENCE_S)
    assert process.poll() is None, f"it ended with {process.returncode}"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(9)
    tables = tmp_path / "tables"
    committed: list[int] = []
    stop = threading.Event()
    # What compaction takes before anybody has read it is in no table: the log keeps everything here.
    properties = {"offsets.topic.num.partitions": "2", "log.cleaner.enable": "false"}
    with BackgroundBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        committing = threading.Thread(target=commit_on_and_on, args=(servers, new_topic(servers), stop, committed))
        committing.start()
        words = ["pipeline", "follow", "--bootstrap-server", f"c={servers}", "--tables", str(tables)]
        words += ["--interval", "0.2s", "--refresh", "0.5s"]
        try:
            for kill in range(KILLS + 1):
                with (tmp_path / f"run{kill}.log").open("wb") as log:
                    process = subprocess.Popen([*START, *words], stderr=log, stdout=log, start_new_session=True)
                try:
                    before = entries(tables)
                    wait_for("a batch", lambda: entries(tables) > before + 1, process)  # noqa: B023
                    if kill < KILLS:
                        time.sleep(chance.uniform(0, 1))
                        continue
                    stop.set()
                    committing.join()
                    wanted = len(committed)
                    wait_for("all rows", lambda: len(places(tables)) >= wanted, process)  # noqa: B023
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE_S) == 0
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
        finally:
            stop.set()
            committing.join()
    found = pq.read_table(tables / "commits").sort_by([("log_offset", "ascending")]).to_pylist()
    assert [row["committed_offset"] for row in found] == committed
    assert len(set(places(tables))) == len(places(tables))
