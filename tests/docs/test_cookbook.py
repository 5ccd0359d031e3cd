"""The commands of docs/cookbook.md are run as they are printed, in their order, on two clusters."""

import json
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.acts import commit, produce
from tests.docs.test_readme import COOKBOOK_COMMANDS, run

from groupkeeper.testing.background import BackgroundBroker

DAY_OF_OFFSETS = {"offsets.retention.minutes": "1440"}  # so that they expire within two days
RECORDS, COMMITTED = 50, 30


@pytest.fixture
def addresses() -> Iterator[dict[str, str]]:
    """The clusters by their printed addresses: billing has read some of a topic in the first, the second has a copy."""
    with BackgroundBroker(properties=DAY_OF_OFFSETS) as old, BackgroundBroker() as new:
        an_hour_ago_ms = (time.time_ns() // 1_000_000) - 3_600_000
        for broker in (old, new):
            produce(broker.bootstrap_servers, "orders", map(str, range(RECORDS)), times_ms=count(an_hour_ago_ms))
        commit(old.bootstrap_servers, "billing", {("orders", 0): COMMITTED})
        yield {"localhost:9092": old.bootstrap_servers, "localhost:9093": new.bootstrap_servers}


def test_the_recipes_do_what_they_say(addresses: dict[str, str], tmp_path: Path) -> None:
    def done(command: str) -> str:
        for printed, address in addresses.items():
            command = command.replace(printed, address)
        ended = run(command, tmp_path)
        assert (ended.returncode, "rror:" in ended.stderr) == (0, False), (command, ended)
        return ended.stdout

    def committed(context: str) -> list[int]:
        rows = json.loads(done(f"groupkeeper groups offsets billing --context {context} --output json"))["offsets"]
        return [row["committed_offset"] for row in rows]

    done("groupkeeper context add here --bootstrap-server localhost:9092 --use")
    found = {}
    for command in COOKBOOK_COMMANDS:
        done(command)
        if "--execute" in command:
            found[command.split(" --")[0]] = committed("new" if "--context new" in command else "here")
    assert found == {
        "groupkeeper apply replay.json": [0],
        "groupkeeper undo": [COMMITTED],
        "groupkeeper apply move.json": [COMMITTED],
        "groupkeeper apply keep.json": [COMMITTED],
    }
