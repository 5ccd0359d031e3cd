"""Open transactions, which hold back readers of committed records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.resources.types import ProducerState, TransactionDescription, TransactionState
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.protocol.errors import KafkaError

__all__ = ["OpenTransaction", "ask_transactions", "held_partitions"]

_OPEN = (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition. `coordinator`: its description by its coordinator; None: no
    coordinator has a transaction of this producer here, or not all of them could be queried (`is_asked` False).
    """

    place: TopicPartition
    producer: ProducerState
    transactional_id: str | None
    coordinator: TransactionDescription | None
    is_asked: bool


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

    return asyncio.run(ask())


async def _ask(cluster: ClusterOptions, instant: Instant) -> list[OpenTransaction]:
    held = held_partitions(instant)
    if not held:
        return []
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            producers = (await admin.describe_producers(held)).done
            is_asked, described = await _described(admin)
    except (ClientError, KafkaError):
        return []
    found = []
    for place, states in producers.items():
        for state in states:
            if state.transaction_start is not None:
                own = _of(state, place, described)
                found.append(OpenTransaction(place, state, own[0] if own else None, own[1] if own else None, is_asked))
    return found


async def _described(admin: Admin) -> tuple[bool, Mapping[str, TransactionDescription]]:
    """The open transactions of the coordinators, and whether all coordinators replied."""
    try:
        listed = await admin.list_transactions(states=_OPEN)
        described = await admin.describe_transactions(listed.transactions) if listed.transactions else None
    except (ClientError, KafkaError):
        return False, {}
    done = {} if described is None else described.done
    return not listed.failed and (described is None or not described.failed), done


def _of(
    state: ProducerState, place: TopicPartition, described: Mapping[str, TransactionDescription]
) -> tuple[str, TransactionDescription] | None:
    for transactional_id, each in described.items():
        if each.producer_id == state.producer_id and place in each.partitions:
            return transactional_id, each
    return None
