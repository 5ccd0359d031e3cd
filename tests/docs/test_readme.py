"""The README's commands and programs are run as they are printed, against a broker started for them."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupkeeper.demo import stage, traffic

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PRINTED_ADDRESS = "localhost:9092"
BROKER_COMMAND = "groupkeeper broker"


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("#")]


PROGRAMS = [block for block in blocks("python") if "def test_" not in block]
TESTING = (ROOT / "docs/testing.md").read_text()
TEST_MODULES = [block for text in (README, TESTING) for block in blocks("python", text) if "def test_" in block]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker with the topics and the groups that the README speaks of."""
    with stage.running_broker() as bootstrap:
        sent = traffic.past_hours(int(time.time() * 1000))[::20]
        traffic.create_topics(bootstrap)
        traffic.produce(bootstrap, sent)
        for group_id in ("billing", "shipping"):
            traffic.read_in_group(bootstrap, group_id, len(sent))
        yield bootstrap


def run(command: list[str] | str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env={**environment(), "XDG_CONFIG_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_there_is_something_to_run() -> None:
    assert len(commands()) > 8
    assert PROGRAMS
    assert TEST_MODULES


def test_commands_run_in_order(address: str, tmp_path: Path) -> None:
    for command in commands():
        if command.startswith(BROKER_COMMAND):
            continue
        # The commands of `groupkeeper` know the address from the context that is added first.
        assert PRINTED_ADDRESS in command or command.startswith(("groupkeeper groups ", "groupkeeper history"))
        ended = run(command.replace(PRINTED_ADDRESS, address), tmp_path)
        assert (ended.returncode, "Error" in ended.stdout + ended.stderr) == (0, False), (command, ended)


def test_broker_commands_start_a_broker_that_stops_cleanly(tmp_path: Path) -> None:
    for command in commands():
        if not command.startswith(BROKER_COMMAND):
            continue
        free = shlex.split(re.sub(r"--port \d+", "--port 0", command))
        broker = subprocess.Popen(
            free, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert stage.wait_for_address(broker)
            broker.terminate()
            _, errors = broker.communicate(timeout=10)
        finally:
            broker.kill()
        assert (broker.returncode, "Traceback" in errors) == (0, False), errors


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, address: str, tmp_path: Path) -> None:
    ended = run([sys.executable, "-c", program.replace(PRINTED_ADDRESS, address)], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


@pytest.mark.parametrize("module", TEST_MODULES)
def test_test_modules_pass(module: str, tmp_path: Path) -> None:
    (tmp_path / "test_printed.py").write_text(module)
    ended = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_printed.py"], tmp_path)
    assert ended.returncode == 0, ended.stdout
