"""Facts about topics other than log ends, from the clusters: replicas, settings and sizes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.pipeline.runtime.coroutines import result_of
from groupkeeper.protocol.errors import KafkaError

_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")


class TopicFacts(NamedTuple):
    """Facts about a topic; None: unknown. `log_bytes` counts the largest replica of each partition, `disk_bytes` all
    replicas. `problem`: why something is unknown.
    """

    is_internal: bool | None = None
    replication_factor: int | None = None
    cleanup_policy: str | None = None
    retention_ms: int | None = None
    retention_bytes: int | None = None
    log_bytes: int | None = None
    disk_bytes: int | None = None
    problem: str | None = None


class _Sizes(NamedTuple):
    """The sizes of each partition's replicas in bytes. `problem`: why sizes are unknown; None: they are known."""

    by_partition: Mapping[TopicPartition, Sequence[int]]
    problem: str | None


def ask_topics(clusters: Sequence[ClusterOptions]) -> list[dict[str, TopicFacts]]:
    """For each cluster, the facts by topic; empty if the cluster does not reply. All clusters are queried at the same
    time. A topic with a failed request has its `problem`.
    """

    async def ask() -> list[dict[str, TopicFacts]]:
        return await asyncio.gather(*map(_ask, clusters))

    return result_of(ask())


async def _ask(cluster: ClusterOptions) -> dict[str, TopicFacts]:
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            described = await admin.describe_topics(None)
            settings, sizes = await asyncio.gather(_settings(admin, described.done), _sizes(admin))
    except (ClientError, KafkaError):  # it has answered a moment ago, when it was measured
        return {}
    bytes_by_topic: dict[str, list[Sequence[int]]] = {}
    for place, own in sizes.by_partition.items():
        bytes_by_topic.setdefault(place.topic, []).append(own)
    found = {}
    for name, topic in described.done.items():
        own_bytes = bytes_by_topic.get(name) if sizes.problem is None else None
        found[name] = TopicFacts(
            topic.is_internal,
            min((len(each.replicas) for each in topic.partitions), default=None),
            settings.get(name, {}).get("cleanup.policy"),
            _number(settings.get(name, {}).get("retention.ms")),
            _number(settings.get(name, {}).get("retention.bytes")),
            None if own_bytes is None else sum(map(max, own_bytes)),
            None if own_bytes is None else sum(map(sum, own_bytes)),
            sizes.problem if name in settings else "its settings could not be queried",
        )
    return found


async def _settings(admin: Admin, names: Mapping[str, object]) -> dict[str, Mapping[str, str]]:
    try:
        return dict((await admin.topic_settings(names, _SETTINGS)).done)
    except (ClientError, KafkaError):
        return {}


async def _sizes(admin: Admin) -> _Sizes:
    """Sizes are known only when every broker has replied: a partial sum would look like a drop."""
    sizes: dict[TopicPartition, list[int]] = {}
    try:
        answers = await admin.describe_log_dirs()
    except (ClientError, KafkaError) as error:
        return _Sizes({}, f"sizes are not known: {error}")
    for broker_id, failure in answers.failed.items():
        return _Sizes({}, f"sizes are not known: broker {broker_id}: {failure}")
    for broker_id, folders in answers.done.items():
        for folder, each in folders.items():
            if each.error is not None:
                return _Sizes({}, f"sizes are not known: broker {broker_id}, {folder}: {each.error}")
            for place, replica in each.replicas.items():
                if not replica.is_future:
                    sizes.setdefault(place, []).append(replica.size)
    return _Sizes(sizes, None)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
