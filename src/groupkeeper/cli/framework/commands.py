"""The tree of the commands of `groupkeeper`, and the parser of command lines.

A family of commands is a table of names; a command adds its arguments to a parser, and runs with the parsed ones. Only
the modules on the way to the typed command are imported. To add a command: a `Command` in the module of its family,
and its line in the family's table. To add a family: a module with a `Family`, and its line in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from groupkeeper import __version__
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.rules.words import capitalized


class UsageMistake(Exception):
    """The arguments make no sense together, or for the client."""


@contextmanager
def refusing(options: Namespace) -> Iterator[None]:
    """Ends the command with a wrong usage where the block raises UsageMistake."""
    try:
        yield
    except UsageMistake as mistake:
        options.refuse(str(mistake))
        raise


class CommandName(NamedTuple):
    """A name in a table of commands. `where` is `module:NAME` of its Command or Family, below groupkeeper.cli."""

    purpose: str
    where: str

    def load(self) -> Command | Family:
        module, _, name = self.where.partition(":")
        loaded = getattr(import_module(f"groupkeeper.cli.{module}"), name)
        assert isinstance(loaded, Command | Family)
        return loaded


_USAGE_WIDTH = 92


class Command(NamedTuple):
    """A command. `run` returns the exit status. `refuse` in its options ends it with a wrong usage.
    `examples`: a command on each line.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    description: str = ""
    examples: str = ""


class Family(NamedTuple):
    """Commands with a common first word."""

    commands: Mapping[str, CommandName]
    description: str = ""


COMMANDS = {
    "groups": CommandName("list, describe, reset and delete consumer groups", "groups.family:FAMILY"),
    "transactions": CommandName("list and describe open transactions, and abort one", "transactions:FAMILY"),
    "plan": CommandName("plan changes of committed offsets, to review before they are made", "plans.family:FAMILY"),
    "apply": CommandName("carry out a plan, if the cluster is still as the plan expects", "plans.apply:APPLY"),
    "undo": CommandName("undo a change, the last one by default", "plans.history:UNDO"),
    "history": CommandName("show the changes made from this machine", "plans.history:HISTORY_COMMAND"),
    "context": CommandName("save clusters under names, to choose them with --context", "context:FAMILY"),
    "completion": CommandName("print a shell's completion script", "framework.completion:COMMAND"),
    "check": CommandName("check that groups are within limits, for cron and CI", "check:COMMAND"),
    "serve": CommandName("watch clusters, and serve metrics and pages", "serve:COMMAND"),
    "mcp": CommandName("offer groups and plans as tools of the Model Context Protocol", "mcp:COMMAND"),
    "pipeline": CommandName("turn the offsets topics into tables and a report, with Spark", "pipeline.family:FAMILY"),
    "spark": CommandName("show how far Spark's queries have read, and where to start them", "spark.family:FAMILY"),
    "broker": CommandName("run an embedded Kafka broker", "broker:COMMAND"),
}


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions are wrapped; examples, which have lines of their own, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def _with_metavar(given: dict[str, Any]) -> dict[str, Any]:
    """What an action is made with, and the name of its value: without choices that of its type, else its own."""
    if given.get("metavar") is None and not given.get("choices"):
        given["metavar"] = getattr(given.get("type"), "metavar", given["dest"].upper())
    return given


class _Repeated(argparse._AppendAction):
    """An option that may be given several times; its values are a list, empty without it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**_with_metavar({**given, "default": [], "help": f"{given['help']}; repeat for several"}))


class _StoreOnce(argparse._StoreAction):
    """An option with one value: another value for it is an error, and does not win silently."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**_with_metavar(given))

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        given: dict[str, Any] = namespace.__dict__.setdefault("given_once", {})
        if option_string is not None and given.setdefault(self.dest, values) != values:
            raise argparse.ArgumentError(self, "given twice, with different values")
        super().__call__(parser, namespace, values, option_string)


