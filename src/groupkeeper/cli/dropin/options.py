"""Command-line options as jopt-simple 5 reads them, which the official tools use, and their help.

Options have one or two dashes; a value follows as the next argument, whatever that looks like, or after `=`;
an optional value is not taken from an argument that looks like an option; other arguments are ignored, and
`--` ends the options. Values are converted when they are read, so that a bad number is an error of the execution and
not of the usage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groupkeeper.cli.java.releases import release
from groupkeeper.cli.java.values import hash_order
from groupkeeper.java_numbers import LONG_MAX, parse_number
from groupkeeper.protocol.java_hash import java_hash


class OptionProblem(Exception):
    """The arguments do not match the options. The text is jopt-simple's."""


class UsageProblem(Exception):
    """The options make no sense together. The text is shown above the help, and the exit status is 1."""


class Option(NamedTuple):
    """One option."""

    name: str
    help: str
    argument: str | None = None
    """Describes the value in the help; "": nothing describes it; None: the option takes none."""
    kind: str = "String"
    """The value's Java type."""
    optional: bool = False
    """Whether the value may be left out."""
    default: int | str | None = None
    """None: there is none."""
    available_with: tuple[str, ...] = ()
    """At least one of these must be given too; empty: none need be."""
    is_help: bool = False
    """Given, the others need not fit together."""
    required: bool = False
    """Whether it must be given."""

    @property
    def takes_value(self) -> bool:
        return self.argument is not None


_HELP = Option("help", "Show this help.", is_help=True)
_VERSION = Option("version", "Show the version of Kafka whose tool this one equals.", is_help=True)


class Options:
    """The given options: present or absent, with their texts in order. `strays`: other arguments."""

    def __init__(self, table: OptionTable) -> None:
        self._table = table
        self._texts: dict[str, list[str]] = {}
        self.strays: list[str] = []

    def add(self, name: str, text: str | None = None) -> None:
        texts = self._texts.setdefault(name, [])
        if text is not None:
            texts.append(text)

    def has(self, name: str) -> bool:
        """Whether the option was given, with or without a value."""
        return name in self._texts

    def texts(self, name: str) -> list[str]:
        """The values as they were given; the option is of type String."""
        return list(self._texts.get(name, ()))

    def text(self, name: str) -> str | None:
        """The one value, None when there is none. Raises OptionProblem where there are several."""
        texts = self._texts.get(name, ())
        if len(texts) > 1:
            raise OptionProblem(f"Found multiple arguments for option {name}, but you asked for only one")
        return texts[0] if texts else None

    def numbers(self, name: str) -> list[int]:
        """The values of an option of type Long. Raises OptionProblem for others."""
        return [self._number(name, text) for text in self._texts.get(name, ())]

    def number(self, name: str) -> int | None:
        """The one value or the default, None when there is neither. Raises OptionProblem."""
        self.numbers(name)  # each is converted before they are counted
        text = self.text(name)
        if text is not None:
            return self._number(name, text)
        option = self._table.options.get(name)
        return option.default if option is not None and isinstance(option.default, int) else None

    def _number(self, name: str, text: str) -> int:
        number = parse_number(text, LONG_MAX)
        if number is None:
            raise OptionProblem(f"Cannot parse argument '{text}' of option {name}")
        return number

    def given(self, names: Iterable[str]) -> list[str]:
        """The given options among the names, in the order of `names`."""
        return [name for name in names if name in self._texts]

    def need(self, name: str) -> None:
        """Raises UsageProblem unless the option was given."""
        if not self.has(name):
            raise UsageProblem(f'Missing required argument "[{name}]"')

    def need_one_of(self, names: Iterable[str], action: str, shown: Iterable[str] | None = None) -> None:
        """Raises UsageProblem unless one of the options was given. The text lists the `shown` ones, by default all."""
        if not self.given(names):
            listed = ", ".join(f"[{name}]" for name in (names if shown is None else shown))
            raise UsageProblem(f"Option [{action}] takes one of these options: {listed}")

    def need_one_action(self, actions: Iterable[str], end: str = "") -> str:
        """The action that was given. Raises UsageProblem unless it is one; `end`: the end of its text."""
        given = self.given(actions)
        if len(given) != 1:
            names = ", ".join(f"--{name}" for name in actions)
            raise UsageProblem(f"Command must include exactly one action: {names}{end}")
        return given[0]

    def refuse(self, name: str, others: Iterable[str]) -> None:
        """Raises UsageProblem when the option was given with one of the others."""
        for other in self.given(others) if self.has(name) else ():
            raise UsageProblem(f'Option "[{name}]" can\'t be used with option "[{other}]"')

    def refuse_several(self, names: Sequence[str]) -> None:
        """Raises UsageProblem when two of the options were given."""
        for name in names:
            self.refuse(name, [other for other in in_hash_order(names) if other != name])


