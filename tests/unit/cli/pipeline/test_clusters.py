"""What the options that name clusters become for the pipeline's source, and asking those clusters."""

import asyncio
import gc
import json
from pathlib import Path

import pytest

from groupkeeper.cli.framework.commands import parse, parser
from groupkeeper.cli.framework.context_files import Context, write
from groupkeeper.cli.framework.values import NamedCheckpoint
from groupkeeper.cli.main import main
from groupkeeper.cli.pipeline.family import _planned, check_checkpoints, source_of
from groupkeeper.cli.pipeline.report import _ways
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.shell import Way
from groupkeeper.testing.background import BackgroundBroker


def test_tables_are_of_what_is_committed_whatever_consumers_read() -> None:
    config = ["--property", "isolation.level=read_uncommitted", "--property", "client.id=me"]
    words = ["pipeline", "snapshot", "--tables", "t", *config, "--bootstrap-server"]
    clusters = json.loads(source_of(parse([*words, "a=h:1", "--bootstrap-server", "b=h:2"]))["clusters"])
    for each in clusters if isinstance(clusters, list) else clusters.values():
        assert each["kafka.client.id"] == "me"
        assert "kafka.isolation.level" not in each
    assert source_of(parse([*words, "h:1"])) == {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "me"}


def test_clusters_without_a_typed_name_are_called_by_their_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also that of the context in use; one that is typed gives its name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(Context("west", "w:1", None, {"client.id": "me"}))
    monkeypatch.setenv("GROUPKEEPER_CONTEXT", "west")
    words = ["pipeline", "snapshot", "--tables", "t"]
    in_use = {"kafka.bootstrap.servers": "w:1", "kafka.client.id": "me"}
    assert source_of(parse(words)) == in_use
    assert source_of(parse([*words, "--context", "w*"])) == {**in_use, "cluster": "west"}
    clusters = source_of(parse([*words, "--bootstrap-server", "h:1", "--bootstrap-server", "h:2,h:3"]))["clusters"]
    assert json.loads(clusters) == [{"kafka.bootstrap.servers": "h:1"}, {"kafka.bootstrap.servers": "h:2,h:3"}]


def test_properties_are_checked_and_noted_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "h:1", "--checkpoint", "chk"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--property", "sasl.mechansim=PLAIN", "--property", "security.protocol=PLAIN"])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("did you mean 'sasl.mechanism'?")) == (2, 1)
    assert "error: argument --property: " in said


def test_commands_in_the_report_reach_the_clusters_as_they_were_named() -> None:
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "east=h:1", "--property", "client.id=me"]
    options = parse(words)
    assert _ways(options, {})["east"].options == ("--bootstrap-server", "h:1", "--property", "client.id=me")


def test_a_cluster_that_is_called_by_its_id_and_one_of_a_context_are_reached_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(Context("west", "w:1", None, {}))
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "h:1"]
    options = parse(words)
    ways = _ways(options, {0: "iIZoc6suTz"})
    assert ways == {"iIZoc6suTz": Way(("--bootstrap-server", "h:1"), "h:1"), "west": Way(("--context", "west"), "w:1")}


def test_a_cluster_that_is_named_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pipeline", "report", "--tables", "t", "--bootstrap-server", "a=h:1", "--bootstrap-server", "b=h:2"]
    words += ["--bootstrap-server", "a=h:3"]
    options = parse(words)
    with pytest.raises(SystemExit):
        source_of(options)
    assert capsys.readouterr().err.endswith("error: two clusters are called 'a'\n")


def test_asking_clusters_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """A failure that was never taken is written to standard error with its traceback, once garbage is collected."""
    with BackgroundBroker() as broker:
        options = parse_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "rows": "decoded"})
        asyncio.run(_planned(options, Screen()))
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_checkpoint_may_be_of_a_cluster_that_a_glob_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(Context("west", "w:1", None, {}))
    write(Context("east", "e:1", None, {}))
    words = ["pipeline", "snapshot", "--tables", "t", "--context", "*", "--checkpoint"]
    check_checkpoints(parse([*words, "west:name=chk"]))
    for other in ("north:name=chk", "chk"):
        with pytest.raises(SystemExit):
            check_checkpoints(parse([*words, other]))


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
