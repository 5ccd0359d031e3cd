"""One fetch of a share group's member: reads from its partitions, acquires records, and waits when there are none."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from groupkeeper.broker.log.waiter import Waiter, wait_for
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.coordinator.share_partition.acquire import Span
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.share_fetch_response import AcquiredRecords, PartitionData
from groupkeeper.protocol.record_batch import iter_headers, read_end_transaction, read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from groupkeeper.broker.log.partition_log import PartitionLog
    from groupkeeper.broker.shares.leader import LedPartition, SharePartitions
    from groupkeeper.broker.shares.sessions import ShareSession
    from groupkeeper.coordinator.share_partition.acquire import Acquired

    TopicIdPartition = tuple[bytes, int]

_READ_AHEAD = 1 << 20
"""The most bytes read of a partition, unless the member requires more: it acquires few of the readable records."""


class WantedRecords(NamedTuple):
    """A member's fetch."""

    session: ShareSession
    topics: Mapping[TopicIdPartition, str | None]
    """By topic id and partition, in the order in which they are served: the topic's name; None: unknown."""
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_strict: bool
    """Whether `max_records` must not be exceeded."""


class _ShareReading(NamedTuple):
    """Whole batches of a partition, from an offset on."""

    led: LedPartition
    offset: int
    records: bytes


