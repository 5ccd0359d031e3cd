"""Commands to copy into a shell: each is complete, and safe with any names in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Way(NamedTuple):
    """How a command reaches a cluster. `options`: of groupkeeper, each with its value. `servers` and `config`:
    the brokers, and the file of properties, for tools that know no contexts; "": not known, or none.
    """

    options: tuple[str, ...]
    servers: str = ""
    config: str = ""


Ways = Mapping[str, Way]
"""By the names of clusters."""

NO_WAYS: Ways = MappingProxyType({})


def way_to(cluster: str, ways: Ways) -> Way:
    """The way to a cluster. Of one that isn't known the reader fills the address in."""
    return ways.get(cluster) or Way(("--bootstrap-server", "HOST:PORT"))


def way_of_servers(servers: str, config: str = "", more: Iterable[str] = ()) -> Way:
    """The way to a cluster that has no context. `more`: further options."""
    return Way(("--bootstrap-server", servers, *_config(config), *more), servers, config)


def _config(config: str) -> tuple[str, ...]:
    return ("--command-config", config) if config else ()


def command(way: Way, words: Sequence[str], names: Sequence[str] = ()) -> tuple[str, ...]:
    """A command of groupkeeper. `words`: its name and options; `names`: groups and the like."""
    end = ("--",) if any(name.startswith("-") for name in names) else ()
    return ("groupkeeper", *words, *way.options, *end, *names)


def tool(way: Way, program: str, words: Sequence[str]) -> tuple[str, ...]:
    """A command of one of Kafka's tools."""
    return (program, "--bootstrap-server", way.servers or "HOST:PORT", *_config(way.config), *words)


def option(name: str, value: str) -> list[str]:
    """An option with its value, which is taken for no option."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def options_from(way: Way) -> list[str]:
    """The options for the cluster that a clone comes from."""
    pairs = zip(way.options[::2], way.options[1::2], strict=True)
    return [word for name, value in pairs if name != "--property" for word in (f"--from-{name[2:]}", value)]


def text(words: Iterable[str]) -> str:
    """A command as it is to be typed."""
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """A word as it is to be typed, on one line: where it has control characters, as shells of today read `$'a\\nb'`."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
