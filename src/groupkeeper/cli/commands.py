"""The tree of the commands of ``groupkeeper``: what there is, and the parser of what was typed.

A family of commands is a table of names; a command adds its arguments to a parser, and runs with what was parsed. Only
the modules on the way to the command that was typed are imported. To add a command: a ``Command`` in the module of its
family, and its line in the family's table. To add a family: a module with a ``Family``, and its line in ``COMMANDS``.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from groupkeeper import __version__
from groupkeeper.cli.output import complain, say


class Entry(NamedTuple):
    """A name in a table of commands. ``where`` is ``module:NAME`` of its Command or Family."""

    purpose: str
    where: str

    def load(self) -> Command | Family:
        module, _, name = self.where.partition(":")
        loaded = getattr(import_module(module), name)
        assert isinstance(loaded, Command | Family)
        return loaded


class Command(NamedTuple):
    """``run`` gives the exit status. It finds ``refuse`` among the options, which ends with a wrong usage."""

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    description: str = ""
    examples: str = ""


class Family(NamedTuple):
    """Commands with a word in common."""

    commands: Mapping[str, Entry]
    description: str = ""


COMMANDS = {
    "groups": Entry("list, describe, reset and delete consumer groups", "groupkeeper.cli.groups:FAMILY"),
    "plan": Entry("write down what would become of committed offsets", "groupkeeper.cli.plan:FAMILY"),
    "apply": Entry("carry out a plan, if it still fits", "groupkeeper.cli.plan_apply:APPLY"),
    "undo": Entry("take a change back", "groupkeeper.cli.history:UNDO"),
    "history": Entry("show what was changed from this machine", "groupkeeper.cli.history:HISTORY_COMMAND"),
    "context": Entry("keep clusters under names, so that they needn't be typed", "groupkeeper.cli.context:FAMILY"),
    "completion": Entry("print the completion script of a shell", "groupkeeper.cli.completion:COMMAND"),
    "pipeline": Entry("make tables of what the offsets topics say, with Spark", "groupkeeper.cli.pipeline:FAMILY"),
    "broker": Entry("run an embedded Kafka broker", "groupkeeper.cli.broker:COMMAND"),
}


class ArgumentParser(argparse.ArgumentParser):
    """argparse's, but options are not abbreviated, typing errors are met halfway, and bad output is a failure."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's, but what isn't known is refused by the parser of the command that was typed."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(options, "parser", self).error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """End with exit status 2, the usage and what is wrong, with what may have been meant."""
        super().error(message + self._way_out(message))

    def _way_out(self, message: str) -> str:
        if message.startswith("unrecognized arguments: -"):
            word = message.split()[2].partition("=")[0]
            meant = similar(word, list(self._option_string_actions)) if word.startswith("--") else ""
            return meant or "; see --help; what begins with '-' and is no option goes behind --"
        if message.startswith("one of the arguments GROUP"):
            return "; a group whose name begins with '-' goes behind --"
        if "invalid choice: '" in message and "(choose from " in message:
            typed = message.partition("invalid choice: '")[2].partition("'")[0]
            choices = message.partition("(choose from ")[2].rstrip(")").replace("'", "").split(", ")
            return similar(typed, choices)
        return ""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (say if file is sys.stdout else complain)(message)


def similar(typed: str, names: Sequence[str]) -> str:
    """``; did you mean …?`` with the nearest of the names, "" when none is near."""
    import difflib

    near = difflib.get_close_matches(typed, names, n=1, cutoff=0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def parser(words: Sequence[str] | None = None) -> ArgumentParser:
    """The parser for the words typed, None: of all commands. The parsed ``run`` is the function to call."""
    top = ArgumentParser(
        prog="groupkeeper",
        description="Operate Kafka consumer groups.",
        epilog="Exit status: 0 done, 1 there are problems, 2 wrong usage, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"groupkeeper {__version__}")
    _add_commands(top, COMMANDS, words)
    return top


def _usage(command: ArgumentParser) -> str:
    """One line: what is always needed. The options are below it in the help."""
    parts = []
    for action in command._actions:
        name = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
        if not action.option_strings:
            parts.append({"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}.get(str(action.nargs), name))
        elif action.required:
            parts.insert(0, f"{action.option_strings[-1]} {name}")
    return " ".join(["%(prog)s [OPTION ...]", *parts])


def _add_commands(above: ArgumentParser, entries: Mapping[str, Entry], words: Sequence[str] | None) -> None:
    commands = above.add_subparsers(title="commands", metavar="COMMAND", required=True)
    chosen = None if words is None else next((word for word in words if not word.startswith("-")), "")
    rest = None if words is None else words[words.index(chosen) + 1 :] if chosen in words else []
    for name, entry in entries.items():
        if chosen is not None and chosen != name:
            commands.add_parser(name, help=entry.purpose)
            continue
        loaded = entry.load()
        description = loaded.description or f"{entry.purpose[0].upper()}{entry.purpose[1:]}."
        nested = commands.add_parser(name, help=entry.purpose, description=description)
        nested.set_defaults(parser=nested, refuse=nested.error)
        if isinstance(loaded, Family):
            _add_commands(nested, loaded.commands, rest)
        else:
            nested.epilog = loaded.examples or None
            loaded.add_arguments(nested)
            nested.usage = _usage(nested)
            nested.set_defaults(run=loaded.run)
