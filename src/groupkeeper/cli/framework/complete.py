"""`groupkeeper __complete WORD…`: candidates for the last word, which may be empty or begun.

The shells' completion scripts call this command. One candidate a line, with a tab before its meaning; `:files` for
names of files. Nothing is printed if a cluster doesn't answer in time.
"""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from groupkeeper.cli.framework.commands import in_order, parser
from groupkeeper.cli.framework.output import say

_PATIENCE_MS = 2000

FILES = ":files"


_USUAL = ("groups", "list")
"""A command with the options that may stand before any command."""


class Typed(NamedTuple):
    """A command line up to the word to complete: its parser, the options given, and the arguments still expected."""

    command: argparse.ArgumentParser
    given: dict[str, list[str]]
    positionals: list[str]
    awaited: argparse.Action | None
    is_literal: bool


def complete(words: Sequence[str]) -> int:
    """Print the candidates; the exit status is always 0."""
    *before, begun = words or [""]
    typed = _read(in_order(before))
    if before[-1:] and before[-1].startswith("--") and _commands(typed.command) is not None:
        typed = _read([*_USUAL, *before])  # an option before the command that it is for
    say_candidates(_candidates(typed, begun), begun)
    return 0


def say_candidates(candidates: Iterable[tuple[str, str]], begun: str) -> None:
    """Print the candidates that begin with the typed text, with their descriptions."""
    lines = []
    for value, meaning in dict(candidates).items():
        if value.isprintable() and (value.startswith(begun) or value == FILES):
            lines.append(f"{value}\t{meaning}\n" if meaning else f"{value}\n")
    say("".join(lines))


def _read(words: Sequence[str]) -> Typed:
    command: argparse.ArgumentParser = parser(words)
    given: dict[str, list[str]] = {}
    positionals: list[str] = []
    awaited: argparse.Action | None = None
    is_literal = False
    for word in words:
        if awaited is not None:
            given.setdefault(awaited.dest, []).append(word)
            awaited = None
            continue
        if word == "--":
            is_literal = True
            continue
        if word.startswith("--") and not is_literal:
            name, separator, value = word.partition("=")
            action = command._option_string_actions.get(name)
            if action is not None:
                given.setdefault(action.dest, []).extend([value] if separator else [])
                awaited = action if action.nargs is None and not separator else None
            continue
        nested = _commands(command)
        if nested is not None and word in nested.choices:
            command = nested.choices[word]
        else:
            positionals.append(word)
    return Typed(command, given, positionals, awaited, is_literal)


