"""The examples of the README and of docs/plans.md are run as they are printed, in their order, on one broker."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apache_kafka import require
from tools.apache_kafka import ApacheKafka

from groupkeeper.demo import stage

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "docs/plans.md").read_text()
TESTING = (ROOT / "docs/testing.md").read_text()
COOKBOOK = (ROOT / "docs/cookbook.md").read_text()
PRINTED_ADDRESS = "localhost:9092"
BROKER_COMMAND = "groupkeeper broker"
ADD_CONTEXT = "groupkeeper context add"


def examples(text: str) -> list[tuple[str, str]]:
    """The language and the text of each example in its order, commands line by line; test modules are left out."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [
        (language, part)
        for language, block in found
        for part in (block.splitlines() if language == "sh" else [block])
        if part.strip() and "def test_" not in part
    ]


COMMANDS = [part for language, part in examples(README) if language == "sh"]
GUIDE_COMMANDS = [part for language, part in examples(GUIDE) if language == "sh"]
COOKBOOK_COMMANDS = [part for language, part in examples(COOKBOOK) if language == "sh"]
PROGRAMS = [part for language, part in examples(README) if language == "python"]
TEST_MODULES = [
    block
    for text in (README, TESTING, COOKBOOK)
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if "def test_" in block
]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run(command: list[str] | str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command or program in a folder, which is its user's home as well."""
    own = {"XDG_CONFIG_HOME": str(folder), "GROUPKEEPER_JOURNAL": str(folder / "journal.jsonl")}
    return subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env={**environment(), **own},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.conformance)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that is empty, as the one that the README starts."""
    if request.param == "apache":
        require()
        with ApacheKafka() as broker:
            yield broker.bootstrap_servers
        return
    with stage.running_broker() as bootstrap:
        yield bootstrap


def test_there_is_something_to_run() -> None:
    assert len(COMMANDS) > 15
    assert len(PROGRAMS) > 2
    assert len(TEST_MODULES) > 1
    assert len(GUIDE_COMMANDS) > 12
    assert sum(command.startswith("groupkeeper undo --execute") for command in GUIDE_COMMANDS) == 2


@pytest.mark.timeout(300)  # sixty commands, on a machine that may be busy
def test_the_examples_run_in_the_order_printed(address: str, tmp_path: Path) -> None:
    has_context = False
    for language, text in examples(README):
        if text.startswith(BROKER_COMMAND):
            continue
        printed = text.replace(PRINTED_ADDRESS, address)
        assert has_context or address in printed or language == "python", f"no cluster is named yet: {text}"
        ended = run(printed if language == "sh" else [sys.executable, "-c", printed], tmp_path)
        assert (ended.returncode, "rror:" in ended.stdout + ended.stderr) == (0, False), (text, ended)
        assert ended.stdout or ">" in text, text
        has_context = has_context or text.startswith(ADD_CONTEXT)
    assert_the_guide_runs(address, tmp_path)


def assert_the_guide_runs(address: str, folder: Path) -> None:
    """What docs/plans.md does goes on where the README ended."""

    def done(command: str) -> str:
        ended = run(command.replace(PRINTED_ADDRESS, address), folder)
        assert (ended.returncode, "rror:" in ended.stderr) == (0, False), (command, ended)
        return ended.stdout

    offsets = f"groupkeeper groups offsets billing shipping --output csv --bootstrap-server {address}"
    before = done(offsets)
    assert {line.split(",")[0] for line in before.splitlines()[1:]} == {"billing", "shipping"}
    for command in GUIDE_COMMANDS:
        done(command)
        if command.startswith("groupkeeper apply plan.json"):
            assert (done(offsets) != before) == ("--execute" in command)
        if command.startswith("groupkeeper undo --execute"):
            assert done(offsets) == before
        if "both.json --execute" in command:
            before = done(offsets)


def test_broker_commands_start_a_broker_that_stops_cleanly(tmp_path: Path) -> None:
    for command in COMMANDS:
        if not command.startswith(BROKER_COMMAND):
            continue
        free = shlex.split(re.sub(r"--port \d+", "--port 0", command))
        broker = subprocess.Popen(
            free, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert stage.wait_for_address(broker)
            broker.terminate()
            _, errors = broker.communicate(timeout=60)
        finally:
            broker.kill()
        assert (broker.returncode, "Traceback" in errors) == (0, False), errors


@pytest.mark.parametrize("module", TEST_MODULES, ids=range(len(TEST_MODULES)))
def test_test_modules_pass(module: str, tmp_path: Path) -> None:
    (tmp_path / "test_printed.py").write_text(module)
    ended = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_printed.py"], tmp_path)
    assert ended.returncode == 0, ended.stdout
