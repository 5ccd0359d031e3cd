"""One partition's log: record batches in Apache Kafka's on-disk layout, with offsets assigned on append.

An append reaches the system before its response, so it survives the end of this process (kill −9). Only closed
segments are flushed to disk, so a power failure may lose later records, as with Apache Kafka's defaults on one node.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from logging import getLogger
from types import MappingProxyType
from typing import Final
from zlib import crc32

from groupkeeper.broker.log.long_reads import LongReads
from groupkeeper.broker.log.producers import Producers
from groupkeeper.broker.log.record_walk import QUICK_CONTENT, first_of, is_quick
from groupkeeper.broker.log.sealed_segments import load_sealed, save_producers, seal, sync_segments
from groupkeeper.broker.log.segment import Segment, TornTail, file_name
from groupkeeper.broker.log.segment_files import PARTITION_METADATA, repair, retire, swap_steps, without_copies
from groupkeeper.broker.log.waiter import Waiter
from groupkeeper.broker.placement.placement import Placement
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.directory import replace_file
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol.compression import ContentTooLarge, CorruptRecord
from groupkeeper.protocol.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange
from groupkeeper.protocol.record_batch import (
    BatchHeader,
    EndTransaction,
    Record,
    marker_in,
    read_header,
    read_records,
    stamped,
)
from groupkeeper.protocol.uuids import uuid_text

_log = getLogger("groupkeeper.broker")

_PATCHED: Final = 16
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1
_NONE_STALE: Mapping[int, PartitionLog] = MappingProxyType({})


@mypyc_attr(allow_interpreted_subclasses=True)
class PartitionLog:
    """The log of one partition.

    The first append creates the directory. Reading and appending are plain calls: the file is in the page cache.
    """

    __slots__ = (
        "_files",
        "_is_failing",
        "_retired",
        "config",
        "directory",
        "failure",
        "index",
        "log_end_offset",
        "log_start_offset",
        "placement",
        "producers",
        "recovery_point",
        "segments",
        "stale",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        directory: str,
        topic: str,
        topic_id: bytes,
        index: int,
        config: TopicConfig,
        files: OpenFiles,
        producer_expiration_ms: int,
        placement: Placement,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        """The partition's number."""
        self.config = config
        self.log_start_offset = 0
        """The first offset that may be read."""
        self.log_end_offset = 0
        """The offset that the next record will get."""
        self.recovery_point = 0
        """Records before this offset are on disk and survive a power failure."""
        self.failure: str | None = None
        """Why the partition cannot be served: file and position of the corruption, or a disk error; None: it can."""
        self.placement = placement
        """The partition's replicas and leader."""
        self.stale = _NONE_STALE
        """By node id, the diverged logs of cut-off former leaders."""
        self._is_failing = False
        self.producers = Producers(f"{topic}-{index}", producer_expiration_ms)
        self.directory = directory
        """The directory of the segments."""
        self.segments: list[Segment] = []
        """The segments, oldest first; records are appended to the last one."""
        self.waiters: set[Waiter] = set()
        """Requests that wait for appends, or for another leader."""
        self._files = files
        self._retired: list[str] = []

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.index} {self.log_start_offset}..{self.log_end_offset}>"

    def seen_by(self, node: int) -> PartitionLog:
        """The log as a node sees it: a stale one, if the node is a cut-off former leader."""
        if not self.stale:
            return self
        seen = self.stale.get(node, self)
        seen.config, seen.failure, seen.log_start_offset = self.config, self.failure, self.log_start_offset
        return seen

    @property
    def high_watermark(self) -> int:
        """Offset after the last record that consumers may read, as all in-sync replicas have it; with one replica the
        log end.
        """
        held = self.placement.held_high_watermark
        return self.log_end_offset if held is None else max(held, self.log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """Offset up to which every transaction is decided: without open ones, the high watermark."""
        first_open = self.producers.first_open_offset
        end = self.high_watermark
        return end if first_open is None or first_open > end else max(first_open, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self.segments)

    # ------------------------------------------------------------------ writing

    def append(self, batch: bytes, now_ms: int, header: BatchHeader | None = None) -> int:
        """Appends one record batch (magic 2) and returns the offset of its first record. `header`: the batch's, if it
        was already read.

        Assigns offsets and the leader epoch; with LogAppendTime the timestamps too. A batch that an idempotent producer
        repeats isn't written again: the offset of the first write is returned. Raises `KafkaError`; then nothing has
        changed.
        """
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
        marker = None
        if header is None:
            header = read_header(batch)
            if header.size_in_bytes != len(batch):
                raise CorruptMessage(
                    f"{len(batch)} bytes where the batch of {self.topic}-{self.index} has {header.size_in_bytes}"
                )
        if header.producer_id >= 0:
            duplicate = self.producers.duplicate_of(header)
            if duplicate is not None:
                return duplicate
            marker = marker_in(batch, header)
            if marker is None:
                self.producers.check(header)
            else:
                self.producers.check_marker(header, marker.coordinator_epoch)
        first = self.log_end_offset
        epoch = self.placement.epoch
        parts: tuple[bytes | memoryview, ...] = (batch,)
        if self.config.message_timestamp_type == "LogAppendTime":
            batch = stamped(batch, base_offset=first, partition_leader_epoch=epoch, log_append_time_ms=now_ms)
            header, parts = read_header(batch), (batch,)
        elif header.base_offset != first or header.partition_leader_epoch != epoch:
            header = header._replace(base_offset=first, partition_leader_epoch=epoch)
            start = first.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big")
            parts = (start, memoryview(batch)[_PATCHED:])
        self._write(header.last_offset, header.max_timestamp, header.size_in_bytes, parts)
        self.log_end_offset = header.next_offset
        if header.producer_id >= 0:
            self._remember(header, marker, now_ms)
        if self.waiters:
            # A marker is small, but may make many records visible to readers of committed records.
            self.tell_waiters(len(batch) if marker is None else None)
        return first

    def append_built(self, batch: bytes, count: int, timestamp: int) -> int:
        """As `append`, for a batch of `count` records with one timestamp, without a producer, built for the log end
        offset.
        """
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
        first = self.log_end_offset
        self._write(first + count - 1, timestamp, len(batch), (batch,))
        self.log_end_offset = first + count
        if self.waiters:
            self.tell_waiters(len(batch))
        return first

    def tell_waiters(self, size: int | None) -> None:
        """Wakes waiting calls after this many bytes were appended; None: wakes them whatever the number of bytes."""
        for waiter in tuple(self.waiters):
            waiter.wake() if size is None else waiter.appended(size)

    def _remember(self, header: BatchHeader, marker: EndTransaction | None, seen_ms: int) -> None:
        if not header.is_control:
            self.producers.remember(header, seen_ms)
        elif marker is not None:
            self.producers.end_transaction(
                header, seen_ms, is_commit=marker.is_commit, coordinator_epoch=marker.coordinator_epoch
            )

    def _write(self, last_offset: int, max_timestamp: int, length: int, parts: Sequence[bytes | memoryview]) -> None:
        try:
            segment = self.segments[-1] if self.segments else self._first_segment()
            if segment.size and self._is_full(segment, last_offset, max_timestamp, length):
                self.roll()
                segment = self.segments[-1]
            segment.append(last_offset, max_timestamp, length, parts)
        except OSError as error:
            what = f"cannot write {self.topic}-{self.index} in {self.directory}: {error.strerror}"
            if isinstance(error, TornTail):
                self.failure = what  # the next start cuts off the partly written batch
            if not self._is_failing:  # log it once: producers retry endlessly
                self._is_failing = True
                _log.error("%s", what)
            raise KafkaStorageError(what) from error
        if self._is_failing:
            self._is_failing = False
            _log.warning("%s-%d is writable again", self.topic, self.index)

    def _first_segment(self) -> Segment:
        self._make_directory()
        self.segments.append(self._new_segment(self.log_end_offset))
        return self.segments[-1]

    def _is_full(self, active: Segment, last_offset: int, max_timestamp: int, length: int) -> bool:
        config = self.config
        if active.size + length > config.roll_bytes or last_offset - active.base_offset > _MAX_RELATIVE_OFFSET:
            return True
        longest_ms = config.longest_segment_ms
        if config.segment_jitter_ms:
            # Always the same for a segment, and different for each segment, like Kafka's random value.
            seed = crc32(f"{self.topic_id.hex()}-{self.index}-{active.base_offset}".encode())
            longest_ms -= seed % min(config.segment_jitter_ms, config.segment_ms)
        return active.first_timestamp >= 0 and max_timestamp - active.first_timestamp > longest_ms

    def roll(self) -> None:
        """Begins a new segment unless the last one is empty. Raises OSError; then nothing has changed."""
        if self.segments and self.segments[-1].size > 0:
            segment = self._new_segment(self.log_end_offset)
            segment.create()
            seal(self.segments[-1], self.producers, self.directory, self.log_end_offset)
            self.segments.append(segment)

    def _new_segment(self, base_offset: int) -> Segment:
        path = os.path.join(self.directory, file_name(base_offset))
        return Segment(path, base_offset, self._files, self.config.index_interval_bytes)

    def _make_directory(self) -> None:
        os.makedirs(self.directory, exist_ok=True)
        metadata = os.path.join(self.directory, PARTITION_METADATA)
        # Not flushed, like the records that follow: the start accepts a directory without its topic's id.
        text = f"version: 0\ntopic_id: {uuid_text(self.topic_id)}\n"
        replace_file(metadata, text, survives_power_failure=False)

    def advance_start(self, offset: int, why: str = "all their records are deleted") -> None:
        """Moves the log start offset forward to `offset`; removes segments wholly before it, and logs `why`."""
        self.log_start_offset = offset = max(offset, self.log_start_offset)
        self.producers.forget_before(offset)
        count = 0
        while count + 1 < len(self.segments) and self.segments[count + 1].base_offset <= offset:
            count += 1
        if count:
            size = sum(segment.size for segment in self.segments[:count])
            text = "%s-%d: deleted %d segments of %d bytes (%s), the log starts at offset %d now"
            _log.info(text, self.topic, self.index, count, size, why, offset)
        self._retire(count)

    def _retire(self, count: int) -> None:
        for segment in self.segments[:count]:
            segment.close()
            self._retired += retire(self.directory, segment.base_offset)
        del self.segments[:count]

    def take_retired(self) -> list[str]:
        """Paths of files that are no longer part of the log and may be removed; each path is returned once."""
        retired, self._retired = self._retired, []
        return retired

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replaces the consecutive segments `old` by a segment whose files have the suffix `.cleaned`.

        Raises `KafkaStorageError`; then the partition is unavailable until the next start repairs it.
        """
        first = self.segments.index(old[0])
        assert self.segments[first : first + len(old)] == list(old)
        assert len(self.segments) > first + len(old), "the active segment is never replaced"
        try:
            for source, target in swap_steps(self.directory, new.base_offset, [one.base_offset for one in old]):
                self._files.close(source)
                if os.path.exists(source):
                    os.rename(source, target)
                    self._retired += [target] if target.endswith(".deleted") else []
        except OSError as error:
            self.failure = f"{new.path}: cannot be put in place: {error.strerror}"
            raise KafkaStorageError(self.failure) from error
        new.path = os.path.join(self.directory, file_name(new.base_offset))
        self.segments[first : first + len(old)] = [new]

    # ------------------------------------------------------------------ reading

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool = True, end_offset: int | None = None) -> bytes:
        """Batches of one segment, starting with the batch that contains `offset`, at most `max_bytes`; the last batch
        may be incomplete.

        The first batch is always whole: with `at_least_one` it is returned however large it is, otherwise nothing is
        returned if it is larger than `max_bytes`. Records at or after `end_offset` (default: the high watermark) and
        records of the next segment are not returned, as in Apache Kafka. Raises `OffsetOutOfRange`,
        `KafkaStorageError`.
        """
        with self._readable():
            return self._read(offset, max_bytes, at_least_one=at_least_one, end_offset=end_offset)

    def _read(self, offset: int, max_bytes: int, *, at_least_one: bool, end_offset: int | None) -> bytes:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"Received request for offset {offset} for partition {self.topic}-{self.index}, "
                f"but we only have log segments from offset {self.log_start_offset} up to {self.log_end_offset}."
            )
        segment, position = self._place_of(offset)
        for one in self.segments[self._segment_index(offset)].damage if self.segments else ():
            if one.first_offset <= offset < one.next_offset:
                raise CorruptMessage(f"offset {offset} of {self.topic}-{self.index} is damaged")
        if segment is None:
            return b""
        end = next((one.position for one in segment.damage if one.position > position), segment.size)
        if end_offset is not None and end_offset < self.log_end_offset:
            end = min(end, segment.position_of(end_offset))
        if position >= end:
            return b""
        found = segment.read_at(position, min(max_bytes, end - position))
        if len(found) < 12 or len(found) < 12 + int.from_bytes(found[8:12], "big"):
            found = segment.batch_at(position) if at_least_one else b""
        if not segment.is_intact(position, found):
            return self._read(offset, max_bytes, at_least_one=at_least_one, end_offset=end_offset)
        return found

    def bytes_ahead(self, offset: int, end_offset: int) -> int | None:
        """The number of bytes between two offsets of the log; None when they are in different segments or in the wrong
        order. Raises `KafkaStorageError`.
        """
        with self._readable():
            if offset >= end_offset:
                return 0 if offset == end_offset else None
            segment, position = self._place_of(offset)
            last, end = self._place_of(end_offset)
        if last is None and self.segments:
            last, end = self.segments[-1], self.segments[-1].size
        return end - position if segment is last else None

    def offset_after(self, offset: int, size: int) -> int:
        """An offset after all records within `size` bytes of an offset, as close as the index allows."""
        segment, position = self._place_of(offset)
        if segment is None:
            return offset
        found = segment.index.offset_after(position + size)
        if found is not None:
            return found
        later = bisect_right(self.segments, segment.base_offset, key=lambda one: one.base_offset)
        return self.segments[later].base_offset if later < len(self.segments) else self.log_end_offset

    def _place_of(self, offset: int) -> tuple[Segment | None, int]:
        """Position of the first batch with `offset` or a later offset; None when there is no such batch."""
        for segment in self.segments[self._segment_index(offset) :]:
            position = segment.position_of(offset)
            if position < segment.size:
                return segment, position
        return None, 0

    def records(self, offset: int = 0) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Every batch from an offset on, decoded, in order, for the loading of a coordinator."""
        self._require_health()
        for segment in self.segments[self._segment_index(offset) :]:
            for _, block, at, header in segment.batches(segment.position_of(offset)):
                yield header, read_records(block, at, header=header, verify=False)
            if segment.damage:
                _log.error("%r: read without the damaged part of %s", self, segment.path)

    def _segment_index(self, offset: int) -> int:
        return max(bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    async def offset_for_timestamp(self, timestamp: int, reads: LongReads) -> tuple[int, int] | None:
        """Timestamp and offset of the first record whose timestamp is at least the given one, or None.

        As in Apache Kafka, only the first segment with a large enough maximum timestamp is searched. That timestamp may
        belong to a record before the log start offset: then the response is None, although later segments may have
        matching records. Raises `KafkaStorageError`, and `CorruptMessage` for a batch whose records cannot be read.
        """
        with self._readable():
            for segment in tuple(self.segments):
                if segment.max_timestamp >= timestamp:
                    since = segment.position_of(segment.index.offset_before(timestamp))
                    for _, block, at, header in segment.batches(since):
                        if header.max_timestamp >= timestamp:
                            batch = block[at : at + header.size_in_bytes]
                            found = await self._first_of(batch, range(timestamp, 1 << 63), self.log_start_offset, reads)
                            if found is not None:
                                return found
                    break
            return None

    async def max_timestamp(self, reads: LongReads) -> tuple[int, int] | None:
        """Timestamp and offset of the first record with the largest timestamp, or None for an empty log.

        As in Apache Kafka the record may lie before the log start offset, while its segment is still there.
        """
        with self._readable():
            latest = max(self.segments, key=lambda segment: segment.max_timestamp, default=None)
            if latest is None or latest.size == 0:
                return None
            batch = latest.batch_at(latest.position_of(latest.index.max_timestamp_offset))
            return await self._first_of(batch, range(latest.max_timestamp, latest.max_timestamp + 1), 0, reads)

    async def _first_of(self, batch: bytes, times: range, offset: int, reads: LongReads) -> tuple[int, int] | None:
        try:
            with suppress(ContentTooLarge):
                if is_quick(read_header(batch)):
                    return first_of(batch, times, offset, QUICK_CONTENT)
            return await reads.run(first_of, batch, times, offset)
        except CorruptRecord as error:
            raise CorruptMessage(f"a batch of {self.topic}-{self.index} cannot be read: {error}") from None

    # ------------------------------------------------------------------ life

    def sync(self, *, is_end: bool = False) -> None:
        """Flushes all segments except the last to disk. Raises OSError. May run in a thread. With `is_end`, also the
        last segment, with the files that let the next start load it without reading it.
        """
        segments = tuple(self.segments)
        ends = [segment.base_offset for segment in segments[1:]]
        if is_end and segments:
            seal(segments[-1], self.producers, self.directory, self.log_end_offset)
            ends.append(self.log_end_offset)
        if ends and ends[-1] > self.recovery_point:
            sync_segments(segments, ends, self.directory, self.recovery_point)
            self.recovery_point = ends[-1]

    def recover(self, file_names: Iterable[str], known_end: int = 0) -> None:
        """Loads the log from disk; reads only segments whose index files don't match, or that may not be flushed. The
        log had records at least up to its recovery point and `known_end`. Bytes after the last intact batch, beyond all
        known records, are a torn write, and are cut off. Other damage stays in place: only its offsets cannot be read.
        """
        try:
            self._recover(repair(self.directory, file_names), max(known_end, self.recovery_point))
        except OSError as error:
            self.failure = f"{error.filename or self.directory}: {error.strerror}"
        if self.failure is not None:
            _log.error("partition %s-%d is not available: %s", self.topic, self.index, self.failure)
            return
        if self.segments or self.log_end_offset:
            first = self.segments[0].base_offset if self.segments else self.log_end_offset
            if first > self.log_start_offset:
                _log.warning("%s: begins at offset %d, not %d", self.directory, first, self.log_start_offset)
                self.log_start_offset = first
        if self.log_end_offset < self.log_start_offset:
            _log.warning("%r ends before its log start offset: starting an empty log there", self)
            self._retire(len(self.segments))
            self.log_end_offset = self.log_start_offset

    def truncate(self, offset: int) -> None:
        """Removes the records from an offset on, at which a batch begins. Raises OSError."""
        kept = self._segment_index(offset) + 1
        for segment in self.segments[kept:]:
            self._retired += retire(self.directory, segment.base_offset)
        for segment in self.segments:
            segment.close()
        names = [os.path.basename(segment.path) for segment in self.segments[:kept]]
        if names:
            os.truncate(self.segments[kept - 1].path, self.segments[kept - 1].position_of(offset))
        self.segments.clear()
        self.producers = Producers(self.producers.where, self.producers.expiration_ms)
        self.log_end_offset, self.recovery_point = 0, min(self.recovery_point, offset)
        self.recover(names)

    def _recover(self, names: Sequence[str], known_end: int) -> None:
        segments = [self._new_segment(int(name[:-4])) for name in names]
        trusted = load_sealed(segments, self.producers, self.directory, self.recovery_point)
        if trusted < len(segments):
            left = without_copies(self.directory, [segment.base_offset for segment in segments])
            segments = [segment for segment in segments if segment.base_offset in left]
        self.segments += segments[:trusted]
        self.log_end_offset = segments[trusted - 1].next_offset if trusted else 0
        limits = [segment.base_offset for segment in segments[1:]]
        for segment, limit in zip(segments[trusted:], limits[trusted:], strict=False):
            self.segments.append(segment)
            self._scan(segment, limit, limit)
            seal(segment, self.producers, self.directory)
        if trusted < len(segments):
            active = segments[-1]
            self.segments.append(active)
            if limits:
                save_producers(self.producers, self.directory, active.base_offset, active.base_offset)
            self._scan(active, active.base_offset + _MAX_RELATIVE_OFFSET, known_end)
        for one, following in pairwise(segments if not self.config.is_compacted else ()):
            if one.next_offset < following.base_offset:
                self._report_loss(one.next_offset, following.base_offset)
        if self.log_end_offset < known_end:
            self._report_loss(self.log_end_offset, known_end)
            self._go_on_at(known_end)
        elif self.segments and self.segments[-1].has_damaged_end:
            self._go_on_at(self.log_end_offset)  # appended bytes could complete the damaged batch

    def _report_loss(self, first: int, end: int) -> None:
        _log.error(
            "%s: %d offsets from %d on are missing, no file has their records", self.directory, end - first, first
        )

    def _go_on_at(self, offset: int) -> None:
        """Continues at `offset`, after a gap, so that offsets of lost records are not used again."""
        self.log_end_offset = offset
        if self.segments:
            active = self.segments[-1]
            if active.size:
                seal(active, self.producers, self.directory, offset)
            else:
                self._retired += retire(self.directory, active.base_offset)
                del self.segments[-1]
            self.segments.append(self._new_segment(offset))
            self.segments[-1].create()

    def _scan(self, segment: Segment, limit: int, known_end: int) -> None:
        """Reads and indexes a segment, and cuts off a torn write at its end."""
        self.log_end_offset = max(self.log_end_offset, segment.base_offset)
        for position, header in segment.scan(self.log_end_offset, limit, known_end):
            self.log_end_offset = header.next_offset
            if header.producer_id >= 0:
                marker = marker_in(segment.batch_at(position), header) if header.is_control else None
                self._remember(header, marker, header.max_timestamp)
        self.log_end_offset = max(self.log_end_offset, segment.end_scan(known_end))

    def close(self, failure: str | None = None) -> None:
        """Closes the files and wakes all waiting calls; with `failure` later calls raise `KafkaStorageError`."""
        self.failure = failure
        for segment in self.segments:
            segment.close()
        self.tell_waiters(None)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raises `KafkaStorageError` when the partition can't be served, or a file of it can't be read."""
        self._require_health()
        try:
            yield
        except OSError as error:
            raise KafkaStorageError(f"cannot read {self.topic}-{self.index}: {error.strerror}") from error

    def _require_health(self) -> None:
        if self.failure is not None:
            raise KafkaStorageError(self.failure)
