"""The drop-in commands print on the embedded broker what the official tools printed on Apache Kafka.

The recordings are made by `python -m tools.record_cli`.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.golden import Output
from tests.cli.recorded import STAGES, differing
from tests.cli.stages import SETTINGS, Stage, set_up

from groupkeeper.cli.dropin import (
    kafka_consumer_groups,
    kafka_get_offsets,
    kafka_groups,
    kafka_share_groups,
    kafka_streams_groups,
)
from groupkeeper.cli.java.releases import VARIABLE
from groupkeeper.testing.background import BackgroundBroker

MAIN_BY_TOOL = {
    "kafka-consumer-groups": kafka_consumer_groups.main,
    "kafka-groups": kafka_groups.main,
    "kafka-get-offsets": kafka_get_offsets.main,
    "kafka-share-groups": kafka_share_groups.main,
    "kafka-streams-groups": kafka_streams_groups.main,
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


# K88-50, K88-51, K88-52, K1099-50 … K1099-62, K1099-70 … K1099-82, K496-50 … K496-59, K518-40 … K518-46,
# K122-70 … K122-87, K1099-X2
def test_output_is_the_official_tools(
    standing: Standing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, standing.stage.release)

    def run(tool: str, words: Sequence[str]) -> Output:
        return Output(MAIN_BY_TOOL[tool](words), *capsys.readouterr())

    assert differing(*standing, run) == {}
