"""Contexts: kept, shown without secrets, chosen by precedence, and only their owner's."""

import io
import json
import os
import stat
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupkeeper.cli.framework import context_files
from groupkeeper.cli.framework.clusters import cluster_of
from groupkeeper.cli.framework.commands import UsageMistake
from groupkeeper.cli.framework.journals import journal
from groupkeeper.cli.main import main

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="p=\\"\u00e9 x";'

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "groupkeeper"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        try:
            status: Any = main(["context", *words])
        except SystemExit as exit_:
            status = exit_.code
        return (status, *capsys.readouterr())

    return call


def options(server: str | None = None, context: str | None = None, **config: str) -> Namespace:
    return Namespace(bootstrap_server=server, context=context, command_config=config or None)


def test_the_first_context_is_in_use_and_others_when_told(run: Run) -> None:
    assert run("add", "one", "--bootstrap-server", "one:1") == (0, "context one saved and selected\n", "")
    assert run("add", "two", "--bootstrap-server", "two:1") == (0, "context two saved\n", "")
    assert context_files.current() == "one"
    assert run("use", "two") == (0, "context two selected\n", "")
    rows = json.loads(run("list", "--output", "json")[1])["contexts"]
    assert [(each["context"], each["in_use"]) for each in rows] == [("one", False), ("two", True)]
    assert run("list", "--output", "csv")[1].splitlines()[1] == "one,false,one:1,,false"
    assert run("remove", "two") == (0, "context two removed\n", "")
    assert context_files.current() is None


def test_a_context_names_a_journal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team = "kafka://one/journal"
    run("add", "one", "--bootstrap-server", "one:1", "--property", f"journal.url={team}")
    run("add", "two", "--bootstrap-server", "two:1", "--property", f"journal.url={tmp_path}/two.jsonl")
    run("protect", "one")
    assert ["journal.url", team] in [line.split(None, 1) for line in run("show", "one")[1].splitlines()]
    assert "journal.url" not in context_files.read("one").properties

    def named(**given: Any) -> str:
        kept = journal(Namespace(**{"context": None, "bootstrap_server": None, **given}))
        return "off" if kept is None else kept.name

    monkeypatch.delenv("GROUPKEEPER_JOURNAL")
    assert named() == team  # of the context in use
    assert named(context="two") == named(context=["tw*"]) == f"{tmp_path}/two.jsonl"
    assert named(bootstrap_server="one:1").endswith("journal.jsonl")
    match = rf"different journals \(one: {team}, two: .*: say which one with GROUPKEEPER"
    with pytest.raises(UsageMistake, match=match):
        named(context=["*"])
    monkeypatch.setenv(context_files.VARIABLE, "two")
    assert named() == f"{tmp_path}/two.jsonl"
    monkeypatch.setenv("GROUPKEEPER_JOURNAL", "off")
    assert named(context="one") == "off"


def test_only_the_owner_may_read_what_is_kept(run: Run, folder: Path) -> None:
    old = os.umask(0)
    try:
        run("add", "one", "--bootstrap-server", "one:1", "--property", f"sasl.jaas.config={JAAS}")
    finally:
        os.umask(old)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"one.properties", "current-context"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((folder / "contexts").stat().st_mode) == 0o700


def test_that_others_may_read_it_is_said(run: Run, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("add", "one", "--bootstrap-server", "one:1", "--property", "client.id=me")
    (folder / "contexts/one.properties").chmod(0o644)
    cluster_of(options())
    assert capsys.readouterr().err == "note: other users may read the file of context one, which can hold secrets\n"


def test_secrets_are_kept_and_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{JAAS}\n"))
    words = ["--property", "security.protocol=SASL_PLAINTEXT", "--property", "sasl.mechanism=PLAIN"]
    assert run("add", "one", "--bootstrap-server", "one:1", *words, "--secret", "sasl.jaas.config")[0] == 0
    assert context_files.read("one").properties["sasl.jaas.config"] == JAAS
    status, output, errors = run("show", "one")
    assert (status, errors, "p=" in output, "********" in output) == (0, "", False, True)
    assert "SASL_PLAINTEXT" in output


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("sasl.jaas.config", True),
        ("ssl.keystore.password", True),
        ("ssl.key.password", True),
        ("ssl.keystore.key", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("sasl.oauthbearer.client.credentials.client.id", False),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("ssl.keystore.location", False),
        ("ssl.truststore.certificates", False),
        ("security.protocol", False),
    ],
)
def test_what_is_a_secret(name: str, is_secret: bool) -> None:
    assert (context_files.masked(name, "value") != "value") is is_secret
    assert context_files.masked(name, "") == ""


