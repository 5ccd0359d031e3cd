"""`groupkeeper pipeline` as processes of their own: what they write, say and return."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.acts import ask, commit, make_topic, new_topic
from tests.spark.jobs.test_snapshot import places
from tests.spark.kafka.test_source import produce

from groupkeeper.cli.main import main
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.governance.quality import check_directory
from groupkeeper.pipeline.jobs.snapshot import snapshot
from groupkeeper.pipeline.jobs.steps import Job
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1200)]

START = [sys.executable, "-c", "import sys; from groupkeeper.cli.main import main; sys.exit(main())", "pipeline"]
INTERRUPTED = 130


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*START, *words], capture_output=True, text=True, check=False, timeout=1000)


def iso(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ms // 1000)) + f".{time_ms % 1000:03}"


def test_as_of_writes_plans_that_bring_the_groups_back(servers: str, spark: SparkSession, tmp_path: Path) -> None:
    """The directory has another cluster with a group of that name, whose offsets are not in the plan."""
    topic = new_topic(servers)
    produce(servers, topic, 300)
    commit(servers, "asked-1", {(topic, 0): 10, (topic, 1): 20})
    long_names = ["asked-" + "x" * 300, "asked-" + "x" * 299 + "/"]
    for name in long_names:
        commit(servers, name, {(topic, 0): 3})
    commit(servers, "other", {(topic, 0): 1})
    then_ms = time.time_ns() // 10**6 + 5
    while time.time_ns() // 10**6 <= then_ms:
        pass
    commit(servers, "asked-1", {(topic, 0): 90})
    saved, folder, tables = tmp_path / "plan.json", tmp_path / "plans", tmp_path / "tables"
    with BackgroundBroker(properties={"offsets.topic.num.partitions": "1"}) as other:
        commit(other.bootstrap_servers, "asked-1", {(new_topic(other.bootstrap_servers), 0): 77})
        snapshot(spark, {"kafka.bootstrap.servers": other.bootstrap_servers, "cluster": "a"}, str(tables))
    words = ["as-of", "--time", iso(then_ms), "--group", "asked-*", "--save", str(saved), "--save-kip122", str(folder)]
    words += ["--save-starting-offsets", str(tmp_path / "starts")]
    done = run(*words, "--bootstrap-server", f"c={servers}", "--tables", str(tables), "--output", "json")
    assert (done.returncode, done.stderr) == (0, done.stderr), done.stderr
    told = json.loads(done.stdout)
    assert (told["schema"], told["problems"]) == ("pipeline-as-of/1", [])
    rows = pq.read_table(tables / "offsets_as_of").to_pylist()
    mine = {(row["group_id"], row["partition"]): row["committed_offset"] for row in rows if row["topic"] == topic}
    assert mine == {("asked-1", 0): 10, ("asked-1", 1): 20, ("other", 0): 1, **{(name, 0): 3 for name in long_names}}
    plans = {path.name: json.loads(path.read_text())["offsets"]["group_id"] for path in folder.iterdir()}
    assert plans.pop("asked-1.json") == "asked-1"
    assert sorted(plans.values()) == sorted(long_names)
    assert json.loads((tmp_path / "starts/asked-1.json").read_text()) == {topic: {"0": 10, "1": 20, "2": -2}}
    assert f"group asked-1: {topic}-2: nothing is committed: earliest" in done.stderr
    assert f"groupkeeper apply {saved} --execute --confirm 3 --bootstrap-server {servers}\n" in done.stderr
    assert main(["apply", str(saved), "--bootstrap-server", servers, "--execute", "--confirm", "3"]) == 0
    again = tmp_path / "again"
    assert run("snapshot", "--bootstrap-server", f"c={servers}", "--tables", str(again)).returncode == 0
    rows = pq.read_table(again / "current_offsets").to_pylist()
    now = {row["partition"]: row["committed_offset"] for row in rows if row["group_id"] == "asked-1"}
    assert now == {0: 10, 1: 20}
    where = ("--bootstrap-server", f"c={servers}", "--tables", str(tables))
    ask(servers, lambda admin: admin.delete_topics([topic]))
    make_topic(servers, topic, 3)
    done = run(*words[:5], "--save-kip122", str(tmp_path / "none"), *where)
    assert done.returncode == 1
    assert f"error: topic {topic} was deleted and created again since: its id was " in done.stderr
    assert "error: there are no committed offsets of that time to plan for: no plan is written" in done.stderr
    assert not (tmp_path / "none").exists()
    ask(servers, lambda admin: admin.delete_topics([topic]))
    done = run(*words[:5], "--save", str(saved), *where)
    assert done.returncode == 1
    assert f"error: asked-1 {topic}-1: This server does not host this topic-partition (" in done.stderr


def test_scan_time_writes_the_first_offsets(servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    produce(servers, topic, 300)
    words = ["scan-time", "--topic", topic, "--time", iso(1_700_000_000_100), "--tables", str(tmp_path)]
    done = run(*words, "--bootstrap-server", f"c={servers}")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "scan_time").to_pylist()
    with pytest.raises(SourceError, match="has no tables"):  # of groups, which could be checked
        check_directory(str(tmp_path))
    assert {row["partition"]: row["offset"] for row in rows} == {0: 34, 1: 33, 2: 34 - 1}
    missing = run(*words[:2], "no-such-topic", *words[3:], "--bootstrap-server", f"c={servers}")
    assert missing.returncode == 1
    assert "cluster c: topic no-such-topic: it does not exist" in missing.stderr


@contextmanager
def started(*words: str, says: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command once a line of it has `says`, and its lines up to this one."""
    process = subprocess.Popen([*START, *words], stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while says not in said[-1]:
            assert said[-1], said
            said.append(process.stderr.readline())
        yield process, said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_what_ctrl_c_leaves_is_gone_on_with(servers: str, tmp_path: Path) -> None:
    commit(servers, "interrupted", {(new_topic(servers), 0): 1})
    words = ["snapshot", "--bootstrap-server", f"c={servers}", "--tables", str(tmp_path)]
    with started(*words, says="reading") as (process, said):
        assert said[0] == "asking the clusters\n"  # before Spark takes its time
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, rest = process.communicate(timeout=600)
        assert process.returncode == INTERRUPTED, rest
        assert "Traceback" not in rest
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert len(set(places(tmp_path))) == len(places(tmp_path)) > 0


JOBS = {"reading the offsets topics", *(job.value for job in Job if job is not Job.ASKED)}


def test_settings_are_handed_to_spark(servers: str, tmp_path: Path) -> None:
    """Spark's own log of events tells what it runs with; Java's options are ours and the given."""
    commit(servers, "settings", {(new_topic(servers), 0): 1})
    (tmp_path / "events").mkdir()
    given = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(tmp_path / "events"),
        "spark.eventLog.compress": "false",
        "spark.driver.memory": "900m",
        "spark.driver.extraJavaOptions": "-Dmine=1 -XX:+UseParallelGC",
    }
    settings = [word for key, value in given.items() for word in ("--conf", f"{key}={value}")]
    words = ["snapshot", "--bootstrap-server", f"c={servers}", "--tables", str(tmp_path / "tables"), *settings]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    events = events_in(tmp_path / "events")
    (environment,) = [each for each in events if each["Event"] == "SparkListenerEnvironmentUpdate"]
    assert environment["System Properties"]["mine"] == "1"
    assert "log4j2.configurationFile" in environment["System Properties"]
    assert environment["Spark Properties"]["spark.driver.memory"] == "900m"
    assert set(tasks_by_job(events)) >= JOBS