class ShareFetch:
    """A member's fetch from the share-partitions that it wants."""

    def __init__(self, partitions: SharePartitions, wanted: WantedRecords) -> None:
        self._partitions = partitions
        self._wanted = wanted
        self._responses: dict[TopicIdPartition, PartitionData] = {}
        self._ready: dict[TopicIdPartition, LedPartition] = {}
        self._failed: dict[TopicIdPartition, KafkaError] = {}
        self._loading: dict[TopicIdPartition, asyncio.Task[LedPartition]] = {}

    async def run(self) -> dict[TopicIdPartition, PartitionData]:
        """Responses for the wanted partitions, except those without records to acquire. Waits while there are fewer
        than `min_bytes` to acquire. As in Apache Kafka, a share-partition that can't be loaded doesn't end the wait,
        and only a response after a wait reports it.

        Raises `ShareSessionNotFound` when the session ends meanwhile.
        """
        wanted = self._wanted
        if wanted.max_bytes <= 0 or wanted.max_records <= 0:
            return {}
        deadline = asyncio.get_running_loop().time() + wanted.max_wait_ms / 1000
        is_late = wanted.max_wait_ms <= 0
        has_waited = False
        seen: list[int] = []
        while True:
            self._responses = {}
            led = await self._load()
            if wanted.session.is_over:  # ended on another connection; records acquired now would never be released
                raise errors.ShareSessionNotFound
            is_hopeless = len(self._responses) == len(wanted.topics)
            readings = self._read(led)
            size = sum(len(reading.records) for reading in readings.values())
            if is_late or is_hopeless or (led and size >= wanted.min_bytes):
                count = self._acquire(readings)
                if is_late or is_hopeless or count > 0 or wanted.min_bytes <= 0:
                    break
                offsets = [one.states.next_fetch_offset() for one in led.values()]
                if offsets != seen:  # only aborted transactions were read: look for records after them
                    seen = offsets
                    await asyncio.sleep(0)
                    continue
            is_late = not await self._wait(list(led.values()), max(wanted.min_bytes - size, 1), deadline)
            has_waited = True
        for tp, error in self._failed.items() if has_waited else ():
            self._refuse(tp, error)
        return {
            tp: self._responses.get(tp) or PartitionData(tp[1])
            async for tp in in_turns(wanted.topics)
            if tp in self._responses or tp in self._ready
        }

    async def _load(self) -> dict[TopicIdPartition, LedPartition]:
        """The loaded partitions; starts to load the others. A failed load is an error once the fetch has waited."""
        found = await self._loaded()
        if self._loading:
            await asyncio.sleep(0)  # usually enough for the load
            found = await self._loaded()
        return found

    async def _loaded(self) -> dict[TopicIdPartition, LedPartition]:
        return {
            tp: led
            async for tp, name in in_turns(self._wanted.topics.items())
            if (led := self._led(tp, name)) is not None
        }

    def _led(self, tp: TopicIdPartition, name: str | None) -> LedPartition | None:
        topic_id, index = tp
        topic = self._partitions.broker.topics.by_id(topic_id)
        log = None if topic is None else topic.partition(index)
        if log is None:
            error = errors.UnknownTopicId() if topic is None and name is None else errors.UnknownTopicOrPartition()
            self._refuse(tp, error)
        elif log.placement.leader != self._wanted.session.node:
            self._refuse(tp, errors.NotLeaderOrFollower())
        elif tp not in self._failed:
            try:
                if tp in self._loading and self._loading[tp].done():
                    self._loading.pop(tp).result()
            except KafkaError as error:
                self._failed[tp] = error
                return None
            group_id = self._wanted.session.group_id
            led = self._partitions.get(group_id, topic_id, index)
            if led is None and tp not in self._loading:
                self._loading[tp] = self._partitions.load(group_id, topic_id, index)
            return led
        return None

    async def _wait(self, led: Sequence[LedPartition], missing_bytes: int, deadline: float) -> bool:
        """Waits; returns whether enough was appended, or a partition was loaded or changed, before the deadline."""
        waiter = Waiter(missing_bytes)
        loads = list(self._loading.values())

        def loaded(_: object) -> None:
            waiter.wake()

        for load in loads:
            load.add_done_callback(loaded)
        for one in led:
            one.waiters.add(waiter)
        try:
            return await wait_for(waiter, [one.log for one in led], deadline)
        finally:
            for load in loads:
                load.remove_done_callback(loaded)
            for one in led:
                one.waiters.discard(waiter)

    def _refuse(self, tp: TopicIdPartition, error: KafkaError) -> None:
        self._responses[tp] = PartitionData(tp[1], error.code, error.message)

    def _read(self, led: Mapping[TopicIdPartition, LedPartition]) -> dict[TopicIdPartition, _ShareReading]:
        ready = self._ready = {tp: one for tp, one in led.items() if self._can_acquire(one)}
        readings: dict[TopicIdPartition, _ShareReading] = {}
        room = self._wanted.max_bytes
        for tp, one in ready.items():
            share = min(self._wanted.max_bytes // len(ready), room, max(_READ_AHEAD, self._wanted.min_bytes))
            offset = one.states.next_fetch_offset()
            try:
                end_offset = one.log.last_stable_offset if self._is_committed else one.log.high_watermark
                records = one.log.read(offset, share, at_least_one=not readings, end_offset=end_offset)
            except errors.OffsetOutOfRange:  # the log is shorter now, for example of a recreated topic
                continue
            except KafkaError as error:
                self._refuse(tp, error)
                continue
            if records:
                room = max(room - len(records), 0)
                readings[tp] = _ShareReading(one, offset, records)
        return readings

    def _can_acquire(self, led: LedPartition) -> bool:
        led.move_start()
        return not led.is_fenced and led.states.can_acquire(led.config.effective.group_share_partition_max_record_locks)

    @property
    def _is_committed(self) -> bool:
        group_config = self._partitions.broker.group_configs.of(self._wanted.session.group_id)
        return group_config.share_isolation_level == "read_committed"

    def _acquire(self, readings: Mapping[TopicIdPartition, _ShareReading]) -> int:
        """Acquires records from those read; returns how many."""
        wanted, count = self._wanted, 0
        for tp, reading in readings.items():
            headers = list(iter_headers(reading.records))
            spans = [Span(header.base_offset, header.last_offset) for _, header in headers]
            aborted = _aborted(reading.led.log, reading.records, spans) if self._is_committed and spans else []
            try:
                acquired = reading.led.acquire(
                    wanted.session.member_id,
                    spans,
                    reading.offset,
                    aborted=aborted,
                    max_records=wanted.max_records - count,
                    batch_size=wanted.batch_size,
                    is_strict=wanted.is_strict,
                )
            except errors.NotLeaderOrFollower as error:
                self._refuse(tp, error)
                continue
            if acquired:
                count += sum(one.last_offset - one.first_offset + 1 for one in acquired)
                self._responses[tp] = _answer(tp[1], reading.records, acquired)
        return count


def _answer(index: int, records: bytes, acquired: Sequence[Acquired]) -> PartitionData:
    """Whole batches as in the log, from the first to the last batch with acquired records."""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    start, end = 0, len(records)
    for position, header in iter_headers(records):
        if header.last_offset < first:
            start = position + header.size_in_bytes
        if header.base_offset <= last:
            end = position + header.size_in_bytes
    return PartitionData(
        index, records=records[start:end], acquired_records=[AcquiredRecords(*one) for one in acquired]
    )


def _aborted(log: PartitionLog, records: bytes, spans: Sequence[Span]) -> list[Span]:
    """The batches that belong to aborted transactions."""
    pending = sorted(
        log.producers.aborted_between(spans[0].first, spans[-1].last + 1), key=lambda one: one.first_offset
    )
    producers: set[int] = set()
    found = []
    for position, header in iter_headers(records):
        while pending and pending[0].first_offset <= header.last_offset:
            producers.add(pending.pop(0).producer_id)
        if header.producer_id not in producers:
            continue
        if header.is_control:
            marker = read_end_transaction(read_records(records, position)[0])
            if marker is not None and not marker.is_commit:
                producers.discard(header.producer_id)
        elif header.is_transactional:
            found.append(Span(header.base_offset, header.last_offset))
    return found
