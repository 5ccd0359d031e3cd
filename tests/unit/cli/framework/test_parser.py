"""What the parser of ``groupkeeper`` says of a wrong usage, and that options may stand before the command."""

import errno
from pathlib import Path
from typing import NoReturn

import pytest

from groupkeeper.cli.framework import context_files
from groupkeeper.cli.framework.commands import in_order
from groupkeeper.cli.main import main

USAGE = 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GROUPKEEPER_CONTEXT", raising=False)


def said(capsys: pytest.CaptureFixture[str], words: str) -> tuple[object, str]:
    """The exit status and standard error."""
    try:
        status: object = main(words.split())
    except SystemExit as ended:
        status = ended.code
    output, errors = capsys.readouterr()
    assert output == ""
    return status, errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # The option is what's wrong, not its value, which would be taken for a group.
        ("groups offsets --all-groups --statuses lost", "unrecognized arguments: --statuses; did you mean '--status'?"),
        ("groups offsets --all-groups --least=5", "unrecognized arguments: --least=5; see --help"),
        ("groups offsets --all-groups --status lost", "'lost': expected some of ok, uncommitted, below_log_start"),
        ("groups offsets --all-groups --min-lag 0", "argument --min-lag: '0': expected a number, at least 1"),
        ("plan clone g1 g2 g3 --from-context b", "unrecognized arguments: g3; to name several groups, repeat --group"),
        ("--foo bar groups list", "unrecognized arguments: --foo; options go after the command's name"),
        ("groups --topic x offsets g", "unrecognized arguments: --topic; options go after the command's name"),
        ("groups offsets g --output jso", "argument --output: invalid choice: 'jso'"),
        ("groups offsets g --output jso", "; did you mean 'json'?"),
        ("grops list", "; did you mean 'groups'?"),
        # Another command has it.
        ("groups list --topic orders", ": --topic; groups describe, groups offsets, groups members have --topic"),
        ("groups list --groups x", ": --groups; did you mean '--all-groups'?"),
        ("reset billing", "; did you mean 'groupkeeper groups reset' or 'groupkeeper plan reset'?"),
        ("groups apply plan.json", "; did you mean 'groupkeeper apply'?"),
        ("groups offsets", "no groups are named: type their names, a glob such as 'orders-*', or --all-groups; "),
        ("groups offsets g --all-groups", "error: name groups, or give --all-groups: not both"),
        ("groups reset g --context a --context b", "argument --context: given twice, with different values"),
        ("--context a groups reset g --context b", "argument --context: given twice, with different values"),
        ("groups list --context d*", "argument --context: no context matches 'd*'; there are none yet"),
        ("groups offsets g --topic a --top 1 --top 2", "argument --top: given twice, with different values"),
        ("--context dr groups list", "there is no context 'dr'"),
        (
            "groups reset g --topic t --to-latest --context d*",
            "--context: this command is for one cluster, not 'd*'; known: none",
        ),
        ("groups --context=dr list", "there is no context 'dr'"),
        ("groups list --context dr --context dr", "there is no context 'dr'"),
    ],
)
def test_wrong_usage_names_what_is_wrong(capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    status, errors = said(capsys, words)
    assert (status, message in errors.splitlines()[-1]) == (USAGE, True), errors


@pytest.mark.parametrize(
    ("words", "ordered"),
    [
        ("--context dr groups list", "groups list --context dr"),
        (
            "--debug --output=json groups --context groups list -- a",
            "groups list --debug --output=json --context groups -- a",
        ),
        ("groups list g --context dr", "groups list g --context dr"),
        ("--context dr history", "history --context dr"),
        ("--version", "--version"),
        ("--context", "--context"),
        ("--context dr nosuch list", "nosuch --context dr list"),
    ],
)
def test_options_before_the_command_go_after_its_name(words: str, ordered: str) -> None:
    assert in_order(words.split()) == ordered.split()


@pytest.mark.parametrize(("words", "command"), [("", "history"), ("groups", "delete-offsets"), ("plan", "sweep")])
def test_a_family_alone_shows_its_commands(capsys: pytest.CaptureFixture[str], words: str, command: str) -> None:
    status, errors = said(capsys, words)
    assert status == USAGE
    assert any(line.startswith(f"    {command}") for line in errors.splitlines())


def test_help_is_as_wide_as_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    for words in (["groups", "--help"], ["groups", "watch", "--help"], ["plan", "clone", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        text = capsys.readouterr().out.partition("examples:")[0]
        assert max(map(len, text.splitlines()), default=0) <= 72, text


def test_a_traceback_is_shown_only_when_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise OSError(errno.EIO, "the disk is broken")  # no command expects it

    monkeypatch.setattr(context_files, "folder", fail)
    status, errors = said(capsys, "context show one")
    assert (status, errors.startswith("error: ["), errors.endswith("(OSError)\n")) == (1, True, True), errors
    with pytest.raises(OSError, match="broken"):
        main(["--debug", "context", "show", "one"])


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("check --max-time-lag -1m", "argument --max-time-lag: '-1m': a duration cannot be negative, for"),
        ("groups list --timeout -5s", "argument --timeout: '-5s': a duration cannot be negative"),
        ("groups describe --context -x g", "there is no context '-x'"),
        ("check --max-time-lag --output json", "argument --max-time-lag: expected one argument"),
        ("check --max-time-lag -h", "argument --max-time-lag: expected one argument"),
        ("groups list -x", "unrecognized arguments: -x"),
    ],
)
def test_a_value_may_begin_with_a_dash_where_it_is_no_option(
    capsys: pytest.CaptureFixture[str], words: str, wanted: str
) -> None:
    status, errors = said(capsys, words)
    assert (status, wanted in errors) == (USAGE, True), errors
