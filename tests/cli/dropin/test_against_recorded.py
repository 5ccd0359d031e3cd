"""The drop-in commands print on the embedded broker what the official tools printed on Apache Kafka.

The recordings are made by `python -m tools.record_cli`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli import golden
from tests.cli.golden import Output
from tests.cli.stages import GOLDENS, SETTINGS, STAGES, Stage, arguments, put_back, set_up, tool_of

from groupkeeper.cli.dropin import kafka_consumer_groups, kafka_get_offsets, kafka_groups, kafka_share_groups
from groupkeeper.testing.background import BackgroundBroker

MAIN_BY_TOOL = {
    "kafka-consumer-groups": kafka_consumer_groups.main,
    "kafka-groups": kafka_groups.main,
    "kafka-get-offsets": kafka_get_offsets.main,
    "kafka-share-groups": kafka_share_groups.main,
}


class Standing(NamedTuple):
    """A stage that is set up."""

    stage: Stage
    servers: str
    folder: Path


@pytest.fixture(scope="module", params=STAGES, ids=lambda stage: stage.name)
def standing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with BackgroundBroker(properties=SETTINGS) as broker:
        folder = tmp_path_factory.mktemp("stage")
        asyncio.run(set_up(request.param, broker.bootstrap_servers, folder))
        yield Standing(request.param, broker.bootstrap_servers, folder)


def has_hash_order(command: str) -> bool:
    """Whether the official tool prints rows in the order of a hash table."""
    return "--list" in command or "--reset-offsets" in command or "--delete " in command


def sorted_lines(run: Output) -> tuple[int, list[str], list[str]]:
    return run.status, sorted(run.output.split("\n")), sorted(run.errors.split("\n"))


# K88-50, K88-51, K88-52, K1099-50 … K1099-62, K1099-70 … K1099-82, K496-50 … K496-59, K518-40 … K518-46,
# K122-70 … K122-87
def test_output_is_the_official_tools(standing: Standing, capsys: pytest.CaptureFixture[str]) -> None:
    stage, servers, folder = standing
    recorded = golden.read((GOLDENS / f"{stage.name}.txt").read_text())
    assert list(recorded) == list(stage.commands), "record the stage again"
    differing = {}
    for command in stage.commands:
        status = MAIN_BY_TOOL[tool_of(command)](arguments(command, servers, folder))
        ours = Output(status, *capsys.readouterr()).comparable(servers, folder)
        theirs = recorded[command]
        if has_hash_order(command):
            same = sorted_lines(ours) == sorted_lines(theirs)
        else:
            same = ours == theirs
        if not same:
            differing[command] = (theirs, ours)
        if command.startswith("!"):
            asyncio.run(put_back(stage, servers))
    assert differing == {}
