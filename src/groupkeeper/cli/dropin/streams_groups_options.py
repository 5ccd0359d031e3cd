"""The options of kafka-streams-groups, and their valid combinations, checked in the official tool's order."""

from __future__ import annotations

from groupkeeper.cli.dropin.consumer_groups_options import SCENARIOS, check_decided, check_views
from groupkeeper.cli.dropin.consumer_groups_options import TABLE as CONSUMER_GROUPS
from groupkeeper.cli.dropin.options import Option, Options, UsageProblem, in_hash_order
from groupkeeper.cli.java.releases import release

VIEWS = ("members", "offsets", "state", "topology")
ACTIONS = ("list", "describe", "reset-offsets", "delete", "delete-offsets")
GROUPS = ("all-groups", "group")

TABLE = CONSUMER_GROUPS.derived(
    "kafka-streams-groups",
    "Lists, describes and deletes the groups of Kafka Streams applications, and resets or deletes their committed "
    "offsets and internal topics.",
    [
        CONSUMER_GROUPS["bootstrap-server"]._replace(help="Brokers to connect to first. Always needed."),
        CONSUMER_GROUPS["group"]._replace(argument="streams group"),
        Option(
            "input-topic",
            "The input topic whose offsets to reset or delete. Give it again for several topics; `orders:0,1,2` stands "
            "for those partitions of the topic `orders` only.",
            "topic",
        ),
        Option("all-input-topics", "Reset or delete the offsets of all source topics of the group's topology."),
        Option("list", "List the streams groups of the cluster."),
        Option("describe", "Show the lag of the partitions that a group's active tasks read, or its members or state."),
        Option("all-groups", "Act on all streams groups."),
        Option(
            "topology",
            "With --describe: show the nodes of the application, where the brokers keep them (Kafka 4.4).",
            available_with=("describe",),
        ),
        Option("delete-offsets", "Delete committed offsets of one group for the input topics given."),
        Option(
            "reset-offsets",
            "Set the committed offsets of groups that have no members. Name the partitions by --all-input-topics, "
            "--input-topic or --from-file, and the offsets by one of --to-offset, --to-earliest, --to-latest, "
            "--to-current, --to-datetime, --by-duration, --shift-by and --from-file. --dry-run shows the new offsets, "
            "--execute commits them, and --export prints them as CSV.",
        ),
        Option(
            "delete-internal-topic",
            "With --reset-offsets --execute: delete this internal topic. Give it again for several topics.",
            "",
        ),
        Option(
            "delete-all-internal-topics",
            "With --delete, or --reset-offsets --execute: delete the group's topics for repartitioning and for the "
            "changes of its state stores.",
        ),
        Option(
            "verbose",
            "With --describe: show committed offsets and log ends, epochs and target assignments too.",
            available_with=("describe",),
        ),
    ],
    without=("topic", "all-topics", "type", "validate-regex"),
)


def check(options: Options) -> None:
    """Refuses invalid combinations by raising UsageProblem; OptionProblem for a state given twice."""
    options.need("bootstrap-server")
    if options.has("describe"):
        options.need_one_of(GROUPS, "describe")
        check_views(options, VIEWS, release().streams_views)
    if options.has("delete"):
        options.need_one_of(GROUPS, "delete")
        if options.given(("input-topic", "all-input-topics")):
            raise UsageProblem("Kafka Streams does not support topic-specific offset deletion from a streams group.")
    if options.has("delete-offsets"):
        _check_delete_offsets(options)
    if options.has("reset-offsets"):
        check_decided(options)
        options.need_one_of(GROUPS, "reset-offsets")
        options.refuse_several(SCENARIOS)
    _check_internal_topics(options)
    if options.given(("dry-run", "execute")) and not options.has("reset-offsets"):
        raise UsageProblem("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    options.refuse("list", ("members", "offsets", "topology"))
    options.refuse("group", ("all-groups", "list"))
    options.refuse("input-topic", in_hash_order(("list", "describe", "delete")))
    if len(options.given(ACTIONS)) != 1:
        raise UsageProblem(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, or "
            "--delete-offsets."
        )


def _check_delete_offsets(options: Options) -> None:
    if not options.given(("input-topic", "all-input-topics")) or not options.has("group"):
        raise UsageProblem(
            "Option [delete-offsets] takes the [group] and one of these options: [all-input-topics], [input-topic]"
        )
    groups = options.texts("group")
    if len(groups) > 1:
        raise UsageProblem(
            f"Option [delete-offsets] supports only one [group] at a time, but found: [{', '.join(groups)}]"
        )


def _check_internal_topics(options: Options) -> None:
    resets = options.has("reset-offsets")
    if options.has("delete-all-internal-topics"):
        if not resets and not options.has("delete"):
            raise UsageProblem(
                "Option [delete-all-internal-topics] takes one of these options: [delete], [reset-offsets]"
            )
        if resets and not options.has("execute"):
            raise UsageProblem("Option [delete-all-internal-topics] takes [execute] when [reset-offsets] is used.")
    elif options.has("delete-internal-topic") and not (resets and options.has("execute")):
        raise UsageProblem("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")