class OptionTable:
    """The options of one tool with --help and --version, and how its arguments are read. `summary`: what the tool
    does, for our reference, where its own words (`purpose`) say it badly.
    """

    def __init__(self, tool: str, purpose: str, options: Sequence[Option], *, summary: str = "") -> None:
        self.tool = tool
        self.purpose = purpose
        self.summary = summary or purpose
        self.options = {option.name: option for option in options}
        for option in (_HELP, _VERSION):
            self.options.setdefault(option.name, option)

    def derived(self, tool: str, purpose: str, options: Sequence[Option], *, without: Iterable[str]) -> OptionTable:
        """The table of a tool that has these options, too, but for some; `options` are others, or replace theirs."""
        left_out = frozenset(without)
        kept = {name: option for name, option in self.options.items() if name not in left_out}
        return OptionTable(tool, purpose, list((kept | {option.name: option for option in options}).values()))

    def __getitem__(self, name: str) -> Option:
        return self.options[name]

    def parse(self, arguments: Sequence[str]) -> Options:
        """Read the arguments. Raises OptionProblem."""
        found = Options(self)
        rest = list(reversed(arguments))
        while rest:
            token = rest.pop()
            if token == "--":
                break
            if _looks_like_an_option(token):
                self._take(token, rest, found)
            else:
                found.strays.append(token)
        if not any(option.is_help and found.has(option.name) for option in self.options.values()):
            self._check_required(found)
            self._check_available(found)
        return found

    def _take(self, token: str, rest: list[str], found: Options) -> None:
        is_long = token.startswith("--")
        name, equals, text = token[1 + is_long :].partition("=")
        option = None if name in release().lacks else self.options.get(name)
        if option is None:
            # What follows one dash may be several options of one letter: the first of them is unknown to all tools.
            raise OptionProblem(f"{name if is_long else token[1]} is not a recognized option")
        if not option.takes_value:
            found.add(name)
        elif equals:
            found.add(name, text)
        elif option.optional:
            has_value = bool(rest) and not _looks_like_an_option(rest[-1])
            found.add(name, rest.pop() if has_value else None)
        elif rest:
            found.add(name, rest.pop())
        else:
            raise OptionProblem(f"Option {name} requires an argument")

    def _check_required(self, found: Options) -> None:
        missing = [option.name for option in self.options.values() if option.required and not found.has(option.name)]
        if missing:
            raise OptionProblem(f"Missing required option(s) [{', '.join(missing)}]")

    def _check_available(self, found: Options) -> None:
        dependent = in_hash_order(option.name for option in self.options.values() if option.available_with)
        lonely = [name for name in dependent if found.has(name) and not found.given(self.options[name].available_with)]
        if lonely:
            names = ", ".join(lonely)
            raise OptionProblem(f"Option(s) [{names}] are unavailable given other options on the command line")


def in_hash_order(names: Iterable[str]) -> list[str]:
    """Up to twelve options in the order of a Java HashSet, which messages show."""
    return hash_order(names, lambda name: 31 + java_hash(name))


def _looks_like_an_option(token: str) -> bool:
    return token.startswith("-") and token != "-"


_NAMES = 38
_TEXTS = 39


def render(table: OptionTable) -> str:
    """The help: two columns, all options in order of their names, with their values and effects."""
    from textwrap import wrap

    title = "Option (* = required)" if any(option.required for option in table.options.values()) else "Option"
    lines = [_line(title, "Description"), _line("-" * len(title), "-----------")]
    for name in sorted(table.options):
        option = table.options[name]
        left = wrap(signature(option), _NAMES, subsequent_indent="  ", break_on_hyphens=False)
        right = wrap(described(option), _TEXTS, subsequent_indent="  ", break_on_hyphens=False)
        for row in range(max(len(left), len(right))):
            lines.append(_line(left[row] if row < len(left) else "", right[row] if row < len(right) else ""))
    return "\n".join(lines) + "\n"


def signature(option: Option) -> str:
    """The option with its value: `--timeout <Long: timeout (ms)>`."""
    name = f"* --{option.name}" if option.required else f"--{option.name}"
    if option.argument is None:
        return name
    value = f"{option.kind}: {option.argument}" if option.argument else option.kind
    return f"{name} " + (f"[{value}]" if option.optional else f"<{value}>")


def described(option: Option) -> str:
    """The description of the option, with its default."""
    return option.help if option.default is None else f"{option.help} (default: {option.default})"


def _line(left: str, right: str) -> str:
    return f"{left:<{_NAMES + 2}}{right:<{_TEXTS}}"
