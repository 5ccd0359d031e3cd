"""Topics for an operation: their partitions, which of these have a leader, and offsets of their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, ListedOffset, OffsetSpec, TopicDescription, TopicPartition
from groupkeeper.client.batch import or_failed
from groupkeeper.protocol import errors

HIDDEN = (
    "only offsets of topics that you may describe are known: brokers leave out topics without the ACL DESCRIBE, and "
    "you do not have it on all topics"
)


RETENTION_SETTINGS = ("cleanup.policy", "retention.ms")
"""The settings that `retention_ms` needs."""

KEPT = -1
"""A topic's records are never deleted because of their age."""


def retention_ms(settings: Mapping[str, str]) -> int | None:
    """The age in ms at which a topic's records may go, from its settings by name; KEPT: never; None: unknown."""
    if any(name not in settings for name in RETENTION_SETTINGS):
        return None
    if "delete" not in (part.strip() for part in settings["cleanup.policy"].split(",")):
        return KEPT
    return max(KEPT, int(settings["retention.ms"]))


async def describe_topics(admin: Admin, names: Iterable[str]) -> Batch[str, TopicDescription]:
    """Describes topics; failures are in the order of `names`. If no broker answers, all topics fail.

    The empty name fails here: a request would take it for no name.
    """
    requested = list(dict.fromkeys(names))
    wanted = [name for name in requested if name]
    described: Batch[str, TopicDescription] = Batch()
    if wanted:
        described = await or_failed(admin.describe_topics(wanted), wanted)
    failed = dict(described.failed)
    if "" in requested:
        failed[""] = errors.InvalidTopicException("The given topic name '' cannot be represented in a request.")
    return Batch(described.done, {name: failed[name] for name in requested if name in failed})


def unreachable(
    partitions: Iterable[TopicPartition], topics: Batch[str, TopicDescription]
) -> Iterable[tuple[TopicPartition, Failure]]:
    """The partitions that no broker can be queried for, with the reasons."""
    leader_by_partition = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in topics.done.values()
        for partition in topic.partitions
    }
    for tp in partitions:
        if tp.topic in topics.failed:
            yield tp, topics.failed[tp.topic]
        elif tp not in leader_by_partition:
            yield tp, errors.UnknownTopicOrPartition()
        elif leader_by_partition[tp] is None:
            yield tp, errors.LeaderNotAvailable()


async def listed(
    admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec
) -> Batch[TopicPartition, ListedOffset]:
    """Lists one kind of offset; sends no request without partitions."""
    specs = dict.fromkeys(partitions, spec)
    return await admin.list_offsets(specs) if specs else Batch()


def offsets_of(found: Mapping[TopicPartition, ListedOffset]) -> dict[TopicPartition, int]:
    """The offsets alone."""
    return {tp: answer.offset for tp, answer in found.items()}


async def hides_topics(admin: Admin) -> bool:
    """Whether responses may lack topics, as the client is not authorized to describe all of them.

    A broker replies for a missing topic that it doesn't exist, or, without DESCRIBE on it, that access is denied.
    """
    name = f"no-topic-{uuid4().hex}"
    described = await describe_topics(admin, [name])
    return isinstance(described.failed.get(name), errors.TopicAuthorizationFailed)
