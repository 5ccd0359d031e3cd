"""Commands that other commands print reach the same cluster, as the same client."""

import json
import re
import shlex
import time
from pathlib import Path

import pytest
from tests.acts import commit, make_topic
from tests.times_and_transactions import write_stray

from groupkeeper.cli.framework.commands import parse
from groupkeeper.cli.framework.typed import way_of
from groupkeeper.cli.main import main
from groupkeeper.cli.pipeline import questions
from groupkeeper.cli.pipeline.family import named_clusters, source_of
from groupkeeper.cli.pipeline.watch import Screen
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.journal import Journal
from groupkeeper.pipeline.jobs.watch import Run
from groupkeeper.testing.background import BackgroundBroker

BROKER = {"properties": {"transaction.partition.verification.enable": "false"}}
PLACE = TopicPartition("orders", 0)
PROPERTY = "client.id=mine"


@pytest.fixture(scope="module")
def servers(broker: BackgroundBroker) -> str:
    make_topic(broker.bootstrap_servers, PLACE.topic)
    return broker.bootstrap_servers


@pytest.fixture(autouse=True)
def contexts(servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two contexts of the cluster: one with a property, which no command line shows."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("client.properties").write_text(f"{PROPERTY}\n")
    main(["context", "add", "prod", "--bootstrap-server", servers, "--property", PROPERTY])
    main(["context", "add", "test", "--bootstrap-server", servers])


def commands(text: str) -> list[list[str]]:
    """The words of the commands within quotes, which may contain quotes themselves."""
    return [shlex.split(found) for found in re.findall(r"'(groupkeeper .*?)'(?: [a-z]|$)", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("--bootstrap-server c=SERVERS --property a=1", "--bootstrap-server SERVERS --property a=1"),
        ("--context pro* --property a=1", "--context prod --property a=1"),
        (
            "--bootstrap-server SERVERS --command-config client.properties",
            "--bootstrap-server SERVERS --command-config FOLDER/client.properties",
        ),
    ],
)
def test_the_plan_of_an_earlier_time(
    given: str, printed: str, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(servers, "billing", {PLACE: 0})
    words = ["pipeline", "as-of", "--tables", "t", "--time", "2026-01-01", "--save", str(tmp_path / "plan.json")]
    options = parse([*words, *given.replace("SERVERS", servers).split()])
    (way,) = [way_of(options, cluster) for _, cluster in named_clusters(options)]
    then = {"billing": {PLACE: OffsetAndMetadata(0, None, "then")}}
    questions._save(options, source_of(options), way, then, Run(None), Screen())
    _, _, line = capsys.readouterr().err.strip().rpartition("to carry it out: ")
    where = printed.replace("SERVERS", servers).replace("FOLDER", str(tmp_path))
    assert line == f"groupkeeper apply {tmp_path}/plan.json --execute {where}"
    assert main(shlex.split(line)[1:]) == 0


def test_a_plan_of_several_clusters_that_a_glob_names_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "as-of", "--tables", "t", "--time", "2026-01-01", "--save", "plan.json", "--context", "*"])
    assert "a plan is for one cluster" in capsys.readouterr().err


def test_the_official_tool_gets_the_properties_of_a_context_and_hears_of_others(
    servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(servers, "billing", {PLACE: 0})
    words = ["plan", "delete-offsets", "billing", "--topic", "orders", "--show-command"]
    assert main([*words, "--context", "prod"]) == 0
    output, errors = capsys.readouterr()
    config = tmp_path / "groupkeeper/contexts/prod.properties"
    assert f"kafka-consumer-groups --bootstrap-server {servers} --command-config {config} " in output
    assert "one file" not in errors
    assert main([*words, "--bootstrap-server", servers, "--property", PROPERTY]) == 0
    said = "note: kafka-consumer-groups takes properties from one file only: put these into it, too: client.id\n"
    assert said in capsys.readouterr().err


def test_what_is_to_be_done_about_transactions_names_the_cluster_that_has_them(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_topic(servers, "hangs")
    write_stray(servers, "hangs", int(time.time() * 1000) - 3_600_000)
    assert main(["transactions", "list", "--context", "prod", "--context", "test", "--property", PROPERTY]) == 0
    found = commands(capsys.readouterr().err)
    assert [each[-4:] for each in found] == 2 * [["--context", "prod", "--property", PROPERTY]] + 2 * [
        ["--context", "test", "--property", PROPERTY]
    ]
    assert main([*found[0][1:]]) == 0


def test_an_undo_of_what_is_unfinished_names_the_cluster(
    servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", str(journal.path))
    commit(servers, "billing", {PLACE: 0})
    where = ["--bootstrap-server", servers]
    assert main(["groups", "delete-offsets", "billing", "--topic", "orders", "--execute", *where]) == 0
    journal.path.write_bytes(journal.path.read_bytes().splitlines(keepends=True)[0])
    capsys.readouterr()
    for given in (["--context", "pro*"], [*where, "--property", PROPERTY], []):
        assert main(["history", *given, "--output", "json"]) == 0
        (note,) = json.loads(capsys.readouterr().out)["notes"]
        ((_, verb, _, is_dry, *end),) = commands(note)
        assert (verb, is_dry) == ("undo", "--dry-run")
        assert end == (["--context", "prod"] if "pro*" in given else given)