def events_in(directory: Path) -> list[dict[str, Any]]:
    """What Spark has logged."""
    logs = [path for path in directory.rglob("*") if path.is_file() and "appstatus" not in path.name]
    return [json.loads(line) for path in logs for line in path.read_text().splitlines()]


def tasks_by_job(events: list[dict[str, Any]]) -> Counter[str]:
    """The numbers of tasks that have ended, by the description of their job."""
    started = [each for each in events if each["Event"] == "SparkListenerJobStart"]
    named = {number: each["Properties"]["spark.job.description"] for each in started for number in each["Stage IDs"]}
    return Counter(named[each["Stage ID"]] for each in events if each["Event"] == "SparkListenerTaskEnd")


def test_follow_is_one_streaming_query_and_its_jobs_have_names(servers: str, tmp_path: Path) -> None:
    commit(servers, "streamed", {(new_topic(servers), 0): 1})
    (tmp_path / "events").mkdir()
    words = ["follow", "--bootstrap-server", f"c={servers}", "--tables", str(tmp_path / "tables"), "--interval", "1s"]
    given = {"enabled": "true", "dir": str(tmp_path / "events"), "compress": "false"}
    settings = [word for key, value in given.items() for word in ("--conf", f"spark.eventLog.{key}={value}")]
    with started(*words, *settings, says="tables refreshed in") as (process, said):
        os.killpg(process.pid, signal.SIGTERM)  # as `timeout` and systemd do
        _, rest = process.communicate(timeout=600)
        assert process.returncode == 0, rest
    assert "Traceback" not in rest
    assert any("Spark shows its jobs at http://" in line for line in said)
    events = events_in(tmp_path / "events")
    assert set(tasks_by_job(events)) >= JOBS
    queries = {each["id"] for each in events if each["Event"].endswith("StreamingQueryListener$QueryStartedEvent")}
    assert len(queries) == 1


TROUBLES = {
    "--master local[0]": "error: Spark does not start with the master local[0]: Asked to run locally with 0 threads",
    "--master yarn": "error: Spark does not start with the master yarn: When running with master 'yarn' either ",
    "--conf spark.driver.memory=999999g": "error: Spark does not start with the master local[*]: Could not reserve eno",
    "--tables s4://b/x": "error: s4://b/x is out of reach: Hadoop knows no s4://",
    "--tables hdfs://nosuch.invalid/x": "error: hdfs://nosuch.invalid/x is out of reach: java.net.UnknownHostException",
}


@pytest.mark.parametrize("words", TROUBLES)
def test_what_only_spark_finds_out_is_told_before_clusters_are_asked(tmp_path: Path, words: str) -> None:
    where = [] if words.startswith("--tables") else ["--tables", str(tmp_path)]
    done = run("snapshot", "--bootstrap-server", "c=127.0.0.1:1", *where, *words.split())
    started, told = done.stderr.splitlines()
    assert (done.returncode, done.stdout, started) == (1, "", "starting Spark")
    assert told.startswith(TROUBLES[words])


def test_variables_that_spark_reads_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    done = run("snapshot", "--bootstrap-server", "c=127.0.0.1:1", "--tables", str(tmp_path), "--master", "local[1]")
    told = done.stderr.splitlines()[-1].partition("; Spark also reads ")[2].partition(" of the environment (its log: ")
    assert "SPARK_REMOTE" in told[0].split(", ")
