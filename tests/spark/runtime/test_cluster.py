"""That Spark's tasks do the work, by its event logs: on one machine, and on a standalone master with two workers, whose
Python does not have this package: it comes with the job.
"""

import asyncio
import os
import re
import site
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest
from bench.pipeline_refresh import PARTITIONS
from bench.pipeline_refresh import commit as commit_all
from tests.acts import commit, new_topic
from tests.spark.runtime.evidence import files_of, run, writers_by_table

from groupkeeper.cli import spark_submit
from groupkeeper.pipeline.jobs.steps import STEPS, Job
from groupkeeper.pipeline.runtime.java import find_java
from groupkeeper.testing.background import BackgroundBroker

GROUPS = int(os.environ.get("CLUSTER_GROUPS", "3125"))
"""On the cluster, each with 32 offsets: 100,000. A measurement of 1,000,000 has 31250."""

GROUPKEEPER = [sys.executable, "-c", "import sys; from groupkeeper.cli.main import main; sys.exit(main())", "pipeline"]
WRITERS = {
    "commits": {"reading the offsets topics", "records of groups, and tombstones"},
    "group_records": {"records of groups, and tombstones"},
    **{step.table.name: {(Job.CLUSTERS if step.job is Job.ASKED else step.job).value} for step in STEPS},
}
"""The jobs whose tasks may write rows of a table."""

PATIENCE_S = 600
WITHOUT_US = """#!/bin/sh
# Site-packages as a plain directory: what is installed for development only is not found.
PYTHONPATH="$PYTHONPATH:{packages}" exec {python} -S "$@"
"""


class Cluster(NamedTuple):
    """The URL of the master, and the processes of the workers."""

    master: str
    workers: list[int]


class Daemon(NamedTuple):
    """A process of Spark's."""

    log: Path
    pid: int


@contextmanager
def daemon(folder: Path, name: str, *words: str) -> Iterator[Daemon]:
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
        yield Daemon(log, process.pid)
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
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    python = tmp_path / "python"
    python.write_text(WITHOUT_US.format(packages=site.getsitepackages()[0], python=sys.executable))
    python.chmod(0o755)
    with ExitStack() as stack:
        words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(daemon(tmp_path, "master", *words))
        url = wait_for(master.log, r"spark://127\.0\.0\.1:\d+")[0]
        workers: list[int] = []
        for number in (1, 2):
            words = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            words += ["--cores", "1", "--memory", "1g", url]
            worker = stack.enter_context(daemon(tmp_path, f"worker{number}", *words))
            workers.append(worker.pid)
            wait_for(worker.log, "Successfully registered with master")
        yield Cluster(url, workers)


def wrongly_written(writers: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """By table, jobs that should not write it."""
    return {table: others for table, jobs in writers.items() if (others := jobs - WRITERS[table])}


def without_the_package(folder: Path) -> dict[str, str]:
    """The environment of a driver that is this Python, and whose workers have `python` in the folder."""
    python = str(folder / "python")
    for module, status in (("pyarrow", 0), ("groupkeeper", 1)):
        alone = [python, "-c", f"import {module}"]
        assert subprocess.run(alone, cwd=folder, stderr=subprocess.DEVNULL, check=False).returncode == status
    pythons = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**os.environ, **pythons, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_on_one_machine_every_table_is_written_by_tasks_of_named_jobs(servers: str, tmp_path: Path) -> None:
    """README's first run, a refresh, and all tables again; without DuckDB, which readers of the tables may have."""
    (tmp_path / "without" / "duckdb").mkdir(parents=True)
    (tmp_path / "without" / "duckdb" / "__init__.py").write_text("raise ImportError('duckdb is not here')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "without")}
    topic, tables = new_topic(servers), tmp_path / "tables"
    cluster = ["--bootstrap-server", f"c={servers}", "--tables", str(tables)]
    known: list[Path] = []
    for number, command in enumerate(("report", "snapshot", "rebuild")):
        commit(servers, f"on-one-machine-{number}", {(topic, 0): number})
        ran = run([*GROUPKEEPER, command, *cluster], tmp_path / f"events{number}", environment)
        writers = writers_by_table(tables, ran, known)
        assert not wrongly_written(writers)
        assert {"commits", "current_offsets", "lag", "status", "quality"} <= writers.keys()
        known = files_of(tables)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_follow_is_one_query_whose_tables_are_written_by_tasks(servers: str, tmp_path: Path) -> None:
    """Two refreshes: of what there was, and of a commit that came while it followed."""
    topic, tables = new_topic(servers), tmp_path / "tables"
    commit(servers, "follow", {(topic, 0): 1})
    latest = 1

    def has_both() -> bool:
        nonlocal latest
        files = [*(tables / "current_offsets").glob("*.parquet")]
        offsets = pc.field("group_id") == "follow"
        found = (
            pq.read_table(tables / "current_offsets", filters=offsets)["committed_offset"].to_pylist() if files else []
        )
        if latest == 1 and found == [1]:
            latest = 2
            commit(servers, "follow", {(topic, 0): 2})
        return found == [2]

    words = [
        "follow",
        "--bootstrap-server",
        f"c={servers}",
        "--tables",
        str(tables),
        "--interval",
        "1s",
        "--refresh",
        "1s",
    ]
    ran = run([*GROUPKEEPER, *words], tmp_path / "events", {**os.environ}, until=has_both)
    writers = writers_by_table(tables, ran)
    assert not wrongly_written(writers)
    assert {"commits", "current_offsets", "lag", "status", "quality"} <= writers.keys()


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_on_a_cluster_executors_do_the_work(cluster: Cluster, tmp_path: Path) -> None:
    """By the command, and by spark-submit."""
    tables, to_cluster, environment = tmp_path / "tables", ["--master", cluster.master], without_the_package(tmp_path)
    with BackgroundBroker() as broker:
        snapshot = ["snapshot", "--bootstrap-server", f"c={broker.bootstrap_servers}", "--tables", str(tables)]
        submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
        runs = ([*GROUPKEEPER, *snapshot, *to_cluster], [submit, *to_cluster, str(spark_submit.__file__), *snapshot])
        for offset, words in enumerate(runs):
            asyncio.run(commit_all(broker.bootstrap_servers, GROUPS, offset))
            known = files_of(tables)
            ran = run(words, tmp_path / f"events{offset}", environment, cluster.workers)
            print(f"{GROUPS * PARTITIONS} offsets, while jobs ran: {ran.driver_s:.1f} s of CPU by the driver", end=", ")
            print(f"{ran.executors_s:.1f} s by executors; the driver's Python had {ran.python_mb:.0f} MB")
            offsets = pq.read_table(tables / "current_offsets")["committed_offset"]
            assert offsets.to_pylist() == [offset] * GROUPS * PARTITIONS
            assert {task.executor for task in ran.tasks} <= {"0", "1"}, "a task ran in the driver"
            assert not wrongly_written(writers_by_table(tables, ran, known))
            assert ran.executors_s > 3 * ran.driver_s
            assert ran.python_mb < 400
