"""How long clusters keep the offsets of empty groups, from their brokers' settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import result_of
from groupkeeper.pipeline.kafka.options import ClusterOptions, ReadOptions
from groupkeeper.pipeline.kafka.planning import Range
from groupkeeper.protocol.errors import KafkaError

_RETENTION = "offsets.retention.minutes"
_CHECK_INTERVAL = "offsets.retention.check.interval.ms"


class Retention(NamedTuple):
    """offsets.retention.minutes and offsets.retention.check.interval.ms of brokers, in milliseconds, with Kafka's
    defaults.
    """

    retention_ms: int = 7 * 24 * 3600 * 1000
    check_interval_ms: int = 10 * 60 * 1000


DEFAULT = Retention()

Retentions = Mapping[str, Retention]
"""Retentions by cluster; a missing cluster has DEFAULT."""


class Replies(NamedTuple):
    """The retentions of the clusters, and a note for each that didn't reply."""

    by_cluster: dict[str, Retention]
    notes: list[str]


def ask_retentions(options: ReadOptions, ranges: Iterable[Range]) -> Replies:
    """Asks the clusters of the ranges for their settings."""
    number_by_name = {each.name: each.cluster for each in ranges}
    return result_of(_ask_all({name: options.clusters[number] for name, number in number_by_name.items()}))


async def _ask_all(clusters: Mapping[str, ClusterOptions]) -> Replies:
    answers = await asyncio.gather(*map(_ask, clusters.values()), return_exceptions=True)
    replies = Replies({}, [])
    for name, answer in zip(clusters, answers, strict=True):
        if isinstance(answer, Retention):
            replies.by_cluster[name] = answer
        elif isinstance(answer, ClientError | KafkaError | LookupError | ValueError):
            reason = f"{type(answer).__name__}: {answer}".removesuffix(": ")
            days = DEFAULT.retention_ms // (24 * 3600 * 1000)
            replies.notes.append(
                f"cluster {name} does not report {_RETENTION} ({reason}): {days} days are taken for it"
            )
        else:
            raise answer
    return replies


async def _ask(cluster: ClusterOptions) -> Retention:
    async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
        settings = await admin.broker_settings([_RETENTION, _CHECK_INTERVAL])
    return Retention(int(settings[_RETENTION]) * 60_000, int(settings[_CHECK_INTERVAL]))
