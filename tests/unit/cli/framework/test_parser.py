"""The parser of `groupkeeper`: order of options, help, tracebacks; what it refuses is in `refusals.txt`."""

import errno
from typing import NoReturn

import pytest

from groupkeeper.cli.framework import context_files
from groupkeeper.cli.framework.commands import in_order
from groupkeeper.cli.main import main

USAGE = 2


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
