"""Each command of `groupkeeper` has examples in its help, which it understands; help fits 100 columns."""

import shlex
from pathlib import Path

import pytest
from tests.cli.framework.commands_of import command_of, leaves
from tests.cli.framework.test_vocabulary import parser_of

from groupkeeper.cli.framework.commands import parse
from groupkeeper.operations.plans import document
from groupkeeper.operations.plans.model import Plan

WITHOUT = {f"context {name}" for name in ("list", "show", "use", "protect", "remove")}
"""Their usage says it all."""
WIDTH = 100
FILES = {
    "owners.txt": "group app-* team-a\n",
    "rules.toml": '[[rule]]\nname = "behind"\nmax_lag = 10\n',
    "plan.json": "".join(document.write(Plan(None, ()))),
}
"""What examples name."""


@pytest.mark.parametrize("command", sorted(set(leaves()) - WITHOUT))
def test_examples_are_understood(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    lines = command_of(command).examples.replace("\\\n", " ").splitlines()
    typed = [shlex.split(line) for line in lines]
    for name, *words in typed:
        if command != "completion":  # in the words of each shell
            assert name == "groupkeeper"
            assert parse(words).run
    assert any(words[1:][: len(command.split())] == command.split() for words in typed) or command == "completion"


@pytest.mark.parametrize("command", sorted(leaves()))
def test_help_fits(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    wide = [line for line in parser_of(command).format_help().splitlines() if len(line) > WIDTH]
    assert wide == []
