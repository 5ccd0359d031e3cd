"""What the clusters say of partitions: both ends, the last stable offset, and the records at given offsets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, ListedOffset, OffsetSpec, Position, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.pipeline.options import ClusterOptions, Options
from groupkeeper.pipeline.tables.schema import LAST_MS
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.uuids import uuid_text

__all__ = ["Wanted", "cluster_of", "measure"]

Row = dict[str, Any]
Wanted = Mapping[TopicPartition, Sequence[int]]
"""Committed offsets by partition."""


def cluster_of(options: Options, name: str) -> ClusterOptions | None:
    """The cluster that rows call so; None when the options have none of that name."""
    return next((each for each in options.clusters if each.name == name), None)


def measure(cluster: ClusterOptions, wanted: Wanted) -> dict[TopicPartition, Row]:
    """Columns of tables.LOG_OFFSETS without the key. A cluster or partition that can't be asked has its `problem`."""
    try:
        return asyncio.run(_measure(cluster, wanted))
    except (ClientError, KafkaError) as error:
        return {key: _row(problem=f"cluster {cluster.title}: {error}") for key in wanted}


async def _measure(cluster: ClusterOptions, wanted: Wanted) -> dict[TopicPartition, Row]:
    async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
        described = await admin.describe_topics({key.topic for key in wanted})
        found: dict[TopicPartition, Row] = {}
        for key in wanted:
            if (failure := described.failed.get(key.topic)) is not None:
                found[key] = _refused(failure)
        asked = [key for key in wanted if key not in found]
        first, last, stable = await asyncio.gather(
            admin.list_offsets(dict.fromkeys(asked, OffsetSpec.earliest())),
            admin.list_offsets(dict.fromkeys(asked, OffsetSpec.latest())),
            admin.list_offsets(dict.fromkeys(asked, OffsetSpec.latest()), read_committed=True),
        )
        measured_ms = time.time_ns() // 1_000_000
        for batch in (first, last, stable):
            found |= {key: _refused(failure) for key, failure in batch.failed.items()}
        asked = [key for key in asked if key not in found]
        times, unread = await _record_times(admin, {key: wanted[key] for key in asked}, first.done, last.done)
        for key in asked:
            topic_id = described.done[key.topic].topic_id
            found[key] = _row(
                topic_id=None if topic_id is None else uuid_text(topic_id),
                log_start_offset=first.done[key].offset,
                last_stable_offset=stable.done[key].offset,
                log_end_offset=last.done[key].offset,
                records=times.get(key, []),
                measured_time=measured_ms * 1000,
                problem=unread.get(key),
            )
        return found


async def _record_times(
    admin: Admin,
    wanted: Wanted,
    first: Mapping[TopicPartition, ListedOffset],
    last: Mapping[TopicPartition, ListedOffset],
) -> tuple[dict[TopicPartition, list[Row]], dict[TopicPartition, str]]:
    """The records, and why some could not be read. An offset before the log is as its first one; one after its end has
    no record.
    """
    offsets_by_position: dict[Position, list[int]] = {}
    for key, offsets in wanted.items():
        for offset in offsets:
            if offset < last[key].offset:
                position = Position(key.topic, key.partition, max(offset, first[key].offset))
                offsets_by_position.setdefault(position, []).append(offset)
    read = await admin.record_timestamps(offsets_by_position)
    found: dict[TopicPartition, list[Row]] = {}
    for position, time_ms in read.done.items():
        time_us = time_ms * 1000 if time_ms is not None and 0 <= time_ms <= LAST_MS else None
        for offset in offsets_by_position[position]:
            row = {"offset": offset, "is_there": time_ms is not None, "time": time_us}
            found.setdefault(TopicPartition(position.topic, position.partition), []).append(row)
    unread = {
        TopicPartition(position.topic, position.partition): f"the record at offset {position.offset}: {_said(failure)}"
        for position, failure in read.failed.items()
    }
    return found, unread


def _refused(failure: Failure) -> Row:
    return _row(problem=_said(failure), is_deleted=isinstance(failure, UnknownTopicOrPartition))


def _said(failure: Failure) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _row(**found: Any) -> Row:
    nothing = dict.fromkeys(
        ("topic_id", "log_start_offset", "last_stable_offset", "log_end_offset", "records", "measured_time", "problem")
    )
    return {**nothing, "is_deleted": False, **found}
