"""tables.SHARE_OFFSETS: the progress of share groups, and records that were redelivered or rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from groupkeeper.coordinator.share_state.coordinator import ShareStateCoordinator, ShareStateSettings
from groupkeeper.coordinator.share_state.state import SharePartitionKey, ShareState, StateBatch
from groupkeeper.coroutines import beside_loops, result_of
from groupkeeper.pipeline.errors import SourceError
from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.kafka.instants import Instant, LogEnds
from groupkeeper.pipeline.kafka.options import EARLIEST, LATEST, ClusterOptions, ReadOptions, Start
from groupkeeper.pipeline.kafka.planning import plan_or_raise
from groupkeeper.pipeline.kafka.source import read_ranges
from groupkeeper.pipeline.tables import SHARE_OFFSETS
from groupkeeper.protocol import SHARE_STATE_TOPIC
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.share_state_topic import decode_share_state
from groupkeeper.protocol.uuids import uuid_text

_AVAILABLE, _ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = 0, 2, 3, 4
_DONE = (_ACKNOWLEDGED, _ARCHIVED)
_REJECTED = (_ARCHIVING, _ARCHIVED)
"""Records that were rejected or are on their way to the dead-letter queue (Kafka counts the latter as lag)."""


def share_offsets(clusters: Clusters, note: Callable[[str], None]) -> pa.Table:
    """The share offsets of the measured clusters; `note` is called with the reason for a cluster without rows."""
    rows: list[dict[str, Any]] = []
    for name, (cluster, instant) in clusters.measured.items():
        try:
            states = read_share_states(cluster, instant)
        except SourceError as error:
            note(f"there are no rows of it in share_offsets: {error}")
            continue
        rows += ({"cluster": name, **row} for row in share_offset_rows(states.items(), instant))
    return pa.Table.from_pylist(rows, SHARE_OFFSETS.arrow)


def share_offset_rows(
    states: Iterable[tuple[SharePartitionKey, ShareState]], instant: Instant
) -> Iterator[dict[str, Any]]:
    """The rows of one cluster, without its name."""
    logs = {
        (log.topic_id, tp.partition): (tp.topic, log) for tp, log in instant.logs.items() if isinstance(log, LogEnds)
    }
    for key, state in states:
        found = logs.get((uuid_text(key.topic_id), key.partition))
        if found is not None:  # otherwise the topic is deleted, or not visible
            yield _row(key, state, *found, measured_ms=instant.measured_ms)


def _row(key: SharePartitionKey, state: ShareState, topic: str, log: LogEnds, *, measured_ms: int) -> dict[str, Any]:
    state = _moved_on(state)
    start = state.start_offset if state.start_offset >= 0 else None
    done = _count(state, lambda batch: batch.delivery_state in _DONE)
    return {
        "group_id": key.group_id,
        "topic": topic,
        "partition": key.partition,
        "start_offset": start,
        "log_end_offset": log.log_end_offset,
        "lag": None if start is None else max(0, log.log_end_offset - max(start, log.log_start_offset) - done),
        "done_ahead": done,
        "rejected": _count(state, lambda batch: batch.delivery_state in _REJECTED),
        "to_redeliver": _count(state, lambda batch: batch.delivery_state == _AVAILABLE and batch.delivery_count > 0),
        "redelivered": _count(state, lambda batch: batch.delivery_count > 1),
        "most_deliveries": max((batch.delivery_count for batch in state.batches), default=0),
        "write_time": None if state.write_timestamp <= 0 else state.write_timestamp * 1000,
        "measured_time": measured_ms * 1000,
    }


def _moved_on(state: ShareState) -> ShareState:
    """Moves the start offset past the records that are done: Kafka writes it only with the next change."""
    start, batches = state.start_offset, list(state.batches)
    while batches and batches[0].first_offset == start and batches[0].delivery_state in _DONE:
        start = batches.pop(0).last_offset + 1
    return replace(state, start_offset=start, batches=tuple(batches))


def _count(state: ShareState, counts: Callable[[StateBatch], bool]) -> int:
    batches: list[StateBatch] = [batch for batch in state.batches if counts(batch)]
    return sum(batch.last_offset - batch.first_offset + 1 for batch in batches)


def read_share_states(cluster: ClusterOptions, instant: Instant) -> Mapping[SharePartitionKey, ShareState]:
    """The states of all share groups of a cluster at the instant; empty if there is no such topic. Records that cannot
    be decoded are skipped. Raises SourceError.
    """
    ends = {
        (tp.topic, tp.partition): log.log_end_offset
        for tp, log in instant.logs.items()
        if tp.topic == SHARE_STATE_TOPIC and isinstance(log, LogEnds)
    }
    if not ends:
        return {}
    chosen = cluster._replace(
        topics=None,
        pattern=None,
        partitions={SHARE_STATE_TOPIC: tuple(sorted(number for _, number in ends))},
        start=Start(EARLIEST),
        end=Start(LATEST, offset_by_partition=ends),
    )
    options = ReadOptions((chosen,))
    ranges = result_of(plan_or_raise(options))
    records: list[tuple[int, int, bytes | None, bytes | None]] = []
    for batch in beside_loops(lambda: list(read_ranges(ranges, options))):
        columns = (batch[name].to_pylist() for name in ("partition", "offset", "key", "value"))
        records += zip(*columns, strict=True)
    replayed = ShareStateCoordinator(ShareStateSettings())
    for _, offset, key, value in sorted(records, key=lambda each: each[:2]):
        try:
            record = None if key is None else decode_share_state(key, value)
        except MalformedMessage:
            continue
        if record is not None:
            replayed.replay(record, offset)
    return replayed.states
