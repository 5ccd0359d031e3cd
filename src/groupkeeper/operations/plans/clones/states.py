"""Which groups are applications of Kafka Streams, and whether their state is where their offsets are cloned to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.operations.errors import StateElsewhere
from groupkeeper.operations.topics import describe_topics

_KINDS = ("-changelog", "-repartition")


class States(NamedTuple):
    """By groups of the source. ``topics``: internal ones that hold what an application has made so far, by their names
    in the source. ``missing``: why the target has not all of them.
    """

    topics: Mapping[str, list[str]]
    missing: Mapping[str, dict[str, StateElsewhere]]


async def look_at_states(
    source: Admin,
    target: Admin,
    groups: Mapping[str, str],
    source_topics: Iterable[str],
    *,
    timeout_ms: int | None = None,
) -> States:
    """``groups``: which group of the target is to have the offsets of which of the source."""
    some = [topic for topic in source_topics if topic.endswith(_KINDS)]
    known: Collection[str] = groups
    if some:
        known = {*groups, *(await source.list_groups(timeout_ms=timeout_ms)).groups}
    topics: dict[str, list[str]] = {}
    for topic in sorted(some):
        group = _application_of(topic, known)
        if group in groups:
            topics.setdefault(group, []).append(topic)
    names = {topic: groups[group] + topic.removeprefix(group) for group, each in topics.items() for topic in each}
    here = await describe_topics(source, names, timeout_ms=timeout_ms)
    there = await describe_topics(target, names.values(), timeout_ms=timeout_ms)
    missing: dict[str, dict[str, StateElsewhere]] = {}
    for group, each in topics.items():
        for topic in each:
            ours, theirs = here.done.get(topic), there.done.get(names[topic])
            if theirs is None or (ours is not None and len(ours.partitions) != len(theirs.partitions)):
                why = StateElsewhere(topic, names[topic], is_there=theirs is not None)
                missing.setdefault(group, {})[topic] = why
    return States(topics, missing)


def _application_of(topic: str, groups: Collection[str]) -> str:
    """The group whose id an internal topic begins with: the longest one; "" if there is none."""
    at = topic.rfind("-", 0, topic.rfind("-"))
    while at > 0:
        if topic[:at] in groups:
            return topic[:at]
        at = topic.rfind("-", 0, at)
    return ""
