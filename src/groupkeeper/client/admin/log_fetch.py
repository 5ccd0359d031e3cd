"""Read partitions of one broker from given offsets (Fetch), in responses that may have room for only some partitions.

A broker returns no records for a partition whose next batch exceeds the rest of the limits; only the first partition
with records gets one whole batch whatever its size. An empty response therefore doesn't mean that the log has no
records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupkeeper.client.admin.log_offsets import of_leaders
from groupkeeper.client.admin.types import Batch, Failure, TopicPartition
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.errors import CallTimedOut, ConnectionFailed, UnexpectedResponse
from groupkeeper.client.peer import Peer
from groupkeeper.client.topology import by_topic
from groupkeeper.protocol.errors import OffsetNotAvailable, OffsetOutOfRange, error_for
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.fetch_response import FetchResponse, PartitionData
from groupkeeper.protocol.record_batch import has_whole_batch

_CONSUMER_REPLICA_ID = -1
_BYTES_PER_REQUEST = 8 * 1024 * 1024
"""Total limit of the partitions of one request; a broker returns a larger batch, too, but alone."""

_BYTES_PER_PARTITION = 1024 * 1024
_PARTITIONS_PER_CHUNK = 50
_GROWTH = 4
EMPTY_ANSWERS = 8
"""After so many responses without records, the log is taken to have none from the offset to its end: compaction removed
them. One empty response does not prove that.
"""

_FIRST_PAUSE_MS = 20
_LONGEST_PAUSE_MS = 200


class Isolation(IntEnum):
    """Whether to read records of all transactions, or only up to the first open one, with a list of aborted ones."""

    UNCOMMITTED = 0
    COMMITTED = 1


class FetchedBatches(NamedTuple):
    """Record batches, the last one possibly incomplete. `aborted` has the producer ids of transactions that were
    aborted, by their first offsets; none unless they were read with COMMITTED.
    """

    data: bytes
    aborted: tuple[tuple[int, int], ...] = ()


Read = FetchedBatches | int | Failure
"""Batches; or an offset up to which the log has no more records to read; or the failure."""

Take = Callable[[TopicPartition, bytes], int | None]
"""Takes batches, at least one whole, and returns the offset after the last whole one; None: it found no batch."""


class LogFetch:
    """Consecutive fetches from one broker. Remembers for each partition how large a limit its batches need."""

    def __init__(
        self,
        peer: Peer,
        new_deadline: Callable[[], Deadline],
        bytes_per_partition: int,
        isolation: Isolation = Isolation.UNCOMMITTED,
    ) -> None:
        """`new_deadline` makes the deadline for the next result; called again after each."""
        self._peer = peer
        self._isolation = isolation
        self._new_deadline = new_deadline
        self._deadline = new_deadline()
        self._bytes_per_partition = bytes_per_partition
        self._limits: dict[TopicPartition, int] = {}
        self._empty_answers: dict[TopicPartition, int] = {}
        self._backoff = Backoff(_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)

    async def round(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Read]:
        """The result of one request, for as many partitions as it has room for, in the given order.

        Partitions missing in the result must be requested again. Raises the errors of `Peer.ask`.
        """
        requested = self._with_room(offsets)
        response = await self._peer.ask(FetchResponse, self._request(requested, offsets), self._deadline)
        if response.error_code:
            return dict.fromkeys(requested, error_for(response.error_code))
        responses = {
            TopicPartition(topic.topic, each.partition_index): each
            for topic in response.responses
            for each in topic.partitions
        }
        has_records = any(each.records for each in responses.values())
        found: dict[TopicPartition, Read] = {}
        for tp in requested:
            read = self._read(tp, offsets[tp], responses[tp], has_records) if tp in responses else None
            if read is not None:
                found[tp] = read
        if found:
            self._deadline = self._new_deadline()
            self._backoff = Backoff(_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        else:
            await self._backoff.pause(self._deadline, UnexpectedResponse("the broker's replies hold no records"))
        return found

    def _with_room(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The limit in bytes of each partition, for the first partitions that fit into a request."""
        requested: dict[TopicPartition, int] = {}
        left = _BYTES_PER_REQUEST
        for tp in offsets:
            limit = self._limits.get(tp, self._bytes_per_partition)
            if requested and limit > left:
                break
            requested[tp] = limit
            left -= limit
        return requested

    def _read(self, tp: TopicPartition, offset: int, response: PartitionData, has_records: bool) -> Read | None:
        """The result for a partition; None: fetch it again."""
        if response.error_code:
            return error_for(response.error_code)
        if response.records and has_whole_batch(response.records):
            self._empty_answers.pop(tp, None)
            aborted = sorted((one.first_offset, one.producer_id) for one in response.aborted_transactions or ())
            return FetchedBatches(response.records, tuple(aborted))
        end = response.last_stable_offset if self._isolation is Isolation.COMMITTED else response.high_watermark
        if not response.records and end <= offset <= response.high_watermark:
            return offset
        if not has_records:
            self._empty_answers[tp] = self._empty_answers.get(tp, 0) + 1
            if self._empty_answers[tp] >= EMPTY_ANSWERS:
                return end if offset < end else OffsetNotAvailable()
        limit = self._limits.get(tp, self._bytes_per_partition)
        self._limits[tp] = max(limit, min(limit * _GROWTH, _BYTES_PER_REQUEST))
        return None

    def _request(self, limits: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]) -> FetchRequest:
        topics = by_topic(
            (tp.topic, FetchPartition(tp.partition, fetch_offset=offsets[tp], partition_max_bytes=limit))
            for tp, limit in limits.items()
        )
        return FetchRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            max_bytes=_BYTES_PER_REQUEST,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic, partitions=some) for topic, some in topics.items()],
        )


