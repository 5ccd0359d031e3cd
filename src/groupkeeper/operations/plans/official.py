"""Command lines of Kafka's own tool that have the effect of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.client.topology import TopicPartition, by_topic
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.model import GroupPlan, Kind, Plan
from groupkeeper.operations.plans.reset import Scenario, ShiftBy, ToCurrent, ToEarliest, ToLatest, ToOffset, ToTime
from groupkeeper.operations.times import utc_text
from groupkeeper.shell import Way, text, tool

TOOL = "kafka-consumer-groups"


def commands(plan: Plan, way: Way, scenario: Scenario | None = None) -> list[str]:
    """The lines, one for each command.

    `scenario`: the target of the whole plan, so that a group needs one command; None: by offset. The official tool
    drops the metadata of the commits. Raises OperationRefused.
    """
    if plan.kind is Kind.SHARE_CLONE:
        raise OperationRefused("kafka-share-groups cannot set start offsets to given offsets: apply the plan instead")
    lines: list[list[str]] = []
    options = None if scenario is None else scenario_options(scenario)
    for group in plan.groups:
        if options is not None:
            topics = topic_options(group.offsets, plan)
            lines.append(["--reset-offsets", "--group", group.group_id, *topics, *options, "--execute"])
        else:
            lines += _by_offset(group, plan)
        if group.deleted:
            deleted = topic_options(group.deleted, plan)
            lines.append(["--delete-offsets", "--group", group.group_id, *deleted])
    return [text(tool(way, TOOL, words)) for words in lines]


def scenario_options(scenario: Scenario) -> list[str] | None:
    """The official tool's options for the scenario; None: it has none."""
    match scenario:
        case ToEarliest():
            return ["--to-earliest"]
        case ToLatest():
            return ["--to-latest"]
        case ToCurrent():
            return ["--to-current"]
        case ToOffset(offset):
            return ["--to-offset", str(offset)]
        case ShiftBy(records):
            return ["--shift-by", str(records)]
        case ToTime(timestamp_ms):
            return ["--to-datetime", utc_text(timestamp_ms)]
        case _:
            return None


def topic_options(tps: Iterable[TopicPartition], plan: Plan) -> list[str]:
    """`--topic orders --topic payments:0,1`; a topic is whole when all partitions that it had are there."""
    words = []
    for topic, some in by_topic(sorted(tps)).items():
        facts = plan.topics.get(topic)
        is_whole = facts is not None and facts.partitions == len(some)
        words += ["--topic", topic if is_whole else f"{topic}:{','.join(map(str, some))}"]
    return words


def _by_offset(group: GroupPlan, plan: Plan) -> Iterable[list[str]]:
    by_offset: dict[int, list[TopicPartition]] = {}
    for tp, commit in group.offsets.items():
        by_offset.setdefault(commit.offset, []).append(tp)
    for offset, some in by_offset.items():
        topics = topic_options(some, plan)
        yield ["--reset-offsets", "--group", group.group_id, *topics, "--to-offset", str(offset), "--execute"]
