"""tables.TRANSACTIONS: the open transactions at the instant, with the number of groups that wait for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import results_of
from groupkeeper.operations.transactions import OpenTransaction, open_in
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.tables import TRANSACTIONS
from groupkeeper.protocol.errors import KafkaError

_PLACE = ("cluster", "topic", "partition")


def transactions(waiting: Rows, clusters: Clusters) -> pa.Table:
    """The open transactions of the measured clusters; `waiting`: rows of tables.state.WAITING."""
    measured = clusters.measured
    answers = results_of(_ask(*each) for each in measured.values())
    rows = [row for (name, (_, instant)), found in zip(measured.items(), answers, strict=True)
            for row in _rows(name, instant, found)]  # fmt: skip
    groups: Counter[tuple[Any, ...]] = Counter()
    for row in loaded(waiting).to_pylist() if rows else ():
        groups[tuple(row[name] for name in _PLACE)] += row["groups"]
    for row in rows:
        row["groups"] = groups[tuple(row[name] for name in _PLACE)]
    return pa.Table.from_pylist(rows, TRANSACTIONS.arrow)


def _rows(name: str, instant: Instant, found: list[OpenTransaction]) -> Iterator[dict[str, Any]]:
    for each in found:
        log = instant.logs[each.tp]
        start = each.producer.transaction_start
        if not isinstance(log, LogEnds) or start is None or start >= log.log_end_offset:
            continue  # it began after the instant
        known = each.description
        yield {
            "cluster": name,
            "topic": each.tp.topic,
            "partition": each.tp.partition,
            "producer_id": each.producer.producer_id,
            "producer_epoch": each.producer.producer_epoch,
            "transactional_id": each.transactional_id,
            "state": None if known is None else str(known.state),
            "first_offset": start,
            "held_offsets": log.log_end_offset - start,
            "started_time": None if each.began_ms is None else each.began_ms * 1000,
            "open_ms": each.open_ms(instant.measured_ms),
            "timeout_ms": None if known is None else known.timeout_ms,
            "is_hanging": each.is_hanging(instant.measured_ms),
            "measured_time": instant.measured_ms * 1000,
        }


async def _ask(cluster: ClusterOptions, instant: Instant) -> list[OpenTransaction]:
    """The open transactions of a cluster, in partitions with the last stable offset before the log end."""
    held = [
        tp
        for tp, log in instant.logs.items()
        if isinstance(log, LogEnds) and log.last_stable_offset < log.log_end_offset
    ]
    if not held:
        return []
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            return (await open_in(admin, held)).transactions
    except (ClientError, KafkaError):
        return []
