"""Compaction of a partition's log: the last record of each key stays (Apache Kafka's log cleaner, 4.4.0).

A pass reads the part that was never compacted and remembers the last offset of each key. Then it rewrites the segments,
several small segments into one, and replaces the old ones. Offsets stay, and so does the offset range of a batch that
loses records. When a pass finds that tombstones and transaction markers are no longer needed, it gives them a delete
horizon; the first pass after that time removes them. Records of aborted transactions are removed at once, their marker
after the last of these records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groupkeeper.broker.log.partition_log import PartitionLog
from groupkeeper.broker.log.segment import Segment, file_name
from groupkeeper.broker.log.segment_files import CLEANED, LOG
from groupkeeper.broker.log.transaction_survey import TransactionSurvey
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.protocol.record_batch import (
    HEADER_SIZE,
    BatchHeader,
    CorruptRecord,
    check_crc,
    read_header,
    read_records,
)
from groupkeeper.protocol.record_batch import read_end_transaction as end_of
from groupkeeper.protocol.retained_batch import BatchEntry, read_entries, read_keys, retained_batch

_CHUNK = 1 << 20
_BATCHES_PER_STEP = 16
_RECORDS_PER_STEP = 1000
_SHORT = 16
"""For batches with at most this many offsets, each is looked up before the batch is read."""


class Cleaned(NamedTuple):
    """A rewritten segment, with the suffix `.cleaned`, and the segments that it replaces."""

    old: Sequence[Segment]
    new: Segment


class Compaction:
    """One pass over the sealed segments of a log.

    Attributes:
        end_offset: every record before it is compacted after the pass.
        survey: the transactions that were seen while writing.
    """

    def __init__(
        self,
        log: PartitionLog,
        segments: Sequence[Segment],
        *,
        dirty_offset: int,
        end_offset: int,
        now_ms: int,
        max_keys: int,
        files: OpenFiles,
    ) -> None:
        """`segments` are all that may be compacted, from the first on; `dirty_offset` is where earlier passes ended."""
        self.end_offset = end_offset
        self._log = log
        self._segments = segments
        self._dirty_offset = dirty_offset
        self._now_ms = now_ms
        self._horizon_ms = now_ms + log.config.delete_retention_ms
        self._max_keys = max_keys
        self._files = files
        self._last_offset_by_key: dict[bytes, int] = {}
        self._last_offsets: set[int] = set()
        self._last_marker: dict[int, int] = {}
        self._last_batch = {
            producer_id: producer.written[-1].base_offset
            for producer_id, producer in log.producers.items()
            if producer.written
        }
        self._producer_ids = frozenset(producer_id for producer_id, _ in log.producers.items())
        self._aborted = tuple(log.producers.aborted)
        self.survey = TransactionSurvey(self._aborted)

    # ------------------------------------------------------------------ first: find the last record of each key

    def survey_keys(self) -> Iterator[None]:
        """Reads the dirty part of the log; yields regularly so that other work gets a turn. Raises CorruptRecord,
        OSError.

        If there are too many keys for the memory limit, `end_offset` moves to where the limit was reached.
        """
        survey = TransactionSurvey(self._aborted)
        for segment in self._segments:
            if segment.base_offset >= self.end_offset or self._end_of(segment) <= self._dirty_offset:
                continue
            for count, (buf, pos, header) in enumerate(_batches(segment)):
                if count % _BATCHES_PER_STEP == 0:
                    yield
                if header.next_offset <= self._dirty_offset:
                    continue
                if header.base_offset >= self.end_offset:
                    return
                if len(self._last_offset_by_key) >= self._max_keys:
                    self.end_offset = header.base_offset
                    return
                yield from self._note(buf, pos, header, survey)

    def _is_overwritten(self, header: BatchHeader) -> bool:
        """Whether the offsets of a batch alone show that all its keys come again later, so that it needn't be read:
        `survey_keys` has read the batch, and found none of its records to be the last of its key. Transactional batches
        must be read: a survey that starts in the middle of the log may take a transaction as aborted, and omit its
        keys.
        """
        if header.is_transactional or header.last_offset_delta >= _SHORT:
            return False
        if not (self._dirty_offset <= header.base_offset and header.last_offset < self.end_offset):
            return False
        return self._last_offsets.isdisjoint(range(header.base_offset, header.next_offset))

    def _note(self, buf: bytes, pos: int, header: BatchHeader, survey: TransactionSurvey) -> Iterator[None]:
        if header.is_control:
            self._last_marker[header.producer_id] = header.base_offset
            survey.note_marker(header, is_commit=_is_commit(buf, pos, header))
        elif header.record_count and not survey.note_batch(header):
            by_key, last_offsets = self._last_offset_by_key, self._last_offsets
            for count, (key, offset) in enumerate(read_keys(buf, pos, header), 1):
                if count % _RECORDS_PER_STEP == 0:
                    yield
                last_offsets.discard(by_key.get(key, -1))
                last_offsets.add(offset)
                by_key[key] = offset

    # ------------------------------------------------------------------ then: write the remaining records

    def groups(self) -> Iterator[list[Segment]]:
        """Groups of adjacent segments that are merged into one: together they are not larger than the segment limit."""
        group: list[Segment] = []
        size = 0
        for segment in self._segments:
            if segment.base_offset >= self.end_offset:
                break
            is_far = bool(group) and self._end_of(segment) - group[0].base_offset > 2**31 - 1
            if group and (size + segment.size > self._log.config.roll_bytes or is_far):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def _end_of(self, segment: Segment) -> int:
        following = self._segments.index(segment) + 1
        return self._segments[following].base_offset if following < len(self._segments) else self.end_offset

    def write(self, group: Sequence[Segment]) -> Iterator[Cleaned | None]:
        """Writes one group; yields None regularly, and at last the rewritten segment. Raises CorruptRecord, OSError."""
        base_offset = group[0].base_offset
        path = os.path.join(self._log.directory, file_name(base_offset, LOG + CLEANED))
        new = Segment(path, base_offset, self._files, self._log.config.index_interval_bytes)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            waiting: list[bytes] = []
            for segment in group:
                for count, (buf, pos, header) in enumerate(_batches(segment)):
                    kept = self._kept(buf, pos, header)
                    if kept:
                        found = read_header(kept)
                        new.add(found.last_offset, found.max_timestamp, len(kept))
                        waiting.append(kept)
                    if count % _BATCHES_PER_STEP == 0:
                        _write_all(descriptor, b"".join(waiting))
                        waiting.clear()
                        yield None
            _write_all(descriptor, b"".join(waiting))
        finally:
            os.close(descriptor)
        yield Cleaned(group, new)

    def _kept(self, buf: bytes, pos: int, header: BatchHeader) -> bytes:
        """The bytes that remain of a batch: all, some, or none."""
        if header.base_offset >= self.end_offset:
            return buf[pos : pos + header.size_in_bytes]
        if header.is_control:
            return self._kept_marker(buf, pos, header)
        if self.survey.note_batch(header):
            return self._empty(header)
        if not header.record_count or self._is_overwritten(header):
            return self._empty(header)
        body, entries = read_entries(buf, pos, header)
        kept = [entry for entry in entries if self._stays(entry, header)]
        if not kept:
            return self._empty(header)
        sets_horizon = header.delete_horizon_ms is None and any(not entry.has_value for entry in kept)
        if len(kept) == len(entries) and not sets_horizon:
            return buf[pos : pos + header.size_in_bytes]
        return retained_batch(header, body, kept, delete_horizon_ms=self._horizon_ms if sets_horizon else None)

    def _stays(self, entry: BatchEntry, header: BatchHeader) -> bool:
        if entry.offset >= self.end_offset:
            return True
        if entry.key is None or entry.offset < self._last_offset_by_key.get(entry.key, -1):
            return False
        horizon_ms = header.delete_horizon_ms
        return entry.has_value or horizon_ms is None or self._now_ms < horizon_ms

    def _kept_marker(self, buf: bytes, pos: int, header: BatchHeader) -> bytes:
        whole = buf[pos : pos + header.size_in_bytes]
        is_needed = self.survey.note_marker(header, is_commit=_is_commit(buf, pos, header))
        if not header.record_count:
            return self._empty(header)
        if is_needed:
            return whole
        if header.delete_horizon_ms is None:
            body, entries = read_entries(buf, pos, header)
            return retained_batch(header, body, entries, delete_horizon_ms=self._horizon_ms)
        return whole if self._now_ms < header.delete_horizon_ms else self._empty(header)

    def _empty(self, header: BatchHeader) -> bytes:
        """For a batch without remaining records: an empty batch, if it must preserve the last sequence number or epoch
        of a producer, or the log end; else no bytes.
        """
        if header.producer_id in self._producer_ids:
            if header.is_control:
                is_last = header.base_offset >= self._last_marker.get(header.producer_id, -1)
            else:
                is_last = header.base_offset >= self._last_batch.get(header.producer_id, header.next_offset)
            if is_last:
                return retained_batch(header, b"", ())
        return retained_batch(header, b"", ()) if header.next_offset == self._log.log_end_offset else b""


def _batches(segment: Segment) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """Every batch of a sealed segment, as buffer, position in it and header. Raises CorruptRecord, OSError.

    The file is opened separately, so that it can be read even if it is removed meanwhile.
    """
    descriptor = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        position, next_offset = 0, segment.base_offset
        while position < segment.size:
            chunk = os.pread(descriptor, min(_CHUNK, segment.size - position), position)
            if not chunk:
                raise OSError(None, "ends too early", segment.path)
            first = 12 + int.from_bytes(chunk[8:12], "big") if len(chunk) >= 12 else HEADER_SIZE
            if first > len(chunk):
                chunk = os.pread(descriptor, first, position)
                if len(chunk) < first:
                    raise CorruptRecord(f"{segment.path} has no whole batch at position {position}")
            at = 0
            while at + HEADER_SIZE <= len(chunk):
                header = read_header(chunk, at)
                if at + header.size_in_bytes > len(chunk):
                    break
                check_crc(chunk, at, header)
                if not next_offset <= header.base_offset < header.next_offset <= segment.next_offset:
                    raise CorruptRecord(f"{segment.path} has offset {header.base_offset} at position {position + at}")
                next_offset = header.next_offset
                yield chunk, at, header
                at += header.size_in_bytes
            if at == 0:
                raise CorruptRecord(f"{segment.path} has no whole batch at position {position}")
            position += at
    finally:
        os.close(descriptor)


def _is_commit(buf: bytes, pos: int, header: BatchHeader) -> bool:
    marker = end_of(read_records(buf, pos)[0]) if header.record_count else None
    return marker is None or marker.is_commit


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
