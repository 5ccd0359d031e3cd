"""kafka-streams-groups on Apache Kafka, and the official tool on our broker: both as the official tool on Apache Kafka.

The quick suite has ours on our broker (tests/cli/dropin/test_against_recorded.py).
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.cli.dropin.test_against_recorded import MAIN_BY_TOOL
from tests.cli.golden import Output
from tests.cli.recorded import differing
from tests.cli.stages import SETTINGS, Stage, set_up
from tests.cli.stages_of_kafka_4_4 import STREAMS_4_4
from tests.cli.streams_stages import STREAMS, STREAMS_CHANGES
from tools.apache_kafka import NEWEST, ApacheKafka, run_tool

from groupkeeper.cli.java.releases import VARIABLE
from groupkeeper.cli.main import main
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("apache_jars"), pytest.mark.timeout(600)]


@pytest.fixture(params=[STREAMS, STREAMS_CHANGES, STREAMS_4_4], ids=lambda stage: stage.name)
def stage(request: pytest.FixtureRequest) -> Stage:
    assert isinstance(request.param, Stage)
    return request.param


@pytest.fixture
def apache(stage: Stage, tmp_path: Path) -> Iterator[str]:
    with ApacheKafka(SETTINGS, version=NEWEST) as broker:
        asyncio.run(set_up(stage, broker.bootstrap_servers, tmp_path))
        yield broker.bootstrap_servers


def test_ours_on_apache_kafka(
    stage: Stage, apache: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, stage.release)

    def run(tool: str, words: Sequence[str]) -> Output:
        return Output(MAIN_BY_TOOL[tool](words), *capsys.readouterr())

    if stage is STREAMS:
        assert main(["groups", "list", "--state", "NotReady", "--bootstrap-server", apache]) == 0
        assert "waiting" in capsys.readouterr().out
    assert differing(stage, apache, tmp_path, run) == {}


def test_the_official_tool_on_our_broker(stage: Stage, tmp_path: Path) -> None:
    def run(tool: str, words: Sequence[str]) -> Output:
        done = run_tool(tool, *words, version=stage.release)
        return Output(done.returncode, done.stdout, done.stderr)

    with BackgroundBroker(properties=SETTINGS) as broker:
        asyncio.run(set_up(stage, broker.bootstrap_servers, tmp_path))
        assert differing(stage, broker.bootstrap_servers, tmp_path, run) == {}
