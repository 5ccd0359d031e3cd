"""Each command ends within `--timeout` at brokers that are dead, or silent: they accept connections and say nothing."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.cli.framework.commands_of import leaves, needed

from groupkeeper.cli.dropin import (
    kafka_consumer_group_reset,
    kafka_consumer_groups,
    kafka_share_groups,
    kafka_streams_groups,
)
from groupkeeper.cli.main import main

TIMEOUT_MS = 100
SLACK_S = 25.0
"""What importing and a busy machine may add."""

WITHOUT_CLUSTER = {
    "undo": "reads the journal first, which is empty",
    "history": "reads the journal",
    "context add": "writes a file",
    "context list": "reads files",
    "context show": "reads a file",
    "context use": "writes a file",
    "context protect": "writes a file",
    "context remove": "removes a file",
    "completion": "prints a script",
    "pipeline quality": "reads tables first; there are none",
    "pipeline forget": "has tables alone",
    "broker": "is one",
    "mcp": "asks when a client does",
}
GOES_ON = {
    "serve": "tells that the cluster is away, and tries again",
    "pipeline follow": "tells that the cluster is away, and tries again",
}
ASKING = [command for command in leaves() if command not in {*WITHOUT_CLUSTER, *GOES_ON}]
DROP_INS = {
    "kafka-consumer-groups": (kafka_consumer_groups.main, "--describe --group g"),
    "kafka-share-groups": (kafka_share_groups.main, "--describe --group g"),
    "kafka-streams-groups": (kafka_streams_groups.main, "--describe --group g"),
    "kafka-consumer-group-reset": (kafka_consumer_group_reset.main, "--generate --group g"),
}
ENDS_WITH_0 = ("kafka-consumer-groups", "kafka-share-groups")
"""As the official tools do, whatever they say."""


def test_every_command_is_there() -> None:
    assert {*WITHOUT_CLUSTER, *GOES_ON} <= {*leaves()}


@pytest.fixture(scope="module")
def dead() -> str:
    """A port where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as found:
        yield f"127.0.0.1:{found.getsockname()[1]}"


@pytest.fixture(params=["dead", "silent"])
def servers(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.delenv("GROUPKEEPER_CONTEXT", raising=False)
    monkeypatch.chdir(tmp_path)


def words_of(command: str, servers: str, folder: Path, timeout: str) -> Sequence[str]:
    """The command with what it needs, files included."""
    checkpoint = folder / "checkpoint"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / "0").write_text(
        'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"t":{"0":5}}'
    )
    (checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    return [*command.split(), *needed(command, folder), "--bootstrap-server", servers, "--timeout", timeout]


@pytest.mark.parametrize("command", ASKING)
def test_a_command_ends_in_time(command: str, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of(command, servers, tmp_path, f"{TIMEOUT_MS}ms")
    began = time.monotonic()
    status = main(words)
    took_s = time.monotonic() - began
    errors = capsys.readouterr().err
    assert status == 1, errors
    assert took_s < TIMEOUT_MS / 1000 + SLACK_S
    assert "Traceback" not in errors
    last = errors.splitlines()[-1]
    assert last.startswith("error: "), errors
    assert servers in last


@pytest.mark.parametrize("name", DROP_INS)
def test_a_drop_in_ends_in_time(name: str, servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    run, arguments = DROP_INS[name]
    began = time.monotonic()
    status = run(["--bootstrap-server", servers, "--timeout", str(TIMEOUT_MS), *arguments.split()])
    took_s = time.monotonic() - began
    output, errors = capsys.readouterr()
    assert status == (0 if name in ENDS_WITH_0 else 1)
    assert re.search("timed out|connection refused", output + errors, re.IGNORECASE), (output, errors)
    assert "Traceback" not in errors
    assert took_s < TIMEOUT_MS / 1000 + SLACK_S


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=() if command in ("groups list", "pipeline snapshot") else pytest.mark.conformance)
        for command in ASKING
    ],
)
def test_an_interrupt_ends_a_command(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        words = words_of(command, f"127.0.0.1:{silent.getsockname()[1]}", tmp_path, "1h")
        with subprocess.Popen(
            [sys.executable, "-m", "groupkeeper", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            try:
                connection, _ = silent.accept()
                with connection:
                    child.send_signal(signal.SIGINT)
                    output, errors = child.communicate(timeout=60)
            finally:
                child.kill()
    has_other_end = command != "groups watch"
    assert (child.returncode, output) == (130 if has_other_end else 0, ""), errors
    assert "Traceback" not in errors
    assert "interrupted" in errors or not has_other_end
