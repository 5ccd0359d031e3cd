"""Selects the records of a share-partition that a member acquires, from the batches read for its fetch (KIP-932).

Limits are soft unless the acquire mode is strict: batches as producers wrote them are not split. Records that were
already delivered often are handed out in smaller and smaller portions, and one by one for the last delivery, so that a
record which crashes its consumers is archived alone. [Kafka 4.4.0 SharePartition]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.coordinator.share_partition.batch import InFlightBatch, RecordRun, RecordState
from groupkeeper.coordinator.share_partition.partition import SharePartition


class Span(NamedTuple):
    """A range of offsets, last offset inclusive, for example a batch in the log."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records that a member has acquired, last offset inclusive."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Limits(NamedTuple):
    """The limits of an acquisition."""

    max_records: int
    """The most records that the member requests."""
    is_strict: bool
    """Whether `max_records` must not be exceeded."""
    batch_size: int
    """A larger range is cut at the borders of the log's batches, unless `is_strict`."""
    max_in_flight: int
    """`group.share.partition.max.record.locks`."""
    max_delivery_count: int
    """`group.share.delivery.count.limit`."""
    deadline_ms: int
    """When the locks end."""

    @property
    def throttled_from(self) -> int:
        """The delivery count from which records are acquired in smaller portions: half of the limit, at least 2."""
        return max(2, (self.max_delivery_count + 1) // 2)


def acquire(
    partition: SharePartition, member_id: str, spans: Sequence[Span], fetch_offset: int, limits: Limits
) -> list[Acquired]:
    """Acquires records for a member.

    Args:
        spans: the log's batches that were read from `fetch_offset` on, in order; the first may begin before it.
        fetch_offset: the partition's `next_fetch_offset` when they were read.
    """
    if not spans or limits.max_records <= 0 or spans[-1].last < partition.start_offset:
        return []
    last_offset = spans[-1].last
    max_records = min(limits.max_records, limits.max_in_flight - partition.in_flight)
    if max_records <= 0:
        if fetch_offset >= partition.end_offset:
            return []
        last_offset = min(last_offset, partition.end_offset - 1)
        max_records = min(limits.max_records, partition.end_offset - fetch_offset)
    archive_absent(partition, fetch_offset, spans[0].first)
    first_offset = max(spans[0].first, partition.start_offset)
    acquisition = _Acquisition(partition, member_id, spans, max_records, limits)
    acquisition.run(first_offset, last_offset)
    partition.advance_start()
    return acquisition.acquired


def archive_absent(partition: SharePartition, offset: int, end_offset: int) -> None:
    """Archives the offsets from `offset` up to `end_offset`, where the log no longer has records (compaction)."""
    if end_offset <= offset:
        return
    if not partition.in_flight:
        partition.start_offset = partition.end_offset = max(end_offset, partition.start_offset)
        return
    position = max(offset, partition.start_offset)
    for batch in list(partition.overlapping(position, end_offset - 1)):
        _archive_hole(partition, position, batch.first - 1)
        for run in batch.split(position, end_offset - 1) if _has_available(batch) else ():
            if run.can_be_acquired:
                run.state = RecordState.ARCHIVED
        position = batch.last + 1
    _archive_hole(partition, position, end_offset - 1)


def _has_available(batch: InFlightBatch) -> bool:
    # A batch with a change that waits to be stored is not split.
    return all(run.before is None for run in batch.runs) and any(run.can_be_acquired for run in batch.runs)


def _archive_hole(partition: SharePartition, first: int, last: int) -> None:
    if first <= last:
        partition.batches.insert(
            partition.index_of(first), InFlightBatch([RecordRun(first, last, RecordState.ARCHIVED, 0)])
        )
        partition.end_offset = max(partition.end_offset, last + 1)


def archive_acquired(partition: SharePartition, acquired: Sequence[Acquired], spans: Sequence[Span]) -> list[Acquired]:
    """Archives the just acquired records in `spans`, which no member may see (aborted transactions); returns
    the rest.
    """
    for span in spans:
        for one in acquired:
            first, last = max(one.first_offset, span.first), min(one.last_offset, span.last)
            for batch in partition.overlapping(first, last) if first <= last else ():
                for run in batch.split(max(first, batch.first), min(last, batch.last)):
                    run.state, run.member_id = RecordState.ARCHIVED, ""
        acquired = [rest for one in acquired for rest in _without(one, span)]
    partition.advance_start()
    return list(acquired)


def _without(one: Acquired, span: Span) -> list[Acquired]:
    left = one._replace(last_offset=min(one.last_offset, span.first - 1))
    right = one._replace(first_offset=max(one.first_offset, span.last + 1))
    if span.first > one.last_offset or span.last < one.first_offset:
        return [one]
    return [rest for rest in (left, right) if rest.first_offset <= rest.last_offset]


class _Acquisition:
    """One member's acquisition from the batches that were read.

    Attributes:
        acquired: the acquired records.
        count: the number of acquired records.
    """

    def __init__(
        self, partition: SharePartition, member_id: str, spans: Sequence[Span], max_records: int, limits: Limits
    ) -> None:
        self.acquired: list[Acquired] = []
        self.count = 0
        self._partition = partition
        self._member_id = member_id
        self._spans = spans
        self._max_records = max_records
        self._limits = limits

    def run(self, first: int, last: int) -> None:
        position = first
        for batch in list(self._partition.overlapping(first, last)):
            if batch.first > position and self.count < self._max_records:
                self._acquire_new(position, batch.first - 1)
            if self.count >= self._max_records or not self._acquire_again(batch, last):
                return
            position = batch.last + 1
        if position <= last and self.count < self._max_records:
            self._acquire_new(position, last)

    # ------------------------------------------------------------------ first deliveries

    def _acquire_new(self, first: int, last: int) -> None:
        """Acquires records that were never delivered."""
        wanted = self._max_records - self.count
        last_wanted = min(last, first + wanted - 1)
        last = min(last, self._span_end(last_wanted))
        partition = self._partition
        if not partition.in_flight:
            partition.start_offset = partition.end_offset = first
        for begin, end in self._portions(first, last):
            batch = InFlightBatch([RecordRun(begin, end, RecordState.AVAILABLE, 0)])
            partition.batches.insert(partition.index_of(begin), batch)
            # In strict mode the member gets the first part of a batch; the rest stays available for other members.
            for run in batch.split(begin, min(end, last_wanted) if self._limits.is_strict else end):
                run.acquire(self._member_id, self._limits.deadline_ms)
                self._add(run)
            partition.may_have_available |= batch.is_split
        partition.end_offset = max(partition.end_offset, last + 1)

    def _span_end(self, offset: int) -> int:
        """The last offset of the log's batch that contains an offset; the offset itself if no batch contains it."""
        return next((span.last for span in self._spans if span.first <= offset <= span.last), offset)

    def _portions(self, first: int, last: int) -> list[Span]:
        if self._limits.is_strict or last - first + 1 <= self._limits.batch_size:
            return [Span(first, last)]
        portions = []
        begin = first
        for span in self._spans:
            if span.first > last:
                break
            if span.first - begin >= max(self._limits.batch_size, 1):
                portions.append(Span(begin, span.first - 1))
                begin = span.first
        return [*portions, Span(begin, last)]

    # ------------------------------------------------------------------ redeliveries

    def _acquire_again(self, batch: InFlightBatch, last: int) -> bool:
        """Acquires available records that were released; False if the acquisition ends here."""
        first = self._spans[0].first
        is_throttled = any(
            run.can_be_acquired and run.delivery_count >= self._limits.throttled_from
            for run in batch.overlapping(first, last)
        )
        if is_throttled and self.count > 0:
            return False
        is_whole = first <= batch.first and batch.last <= last
        is_too_large = self._limits.is_strict and batch.size > self._max_records - self.count
        if is_whole and not batch.is_split and not is_too_large and not is_throttled:
            run = batch.runs[0]
            if run.can_be_acquired:
                run.acquire(self._member_id, self._limits.deadline_ms)
                self._add(run)
            return True
        if not batch.is_split and not batch.runs[0].can_be_acquired:
            return True
        count = self._acquire_parts(batch, first, last)
        return not (is_throttled and count > 0)

    def _acquire_parts(self, batch: InFlightBatch, first: int, last: int) -> int:
        """Acquires the available records of a batch run by run, and returns how many."""
        batch.is_split = True
        limits = self._limits
        count, portion = 0, None
        parts: list[Acquired] = []
        for run in list(batch.overlapping(first, last)):
            if not run.can_be_acquired:
                continue
            is_last_delivery = limits.max_delivery_count > 2 and run.delivery_count == limits.max_delivery_count - 1
            if is_last_delivery and count > 0:
                break
            if run.delivery_count >= limits.throttled_from and portion is None:
                portion = max(1, batch.first_size >> (run.delivery_count - limits.throttled_from + 1))
            begin, end = max(run.first, first), min(run.last, last)
            take = 1 if is_last_delivery else end - begin + 1
            if portion is not None and count < portion:
                take = min(take, portion - count)
            if limits.is_strict:
                take = min(take, self._max_records - self.count - count)
            for part in batch.split(begin, begin + take - 1):
                part.acquire(self._member_id, limits.deadline_ms)
                _append(parts, Acquired(part.first, part.last, part.delivery_count))
            count += take
            if is_last_delivery or count == portion or (limits.is_strict and self.count + count == self._max_records):
                break
        self.acquired += parts
        self.count += count
        return count

    def _add(self, run: RecordRun) -> None:
        self.acquired.append(Acquired(run.first, run.last, run.delivery_count))
        self.count += run.size


def _append(parts: list[Acquired], part: Acquired) -> None:
    """Adds a part; one that continues the last one with equal fields extends it."""
    if parts and (parts[-1].last_offset, parts[-1].delivery_count) == (part.first_offset - 1, part.delivery_count):
        parts[-1] = parts[-1]._replace(last_offset=part.last_offset)
    else:
        parts.append(part)
