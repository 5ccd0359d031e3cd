"""Read partitions of one broker from given offsets (Fetch), in responses that may have room for only some partitions.

A broker returns no records for a partition whose next batch exceeds the rest of the limits; only the first partition
with records gets one whole batch whatever its size. An empty response therefore doesn't mean that the log has no
records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupkeeper.client.admin.types import Failure, TopicPartition
from groupkeeper.client.deadlines import Backoff, Deadline
from groupkeeper.client.errors import UnexpectedAnswer
from groupkeeper.client.peer import Peer
from groupkeeper.protocol.errors import OffsetNotAvailable, error_for
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from groupkeeper.protocol.messages.fetch_response import FetchResponse, PartitionData
from groupkeeper.protocol.record_batch import has_whole_batch

_LAST_VERSION_WITH_NAMES = 12
_CONSUMER_REPLICA_ID = -1
_BYTES_PER_REQUEST = 8 * 1024 * 1024
"""Total limit of the partitions of one request; a broker returns a larger batch, too, but alone."""

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
    """Record batches, the last one possibly incomplete. ``aborted`` has the producer ids of transactions that were
    aborted, by their first offsets; none unless they were read with COMMITTED.
    """

    data: bytes
    aborted: tuple[tuple[int, int], ...] = ()


Read = FetchedBatches | int | Failure
"""Batches; or an offset up to which the log has no more records to read; or the failure."""


class LogFetch:
    """Consecutive fetches from one broker. Remembers for each partition how large a limit its batches need."""

    def __init__(
        self,
        peer: Peer,
        new_deadline: Callable[[], Deadline],
        bytes_per_partition: int,
        isolation: Isolation = Isolation.UNCOMMITTED,
    ) -> None:
        """``new_deadline`` makes the deadline for the next result; called again after each."""
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

        Partitions missing in the result must be requested again. Raises the errors of ``Peer.ask``.
        """
        requested = self._with_room(offsets)
        answer = await self._peer.ask(
            FetchResponse, self._request(requested, offsets), self._deadline,
            max_version=_LAST_VERSION_WITH_NAMES
        )  # fmt: skip
        if answer.error_code:
            return dict.fromkeys(requested, error_for(answer.error_code))
        answers = {
            TopicPartition(topic.topic, each.partition_index): each
            for topic in answer.responses
            for each in topic.partitions
        }
        has_records = any(each.records for each in answers.values())
        found: dict[TopicPartition, Read] = {}
        for place in requested:
            read = self._read(place, offsets[place], answers[place], has_records) if place in answers else None
            if read is not None:
                found[place] = read
        if found:
            self._deadline = self._new_deadline()
            self._backoff = Backoff(_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        else:
            await self._backoff.pause(self._deadline, UnexpectedAnswer("the broker's replies hold no records"))
        return found

    def _with_room(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The limit in bytes of each partition, for the first partitions that fit into a request."""
        requested: dict[TopicPartition, int] = {}
        left = _BYTES_PER_REQUEST
        for place in offsets:
            limit = self._limits.get(place, self._bytes_per_partition)
            if requested and limit > left:
                break
            requested[place] = limit
            left -= limit
        return requested

    def _read(self, place: TopicPartition, offset: int, answer: PartitionData, has_records: bool) -> Read | None:
        """The result for a partition; None: fetch it again."""
        if answer.error_code:
            return error_for(answer.error_code)
        if answer.records and has_whole_batch(answer.records):
            self._empty_answers.pop(place, None)
            aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ())
            return FetchedBatches(answer.records, tuple(aborted))
        end = answer.last_stable_offset if self._isolation is Isolation.COMMITTED else answer.high_watermark
        if not answer.records and end <= offset <= answer.high_watermark:
            return offset
        if not has_records:
            self._empty_answers[place] = self._empty_answers.get(place, 0) + 1
            if self._empty_answers[place] >= EMPTY_ANSWERS:
                return end if offset < end else OffsetNotAvailable()
        limit = self._limits.get(place, self._bytes_per_partition)
        self._limits[place] = max(limit, min(limit * _GROWTH, _BYTES_PER_REQUEST))
        return None

    def _request(self, limits: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for place, limit in limits.items():
            wanted = FetchPartition(place.partition, fetch_offset=offsets[place], partition_max_bytes=limit)
            topics.setdefault(place.topic, []).append(wanted)
        return FetchRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            max_bytes=_BYTES_PER_REQUEST,
            isolation_level=self._isolation,
            topics=[FetchTopic(topic, partitions=some) for topic, some in topics.items()],
        )
