"""Logs that are fetched as from Apache Kafka's leader: limits of bytes per partition and per request, and one whole
batch beyond them for the first partition that has records. By choice answers are as unkind as the protocol allows.
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import iter_headers, read_records, write_batch

T = TypeVar("T")

OUT_OF_RANGE, NOT_LEADER = 1, 6


class Log(NamedTuple):
    """Whole batches from `start` to `end`; their offsets may have holes."""

    batches: Sequence[bytes]
    start: int
    end: int


def log_of(batches: Sequence[bytes], end: int | None = None, start: int = 0) -> Log:
    """`end` None: that of the last batch."""
    last = [header.next_offset for batch in batches for _, header in iter_headers(batch)]
    return Log(batches, start, (last or [start])[-1] if end is None else end)


def batch_of(base_offset: int, times: Sequence[int], size: int = 10, **more: bool) -> bytes:
    """One record of `size` bytes for each time."""
    records = [Record(None, bytes(size), timestamp=time_ms) for time_ms in times]
    return write_batch(records, base_offset=base_offset, **more)  # type: ignore[arg-type]


def records_from(log: Log, offset: int) -> list[Record]:
    """What a reader of everything gets from there on."""
    found = [
        record
        for batch in log.batches
        for pos, header in iter_headers(batch)
        if not header.is_control
        for record in read_records(batch, pos)
    ]
    return [record for record in found if record.offset >= offset]


class FetchedLogs:
    """A handler of Fetch for ScriptedBroker. `unkind`: with this generator answers lack partitions, are reordered,
    shorter than they could be, throttled, or refused by a leader that is about to move.

    Attributes:
        sizes: bytes of records in each answer.
    """

    def __init__(self, logs: Mapping[TopicPartition, Log], unkind: random.Random | None = None) -> None:
        self.logs = dict(logs)
        self.sizes: list[int] = []
        self._unkind = unkind

    def __call__(self, message: m.FetchRequest, version: int) -> m.FetchResponse:
        if self._happens(0.1):
            return m.FetchResponse(throttle_time_ms=1)
        left, is_first = message.max_bytes, True
        topics = []
        for topic in message.topics:
            partitions = []
            for wanted in topic.partitions:
                if self._happens(0.05):
                    continue
                log = self.logs[TopicPartition(topic.topic, wanted.partition)]
                answer = self._read(log, wanted, left, is_first)
                is_first = is_first and not answer.records
                left = max(0, left - len(answer.records or b""))
                partitions.append(answer)
            topics.append(m.FetchableTopicResponse(topic.topic, partitions=self._shuffled(partitions)))
        self.sizes.append(sum(len(each.records or b"") for topic in topics for each in topic.partitions))
        return m.FetchResponse(responses=self._shuffled(topics))

    def _read(self, log: Log, wanted: FetchPartition, left: int, is_first: bool) -> PartitionData:
        code = 0 if log.start <= wanted.fetch_offset <= log.end else OUT_OF_RANGE
        if code or self._happens(0.05):
            return PartitionData(wanted.partition, code or NOT_LEADER, -1)
        ahead = [batch for batch in log.batches if next(iter_headers(batch))[1].next_offset > wanted.fetch_offset]
        limit = min(wanted.partition_max_bytes, left)
        if self._unkind and not is_first:
            limit = self._unkind.randrange(limit + 1)
        data = b""
        if ahead and (is_first or len(ahead[0]) <= limit) and not self._happens(0.05):
            data = b"".join(ahead)[: max(limit, len(ahead[0]))]
        return PartitionData(wanted.partition, 0, log.end, log.end, log.start, records=data)

    def _happens(self, share: float) -> bool:
        return self._unkind is not None and self._unkind.random() < share

    def _shuffled(self, each: list[T]) -> list[T]:
        return self._unkind.sample(each, len(each)) if self._unkind else each
