"""Read partitions' logs from offset to offset (Fetch), as bytes of whole batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groupkeeper.client.admin.log_fetch import FetchedBatches, LogFetch, Read
from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import CallTimedOut, ConnectionFailed, UnexpectedAnswer
from groupkeeper.client.peer import Peer
from groupkeeper.protocol.errors import OffsetOutOfRange

_BYTES_PER_PARTITION = 1024 * 1024
_PARTITIONS_PER_CHUNK = 50

Take = Callable[[TopicPartition, bytes], int | None]
"""Takes batches, at least one whole, and returns the offset after the last whole one; None: it found no batch."""


async def read_logs(
    cluster: Cluster,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    take: Take,
    max_bytes: int | None,
    timeout_ms: int | None,
) -> Batch[TopicPartition, None]:
    """Admin.read_logs."""
    at = {place: start for place, (start, end) in ranges.items() if start < end}
    result: Batch[TopicPartition, None] = Batch(dict.fromkeys(place for place in ranges if place not in at))

    async def ask(peer: Peer, keys: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, Failure | None]:
        fetch = LogFetch(peer, lambda: cluster.deadline("fetch", timeout_ms), max_bytes or _BYTES_PER_PARTITION)
        answers: dict[TopicPartition, Failure | None] = {}
        left = list(keys)
        while left:
            try:
                read = await fetch.round({place: at[place] for place in left})
            except (ConnectionFailed, CallTimedOut) as error:
                if not answers:
                    raise
                answers.update(dict.fromkeys(left, error))
                break
            for place, found in read.items():
                at[place], failure = _advance(place, at[place], found, take)
                if failure is not None or at[place] >= ranges[place][1]:
                    answers[place] = failure
            left = [place for place in left if place not in answers]
            left.sort(key=lambda place: place in read)  # partitions without a result come first in the next request
        return answers

    while at:
        before = dict(at)
        deadline = cluster.deadline("fetch", timeout_ms)
        read = await of_leaders(cluster, deadline, ask, chunk=_PARTITIONS_PER_CHUNK).run(list(at))
        for place in read.done:
            del at[place]
            result.done[place] = None
        for place, failure in read.failed.items():
            # The timeout is for each piece: a partition that made progress is tried again.
            if not isinstance(failure, CallTimedOut) or at[place] == before[place]:
                del at[place]
                result.failed[place] = failure
    return result


def _advance(place: TopicPartition, offset: int, read: Read, take: Take) -> tuple[int, Failure | None]:
    """The next offset to read, and a failure if reading cannot go on."""
    if isinstance(read, FetchedBatches):
        reached = take(place, read.data)
        if reached is None or reached <= offset:
            return offset, UnexpectedAnswer(f"the batches from offset {offset} on cannot be read")
        return reached, None
    if isinstance(read, int):
        if read <= offset:
            return offset, UnexpectedAnswer(f"the log ends at offset {read} now, and was longer before")
        return read, None
    if isinstance(read, OffsetOutOfRange):
        return offset, UnexpectedAnswer("the log was cut while it was read")
    return offset, read
