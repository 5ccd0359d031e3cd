"""kafka-groups, equal to the official tool of Kafka 4.4.0: lists groups of all types."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.cli.dropin import drop_in
from groupkeeper.cli.dropin.bootstrap import open_admin
from groupkeeper.cli.dropin.groups_text import all_groups
from groupkeeper.cli.dropin.options import Option, OptionProblem, Options, OptionTable, UsageProblem
from groupkeeper.cli.framework.output import say
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin.types import GroupListing, GroupType
from groupkeeper.client.errors import BrokersNotFound, CallTimedOut

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
    ],
)
FILTERS = ("consumer", "group-type", "protocol", "share", "streams")
PATIENCE_MS = 30_000


@drop_in.tool
def main(arguments: Sequence[str]) -> int:
    """Read the arguments, check them and list. Only errors of the parser and of combinations come with the help."""
    options = drop_in.read_options(TABLE, arguments, check, with_help=(UsageProblem,), parser_has_help=True)
    return options if isinstance(options, int) else drop_in.carry_out(TABLE, _list(options), tell=_tell)


def check(options: Options) -> None:
    """Refuses invalid combinations. Raises UsageProblem, and OptionProblem for values."""
    if not options.has("list"):
        raise UsageProblem("Command must include exactly one action: --list.")
    if options.has("group-type") and _type(options) is GroupType.UNKNOWN:
        raise OptionProblem("--group-type must be a valid group type.")
    for name in ("consumer", "share", "streams"):
        options.refuse(name, [other for other in FILTERS if other != name])


def _type(options: Options) -> GroupType | None:
    text = options.text("group-type")
    return None if text is None else GroupType.parse(text)


async def _list(options: Options) -> None:
    admin = open_admin(options)
    try:
        listings = (await admin.list_groups(timeout_ms=PATIENCE_MS)).all()
        kind, protocol = _type(options), options.text("protocol")
    except OptionProblem as problem:  # found out late
        raise drop_in.ExecutionFailure(str(problem)) from problem
    finally:
        await admin.close()
    say(all_groups([group for group in listings.values() if is_wanted(group, options, kind, protocol)]))


def _tell(problem: Exception) -> int:
    """The official tool waits thirty seconds, less than its client would, and then prints no text."""
    if isinstance(problem, drop_in.PropertiesUnreadable):
        return drop_in.tell_plainly(problem.reason)
    if isinstance(problem, OptionProblem | UsageProblem):
        return drop_in.tell_plainly(problem)
    is_late = isinstance(problem, BrokersNotFound) and isinstance(problem.__cause__, CallTimedOut)
    text = java.message(problem) if drop_in.is_of_brokers(problem) else problem
    say(f"Error while executing groups command : {'null' if is_late else text}\n")
    return 1


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
