"""What kafka-streams-groups changes is journalled, and taken back."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.stages import put_back
from tests.cli.streams_stages import STREAMS_CHANGES

from groupkeeper.cli.dropin import kafka_streams_groups

STAGE = STREAMS_CHANGES


@pytest.fixture(autouse=True)
def put_back_afterwards(servers: str) -> Iterator[None]:
    yield
    asyncio.run(put_back(STAGE, servers))


def committed(run: Any, group: str) -> dict[tuple[str, int], int]:
    rows = run("groups", "offsets", group)[1]["offsets"]
    return {(row["topic"], row["partition"]): row["committed_offset"] for row in rows}


@pytest.mark.parametrize(
    ("words", "kind", "left"),
    [
        ("--reset-offsets --group calc --input-topic orders:0 --to-latest --execute", "reset", 10),
        ("--delete-offsets --group calc --input-topic orders:0", "delete-offsets", None),
        ("--delete --group calc", "delete-groups", None),
    ],
)
def test_it_is_taken_back(run: Any, groupkeeper: Any, servers: str, words: str, kind: str, left: int | None) -> None:
    before = committed(run, "calc")
    assert before["orders", 0] == 4
    assert kafka_streams_groups.main(["--bootstrap-server", servers, *words.split()]) == 0
    assert committed(run, "calc").get(("orders", 0)) == left
    [change] = groupkeeper("history")[1]["changes"]
    assert (change["kind"], change["names"], change["command"].split()[0]) == (kind, "calc", "kafka-streams-groups")
    assert run("undo", "--execute")[0] == 0
    assert committed(run, "calc") == before


@pytest.mark.usefixtures("journal")
def test_what_is_only_shown_is_not_journalled(groupkeeper: Any, servers: str) -> None:
    words = "--reset-offsets --group calc --all-input-topics --to-latest --dry-run"
    assert kafka_streams_groups.main(["--bootstrap-server", servers, *words.split()]) == 0
    assert groupkeeper("history")[1]["changes"] == []
