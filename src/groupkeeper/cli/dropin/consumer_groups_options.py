"""The options of kafka-consumer-groups, and their valid combinations, checked in the official tool's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.cli.dropin.options import Option, Options, OptionTable, UsageProblem
from groupkeeper.cli.framework.output import complain
from groupkeeper.cli.java import values as java

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
VIEWS = ("members", "offsets", "state")
GROUPS = ("group", "all-groups")

TABLE = OptionTable(
    "kafka-consumer-groups",
    "Lists, describes and deletes consumer groups, and resets or deletes their committed offsets.",
    [
        Option(
            "bootstrap-server",
            "Brokers to connect to first. Every action but --validate-regex needs it.",
            "server to connect to",
        ),
        Option(
            "group",
            "The group to act on. Give it again for several groups, where the action takes several.",
            "consumer group",
        ),
        Option(
            "topic",
            "The topic whose offsets to reset or delete. Give it again for several topics; `orders:0,1,2` stands for "
            "those partitions of the topic `orders` only.",
            "topic",
        ),
        Option("all-topics", "Reset the offsets of every partition for which the group has one."),
        Option("list", "List the consumer groups of the cluster."),
        Option("describe", "Show the offsets of groups with their lag, or their members or state."),
        Option("all-groups", "Act on all consumer groups."),
        Option("delete", "Delete groups that have no members, with all their committed offsets."),
        Option(
            "timeout",
            "How long one call to the cluster may take, with its retries.",
            "timeout (ms)",
            "Long",
            default=30000,
        ),
        Option("command-config", "A file of properties for the admin client.", "command config property file"),
        Option(
            "reset-offsets",
            "Set the committed offsets of groups that have no members. Name the partitions by --all-topics, --topic or "
            "--from-file, and the offsets by one of --to-offset, --to-earliest, --to-latest, --to-current, "
            "--to-datetime, --by-duration, --shift-by and --from-file. --dry-run (the default) shows the new offsets, "
            "--execute commits them, and --export prints them as CSV.",
        ),
        Option("delete-offsets", "Delete committed offsets of one group for the topics given."),
        Option("dry-run", "With --reset-offsets: only show the new offsets."),
        Option("execute", "With --reset-offsets: commit the new offsets."),
        Option("export", "With --reset-offsets: print the new offsets as CSV, which --from-file reads."),
        Option("to-offset", "Reset to this offset.", "offset", "Long"),
        Option("from-file", "Reset to the offsets of this CSV file.", "path to CSV file"),
        Option(
            "to-datetime",
            "Reset to the first record from this time on: 'YYYY-MM-DDThh:mm:ss.sss', UTC unless it names a zone.",
            "datetime",
        ),
        Option("by-duration", "Reset to the first record from this long ago on: 'PnDTnHnMnS'.", "duration"),
        Option("to-earliest", "Reset to the oldest record that there is."),
        Option("to-latest", "Reset to the end, after the newest record."),
        Option("to-current", "Reset to the committed offset, or to the end where there is none."),
        Option("shift-by", "Reset by this many records forward, or back when negative.", "number-of-offsets", "Long"),
        Option("members", "With --describe: show the members of the group.", available_with=("describe",)),
        Option(
            "verbose",
            "With --describe: show leader epochs, assignments and group epochs too.",
            available_with=("describe",),
        ),
        Option(
            "offsets",
            "With --describe: show offsets and lag, which is what it shows by default.",
            available_with=("describe",),
        ),
        Option(
            "state",
            "With --describe: show the state of the group. With --list: show states, or only the groups in the states "
            "given, for example `stable,empty`.",
            "",
            optional=True,
            available_with=("describe", "list"),
        ),
        Option(
            "type",
            "With --list: show types, or only the groups of the types given, for example `classic,consumer`.",
            "",
            optional=True,
            available_with=("list",),
        ),
        Option(
            "validate-regex",
            "Say whether a regular expression is valid for the subscription of a group (RE2 syntax).",
            "regex",
        ),
    ],
)

UNDECIDED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will "
    "require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)


def check(options: Options) -> None:
    """Refuses invalid combinations by raising UsageProblem, and warns about doubtful ones."""
    if not options.has("validate-regex"):
        options.need("bootstrap-server")
    if options.has("describe"):
        options.need_one_of(GROUPS, "describe")
        check_views(options)
    _check_delete(options)
    if options.has("reset-offsets"):
        _check_reset(options)
    refuse_unneeded(options)
    options.need_one_action(ACTIONS)


def refuse_unneeded(options: Options) -> None:
    """Raises UsageProblem for groups and topics where nothing is asked about them."""
    options.refuse("group", ("all-groups", "list"))
    options.refuse("topic", ("list", "describe"))


class Converted(NamedTuple):
    """Values that the official tool converts in this order before any action, whether that needs them or not."""

    to_offsets: Sequence[int]
    by_duration: str | None
    shift_by: int | None
    timeout_ms: int


def converted(options: Options) -> Converted:
    """Converts the values. Raises OptionProblem."""
    return Converted(
        options.numbers("to-offset"),
        options.text("by-duration"),
        options.number("shift-by"),
        max(java.to_int(options.number("timeout") or 0), 0),
    )


def check_views(options: Options, views: Sequence[str] = VIEWS, shown: Sequence[str] = VIEWS) -> None:
    """Refuses more than one view of a description, and a state as one. `shown`: the views that the text names.

    Raises UsageProblem, OptionProblem.
    """
    if len(options.given(views)) > 1:
        names = ", ".join(f"[{name}]" for name in shown)
        raise UsageProblem(f"Option [describe] takes at most one of these options: {names}")
    if options.has("state") and options.text("state") is not None:
        raise UsageProblem("Option [describe] does not take a value for [state]")


def check_decided(options: Options) -> None:
    """Refuses a reset with neither or both of --dry-run and --execute. Raises UsageProblem."""
    if options.has("dry-run") and options.has("execute"):
        raise UsageProblem("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.has("dry-run") and not options.has("execute"):
        raise UsageProblem("Option [reset-offsets] takes the option: [execute] or [dry-run]")


def _check_delete(options: Options) -> None:
    if options.has("delete"):
        options.need_one_of(GROUPS, "delete")
        if options.has("topic"):
            raise UsageProblem("The consumer does not support topic-specific offset deletion from a consumer group.")
    check_delete_offsets(options)


def check_delete_offsets(options: Options) -> None:
    """Raises UsageProblem for --delete-offsets without a group or topics."""
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise UsageProblem("Option [delete-offsets] takes the following options: [group], [topic]")


def _check_reset(options: Options) -> None:
    if options.given(("dry-run", "execute")):
        check_decided(options)
    else:
        complain(f"{UNDECIDED}\n")
    options.need_one_of(GROUPS, "reset-offsets")
    options.refuse_several(SCENARIOS)