def test_a_file_of_properties_is_referred_to(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=file\nrequest.timeout.ms=5\n")
    monkeypatch.chdir(tmp_path)
    words = ["--command-config", "client.properties", "--property", "client.id=context"]
    assert run("add", "one", "--bootstrap-server", "one:1", *words)[0] == 0
    assert str(path) in run("show")[1]
    assert cluster_of(options())[:2] == ("one:1", {"client.id": "context", "request.timeout.ms": "5"})
    assert cluster_of(options(**{"client.id": "typed"})).properties["client.id"] == "typed"
    path.unlink()
    with pytest.raises(UsageMistake, match="context one: cannot read"):
        cluster_of(options())


def test_what_is_typed_wins_over_the_environment_and_that_over_what_is_in_use(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageMistake, match="no cluster is named: give --bootstrap-server"):
        cluster_of(options())
    for name in ("one", "two", "three"):
        run("add", name, "--bootstrap-server", f"{name}:1", "--property", f"client.id={name}")
    assert cluster_of(options())[:2] == ("one:1", {"client.id": "one"})
    monkeypatch.setenv(context_files.VARIABLE, "two")
    assert cluster_of(options())[:2] == ("two:1", {"client.id": "two"})
    assert cluster_of(options(context="three"))[:2] == ("three:1", {"client.id": "three"})
    # The credentials of a context are not sent to another cluster, unless that is asked for.
    assert cluster_of(options("typed:1"))[:2] == ("typed:1", {})
    assert cluster_of(options("typed:1", "three"))[:2] == ("typed:1", {"client.id": "three"})
    with pytest.raises(UsageMistake, match="there is no context 'thre'; did you mean 'three'"):
        cluster_of(options(context="thre"))


def test_a_misspelt_property_is_noted(run: Run) -> None:
    words = ["--property", "secrity.protocol=SSL", "--property", "max.poll.records=5"]
    status, _, errors = run("add", "one", "--bootstrap-server", "one:1", *words)
    note = "note: there is no client property 'secrity.protocol'; did you mean 'security.protocol'?\n"
    assert (status, errors) == (0, note)


# One cause, one answer: wherever the properties stand, what makes no client is wrong usage, and no broker is asked.
@pytest.mark.parametrize("words", ["groups list", "groups offsets g", "plan clone a b", "undo"])
@pytest.mark.parametrize("properties", ["security.protocol=SASL_SSL", "security.protocol=SLS", "retry.backoff.ms=x"])
def test_properties_that_make_no_client(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, properties: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    option = "--from-command-config" if "clone" in words else "--command-config"
    where = ["--from-bootstrap-server", "a:1"] if "clone" in words else []
    with pytest.raises(SystemExit) as ended:
        main([*words.split(), *where, option, str(file), "--bootstrap-server", "127.0.0.1:1"])
    errors = capsys.readouterr().err
    assert (ended.value.code, f"error: argument {option}: " in errors, "refused" in errors) == (2, True, False), errors


def test_failures_are_one_line(run: Run, folder: Path) -> None:
    run("add", "one", "--bootstrap-server", "one:1")
    again = "error: context 'one' exists already: add --replace, or choose another name\n"
    assert run("add", "one", "--bootstrap-server", "two:1") == (1, "", again)
    assert run("add", "one", "--bootstrap-server", "two:1", "--replace")[0] == 0
    assert context_files.read("one").bootstrap_server == "two:1"
    assert run("use", "on") == (1, "", "error: there is no context 'on'; did you mean 'one'?\n")
    assert run("remove", "zzz") == (1, "", "error: there is no context 'zzz'; known: one\n")
    path = folder / "contexts/one.properties"
    path.write_text("a=\\u12\n")
    assert run("show", "one") == (1, "", f"error: {path}, line 1: Malformed \\uxxxx encoding.\n")
    path.write_text("a=1\n")
    assert run("list") == (1, "", f"error: {path} has no bootstrap.servers\n")


def test_a_folder_that_cannot_be_made(run: Run, folder: Path) -> None:
    folder.write_text("a file")
    said = f"error: cannot write {folder}/contexts/one.properties: Not a directory\n"
    assert run("add", "one", "--bootstrap-server", "one:1") == (1, "", said)


def test_a_relative_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", "/nowhere")
    assert context_files.folder() == Path("/nowhere/.config/groupkeeper")


def test_nothing_yet(run: Run) -> None:
    hint = "note: no contexts yet: groupkeeper context add NAME --bootstrap-server HOST:PORT\n"
    assert run("list") == (0, "", hint)
    assert run("show")[2].startswith("error: no context is in use: name one")
