"""The arguments of ``groupkeeper``."""

from __future__ import annotations

import argparse
import sys
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING, Any

from groupkeeper import __version__
from groupkeeper.cli import groups_commands as groups
from groupkeeper.cli import values
from groupkeeper.cli.output import complain, say

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction["ArgumentParser"]


_STATES = f"only groups in these states: {', '.join(values.STATES)}"
_TYPES = f"only groups of these types: {', '.join(values.TYPES)}"


class ArgumentParser(argparse.ArgumentParser):
    """argparse's, but what it cannot print is a failure."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (say if file is sys.stdout else complain)(message)


def parser() -> ArgumentParser:
    """The parser of all commands; the parsed ``run`` is the function to call."""
    top = ArgumentParser(prog="groupkeeper", description="Operate Kafka consumer groups.")
    top.add_argument("--version", action="version", version=f"groupkeeper {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("broker", help="run an embedded Kafka broker", add_help=False)
    purpose = "list, describe, reset and delete consumer groups"
    description = (
        "List, describe, reset and delete consumer groups. Exits with 1 when something failed (the rest is shown), "
        "and with 2 for a wrong usage, before a broker is asked."
    )
    nested = commands.add_parser("groups", help=purpose, description=description)
    _add_groups(nested.add_subparsers(title="commands", metavar="COMMAND", required=True))
    return top


def _add_groups(commands: Commands) -> None:
    command = _add(commands, "list", "list the consumer groups with their type and state")
    command.add_argument("--state", type=values.states, metavar="STATE[,STATE]", help=_STATES)
    command.add_argument("--type", type=values.types, metavar="TYPE[,TYPE]", help=_TYPES)
    command.set_defaults(run=groups.run, command=groups.list_groups)

    command = _add(commands, "describe", "show offsets with lag, members, or the state of groups")
    _add_group_ids(command)
    command.add_argument("--view", choices=["offsets", "members", "state"], default="offsets", help="default: offsets")
    command.set_defaults(run=groups.run, command=groups.describe)

    command = _add(commands, "reset", "set committed offsets of groups without members; shows only, unless --execute")
    _add_group_ids(command)
    _add_scope(command)
    _add_scenario(command)
    command.add_argument("--execute", action="store_true", help="commit the new offsets")
    command.add_argument(
        "--export", action="store_true", help="print the new offsets as the CSV that --from-file reads, nothing else"
    )
    command.set_defaults(run=groups.run, command=groups.reset)

    command = _add(commands, "delete-offsets", "delete committed offsets of a group")
    command.add_argument("group", metavar="GROUP", help="the group")
    command.add_argument(
        "--topic", action="append", required=True, type=values.topic, metavar="TOPIC[:0,1]", help="repeat for several"
    )
    command.set_defaults(run=groups.run, command=groups.delete_offsets)

    command = _add(commands, "delete", "delete groups without members, with their offsets")
    command.add_argument("groups", nargs="+", metavar="GROUP", help="a group")
    command.set_defaults(run=groups.run, command=groups.delete)


def _add(commands: Commands, name: str, purpose: str) -> ArgumentParser:
    command = commands.add_parser(name, help=purpose, description=purpose, formatter_class=RawDescriptionHelpFormatter)
    command.add_argument(
        "--bootstrap-server",
        required=True,
        type=values.servers,
        metavar="HOST:PORT[,...]",
        help="brokers to connect to first",
    )
    command.add_argument(
        "--command-config",
        type=values.properties,
        default={},
        metavar="FILE",
        help="properties for the client, by their Kafka names",
    )
    command.add_argument(
        "--timeout", type=values.timeout_ms, default=30000, metavar="MS", help="of each call; default: 30000"
    )
    command.add_argument("--output", choices=["table", "json"], default="table", help="default: table")
    command.add_argument("--debug", action="store_true", help="show the traceback of an unexpected error")
    command.set_defaults(refuse=command.error)
    return command


def _add_group_ids(command: ArgumentParser) -> None:
    chosen = command.add_mutually_exclusive_group(required=True)
    chosen.add_argument("groups", nargs="*", default=[], metavar="GROUP", help="a group")
    chosen.add_argument("--all-groups", action="store_true", help="all consumer groups")


def _add_scope(command: ArgumentParser) -> None:
    scope = command.add_mutually_exclusive_group()
    scope.add_argument("--all-topics", action="store_true", help="every partition with a committed offset")
    scope.add_argument("--topic", action="append", type=values.topic, metavar="TOPIC[:0,1]", help="repeat for several")


def _add_scenario(command: ArgumentParser) -> None:
    to = command.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="the oldest record")
    to.add_argument("--to-latest", action="store_true", help="the end")
    to.add_argument("--to-current", action="store_true", help="the committed offset, moved into the log")
    to.add_argument("--to-offset", type=int, metavar="N", help="this offset")
    to.add_argument("--shift-by", type=int, metavar="N", help="N records on, or back when negative")
    to.add_argument(
        "--to-datetime",
        type=values.datetime_ms,
        metavar="TIME",
        help="the first record from then on: 2026-01-31T23:59:59[.999][Z], UTC unless it names a zone",
    )
    to.add_argument(
        "--by-duration",
        type=values.duration,
        metavar="DURATION",
        help="the first record from so long ago on: P1DT2H3M4.5S",
    )
    to.add_argument(
        "--from-file",
        type=values.plan_file,
        metavar="FILE",
        help="the offsets in a CSV file of [group,]topic,partition,offset; not with --topic or --all-topics",
    )
