"""The dead-letter queues of share groups (KIP-1191)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.types import ConfigResource
from groupkeeper.client.admin.types import (
    ConsumerGroupDescription,
    Failure,
    GroupType,
    OffsetSpec,
    ShareGroupDescription,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.problems import problem_of
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition
from groupkeeper.rules.words import counted

_NAME = "errors.deadletterqueue.topic.name"
_ENABLED = "errors.deadletterqueue.group.enable"


class DeadLetterQueue(NamedTuple):
    """The topic of a group's dead letters.

    `records`: the number of offsets in its logs, with those of other groups; None: unknown. `problem`: why brokers
    do not write to it, if known; for an empty `topic`: why the group's settings cannot be read.
    """

    topic: str
    records: int | None
    problem: str = ""

    def __str__(self) -> str:
        is_said = self.records is not None and (self.records or not self.problem)
        known = f" ({counted(self.records or 0, 'record')})" if is_said else ""
        return f"topic {self.topic}{known}{self.problem and ', ' + self.problem}" if self.topic else self.problem


async def dead_letter_queues(
    admin: Admin, groups: Iterable[ConsumerGroupDescription | ShareGroupDescription]
) -> dict[str, DeadLetterQueue]:
    """The queues of the share groups that have one, or may have one, by group id."""
    shares = [ConfigResource.group(each.group_id) for each in groups if each.group_type is GroupType.SHARE]
    if not shares:
        return {}
    queues: dict[str, DeadLetterQueue] = {}
    found: dict[str, DeadLetterQueue] = {}
    try:
        settings = await admin.describe_configs(shares, names=[_NAME])
    except (KafkaError, ClientError) as failure:
        return {each.name: _unknown(failure) for each in shares}
    for resource, configs in settings.done.items():
        name = configs[_NAME].value if _NAME in configs else None  # brokers before Kafka 4.4 have no queues
        if name:
            if name not in queues:
                queues[name] = await _queue(admin, name)
            found[resource.name] = queues[name]
    return found | {resource.name: _unknown(failure) for resource, failure in settings.failed.items()}


def _unknown(failure: Failure) -> DeadLetterQueue:
    return DeadLetterQueue("", None, f"not known: {problem_of(failure).message}")


async def _queue(admin: Admin, name: str) -> DeadLetterQueue:
    described = await describe_topics(admin, [name])
    if name in described.failed:
        is_absent = isinstance(described.failed[name], UnknownTopicOrPartition)
        return DeadLetterQueue(name, 0 if is_absent else None, "which does not exist yet" if is_absent else "")
    tps, records = described.done[name].topic_partitions, None
    try:
        ends = await admin.list_offsets(dict.fromkeys(tps, OffsetSpec.latest()))
        starts = await admin.list_offsets(dict.fromkeys(tps, OffsetSpec.earliest()))
        if not ends.failed and not starts.failed:
            records = sum(ends.done[tp].offset - starts.done[tp].offset for tp in tps)
        own = (await admin.topic_settings([name], [_ENABLED])).done.get(name, {})
    except (KafkaError, ClientError):
        return DeadLetterQueue(name, None)
    is_off = own.get(_ENABLED) == "false"
    return DeadLetterQueue(name, records, f"which does not allow it: {_ENABLED} is false" if is_off else "")
