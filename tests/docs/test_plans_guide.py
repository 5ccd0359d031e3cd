"""The commands of docs/plans.md are run in order as they are printed, and the schema is the one that is written."""

from __future__ import annotations

import json
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
from groupkeeper.operations.plans import document, kip122

GUIDE = (Path(__file__).resolve().parents[2] / "docs/plans.md").read_text()
PRINTED_ADDRESS = "localhost:9092"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker with the topics and groups of the README."""
    with stage.running_broker() as bootstrap:
        sent = traffic.past_hours(int(time.time() * 1000))[::20]
        traffic.create_topics(bootstrap)
        traffic.produce(bootstrap, sent)
        for group_id in ("billing", "shipping"):
            traffic.read_in_group(bootstrap, group_id, len(sent))
        yield bootstrap


@pytest.mark.timeout(240)  # thirty commands, on a machine that may be busy
def test_commands_run_in_order(address: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GROUPKEEPER_JOURNAL": str(tmp_path / "journal.jsonl"),
    }

    def run(command: str) -> str:
        words = shlex.split(command.replace(PRINTED_ADDRESS, address))
        ended = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        assert (ended.returncode, "rror:" in ended.stderr) == (0, False), (command, ended)
        return ended.stdout

    offsets = f"groupkeeper groups offsets billing shipping --output csv --bootstrap-server {address}"
    before = run(offsets)
    for command in COMMANDS:
        run(command)
        if command.startswith("groupkeeper apply plan.json"):
            assert (run(offsets) != before) == ("--execute" in command)
        if command.startswith("groupkeeper undo --execute"):
            assert run(offsets) == before
        if "both.json --execute" in command:
            before = run(offsets)


def test_there_is_something_to_run() -> None:
    assert len(COMMANDS) > 12
    assert sum(command.startswith("groupkeeper undo --execute") for command in COMMANDS) == 2


def test_every_field_of_a_plan_is_explained() -> None:
    schema = GUIDE.partition("## The plan file")[2].partition("## kafka-consumer-group-reset")[0]
    names = document.PLAN_KEYS | document.GROUP_KEYS | document.CHANGE_KEYS | document.COMMIT_KEYS | document.TOPIC_KEYS
    missing = {name for name in names if f"`{name}`" not in schema and f'"{name}"' not in schema}
    assert missing == set()


def test_the_printed_plan_is_one() -> None:
    (text,) = blocks("json")
    plan = kip122.read(text)
    assert len(plan.offsets) == 2
    assert json.loads(kip122.write(plan)) == json.loads(text)
