"""How Spark's settings come together, and what is said when Spark does not start."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from groupkeeper.pipeline import session
from groupkeeper.pipeline.errors import SourceError, killed_for, last_reason
from groupkeeper.pipeline.session import fixed_settings, merged_settings, start_session

DRIVER, EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"


def test_given_settings_win() -> None:
    ours = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
    given = {"spark.driver.memory": "4g", "spark.jars.packages": "a:b:1"}
    assert merged_settings(ours, given) == {**ours, **given}
    assert merged_settings(ours, {}) == ours


@pytest.mark.parametrize("key", [DRIVER, EXECUTOR])
def test_options_for_java_stand_after_ours(key: str) -> None:
    given = {key: "-Done=2 -Dtwo='a  b'"}
    assert merged_settings({key: "-Done=1 -Xmn256m"}, given) == {key: "-Done=1 -Xmn256m -Done=2 -Dtwo='a  b'"}
    assert merged_settings({}, {key: "-Done=2"}) == {key: "-Done=2"}


def test_java_is_told_one_collector() -> None:
    ours = {DRIVER: "-Done=1 -XX:+UseSerialGC -Xmn256m", EXECUTOR: "-XX:+UseSerialGC"}
    found = merged_settings(ours, {DRIVER: "-XX:+UseG1GC", EXECUTOR: "-Dtwo=2"})
    assert found == {DRIVER: "-Done=1 -Xmn256m -XX:+UseG1GC", EXECUTOR: "-XX:+UseSerialGC -Dtwo=2"}


def test_what_a_server_has_for_good() -> None:
    names = ["spark.executor.memory", "spark.sql.shuffle.partitions", "spark.sql.catalog.mine", "spark.hadoop.fs.x"]
    known = {"spark.sql.shuffle.partitions"}
    assert fixed_settings(names, known.__contains__) == ["spark.executor.memory", "spark.hadoop.fs.x"]


def test_a_master_that_is_not_there_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several one is enough, but there is none."""
    monkeypatch.setattr(session, "_is_running", lambda: False)  # other tests of this process may have started Spark
    with socket.socket() as one, socket.socket() as two:  # taken, but nobody listens
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        free, other = (each.getsockname()[1] for each in (one, two))
        master = f"spark://127.0.0.1:{free},127.0.0.1:{other}"
        with pytest.raises(SourceError) as caught:
            start_session(master=master, log=tmp_path / "log")
    assert str(caught.value) == (
        f"no Spark master answers (127.0.0.1:{free}: Connection refused; 127.0.0.1:{other}: Connection refused): "
        "start it, or give its address with --master"
    )


@pytest.mark.parametrize("failure", [Py4JError("Gateway must be connected to send cancel cmd."), OSError(107, "gone")])
def test_an_interrupt_of_the_start_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """Py4J cleans up after it, which fails where the connection is not there yet."""

    def interrupted(settings: Mapping[str, str]) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise failure

    ended: list[bool] = []
    monkeypatch.setattr(session, "_is_running", lambda: False)
    monkeypatch.setattr(session, "_set_environment", lambda master, settings: None)
    monkeypatch.setattr(session, "_start_java", interrupted)
    monkeypatch.setattr(session, "_end_java", lambda: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        start_session(log=tmp_path / "log")
    assert ended == [True]


@pytest.mark.parametrize("more", ["", "/;user_id=me"])
def test_a_server_that_is_not_there_is_named_at_once(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SourceError) as caught:
            start_session(remote=f"sc://{place}{more}")
    assert str(caught.value) == (
        f"no Spark Connect server answers ({place}: Connection refused): start it, or give its address with --remote"
    )


REASONS = {
    "no such master": (
        (
            "WARNING: Using incubator modules: jdk.incubator.vector\n"
            "2026-11-22 12:25:25 WARN Utils: Your hostname, vm, resolves to a loopback address\n"
            "java.io.IOException: elsewhere\nCaused by: java.io.IOException: of something else\n"
            'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or local\n'
            "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)\n"
        ),
        "Master must either be yarn or local",
    ),
    "a cause": (
        (
            'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]\n'
            "\tat x\nCaused by: java.net.UnknownHostException: repo1\n\tat y\n"
        ),
        "[unresolved dependency: a#b;1: not found]: repo1",
    ),
    "a wrong option": (
        (
            "Invalid maximum heap size: -Xmxbad\nError: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.\n"
        ),
        "Invalid maximum heap size: -Xmxbad",
    ),
    "too much memory": (
        "Error occurred during initialization of VM\nCould not reserve enough space for 9KB object heap\n",
        "Could not reserve enough space for 9KB object heap",
    ),
    "what is logged last": (
        (
            "2026-11-22 12:25:44 ERROR One: first\n2026-11-22 12:25:45 ERROR SparkContext: Error initializing it.\n"
            "2026-11-22 12:25:46 WARN MetricsSystem: Stopping\n"
        ),
        "Error initializing it.",
    ),
    "warnings only": ("2026-11-22 12:25:46 WARN MetricsSystem: Stopping\n", None),
    "nothing": ("", None),
}


@pytest.mark.parametrize("case", REASONS)
def test_why_java_ended_is_in_what_it_wrote(case: str) -> None:
    log, reason = REASONS[case]
    assert last_reason(log) == reason


def test_why_a_cluster_ended_a_session() -> None:
    log = (
        "2026-11-22 12:27:13 WARN StandaloneSchedulerBackend: Application ID is not initialized yet.\n"
        "2026-11-22 12:27:13 ERROR StandaloneSchedulerBackend: Application has been killed. "
        "Reason: All masters are unresponsive! Giving up.\n"
    )
    assert killed_for(log) == "All masters are unresponsive! Giving up."
    assert killed_for("2026-11-22 12:27:13 WARN One: nothing\n") is None
