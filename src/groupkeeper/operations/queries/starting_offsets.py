"""Starting offsets for a reader: Spark's `startingOffsets`, from a group's commits or a time.

Spark requires an offset for every partition of a topic, and fails for an offset that the log does not have.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, OffsetSpec, TopicPartition
from groupkeeper.operations.topics import describe_topics, listed, unreachable
from groupkeeper.protocol.errors import UnknownTopicOrPartition

EARLIEST = -2
LATEST = -1

_NOTHING_LATER = "no record is at or after that time: at the end"


class StartOffset(NamedTuple):
    """Where to start in a partition: EARLIEST, LATEST or an offset. `note`: why it is not the requested one."""

    offset: int
    note: str | None = None


class Starts(NamedTuple):
    """Starting offsets by partition, in order. `gone`: requested partitions that don't exist."""

    done: Mapping[TopicPartition, StartOffset]
    gone: tuple[TopicPartition, ...]
    failed: Mapping[TopicPartition, Failure]

    def notes(self) -> list[str]:
        """Notes about offsets that differ from the requested ones."""
        found = [f"{tp.topic}-{tp.partition}: {start.note}" for tp, start in self.done.items() if start.note]
        return found + [f"{tp.topic}-{tp.partition} does not exist: left out" for tp in self.gone]

    def as_json(self) -> str:
        """The value of Spark's option `startingOffsets`."""
        by_topic: dict[str, dict[str, int]] = {}
        for tp, start in self.done.items():
            by_topic.setdefault(tp.topic, {})[str(tp.partition)] = start.offset
        return json.dumps(by_topic)


async def start_at_offsets(admin: Admin, offsets: Mapping[TopicPartition, int], *, otherwise: int) -> Starts:
    """Starts at these offsets, moved into the log if it does not have them; `otherwise` (EARLIEST or LATEST) in the
    other partitions of these topics.
    """

    def start(tp: TopicPartition, log_start: int, log_end: int) -> StartOffset:
        offset = offsets.get(tp)
        if offset is None:
            return StartOffset(otherwise, f"nothing is committed: {'earliest' if otherwise == EARLIEST else 'latest'}")
        if offset < log_start:
            return StartOffset(log_start, f"{offset} was removed: the log starts at {log_start}")
        if offset > log_end:
            return StartOffset(log_end, f"{offset} is past the end of the log, {log_end}")
        return StartOffset(offset)

    return await _starts(admin, {tp.topic for tp in offsets}, offsets, OffsetSpec.earliest(), start)


async def start_at_time(admin: Admin, topics: Iterable[str], time_ms: int) -> Starts:
    """Starts at the first record at or after a time; at the end if there is none."""

    def start(_: TopicPartition, found: int, log_end: int) -> StartOffset:
        return StartOffset(found) if found >= 0 else StartOffset(log_end, _NOTHING_LATER)

    return await _starts(admin, topics, (), OffsetSpec.for_timestamp(time_ms), start)


async def _starts(
    admin: Admin,
    topics: Iterable[str],
    offsets: Iterable[TopicPartition],
    spec: OffsetSpec,
    start: Callable[[TopicPartition, int, int], StartOffset],
) -> Starts:
    """The starts in all partitions of the topics. `start` gets a partition, its offset by `spec`, and its log's end."""
    described = await describe_topics(admin, sorted(topics))
    every = {tp for topic in described.done.values() for tp in topic.topic_partitions}
    every |= set(offsets)
    every |= {
        TopicPartition(topic, 0)
        for topic, why in described.failed.items()
        if not isinstance(why, UnknownTopicOrPartition)
    }
    failed = dict(unreachable(every, described))
    there = [tp for tp in sorted(every) if tp not in failed]
    found, log_ends = await asyncio.gather(listed(admin, there, spec), listed(admin, there, OffsetSpec.latest()))
    failed |= {**found.failed, **log_ends.failed}
    done = {tp: start(tp, found.done[tp].offset, log_ends.done[tp].offset) for tp in there if tp not in failed}
    gone = tuple(tp for tp, why in sorted(failed.items()) if isinstance(why, UnknownTopicOrPartition))
    return Starts(done, gone, {tp: failed[tp] for tp in sorted(failed) if tp not in gone})
