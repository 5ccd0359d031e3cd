"""kafka-groups, equal to the official tool of Kafka 4.4.0: lists groups of all types."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from groupkeeper.cli.dropin import drop_in
from groupkeeper.cli.dropin.bootstrap import open_admin
from groupkeeper.cli.dropin.groups_text import all_groups
from groupkeeper.cli.dropin.options import (
    HELP,
    VERSION,
    Option,
    OptionProblem,
    Options,
    OptionTable,
    UsageProblem,
    refuse,
)
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin.types import GroupListing, GroupType
from groupkeeper.client.errors import BrokersNotFound, CallTimedOut, ClientError
from groupkeeper.protocol.errors import KafkaError

TABLE = OptionTable(
    "kafka-groups",
    "Lists groups of all types.",
    [
        Option("bootstrap-server", "The broker to connect to first.", "server to connect to", required=True),
        Option("command-config", "A file of properties for the admin client.", "command config property file"),
        Option("list", "List the groups."),
        Option("group-type", "Only groups of this type: 'classic', 'consumer', 'share' or 'streams'.", "type"),
        Option("protocol", "Only groups of this protocol type.", "protocol"),
        Option("consumer", "Only groups of consumers, of type classic or consumer, and groups that only hold offsets."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
        HELP,
        VERSION,
    ],
)
FILTERS = ("consumer", "group-type", "protocol", "share", "streams")
PATIENCE_MS = 30_000


class BadType(Exception):
    """--group-type names no type."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the result is the exit status."""
    return drop_in.run_tool(run, arguments)


def run(arguments: Sequence[str]) -> int:
    """Read the arguments, check them and list. Only errors of the parser and of combinations come with the help."""
    try:
        options = TABLE.parse(arguments)
        status = drop_in.show_help_or_version(TABLE, options)
        if status is not None:
            return status
    except OptionProblem as problem:
        return drop_in.refuse_usage(TABLE, str(problem))
    try:
        check(options)
    except UsageProblem as problem:
        return drop_in.refuse_usage(TABLE, str(problem))
    except (OptionProblem, BadType) as problem:
        complain(f"{problem}\n")
        return 1
    return asyncio.run(_list(options))


def check(options: Options) -> None:
    """Refuses invalid combinations. Raises UsageProblem, BadType, OptionProblem."""
    if not options.has("list"):
        raise UsageProblem("Command must include exactly one action: --list.")
    if options.has("group-type") and _type(options) is GroupType.UNKNOWN:
        raise BadType("--group-type must be a valid group type.")
    for name in ("consumer", "share", "streams"):
        refuse(options, name, [other for other in FILTERS if other != name])


def _type(options: Options) -> GroupType | None:
    text = options.text("group-type")
    return None if text is None else GroupType.parse(text)


async def _list(options: Options) -> int:
    try:
        admin = open_admin(options)
    except drop_in.ExecutionFailure as problem:
        if isinstance(problem, drop_in.PropertiesUnreadable):
            complain(f"{problem.reason}\n")
        else:
            say(f"Error while executing groups command : {problem}\n")
        return 1
    except (OptionProblem, UsageProblem) as problem:
        complain(f"{problem}\n")
        return 1
    try:
        listings = (await admin.list_groups(timeout_ms=PATIENCE_MS)).all()
        kind, protocol = _type(options), options.text("protocol")
    except (KafkaError, ClientError, OptionProblem) as problem:
        say(f"Error while executing groups command : {_text(problem)}\n")
        return 1
    finally:
        await admin.close()
    say(all_groups([group for group in listings.values() if is_wanted(group, options, kind, protocol)]))
    return 0


def _text(problem: Exception) -> str:
    """The official tool's text: it waits thirty seconds, less than its client would, and then prints none."""
    if isinstance(problem, BrokersNotFound) and isinstance(problem.__cause__, CallTimedOut):
        return "null"
    return java.message(problem)


def is_wanted(group: GroupListing, options: Options, kind: GroupType | None, protocol: str | None) -> bool:
    """Whether a group passes the one filter, or both a type and a protocol."""
    if kind is not None:
        return group.group_type is kind and protocol in (None, group.protocol_type)
    if protocol is not None:
        return group.protocol_type == protocol
    if options.has("consumer"):
        return group.protocol_type in ("", "consumer") or group.group_type is GroupType.CONSUMER
    if options.has("share"):
        return group.group_type is GroupType.SHARE
    return not options.has("streams") or group.group_type is GroupType.STREAMS
