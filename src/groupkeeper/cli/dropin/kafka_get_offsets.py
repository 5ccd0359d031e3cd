"""kafka-get-offsets, equal to the official tool of Kafka 4.4.0: shows where logs begin and end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupkeeper.cli.dropin.bootstrap import ADDRESS, open_admin
from groupkeeper.cli.dropin.drop_in import (
    PropertiesUnreadable,
    Refusal,
    carry_out,
    is_of_brokers,
    read_options,
    tell_plainly,
    tool,
)
from groupkeeper.cli.dropin.options import Option, Options, OptionTable, UsageProblem
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetSpec, TopicPartition
from groupkeeper.java_numbers import INT_MAX, LONG_MAX, parse_number

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
TIMES_TEXT = " / ".join(f"{number} or {name}" for name, number in TIMES.items())

TABLE = OptionTable(
    "kafka-get-offsets",
    # The official tool's words, which it also prints when it is called without arguments.
    "An interactive shell for getting topic-partition offsets.",
    [
        Option("bootstrap-server", "The brokers to connect to first. Always needed.", "HOST1:PORT1,...,HOST3:PORT3"),
        Option(
            "topic-partitions",
            "Patterns of partitions, separated by commas. Each is a regular expression for the topic, any topic when "
            "it is left out, and after a colon a partition `3`, a range `3-5` (without 5), `3-`, `-5`, or nothing for "
            "all.",
            "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        ),
        Option("topic", "A regular expression for the topics. Not together with --topic-partitions.", "topic"),
        Option(
            "partitions",
            "Numbers of partitions, separated by commas. Not together with --topic-partitions.",
            "partition ids",
        ),
        Option(
            "time",
            "Which offset: of the first record with this timestamp or a later one, or one of the special ones. "
            "Partitions without such a record are left out.",
            f"<timestamp> / {TIMES_TEXT}",
            default="latest",
        ),
        Option("command-config", "A file of properties for the admin client.", "config file"),
        Option("exclude-internal-topics", "Leave out internal topics."),
    ],
    summary="Shows where the logs of partitions begin or end, or which offset belongs to a time.",
)
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


class PartitionRule(NamedTuple):
    """Topics by a regular expression, and which partitions of them."""

    topics: re.Pattern[str]
    has_partition: Callable[[int], bool]

    def has_topic(self, topic: str) -> bool:
        """Whether the rule is about the topic."""
        return self.topics.fullmatch(topic) is not None


@tool
def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and show offsets."""
    options = read_options(TABLE, arguments, check_servers, tell=_tell, with_help=(UsageProblem,))
    return options if isinstance(options, int) else carry_out(TABLE, _show(options), tell=_tell)


def _tell(problem: Exception) -> int:
    text = problem.reason if isinstance(problem, PropertiesUnreadable) else problem
    return tell_plainly(f"Error occurred: {java.described(problem) if is_of_brokers(problem) else text}")


def check_servers(options: Options) -> None:
    """Raises UsageProblem unless there are servers, all with a port."""
    options.need("bootstrap-server")
    servers = options.text("bootstrap-server") or ""
    if not java.trim(servers):
        raise UsageProblem("Error while validating the bootstrap address\n")
    parts = java.split(servers, ",") if "," in servers else [servers]
    if not parts or any(ADDRESS.fullmatch(part) is None for part in parts):
        raise UsageProblem("Please provide valid host:port like host1:9091,host2:9092\n")


async def _show(options: Options) -> None:
    if options.has("topic-partitions") and (options.has("topic") or options.has("partitions")):
        raise Refusal("--topic-partitions cannot be used with --topic or --partitions")
    spec = offset_spec(options.text("time") if options.has("time") else "latest")
    rules = rules_of(options)
    admin = open_admin(options)
    try:
        partitions = await _partitions(admin, rules, options.has("exclude-internal-topics"))
        listed = await admin.list_offsets(dict.fromkeys(partitions, spec))
    finally:
        await admin.close()
    for tp in partitions:
        if tp in listed.failed:
            why = java.described(listed.failed[tp])
            complain(f"Skip getting offsets for topic-partition {tp} due to error: {why}\n")
    offsets = {tp: answer.offset for tp, answer in listed.done.items() if answer.offset != -1}
    say("".join(f"{tp.topic}:{tp.partition}:{offsets[tp]}\n" for tp in sorted(offsets, key=str)))


async def _partitions(admin: Admin, rules: Sequence[PartitionRule], exclude_internal: bool) -> list[TopicPartition]:
    topics = await admin.list_topics(include_internal=not exclude_internal)
    names = [topic.name for topic in topics if any(rule.has_topic(topic.name) for rule in rules)]
    described = (await admin.describe_topics(names)).all() if names else {}
    partitions = [
        TopicPartition(name, partition.partition)
        # Skipped partitions are reported in this order.
        for name in java.topic_order(names)
        for partition in described[name].partitions
        if any(rule.has_topic(name) and rule.has_partition(partition.partition) for rule in rules)
    ]
    if not partitions:
        raise Refusal("Could not match any topic-partitions with the specified filters")
    return partitions


def offset_spec(text: str | None) -> OffsetSpec:
    """The offset that --time names. Raises Refusal."""
    number = TIMES.get(text or "", parse_number(text or "", LONG_MAX))
    if number is None:
        raise Refusal(f"Malformed time argument {text}. Please use {TIMES_TEXT}, or a specified long format timestamp")
    return OffsetSpec(number)


def rules_of(options: Options) -> list[PartitionRule]:
    """The rules of the options, or one that takes all. Raises Refusal."""
    if options.has("topic-partitions"):
        return [_rule(text) for text in java.split(options.text("topic-partitions") or "", ",")]
    topic = options.text("topic")
    numbers = _numbers(options.text("partitions") or "")
    return [PartitionRule(_pattern(".*" if topic is None else topic), lambda n: not numbers or n in numbers)]


def _rule(text: str) -> PartitionRule:
    match = RULE.fullmatch(text)
    if match is None:
        raise Refusal(f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}")
    topics = _pattern(match[1] or ".*")
    if match[2]:
        only = _integer(match[2])
        return PartitionRule(topics, lambda number: number == only)
    low = _integer(match[3]) if match[3] else 0
    high = _integer(match[4]) if match[4] else INT_MAX
    return PartitionRule(topics, lambda number: low <= number < high)


def _integer(text: str) -> int:
    number = parse_number(text, INT_MAX)
    if number is None:
        raise Refusal(f'For input string: "{text}"')
    return number


def _numbers(text: str) -> set[int]:
    numbers = {parse_number(part, INT_MAX) for part in java.split(text, ",")} if text else set()
    if None in numbers:
        raise Refusal(f"--partitions expects a comma separated list of numeric partition ids, but received: {text}")
    return {number for number in numbers if number is not None}


def _pattern(text: str) -> re.Pattern[str]:
    """The pattern of a topic filter: commas separate alternatives, outer blanks don't count. Raises Refusal."""
    from groupkeeper.cli.java.pattern import BadJavaPattern, compile_pattern

    text = re.sub(r"[\"']+$", "", re.sub(r"^[\"']+", "", java.trim(text).replace(",", "|").replace(" ", "")))
    try:
        return compile_pattern(text)
    except BadJavaPattern:
        raise Refusal(f"{text} is an invalid regex.") from None