async def read_logs(
    cluster: Cluster,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    take: Take,
    max_bytes: int | None,
    timeout_ms: int | None,
) -> Batch[TopicPartition, None]:
    """Admin.read_logs."""
    at = {tp: start for tp, (start, end) in ranges.items() if start < end}
    result: Batch[TopicPartition, None] = Batch(dict.fromkeys(tp for tp in ranges if tp not in at))

    async def ask(peer: Peer, keys: list[TopicPartition]) -> dict[TopicPartition, Failure | None]:
        fetch = LogFetch(peer, lambda: cluster.deadline("fetch", timeout_ms), max_bytes or _BYTES_PER_PARTITION)
        results: dict[TopicPartition, Failure | None] = {}
        left = list(keys)
        while left:
            try:
                read = await fetch.round({tp: at[tp] for tp in left})
            except (ConnectionFailed, CallTimedOut) as error:
                if not results:
                    raise
                results.update(dict.fromkeys(left, error))
                break
            for tp, found in read.items():
                at[tp], failure = _advance(tp, at[tp], found, take)
                if failure is not None or at[tp] >= ranges[tp][1]:
                    results[tp] = failure
            left = [tp for tp in left if tp not in results]
            left.sort(key=lambda tp: tp in read)  # partitions without a result come first in the next request
        return results

    while at:
        before = dict(at)
        deadline = cluster.deadline("fetch", timeout_ms)
        read = await of_leaders(cluster, deadline, ask, chunk=_PARTITIONS_PER_CHUNK).run(list(at))
        for tp in read.done:
            del at[tp]
            result.done[tp] = None
        for tp, failure in read.failed.items():
            # The timeout is for each piece: a partition that made progress is tried again.
            if not isinstance(failure, CallTimedOut) or at[tp] == before[tp]:
                del at[tp]
                result.failed[tp] = failure
    return result


def _advance(tp: TopicPartition, offset: int, read: Read, take: Take) -> tuple[int, Failure | None]:
    """The next offset to read, and a failure if reading cannot go on."""
    if isinstance(read, FetchedBatches):
        reached = take(tp, read.data)
        if reached is None or reached <= offset:
            return offset, UnexpectedResponse(f"the batches from offset {offset} on cannot be read")
        return reached, None
    if isinstance(read, int):
        if read <= offset:
            return offset, UnexpectedResponse(f"the log ends at offset {read} now, and was longer before")
        return read, None
    if isinstance(read, OffsetOutOfRange):
        return offset, UnexpectedResponse("the log was cut while it was read")
    return offset, read
