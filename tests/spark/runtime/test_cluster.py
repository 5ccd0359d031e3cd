"""A standalone master with two workers, whose Python does not have this package: it comes with the job, and executors
do the work on the history, however little it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from tests.spark.kafka.test_source import commit, new_topic

from groupkeeper.cli import spark_submit
from groupkeeper.pipeline.jobs.steps import Job
from groupkeeper.pipeline.runtime.java import find_java

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1800)]

PATIENCE_S = 180
WITHOUT_US = """#!/bin/sh
# Site-packages as a plain directory: what is installed for development only is not found.
PYTHONPATH="$PYTHONPATH:{packages}" exec {python} -S "$@"
"""


@contextmanager
def daemon(folder: Path, name: str, *words: str) -> Iterator[Path]:
    """A process of Spark's; gives its log."""
    log = folder / f"{name}.log"
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), *words]  # becomes Java
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def wait_for(log: Path, pattern: str) -> re.Match[str]:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := re.search(pattern, log.read_text())):
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)
    return found


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    python = tmp_path / "python"
    python.write_text(WITHOUT_US.format(packages=site.getsitepackages()[0], python=sys.executable))
    python.chmod(0o755)
    with ExitStack() as stack:
        words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = stack.enter_context(daemon(tmp_path, "master", *words))
        url = wait_for(log, r"spark://127\.0\.0\.1:\d+")[0]
        for number in (1, 2):
            words = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            words += ["--cores", "1", "--memory", "1g", url]
            worker = stack.enter_context(daemon(tmp_path, f"worker{number}", *words))
            wait_for(worker, "Successfully registered with master")
        yield url


def finished_tasks(events: Path) -> dict[str, set[str]]:
    """From Spark's event log: the executors that finished tasks, by the description of the job."""
    jobs: dict[int, str] = {}
    found: dict[str, set[str]] = {}
    for file in sorted(path for path in events.rglob("*") if path.is_file()):
        for line in file.read_text().splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("Event") == "SparkListenerJobStart":
                text = event["Properties"].get("spark.job.description", "")
                jobs |= dict.fromkeys(event["Stage IDs"], text)
            elif event.get("Event") == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
                found.setdefault(jobs[event["Stage ID"]], set()).add(event["Task Info"]["Executor ID"])
    return found


def test_snapshot_on_a_cluster(master: str, servers: str, tmp_path: Path) -> None:
    """By the command, and by spark-submit."""
    topic = new_topic(servers)
    tables, events = tmp_path / "tables", tmp_path / "events"
    to_cluster = [
        "--master",
        master,
        "--conf",
        "spark.eventLog.enabled=true",
        "--conf",
        "spark.eventLog.compress=false",
    ]
    to_cluster += ["--conf", f"spark.eventLog.dir={events.as_uri()}"]
    snapshot = ["snapshot", "--bootstrap-server", f"c={servers}", "--tables", str(tables)]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    here = ["-c", "import sys; from groupkeeper.cli.main import main; sys.exit(main())", "pipeline"]
    runs = (
        [sys.executable, *here, *snapshot, *to_cluster],
        [submit, *to_cluster, str(spark_submit.__file__), *snapshot],
    )
    # The driver is this Python, the workers' is one without the package.
    pythons = {"PYSPARK_PYTHON": str(tmp_path / "python"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    pythons["JAVA_HOME"] = str(find_java().home)
    environment = {**os.environ, **pythons, "SPARK_LOCAL_IP": "127.0.0.1"}
    for module, status in (("pyarrow", 0), ("groupkeeper", 1)):
        alone = [str(tmp_path / "python"), "-c", f"import {module}"]
        assert subprocess.run(alone, cwd=tmp_path, stderr=subprocess.DEVNULL, check=False).returncode == status
    for offset, words in zip((7, 9), runs, strict=True):
        events.mkdir()
        commit(servers, "on-a-cluster", {(topic, 0): offset})
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
        rows = pq.read_table(tables / "current_offsets").to_pylist()
        assert [row["committed_offset"] for row in rows if row["group_id"] == "on-a-cluster"] == [offset]
        found = finished_tasks(events)
        refresh = {job.value for job in Job if job is not Job.ASKED}
        assert {"reading the offsets topics", *refresh} <= set(found)
        assert set.union(*found.values()) <= {"0", "1"}, "a task ran in the driver"
        shutil.rmtree(events)
