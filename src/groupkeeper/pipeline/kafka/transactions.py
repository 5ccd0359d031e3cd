"""Open transactions, which hold back readers of committed records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.transactions import OpenTransaction, open_in
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.pipeline.runtime.coroutines import result_of
from groupkeeper.protocol.errors import KafkaError


def held_partitions(instant: Instant) -> list[TopicPartition]:
    """Partitions with the last stable offset before the log end: a transaction was open there at the instant."""
    return [
        place
        for place, log in instant.logs.items()
        if isinstance(log, LogEnds) and log.last_stable_offset < log.log_end_offset
    ]


def ask_transactions(requests: Sequence[tuple[ClusterOptions, Instant]]) -> list[list[OpenTransaction]]:
    """The open transactions of each cluster, in partitions with the last stable offset before the end."""

    async def ask() -> list[list[OpenTransaction]]:
        return await asyncio.gather(*(_ask(*each) for each in requests))

    return result_of(ask())


async def _ask(cluster: ClusterOptions, instant: Instant) -> list[OpenTransaction]:
    held = held_partitions(instant)
    if not held:
        return []
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            return (await open_in(admin, held)).transactions
    except (ClientError, KafkaError):
        return []
