"""`groupkeeper __complete_tool NAME WORD…`: candidates for the last word of a drop-in's command line.

The shells' completion scripts call this for the commands with the names of official tools. Without a --bootstrap-server
among the words no cluster is contacted, as these commands have no contexts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from groupkeeper.cli.framework.complete import FILES, names_in_cluster, say_candidates
from groupkeeper.cli.framework.completion import DROP_INS

if TYPE_CHECKING:
    from groupkeeper.cli.dropin.options import Option, OptionTable

_TYPES = {"kafka-share-groups": ("Share",), "kafka-streams-groups": ("Streams",)}
_OTHERS = ("Classic", "Consumer", "Unknown")
"""Types of the groups that tools are for; brokers before 3.8 do not tell them."""

_FILE_OPTIONS = ("command-config", "from-file", "admin.config", "property")
_TOPIC_OPTIONS = ("topic", "input-topic", "topic-partitions")
_SERVER_OPTIONS = ("bootstrap-server", "broker-list")


def complete_tool(words: Sequence[str]) -> int:
    """Print the candidates; the exit status is always 0."""
    tool, *before = words or [""]
    begun = before.pop() if before else ""
    if tool in DROP_INS:
        table: OptionTable = import_module(f"groupkeeper.cli.dropin.{DROP_INS[tool]}").TABLE
        say_candidates(_candidates(tool, table, before, begun), begun)
    return 0


def _candidates(tool: str, table: OptionTable, before: Sequence[str], begun: str) -> Iterable[tuple[str, str]]:
    given: dict[str, list[str]] = {}
    awaited: Option | None = None
    for word in before:
        if awaited is not None and not (awaited.optional and word.startswith("-")):
            given[awaited.name].append(word)
            awaited = None
            continue
        name, separator, value = word.lstrip("-").partition("=")
        option = table.options.get(name) if word.startswith("-") else None
        awaited = None
        if option is not None:
            given.setdefault(name, []).extend([value] if separator else [])
            awaited = option if option.takes_value and not separator else None
    if awaited is not None and not (awaited.optional and begun.startswith("-")):
        return _values(tool, awaited.name, given)
    if not begun.startswith("-"):
        return ()
    return [(f"--{name}", option.help.partition(". ")[0].rstrip(".")) for name, option in table.options.items()
            if name not in given or name in ("group", *_TOPIC_OPTIONS)]  # fmt: skip


def _values(tool: str, name: str, given: dict[str, list[str]]) -> Iterable[tuple[str, str]]:
    if name in _FILE_OPTIONS:
        return [(FILES, "")]
    kind = "GROUP" if name == "group" else "TOPIC" if name in _TOPIC_OPTIONS else ""
    servers = next((given[each][-1] for each in _SERVER_OPTIONS if given.get(each)), None)
    if not kind or servers is None:
        return ()
    config, types = given.get("command-config", [None])[-1], _TYPES.get(tool, _OTHERS)
    return [(each, "") for each in names_in_cluster(kind, servers, None, config, types)]
