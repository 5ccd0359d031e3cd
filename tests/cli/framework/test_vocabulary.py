"""One vocabulary over all commands of `groupkeeper`: an option has one name, one unit and one form of its value
wherever it is; each has help; options of the cluster and the output may stand anywhere; what is unknown is answered
with what was meant.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.cli.framework.commands_of import leaves, needed

from groupkeeper.cli.framework import commands
from groupkeeper.cli.framework.commands import ArgumentParser, parse, parser
from groupkeeper.operations.times import BadDuration

USAGE = 2
COMMANDS = tuple(leaves())
PARSER_BY_COMMAND: dict[str, ArgumentParser] = {}
UNITS = re.compile(r"-(ms|millis|s|secs?|seconds|minutes|hours|days|bytes)$|^--(hours|days|minutes|seconds)$")
TIMES = re.compile(
    "--(timeout|interval|refresh|wait|within|idle|expiring|retention|trend|last|keep-.*|.*-age|by-duration|max-time-lag)"
)
OTHER_FORMS = {
    # One of several clusters may be given a name.
    "--bootstrap-server": {"HOST:PORT[,...]", "[NAME=]HOST:PORT[,...]"},
    "--topic": {"TOPIC", "TOPIC[:PARTITION,...]"},
    # The pipeline writes a directory's name, or sums up.
    "--output": {"table|json|csv", "{text,json}"},
    "--if-out-of-range": {"clamp|skip|fail", "fail|clamp|skip|exact"},
}


def parser_of(command: str) -> ArgumentParser:
    """The parser of a command, with all of its options."""
    if command not in PARSER_BY_COMMAND:
        found = parser(command.split())
        for word in command.split():
            (nested,) = (each for each in found._actions if isinstance(each, argparse._SubParsersAction))
            found = nested.choices[word]
        PARSER_BY_COMMAND[command] = found
    return PARSER_BY_COMMAND[command]


def options() -> Iterator[tuple[str, str, argparse.Action]]:
    """Each command with each of its options that are shown."""
    for command in COMMANDS:
        for action in parser_of(command)._actions:
            for name in action.option_strings:
                if name.startswith("--") and action.help != argparse.SUPPRESS:
                    yield command, name, action


def form(action: argparse.Action) -> str:
    """How the value is shown in the help; "" for an option without one."""
    if action.nargs == 0:
        return ""
    return str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())


def test_an_option_has_one_form_of_its_value() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for _, name, action in options():
        found[name].add(form(action))
    several = {name: forms for name, forms in found.items() if len(forms) > 1}
    assert several == OTHER_FORMS


def test_an_option_has_help_of_its_own() -> None:
    without = [f"{command} {name}" for command, name, action in options() if not (action.help or "").strip()]
    arguments = [(command, each) for command in COMMANDS for each in parser_of(command)._actions]
    without += [f"{command} {each.dest}" for command, each in arguments if not each.option_strings and not each.help]
    assert without == []


def test_durations_have_a_unit_in_the_value_and_none_in_the_name() -> None:
    for command, name, action in options():
        assert not UNITS.search(name), f"{command} {name}"
        if TIMES.fullmatch(name):
            assert form(action) == "DURATION", f"{command} {name}"
        if form(action) == "DURATION":
            parsed = action.type
            assert callable(parsed)
            assert parsed("2d") == parsed("48h") == parsed("P2D"), f"{command} {name}"
            with pytest.raises((argparse.ArgumentTypeError, BadDuration)):
                parsed("2 lightyears")


def test_points_in_time_have_zones() -> None:
    for command, name, action in options():
        if form(action) == "DATETIME":
            parsed = action.type
            assert callable(parsed)
            assert parsed("2026-01-31T23:59:59+02:00") == parsed("2026-01-31T21:59:59Z"), f"{command} {name}"
            assert parsed("2026-01-31T21:59:59") == parsed("2026-01-31T21:59:59Z"), f"{command} {name}"


def test_a_default_is_told_where_there_is_one() -> None:
    """A value that counts when nothing is given is in the help."""
    for command, name, action in options():
        if action.nargs != 0 and action.default not in (None, [], {}, (), "", frozenset()):
            assert "default" in (action.help or ""), f"{command} {name}: {action.default}"


CHANGE_NO_GROUPS = ("transactions abort",)


def test_commands_that_change_something_are_safe_in_the_same_way() -> None:
    executing = {command for command, name, _ in options() if name == "--execute"}
    for command in executing:
        names = parser_of(command).option_names
        assert "--dry-run" in names, command
        if "--bootstrap-server" in names:
            assert "--confirm-context" in names, command
            assert ("--confirm" in names) is (command not in CHANGE_NO_GROUPS), command


GLOBAL: Mapping[str, str | None] = {
    "--bootstrap-server": "b:1",
    "--context": "prod",
    "--property": "client.id=me",
    "--timeout": "2s",
    "--output": "json",
    "--color": "never",
    "--wide": None,
    "--debug": None,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_options_of_many_commands_may_stand_anywhere(command: str, tmp_path: Path) -> None:
    path, rest = command.split(), needed(command, tmp_path)
    here = parser_of(command).option_names
    words = []
    for name, value in GLOBAL.items():
        if name in here and name not in rest:
            words += [name] if value is None else [name, value]
    last = parse([*path, *rest, *words])
    for at in range(len(path) + 1):
        found = parse([*path[:at], *words, *path[at:], *rest])
        assert described(found) == described(last), f"{words} after {path[:at]}"


def described(options: argparse.Namespace) -> dict[str, str]:
    """The values of options; those that are functions of the parser itself, and the order typed, are left out."""
    apart = {"parser", "refuse", "run", "words", "given_once"}
    return {name: repr(value) for name, value in vars(options).items() if name not in apart}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_answered_with_the_nearest(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, whole = parser_of(command), parser()
    monkeypatch.setattr(commands, "parser", lambda words=None: parser(words) if words else whole)
    names = [each for of, each, _ in options() if of == command and len(each) > len("--top")]
    for number, name in enumerate(names, len(command)):  # each in one of three forms, which differs between commands
        typed = (name[:-1], f"{name[:4]}{name[5]}{name[4]}{name[6:]}", f"{name}s")[number % 3]
        if typed in found.option_names:
            continue
        with pytest.raises(SystemExit) as ended:
            found.refuse_unknown(typed)
        errors = capsys.readouterr().err
        assert ended.value.code == USAGE
        assert f"unrecognized arguments: {typed}; did you mean '--" in errors, errors
        near = re.search(r"did you mean '(.*)'", errors)
        assert near is not None
        assert near[1] == name or near[1].startswith(typed[:-1]), errors
    with pytest.raises(SystemExit):
        parse([*command.split(), "--zzzzzz", "1"])
    assert "unrecognized arguments: --zzzzzz; see --help" in capsys.readouterr().err
