"""The state of clusters at one instant, however long later work takes.

First the logs and their start offsets are listed. Then, at one moment, the ends of the offsets topic are requested, and
right after it the ends of all logs: commits below the former belong to the latter, and their difference is the lag at
that instant.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, ListedOffset, OffsetSpec, TopicPartition
from groupkeeper.protocol.errors import UnknownTopicOrPartition
from groupkeeper.protocol.uuids import uuid_text

__all__ = ["Identity", "Instant", "Instants", "LogEnds", "Refused", "list_logs", "measure_logs", "refused"]


_MOST_NAMED = 5


class LogEnds(NamedTuple):
    """A partition as its leader reports it."""

    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    topic_id: str | None


class Refused(NamedTuple):
    """Why a partition could not be queried, and whether that is because it does not exist."""

    problem: str
    is_deleted: bool


class Identity(NamedTuple):
    """The ids of a log's cluster and of its offsets topic; None when the brokers are too old to have them."""

    cluster_id: str | None
    topic_id: str | None


class Instant(NamedTuple):
    """A cluster at `measured_ms`. `stable` is, by partition of the offsets topic, what can be read of it by then, None:
    it could not be queried; `logs` has every partition that could be listed, or why one could not be queried.
    """

    measured_ms: int
    identity: Identity
    topic: str
    stable: Mapping[int, int | None]
    logs: Mapping[TopicPartition, LogEnds | Refused]

    def end_of(self, partition: int) -> int | None:
        """Where the log of a partition of the offsets topic ends, open transactions included; None: not known."""
        found = self.logs.get(TopicPartition(self.topic, partition))
        return found.log_end_offset if isinstance(found, LogEnds) else None

    @property
    def unread(self) -> str | None:
        """Of which partitions of the offsets topic nothing can be read at the moment, and why; None: of all it can."""
        away = [number for number, offset in self.stable.items() if offset is None]
        if not away:
            return None
        found = self.logs.get(TopicPartition(self.topic, away[0]))
        why = found.problem if isinstance(found, Refused) else "they could not be queried"
        some = ", ".join(map(str, away[:_MOST_NAMED])) + (" …" if len(away) > _MOST_NAMED else "")
        return (
            f"{len(away)} of {len(self.stable)} partitions of {self.topic} cannot be read ({some}): what was committed "
            f"there since is not known: {why}"
        )


def refused(failure: Failure) -> Refused:
    """The reason of a partition's failure."""
    text = f"{type(failure).__name__}: {failure}".removesuffix(": ")
    return Refused(text, isinstance(failure, UnknownTopicOrPartition))


Instants = Mapping[str, Instant]
"""By the cluster's name in the rows; one that could not be queried is missing."""


class Begins(NamedTuple):
    """Where the logs of a cluster begin, before they are measured; by partition, with the topic's id where known."""

    topic_ids: Mapping[TopicPartition, bytes | None]
    earliest: Batch[TopicPartition, ListedOffset]


async def list_logs(admin: Admin) -> Begins:
    """Every partition that the principal may describe. This takes its time on a large cluster; afterwards all leaders
    are known and connected, so that the next requests are sent at one moment.
    """
    described = await admin.describe_topics(None)
    topic_ids = {
        TopicPartition(topic.name, each.partition): topic.topic_id
        for topic in described.done.values()
        for each in topic.partitions
    }
    return Begins(topic_ids, await admin.list_offsets(dict.fromkeys(topic_ids, OffsetSpec.earliest())))


async def measure_logs(admin: Admin, begins: Begins) -> tuple[int, dict[TopicPartition, LogEnds | Refused]]:
    """Both ends and the last stable offset of those partitions, and the time of the request: records acknowledged by
    then are before the ends.
    """
    measured_ms = time.time_ns() // 1_000_000
    # For what has no leader others would wait once more.
    latest = dict.fromkeys(begins.earliest.done, OffsetSpec.latest())
    last, stable = await asyncio.gather(admin.list_offsets(latest), admin.list_offsets(latest, read_committed=True))
    failed = {**begins.earliest.failed, **last.failed, **stable.failed}
    found: dict[TopicPartition, LogEnds | Refused] = {place: refused(failure) for place, failure in failed.items()}
    for place, topic_id in begins.topic_ids.items():
        if place not in found:
            begin, lso, end = (batch.done[place].offset for batch in (begins.earliest, stable, last))
            lso = min(lso, end)  # its request may have been served a moment later
            found[place] = LogEnds(begin, lso, end, None if topic_id is None else uuid_text(topic_id))
    return measured_ms, found
