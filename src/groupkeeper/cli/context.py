"""`groupkeeper context …`: clusters under names."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from pathlib import Path

from groupkeeper.cli.framework import context_files, values
from groupkeeper.cli.framework.clusters import Cluster, add_output, check, print_report
from groupkeeper.cli.framework.commands import ArgumentParser, Command, CommandName, Family, UsageMistake
from groupkeeper.cli.framework.context_files import Context, ContextProblem
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.framework.reports import Column, Page, Row, Schema
from groupkeeper.cli.framework.terminal import is_terminal

CONTEXTS = Schema(
    "contexts",
    "contexts",
    [
        Column("context", "its name"),
        Column("in_use", "whether commands use this context when nothing else names a cluster"),
        Column("bootstrap_server", ""),
        Column("command_config", "the file with more properties; null: none"),
        Column("protected", "whether changes must be confirmed with the context's name"),
    ],
)

PROPERTIES = Schema(
    "context",
    "properties",
    [Column("name", "of the property, by its Kafka name"), Column("value", "`********` in place of a secret")],
)


def _handling(run: Callable[[Namespace], None]) -> Callable[[Namespace], int]:
    """Wraps a command: a ContextProblem is printed as one line, with exit status 1."""

    def handled(options: Namespace) -> int:
        try:
            run(options)
        except ContextProblem as problem:
            complain(f"error: {problem}\n")
            return 1
        return 0

    return handled


def _name(text: str) -> str:
    if not context_files.is_name(text):
        raise ArgumentTypeError(
            f"{text!r} is not a name: expected up to 100 ASCII letters, digits, '.', '_' and '-', a letter or digit "
            "first"
        )
    return text


def _add_add(command: ArgumentParser) -> None:
    command.add_argument("name", type=_name, help="the name of the context")
    command.add_argument("--bootstrap-server", required=True, type=values.servers, help="brokers to connect to first")
    command.add_argument(
        "--command-config",
        metavar="FILE",
        help="a file of properties for the client; the context stores its path, not a copy",
    )
    command.add_argument(
        "--property",
        action="append",
        type=values.client_property,
        help="a property for the client, saved in the context",
    )
    command.add_argument(
        "--secret",
        action="append",
        type=values.secret_name,
        help="a property whose value is entered at a hidden prompt, or read from a line of standard input, such as "
        'sasl.jaas.config: \'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" '
        'password="…";\'',
    )
    command.add_argument(
        "--protected",
        action="store_true",
        help="changes must be confirmed: type the context's name at a terminal, or give --confirm-context",
    )
    command.add_argument("--use", action="store_true", help="select it")
    command.add_argument("--replace", action="store_true", help="replace the context of this name")


def _add(options: Namespace) -> None:
    if options.name in context_files.names() and not options.replace:
        raise ContextProblem(f"context {options.name!r} exists already: add --replace, or choose another name")
    path = None if options.command_config is None else str(Path(options.command_config).absolute())
    properties = dict(options.property) | {name: _ask(name) for name in options.secret}
    _check(options, path, properties)
    context_files.write(Context(options.name, options.bootstrap_server, path, properties, options.protected))
    if options.use or len(context_files.names()) == 1:
        context_files.use(options.name)
    say(f"context {options.name} saved" + (" and selected\n" if context_files.current() == options.name else "\n"))


_ENTERED = {"sasl.jaas.config": ' (the whole entry: CLASS required username="…" password="…";)'}
"""Hints in prompts for properties that are often mistaken for a password."""


def _ask(name: str) -> str:
    if is_terminal(sys.stdin):
        from getpass import getpass

        try:
            return getpass(f"{name}{_ENTERED.get(name, '')}: ")
        except EOFError:
            return ""
    return sys.stdin.readline().rstrip("\n") if sys.stdin else ""


def _check(options: Namespace, path: str | None, properties: dict[str, str]) -> None:
    """Refuses a context that the client would refuse, while it is easy to correct."""
    try:
        referred = {} if path is None else values.properties(path)
        given = [f"--{name}" for name in ("property", "secret") if getattr(options, name)]
        source = " or ".join(given) or "--command-config"
        check(Cluster(options.bootstrap_server, {**referred, **properties}, source))
    except (ArgumentTypeError, UsageMistake) as problem:
        options.refuse(str(problem))


def _list(options: Namespace) -> None:
    in_use = context_files.current()
    contexts = [context_files.read(name) for name in context_files.names()]
    rows: list[Row] = [
        {
            "context": one.name,
            "in_use": one.name == in_use,
            "bootstrap_server": one.bootstrap_server,
            "command_config": one.command_config,
            "protected": one.is_protected,
        }
        for one in contexts
    ]
    hint = "no contexts yet: groupkeeper context add NAME --bootstrap-server HOST:PORT"
    print_report(options, CONTEXTS, Page(rows, notes=[] if rows else [hint]))


def _add_show(command: ArgumentParser) -> None:
    command.add_argument("name", nargs="?", help="default: the one in use")
    add_output(command)


def _show(options: Namespace) -> None:
    name = options.name or context_files.current()
    if name is None:
        raise ContextProblem("no context is in use: name one, or choose one with 'groupkeeper context use NAME'")
    properties = context_files.read(name).all_properties()
    rows: list[Row] = [{"name": key, "value": context_files.masked(key, value)} for key, value in properties.items()]
    print_report(options, PROPERTIES, Page(rows))


def _add_use(command: ArgumentParser) -> None:
    command.add_argument("name", help="the context that commands use from now on")


def _use(options: Namespace) -> None:
    context_files.use(options.name)
    say(f"context {options.name} selected\n")


def _add_protect(command: ArgumentParser) -> None:
    command.add_argument("name", help="the context to protect")
    command.add_argument("--off", action="store_true", help="remove the protection")


def _protect(options: Namespace) -> None:
    context_files.write(context_files.read(options.name)._replace(is_protected=not options.off))
    say(f"context {options.name} is {'no longer ' if options.off else ''}protected\n")


def _add_remove(command: ArgumentParser) -> None:
    command.add_argument("name", help="the context to delete")


def _remove(options: Namespace) -> None:
    context_files.remove(options.name)
    say(f"context {options.name} removed\n")


ADD = Command(
    _add_add,
    _handling(_add),
    examples="""\
  groupkeeper context add local --bootstrap-server localhost:9092
  groupkeeper context add prod --bootstrap-server kafka.example.com:9093 --protected \\
      --command-config prod.properties
  groupkeeper context add eu --bootstrap-server eu.example.com:9093 \\
      --property security.protocol=SASL_SSL --property sasl.mechanism=PLAIN \\
      --secret sasl.jaas.config""",
)
LIST = Command(add_output, _handling(_list))
SHOW = Command(_add_show, _handling(_show))
USE = Command(_add_use, _handling(_use))
PROTECT = Command(
    _add_protect,
    _handling(_protect),
    "Protect a context: commands that change something there ask for its name at a terminal, and elsewhere need "
    "--confirm-context NAME. Its brokers are also protected when a command names them without the context.",
)
REMOVE = Command(_add_remove, _handling(_remove))


FAMILY = Family(
    {
        "add": CommandName("save a cluster under a name", "context:ADD"),
        "list": CommandName("list the contexts", "context:LIST"),
        "show": CommandName("show a context, without its secrets", "context:SHOW"),
        "use": CommandName("choose the context that commands use", "context:USE"),
        "protect": CommandName("require its name to confirm changes", "context:PROTECT"),
        "remove": CommandName("delete a context", "context:REMOVE"),
    },
    "Save clusters under names, with the properties of their clients, to choose them with --context. "
    "Each is a file that only its owner may read.",
)
