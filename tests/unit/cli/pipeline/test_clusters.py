"""What the options that name clusters become for the pipeline's source, and asking those clusters."""

import asyncio
import gc
import json
from argparse import Namespace
from pathlib import Path

import pytest

from groupkeeper.cli.framework.commands import parser
from groupkeeper.cli.framework.context_files import Context, write
from groupkeeper.cli.framework.values import NamedCheckpoint
from groupkeeper.cli.main import main
from groupkeeper.cli.pipeline.family import _planned, source_of
from groupkeeper.cli.pipeline.report import _ways
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.shell import Way
from groupkeeper.testing.background import BackgroundBroker


def test_tables_are_of_what_is_committed_whatever_consumers_read() -> None:
    config = {"isolation.level": "read_uncommitted", "client.id": "me"}
    asked = Namespace(servers=[("a", "h:1"), ("b", "h:2")], contexts=[], command_config=config, timeout=None)
    clusters = json.loads(source_of(asked)["clusters"])
    for each in clusters if isinstance(clusters, list) else clusters.values():
        assert each["kafka.client.id"] == "me"
        assert "kafka.isolation.level" not in each
    alone = Namespace(servers=[(None, "h:1")], contexts=[], command_config=config, timeout=None)
    assert source_of(alone) == {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "me"}


def test_commands_in_the_report_reach_the_clusters_as_they_were_named() -> None:
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "east=h:1", "--property", "client.id=me"]
    options = parser(words).parse_args(words)
    options.words = words
    assert _ways(options, {})["east"].options == ("--bootstrap-server", "h:1", "--property", "client.id=me")


def test_a_cluster_that_is_called_by_its_id_and_one_of_a_context_are_reached_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(Context("west", "w:1", None, {}))
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "h:1"]
    options = parser(words).parse_args(words)
    options.words = words
    ways = _ways(options, {0: "iIZoc6suTz"})
    assert ways == {"iIZoc6suTz": Way(("--bootstrap-server", "h:1"), "h:1"), "west": Way(("--context", "west"), "w:1")}


def test_a_cluster_that_is_named_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "a=h:1", "--bootstrap-server", "b=h:2"]
    words += ["--bootstrap-server", "a=h:3"]
    options = parser(words).parse_args(words)
    with pytest.raises(SystemExit):
        source_of(options)
    assert capsys.readouterr().err.endswith("error: cluster names must differ: a is given twice\n")


def test_asking_clusters_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """A failure that was never taken is written to standard error with its traceback, once garbage is collected."""
    with BackgroundBroker() as broker:
        options = parse_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "rows": "decoded"})
        asyncio.run(_planned(options, Screen()))
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("given", ["chk/*", "name=chk"])
def test_the_cluster_of_a_checkpoint_is_asked_for_where_there_are_two(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pipeline", "snapshot", "--tables", "t", "--bootstrap-server", "east=h:1", "--bootstrap-server", "w=h:2"]
    with pytest.raises(SystemExit):
        main([*words, "--checkpoint", given])
    _, _, example = capsys.readouterr().err.strip().rpartition(" ")
    found = parser(words).parse_args([*words, "--checkpoint", example]).checkpoints
    assert found == [NamedCheckpoint("east", None if given == "chk/*" else "name", given.removeprefix("name="))]
