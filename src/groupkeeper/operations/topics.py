"""Describe topics for an operation: which partitions there are, and which of them have a leader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import uuid4

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, TopicDescription
from groupkeeper.client.errors import ClientError
from groupkeeper.protocol.errors import InvalidTopicException, KafkaError, TopicAuthorizationFailed

HIDDEN = (
    "only offsets of topics that you may describe are known: brokers leave out topics without the ACL DESCRIBE, and "
    "you do not have it on all topics"
)


RETENTION_SETTINGS = ("cleanup.policy", "retention.ms")
"""The settings that `retention_ms` needs."""

KEPT = -1
"""Records of a topic don't go for being old."""


def retention_ms(settings: Mapping[str, str]) -> int | None:
    """After how long a topic's records may go, of its settings by name; KEPT: never; None: that isn't known."""
    if any(name not in settings for name in RETENTION_SETTINGS):
        return None
    if "delete" not in (part.strip() for part in settings["cleanup.policy"].split(",")):
        return KEPT
    return max(KEPT, int(settings["retention.ms"]))


async def describe_topics(
    admin: Admin, names: Iterable[str], *, timeout_ms: int | None = None
) -> Batch[str, TopicDescription]:
    """The topics by name, failures in the order of ``names``: of all of them when no broker answers at all.

    The empty name fails here: a request would take it for no name.
    """
    requested = list(dict.fromkeys(names))
    wanted = [name for name in requested if name]
    described: Batch[str, TopicDescription] = Batch()
    if wanted:
        try:
            described = await admin.describe_topics(wanted, timeout_ms=timeout_ms)
        except (KafkaError, ClientError) as failure:
            described.failed.update(dict.fromkeys(wanted, failure))
    failed = dict(described.failed)
    if "" in requested:
        failed[""] = InvalidTopicException("The given topic name '' cannot be represented in a request.")
    return Batch(described.done, {name: failed[name] for name in requested if name in failed})


async def hides_topics(admin: Admin, *, timeout_ms: int | None = None) -> bool:
    """Whether responses may lack topics, as the client is not authorized to describe all of them.

    A broker replies for a missing topic that it doesn't exist, or, without DESCRIBE on it, that access is denied.
    """
    name = f"no-topic-{uuid4().hex}"
    described = await describe_topics(admin, [name], timeout_ms=timeout_ms)
    return isinstance(described.failed.get(name), TopicAuthorizationFailed)