def _commands(command: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((action for action in command._actions if isinstance(action, argparse._SubParsersAction)), None)


def _candidates(typed: Typed, begun: str) -> Iterable[tuple[str, str]]:
    if typed.awaited is not None:
        return _values(typed, typed.awaited, begun)
    if begun.startswith("--") and "=" in begun and not typed.is_literal:
        name, _, value = begun.partition("=")
        action = typed.command._option_string_actions.get(name)
        found = () if action is None else _values(typed, action, value)
        return [(each if each == FILES else f"{name}={each}", meaning) for each, meaning in found]
    nested = _commands(typed.command)
    if nested is not None:
        purposes = {choice.dest: choice.help or "" for choice in nested._choices_actions}
        return [*purposes.items(), *_options(typed, begun)]
    return [*_positional(typed, begun), *_options(typed, begun)]


def _options(typed: Typed, begun: str) -> Iterable[tuple[str, str]]:
    """Options are offered once a dash is typed; options already on the command line only if they may be repeated."""
    if not begun.startswith("-") or typed.is_literal:
        return
    for action in typed.command._actions:
        if action.dest in typed.given and not isinstance(action, argparse._AppendAction):
            continue
        for name in action.option_strings:
            if name.startswith("--") and action.help is not argparse.SUPPRESS:
                yield name, (action.help or "").partition(";")[0]


def _positional(typed: Typed, begun: str) -> Iterable[tuple[str, str]]:
    actions = [action for action in typed.command._actions if not action.option_strings]
    if not actions or (begun.startswith("-") and not typed.is_literal):
        return ()
    action = actions[min(len(typed.positionals), len(actions) - 1)]
    if len(typed.positionals) >= len(actions) and action.nargs not in ("*", "+"):
        return ()
    return [(value, meaning) for value, meaning in _values(typed, action, begun) if value not in typed.positionals]


def _values(typed: Typed, action: argparse.Action, begun: str) -> Iterable[tuple[str, str]]:
    """The possible values of an argument, by its choices, or by its name in the help."""
    from groupkeeper.cli.framework import context_files, values

    if action.choices:
        return [(str(choice), "") for choice in action.choices]
    kind = action.metavar if isinstance(action.metavar, str) else ""
    if kind in ("FILE", "DIR"):
        return [(FILES, "")]
    if action.dest in ("context", "from_context") or (
        kind == "NAME" and typed.command.prog.startswith("groupkeeper context")
    ):
        return [(name, "") for name in context_files.names()] if not typed.command.prog.endswith(" add") else []
    if isinstance(action.type, values.ListOf):
        return _listed(action.type.names, begun)
    if kind == "ID":
        return _changes()
    if kind in ("GROUP", "TOPIC", "TRANSACTION") or kind.startswith(("TOPIC[", "TOPIC:")):
        servers, path = _last(typed, "bootstrap_server"), _last(typed, "command_config")
        servers = servers and servers.rpartition("=")[2]  # without the cluster's name
        return [(name, "") for name in names_in_cluster(kind, servers, _last(typed, "context"), path)]
    return []


def _last(typed: Typed, name: str) -> str | None:
    return typed.given.get(name, [None])[-1]


def _listed(names: Iterable[str], begun: str) -> list[tuple[str, str]]:
    """Names that may be listed with commas between them."""
    done = begun.rpartition(",")[0]
    front = f"{done}," if done else ""
    return [(f"{front}{name}", "") for name in names if name not in done.split(",")]


def _changes() -> list[tuple[str, str]]:
    """The ids of the changes in the journal, the newest first."""
    from argparse import Namespace

    from groupkeeper.cli.framework.commands import UsageMistake
    from groupkeeper.cli.framework.journals import journal
    from groupkeeper.operations.plans.journal import JournalUnreadable

    try:
        where = journal(Namespace(context=None, bootstrap_server=None))
        summaries = [] if where is None else where.summaries()[0]
    except (JournalUnreadable, UsageMistake):
        return []
    found = [(one.head.id, f"{one.head.kind} of {', '.join(one.names)}") for one in reversed(summaries)]
    return [(change_id, meaning if meaning.isprintable() else "") for change_id, meaning in found]


def names_in_cluster(
    kind: str, servers: str | None, context: str | None, config_path: str | None, types: Container[str] | None = None
) -> list[str]:
    """The groups (`GROUP`), transactional ids (`TRANSACTION`) or topics of a cluster; none if it doesn't answer
    soon. `types`: names of the wanted groups' types, None: any.
    """
    import asyncio
    from argparse import ArgumentTypeError, Namespace

    from groupkeeper.cli.framework import values
    from groupkeeper.cli.framework.clusters import admin_of, cluster_of
    from groupkeeper.cli.framework.commands import UsageMistake
    from groupkeeper.client.errors import ClientError
    from groupkeeper.coroutines import run_coroutine
    from groupkeeper.operations.selection import Names, list_selected
    from groupkeeper.protocol.errors import KafkaError

    async def ask() -> list[str]:
        config = values.properties(config_path) if config_path else None
        cluster = cluster_of(Namespace(bootstrap_server=servers, context=context, command_config=config))
        async with asyncio.timeout(_PATIENCE_MS / 1000):
            async with admin_of(cluster, _PATIENCE_MS) as admin:
                if kind == "GROUP":
                    found, _ = await list_selected(admin, Names(()), with_share=True, with_streams=True)
                    return [one.group_id for one in found if types is None or (one.group_type or "Unknown") in types]
                if kind == "TRANSACTION":
                    return list((await admin.list_transactions()).transactions)
                return [topic.name for topic in await admin.list_topics()]

    try:
        return run_coroutine(ask())
    except (UsageMistake, ArgumentTypeError, ClientError, KafkaError, TimeoutError):
        return []
