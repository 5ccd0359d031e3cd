"""The state of clusters at one instant, however long later work takes.

First the logs and their start offsets are listed. Then, at one moment, the ends of the offsets topic are requested, and
right after that the ends of all logs. The lag at that instant is the difference between the log ends and the offsets
committed before the ends of the offsets topic.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Batch, Failure, ListedOffset, OffsetSpec, TopicPartition
from groupkeeper.protocol.errors import UnknownTopicOrPartition
from groupkeeper.protocol.uuids import uuid_text

_MOST_NAMED = 5


class LogEnds(NamedTuple):
    """A partition as its leader reports it."""

    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    topic_id: str | None


class InstantRefused(NamedTuple):
    """Why a partition could not be queried, and whether that is because it does not exist."""

    problem: str
    is_deleted: bool


class ClusterIdentity(NamedTuple):
    """The ids of a log's cluster and of its offsets topic; None when the brokers are too old to have them."""

    cluster_id: str | None
    topic_id: str | None


class Instant(NamedTuple):
    """A cluster at `measured_ms`. `topic` is its offsets topic. `stable`: by partition of that topic, the offset up to
    which it can be read; None: it could not be queried. `logs`: every partition that could be listed, or why it could
    not be queried.
    """

    measured_ms: int
    identity: ClusterIdentity
    topic: str
    stable: Mapping[int, int | None]
    logs: Mapping[TopicPartition, LogEnds | InstantRefused]

    def end_of(self, partition: int) -> int | None:
        """The log end of a partition of the offsets topic, open transactions included; None: unknown."""
        found = self.logs.get(TopicPartition(self.topic, partition))
        return found.log_end_offset if isinstance(found, LogEnds) else None

    @property
    def unread(self) -> str | None:
        """A sentence: which partitions of the offsets topic cannot be read at the moment, and why; None: all can be
        read.
        """
        away = [number for number, offset in self.stable.items() if offset is None]
        if not away:
            return None
        found = self.logs.get(TopicPartition(self.topic, away[0]))
        why = found.problem if isinstance(found, InstantRefused) else "they could not be queried"
        some = ", ".join(map(str, away[:_MOST_NAMED])) + (" …" if len(away) > _MOST_NAMED else "")
        return (
            f"{len(away)} of {len(self.stable)} partitions of {self.topic} cannot be read ({some}): what was committed "
            f"there since is not known: {why}"
        )


def refused(failure: Failure) -> InstantRefused:
    """The reason of a partition's failure."""
    text = f"{type(failure).__name__}: {failure}".removesuffix(": ")
    return InstantRefused(text, isinstance(failure, UnknownTopicOrPartition))


Instants = Mapping[str, Instant]
"""Instants by the cluster's name in rows; clusters that could not be queried are missing."""


class Begins(NamedTuple):
    """The log starts of a cluster, which are listed before log ends are measured, and the topic ids; None: unknown."""

    topic_ids: Mapping[TopicPartition, bytes | None]
    earliest: Batch[TopicPartition, ListedOffset]


async def list_logs(admin: Admin, topics: Iterable[str] | None = None) -> Begins:
    """Lists every partition of the topics; None: of all that the principal may describe. This takes a while on a large
    cluster; afterwards all leaders are known and connected, so that the next requests are sent at one moment.
    """
    described = await admin.describe_topics(topics)
    topic_ids = {
        TopicPartition(topic.name, each.partition): topic.topic_id
        for topic in described.done.values()
        for each in topic.partitions
    }
    return Begins(topic_ids, await admin.list_offsets(dict.fromkeys(topic_ids, OffsetSpec.earliest())))


async def measure_logs(admin: Admin, begins: Begins) -> tuple[int, dict[TopicPartition, LogEnds | InstantRefused]]:
    """The time of the request in ms, and start, end and last stable offset of these partitions. Records that were
    acknowledged by that time are before the ends.
    """
    measured_ms = time.time_ns() // 1_000_000
    # Without the partitions that failed before: one without a leader would delay all others again.
    latest = dict.fromkeys(begins.earliest.done, OffsetSpec.latest())
    last, stable = await asyncio.gather(admin.list_offsets(latest), admin.list_offsets(latest, read_committed=True))
    failed = {**begins.earliest.failed, **last.failed, **stable.failed}
    found: dict[TopicPartition, LogEnds | InstantRefused] = {tp: refused(failure) for tp, failure in failed.items()}
    for tp, topic_id in begins.topic_ids.items():
        if tp not in found:
            begin, lso, end = (batch.done[tp].offset for batch in (begins.earliest, stable, last))
            lso = min(lso, end)  # its request may have been served a moment later
            found[tp] = LogEnds(begin, lso, end, None if topic_id is None else uuid_text(topic_id))
    return measured_ms, found