class ArgumentParser(argparse.ArgumentParser):
    """argparse's, but options are not abbreviated, errors suggest what was meant, and bad output is a failure.

    Attributes:
        checks: each looks at the parsed options, and raises UsageMistake unless they are valid.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _HelpFormatter)
        super().__init__(allow_abbrev=False, **options)
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)
        self.register("action", "append", _Repeated)
        self.checks: list[Callable[[Namespace], object]] = []

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse's, but unknown words are refused by the typed command's own parser."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(options, "parser", self).refuse_unknown(*unknown)
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, but an unknown option is named before its value is taken for something else, and a value may
        begin with a dash where it is no option.
        """
        if self._subparsers is None:
            for word in args or ():
                if word == "--":
                    break
                if word.startswith("--") and " " not in word and word.partition("=")[0] not in self.option_names:
                    self.refuse_unknown(word)
            args = args and list(self._with_dashed_values(args))
        elif args and args[0].startswith("--") and args[0] not in self.option_names:
            self.error(f"unrecognized arguments: {args[0]}; options go after the command's name")
        return super().parse_known_args(args, namespace)

    def _with_dashed_values(self, words: Sequence[str]) -> Iterator[str]:
        """The words, with --name and -value joined: the option decides whether the value is valid."""
        rest = iter(words)
        for word in rest:
            if word == "--":
                yield word
                break
            action = self._option_string_actions.get(word)
            takes_one = word.startswith("--") and action is not None and action.nargs is None
            if not takes_one or (value := next(rest, None)) is None:
                yield word
            elif value.startswith("-") and value[1:2] not in ("", "-") and value not in self.option_names:
                yield f"{word}={value}"
            else:
                yield from (word, value)
        yield from rest

    @property
    def option_names(self) -> Collection[str]:
        return self._option_string_actions.keys()

    def refuse_unknown(self, *words: str) -> NoReturn:
        """Ends with exit status 2, and a suggestion for the first of the words."""
        name = words[0].partition("=")[0]
        way_out = self._instead_of(name) if name.startswith("--") else ""
        if not way_out and name.startswith("-"):
            way_out = "; see --help"
            if not name.startswith("--") and any(not action.option_strings for action in self._actions):
                way_out += "; put arguments that start with '-' after '--'"
        if not name.startswith("-") and "--group" in self.option_names:
            way_out = "; to name several groups, repeat --group"
        self.error(f"unrecognized arguments: {' '.join(words)}{way_out}")

    def _instead_of(self, option: str) -> str:
        """Suggests a similar option of this command, and the family's other commands that have the option."""
        family = self.prog.split()[1:2]
        having = [each.prog for each in _leaves(parser()) if option in each.option_names]
        others = [command.partition(" ")[2] for command in having if command.split()[1:2] == family]
        near = similar(option, list(self.option_names), cutoff=0.9 if others else 0.7)
        return near + (f"; {', '.join(others[:3])} {'have' if others[1:] else 'has'} {option}" if others else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse's, but suggests a similar choice, or the same command of another family."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            text = f"invalid choice: {value!r} (choose from {', '.join(map(repr, choices))})"
            commands = _leaves(parser()) if action.nargs == argparse.PARSER else ()
            meant = [repr(each.prog) for each in commands if each.prog.split()[-1] == value]
            way_out = f"; did you mean {' or '.join(meant)}?" if meant else similar(str(value), choices)
            raise argparse.ArgumentError(action, text + way_out)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (say if file is sys.stdout else complain)(message)


def _leaves(command: ArgumentParser) -> Iterator[ArgumentParser]:
    """The commands below a family, or the command itself."""
    nested = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield command
    for each in nested:
        for one in each.choices.values():
            yield from _leaves(one)


def similar(typed: str, names: Sequence[str], *, cutoff: float = 0.7) -> str:
    """`; did you mean …?` with the nearest of the names, the one with the same beginning first; "": none is near."""
    import difflib

    near = difflib.get_close_matches(typed, names, n=3, cutoff=cutoff)
    return f"; did you mean {max(near, key=lambda name: _alike(typed, name))!r}?" if near else ""


def _alike(one: str, other: str) -> int:
    """The number of equal letters at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def parse(words: Sequence[str]) -> Namespace:
    """The options that were typed. Ends with exit status 2 for a wrong usage."""
    ordered = in_order(words)
    options: Namespace = parser(ordered).parse_args(ordered)
    options.words = list(words)
    with refusing(options):
        for check in options.parser.checks:
            check(options)
    return options


_EARLY = ("--bootstrap-server", "--context", "--command-config", "--property", "--timeout", "--output", "--color")
_EARLY_FLAGS = ("--wide", "--debug")
"""Options of many commands, which may stand before the command: those with a value, and those without."""


def in_order(words: Sequence[str]) -> list[str]:
    """The words with options of many commands after the command's name, where they are parsed."""
    rest, path, early = list(words), [], list[str]()
    entries: Mapping[str, CommandName] = COMMANDS
    while rest:
        name, is_joined, _ = rest[0].partition("=")
        if name in _EARLY or name in _EARLY_FLAGS:
            size = 1 if is_joined or name in _EARLY_FLAGS else 2
            early += rest[:size]
            rest = rest[size:]
            continue
        path.append(rest.pop(0))
        loaded = entries[path[-1]].load() if path[-1] in entries else None
        if not isinstance(loaded, Family):
            break
        entries = loaded.commands
    return [*path, *early, *rest]


def parser(words: Sequence[str] | None = None) -> ArgumentParser:
    """The parser for the words typed, None: of all commands. The parsed `run` is the function to call."""
    top = ArgumentParser(
        prog="groupkeeper",
        description="Operate Kafka consumer groups.",
        epilog="Exit status: 0 done, 1 there are problems, 2 wrong usage, 3 a limit is broken, 130 interrupted.",
    )
    top.add_argument("--version", action="version", version=f"groupkeeper {__version__}{build_words()}")
    top.set_defaults(parser=top, run=_show_commands)
    _add_commands(top, COMMANDS, words)
    return top


def build_words() -> str:
    """The words behind the name of a build that is not pure Python."""
    from groupkeeper.protocol import primitives

    return "" if primitives.__file__.endswith(".py") else " (compiled)"


def _show_commands(options: Namespace) -> int:
    """Shows the commands of a family, for a family without a command."""
    complain(options.parser.format_help())
    return 2


def _usage(command: ArgumentParser) -> str:
    """The usage: required arguments, on one line if that is not too long. The options are below it in the help."""
    parts = []
    for action in command._actions:
        name = action.metavar if isinstance(action.metavar, str) else "|".join(map(str, action.choices or ()))
        if not action.option_strings:
            parts.append({"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}.get(str(action.nargs), name))
        elif action.required:
            parts.insert(0, f"{action.option_strings[-1]} {name}")
    text = " ".join(["%(prog)s [OPTION ...]", *parts])
    width = _USAGE_WIDTH - len(command.prog) + len("%(prog)s")
    if len(text) <= width:
        return text
    from textwrap import fill  # hardly ever

    return fill(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _add_commands(above: ArgumentParser, entries: Mapping[str, CommandName], words: Sequence[str] | None) -> None:
    commands = above.add_subparsers(title="commands", metavar="COMMAND")
    chosen = None if words is None else next((word for word in words if not word.startswith("-")), "")
    rest = None if words is None else words[words.index(chosen) + 1 :] if chosen in words else []
    for name, entry in entries.items():
        if chosen is not None and chosen != name:
            commands.add_parser(name, help=entry.purpose)
            continue
        loaded = entry.load()
        description = loaded.description or f"{capitalized(entry.purpose)}."
        nested = commands.add_parser(name, help=entry.purpose, description=description)
        nested.set_defaults(parser=nested, refuse=nested.error)
        if isinstance(loaded, Family):
            nested.set_defaults(run=_show_commands)
            _add_commands(nested, loaded.commands, rest)
        else:
            nested.epilog = f"examples:\n{loaded.examples}" if loaded.examples else None
            loaded.add_arguments(nested)
            nested.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
            nested.usage = _usage(nested)
            nested.set_defaults(run=loaded.run)
