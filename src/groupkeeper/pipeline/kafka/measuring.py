"""Measurements of partitions: rows of tables.LOG_OFFSETS, and the times of the records at given offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import FirstRecord, Position, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.coroutines import results_of
from groupkeeper.operations.topics import RETENTION_SETTINGS, retention_ms
from groupkeeper.pipeline.kafka.instants import Instant, InstantRefused, LogEnds, refused
from groupkeeper.pipeline.kafka.options import ClusterOptions
from groupkeeper.pipeline.tables.schema import LAST_MS
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition

Row = dict[str, Any]
CommittedByPartition = Mapping[TopicPartition, Sequence[int]]
"""Committed offsets by partition."""


class LogMeasure(NamedTuple):
    """A cluster, the instant at which its logs were measured, and the partitions that are of interest."""

    cluster: ClusterOptions
    instant: Instant
    wanted: CommittedByPartition


def measure(measures: Sequence[LogMeasure]) -> list[dict[TopicPartition, Row]]:
    """For each cluster, the columns of tables.LOG_OFFSETS without the key, by partition. All clusters are queried at
    the same time. Partitions that can't be queried have a `problem`.
    """
    return results_of(map(_measure, measures))


async def _measure(measure: LogMeasure) -> dict[TopicPartition, Row]:
    found: dict[TopicPartition, Row] = {}
    there: dict[TopicPartition, LogEnds] = {}
    absent: list[TopicPartition] = []
    for tp in measure.wanted:
        match measure.instant.logs.get(tp):
            case None:
                absent.append(tp)
            case LogEnds() as log:
                there[tp] = log
            case InstantRefused() as why:
                found[tp] = _row(**why._asdict())
    cluster = measure.cluster
    times: dict[TopicPartition, list[Row]] = {}
    retentions: dict[str, int | None] = {}
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            found |= await _absent(admin, absent)
            retentions = await _retentions(admin, measure.wanted, there)
            times, unread = await _record_times(admin, {tp: measure.wanted[tp] for tp in there}, there)
    except (ClientError, KafkaError) as error:
        found |= {tp: _row(problem=cluster.failing(error)) for tp in absent}
        unread = dict.fromkeys(there, cluster.failing(error))  # the ends of their logs are known all the same
    for tp, log in there.items():
        found[tp] = _row(
            **log._asdict(),
            records=times.get(tp, []),
            retention_ms=retentions.get(tp.topic),
            measured_time=measure.instant.measured_ms * 1000,
            problem=unread.get(tp),
        )
    return found


async def _absent(admin: Admin, tps: Sequence[TopicPartition]) -> dict[TopicPartition, Row]:
    """Why partitions were not listed: deleted, or not visible to this principal."""
    described = await admin.describe_topics({tp.topic for tp in tps})
    gone = UnknownTopicOrPartition()
    return {tp: _row(**refused(described.failed.get(tp.topic, gone))._asdict()) for tp in tps}


async def _retentions(
    admin: Admin, wanted: CommittedByPartition, logs: Mapping[TopicPartition, LogEnds]
) -> dict[str, int | None]:
    """How long records are kept, in ms, by topic with records that a group has still to read; unknown ones are
    missing.
    """
    topics = {tp.topic for tp, log in logs.items() if any(offset < log.log_end_offset for offset in wanted[tp])}
    if not topics:
        return {}
    try:
        settings = await admin.topic_settings(topics, RETENTION_SETTINGS)
    except (ClientError, KafkaError):
        return {}
    return {topic: retention_ms(found) for topic, found in settings.done.items()}


async def record_times(cluster: ClusterOptions, positions: Sequence[Position]) -> dict[Position, int | None]:
    """The time of the first record at or after each position, in ms; None: there is none. Positions that cannot be read
    are missing: all of them, if the cluster does not reply.
    """
    if not positions:
        return {}
    try:
        async with Admin(cluster.bootstrap_servers, properties=cluster.properties) as admin:
            return dict((await admin.record_timestamps(positions)).done)
    except (ClientError, KafkaError):
        return {}


async def _record_times(
    admin: Admin, wanted: CommittedByPartition, logs: Mapping[TopicPartition, LogEnds]
) -> tuple[dict[TopicPartition, list[Row]], dict[TopicPartition, str]]:
    """The records at the offsets, and why some could not be read. For an offset before the log start, it is the first
    record of the log; an offset at or after the log end has no record.
    """
    offsets_by_position: dict[Position, list[int]] = {}
    for tp, offsets in wanted.items():
        for offset in offsets:
            if offset < logs[tp].log_end_offset:
                position = Position(tp.topic, tp.partition, max(offset, logs[tp].log_start_offset))
                offsets_by_position.setdefault(position, []).append(offset)
    read = await admin.first_records(offsets_by_position)
    in_transactions = [at for at, record in read.done.items() if record is not None and record.is_transactional]
    committed = await admin.first_records(in_transactions, read_committed=True)
    found: dict[TopicPartition, list[Row]] = {}
    for position, record in read.done.items():
        if position in committed.failed:
            continue
        tp = position.topic_partition
        is_there, time_us = _within(record, logs[tp].log_end_offset)
        is_left, left_us = _within(committed.done.get(position, record), logs[tp].last_stable_offset)
        row = {"is_there": is_there, "time": time_us, "is_committed_there": is_left, "committed_time": left_us}
        found.setdefault(tp, []).extend({"offset": offset, **row} for offset in offsets_by_position[position])
    unread = {
        position.topic_partition: f"the record at offset {position.offset}: {refused(failure).problem}"
        for position, failure in {**read.failed, **committed.failed}.items()
    }
    return found, unread


def _within(record: FirstRecord | None, end: int) -> tuple[bool, int | None]:
    """Whether there is a record before `end`, and its timestamp in µs; None: it has none."""
    if record is None or record.offset >= end:
        return False, None
    return True, record.timestamp * 1000 if 0 <= record.timestamp <= LAST_MS else None


def _row(**found: Any) -> Row:
    """Columns that are missing are null."""
    return {"is_deleted": False, **found}
