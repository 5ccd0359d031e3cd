"""The options of kafka-share-groups, and their valid combinations, checked in the official tool's order."""

from __future__ import annotations

from groupkeeper.cli.dropin.consumer_groups_options import TABLE as CONSUMER_GROUPS
from groupkeeper.cli.dropin.consumer_groups_options import (
    check_decided,
    check_delete_offsets,
    check_views,
    refuse_unneeded,
)
from groupkeeper.cli.dropin.options import Option, Options, UsageProblem
from groupkeeper.cli.java.releases import release

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCOPES = ("topic", "all-topics", "from-file")
SCENARIOS = ("to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file")

TABLE = CONSUMER_GROUPS.derived(
    "kafka-share-groups",
    "Lists, describes and deletes share groups, and resets or deletes their offsets.",
    [
        CONSUMER_GROUPS["bootstrap-server"]._replace(help="Brokers to connect to first. Always needed."),
        CONSUMER_GROUPS["group"]._replace(argument="share group"),
        Option(
            "topic",
            "The topic whose offsets to reset or delete. Give it again for several topics. For a reset `orders:0,1,2` "
            "stands for those partitions of the topic `orders` only.",
            "topic",
        ),
        Option("all-topics", "Reset the offsets of every partition that the group has subscribed to."),
        Option("list", "List the share groups of the cluster."),
        Option("all-groups", "Act on all share groups."),
        Option("delete", "Delete groups that have no members, with all their offsets."),
        Option(
            "reset-offsets",
            "Set the start offsets of a group that has no members. Name the partitions by --all-topics, --topic or "
            "--from-file, and the offsets by one of --to-offset, --to-earliest, --to-latest, --to-current, "
            "--to-datetime and --from-file. --dry-run shows the new offsets, --execute sets them, and --export prints "
            "them as CSV.",
        ),
        Option("delete-offsets", "Delete the offsets of one group for the topics given."),
    ],
    without=("by-duration", "shift-by", "type", "validate-regex"),
)


def check(options: Options) -> None:
    """Refuses invalid combinations by raising UsageProblem; OptionProblem for a state given twice."""
    options.need("bootstrap-server")
    if options.has("describe"):
        options.need_one_of(("all-groups", "group"), "describe")
        check_views(options)
    if options.has("delete"):
        _check_delete(options)
    check_delete_offsets(options)
    if options.has("reset-offsets"):
        _check_reset(options)
    refuse_unneeded(options)
    options.need_one_action(ACTIONS, ".")


def _check_delete(options: Options) -> None:
    if not options.has("group") and not options.has("all-groups"):
        raise UsageProblem(f"Option [delete] takes the options [group] or [all-groups]{release().end}")
    if options.has("group") and options.has("all-groups"):
        raise UsageProblem("Option [delete] takes either [group] or [all-groups], not both.")
    refused, names = release().undeletable_topics
    if options.given(refused):
        raise UsageProblem(f"Option [delete] does not take the {names}")


def _check_reset(options: Options) -> None:
    check_decided(options)
    if not options.has("group"):
        raise UsageProblem("Option [reset-offsets] takes the option: [group]")
    options.need_one_of(SCOPES, "reset-offsets", release().share_scopes)
    # Kafka 4.3 takes --topic with --all-topics, and has no --from-file.
    if "from-file" in release().share_scopes or options.has("from-file"):
        options.refuse_several(SCOPES)
    options.need_one_of(SCENARIOS, "reset-offsets", release().share_scenarios)
    options.refuse_several(SCENARIOS)
