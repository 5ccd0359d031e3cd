"""A broker with the stage of a module, a journal, and commands with --output json."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apache_kafka import require
from tests.cli.stages import SETTINGS, set_up
from tools.apache_kafka import ApacheKafka

from groupkeeper.broker.authorizer import RuleAuthorizer
from groupkeeper.cli.main import main
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.testing.background import BackgroundBroker

Command = Callable[..., tuple[int, Any]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module with WITH_APACHE is tested with Apache Kafka, too."""
    if "broker" in metafunc.fixturenames and getattr(metafunc.module, "WITH_APACHE", False):
        clusters = ["groupkeeper", pytest.param("apache", marks=pytest.mark.conformance)]
        metafunc.parametrize("broker", clusters, indirect=True, scope="module")


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """Two, empty."""
    with BackgroundBroker() as here, BackgroundBroker() as there:
        yield here.bootstrap_servers, there.bootstrap_servers


@pytest.fixture(scope="module")
def authorizer() -> RuleAuthorizer:
    return RuleAuthorizer(allows_without_rules=True)


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BackgroundBroker | ApacheKafka]:
    """With the module's STAGE, if it has one; its BROKER may have other arguments than the stages' settings."""
    is_apache = getattr(request, "param", "") == "apache"
    if is_apache:
        require()
    given = getattr(request.module, "BROKER", {"properties": SETTINGS})
    with ApacheKafka(SETTINGS) if is_apache else BackgroundBroker(**given) as broker:
        if hasattr(request.module, "STAGE"):
            asyncio.run(set_up(request.module.STAGE, broker.bootstrap_servers, tmp_path_factory.mktemp("stage")))
        yield broker


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """The journal of commands: the file does not exist yet."""
    journal = Journal(tmp_path / "state" / "journal.jsonl")
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(journal.path))
    return journal


@pytest.fixture
def groupkeeper(capsys: pytest.CaptureFixture[str]) -> Command:
    """A command with --output json: its status and what it printed."""

    def call(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        status = main([*words, "--output", "json"])
        return status, json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def run(servers: str, journal: Journal, groupkeeper: Command) -> Command:
    """`groupkeeper` for the brokers of the module."""
    return lambda *words: groupkeeper(*words, "--bootstrap-server", servers)
