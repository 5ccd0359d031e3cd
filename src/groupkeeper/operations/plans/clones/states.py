"""State that a clone cannot carry over: records that a share group has done above its start offsets, and the state of
Kafka Streams applications that the target lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.errors import StateElsewhere
from groupkeeper.operations.plans.clones.translator import Translated
from groupkeeper.operations.topics import describe_topics


class Shares(NamedTuple):
    """Facts by share group of the source. `lags`: records from the start offset on that are not done; None: the
    brokers do not return it (before 4.2, or no member has read the partition). `without`: subscribed partitions
    without a start offset.
    """

    lags: Mapping[str, Mapping[TopicPartition, int | None]] = {}
    without: Mapping[str, list[TopicPartition]] = {}

    def done_ahead(self, group_id: str, tp: TopicPartition, start: int, end: int) -> int | None:
        """The most records done after the start offset; None: unknown. `end` was read after the lags."""
        lag = self.lags.get(group_id, {}).get(tp)
        return None if lag is None else max(0, end - start - lag)


async def find_shares(source: Admin, group_ids: Iterable[str]) -> Shares:
    """Reads lags of share groups. Groups that cannot be asked are left out: their start offsets are unknown, too."""
    listed = await source.list_share_group_offsets(dict.fromkeys(group_ids))
    lags: dict[str, dict[TopicPartition, int | None]] = {}
    without: dict[str, list[TopicPartition]] = {}
    for group_id, batch in listed.done.items():
        lags[group_id] = {tp: one.lag for tp, one in batch.done.items() if one is not None}
        without[group_id] = sorted(tp for tp, one in batch.done.items() if one is None)
    return Shares(lags, without)


def delivered_again(found: Translated, done: int | None) -> Translated:
    """The place, with `done` more records that are delivered again."""
    if not done:
        return found
    records = "record is" if done == 1 else "records are"
    why = f"{found.why}; {done:,} {records} done after the start offset, and delivered again"
    replays = None if found.replays is None else found.replays + done
    return found._replace(why=why, replays=replays)


_KINDS = ("-changelog", "-repartition")


class States(NamedTuple):
    """By group of the source. `topics`: an application's internal topics with its state, by their names in the
    source. `missing`: for topics that the target lacks, the reason.
    """

    topics: Mapping[str, list[str]]
    missing: Mapping[str, dict[str, StateElsewhere]]


async def find_states(source: Admin, target: Admin, groups: Mapping[str, str], source_topics: Iterable[str]) -> States:
    """Finds the internal topics of both clusters. `groups`: the target's group by the source's."""
    some = [topic for topic in source_topics if topic.endswith(_KINDS)]
    known: Collection[str] = groups
    if some:
        known = {*groups, *(await source.list_groups()).groups}
    topics: dict[str, list[str]] = {}
    for topic in sorted(some):
        group = _application_of(topic, known)
        if group in groups:
            topics.setdefault(group, []).append(topic)
    names = {topic: groups[group] + topic.removeprefix(group) for group, each in topics.items() for topic in each}
    here = await describe_topics(source, names)
    there = await describe_topics(target, names.values())
    missing: dict[str, dict[str, StateElsewhere]] = {}
    for group, each in topics.items():
        for topic in each:
            original, copy = here.done.get(topic), there.done.get(names[topic])
            if copy is None or (original is not None and len(original.partitions) != len(copy.partitions)):
                why = StateElsewhere(topic, names[topic], is_there=copy is not None)
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
