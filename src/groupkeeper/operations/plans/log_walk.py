"""Walks along logs from an offset on, over batches: records of aborted transactions are marked.

A marker of a transaction has an offset and a time as records have, and a lookup by time (ListOffsets) may lead to it:
records with times of their own (a backfill, copies with original times) are then older than the marker before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, TopicPartition
from groupkeeper.protocol.record import BatchHeader, Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_end_transaction, read_records

MOST_BYTES = 4 * 1024 * 1024
"""The most bytes of one partition that a walk reads, plus one batch."""

MOST_RECORDS = 100_000
"""The most records that a walk keeps, plus one batch: a compressed batch may hold many."""


class Kept(NamedTuple):
    """A record of a walk."""

    offset: int
    timestamp: int
    is_append_time: bool = False
    is_aborted: bool | None = False
    """None: its transaction is open, or ends further on."""
    digest: bytes = b""
    """The digest of the content; only if a Look was given, as for `origin`."""
    origin: int | None = None
    """The record's offset in another log, as the record itself says; None: it names none."""
    is_transactional: bool = False


Look = Callable[[Record], tuple[bytes, int | None]]
"""Returns the digest of a record's content, and the offset that it names in another log."""


def no_look(record: Record) -> tuple[bytes, int | None]:
    return b"", None


class Walk:
    """Walks from `start` to the log's `end`, and keeps the records from a time on, in the log's order."""

    def __init__(self, start: int, end: int, since: int | None = None, look: Look = no_look) -> None:
        self.start = start
        self.end = end
        self.reached = start
        self._since = since
        self._look = look
        self._records: dict[int, Kept] = {}
        self._open: dict[int, list[int]] = {}
        self._bytes = 0

    @property
    def records(self) -> list[Kept]:
        return list(self._records.values())

    @property
    def is_at_the_end(self) -> bool:
        return self.reached >= self.end

    def is_done(self) -> bool:
        """Whether reading may stop, though the log may go on."""
        raise NotImplementedError

    def take(self, batches: bytes) -> int | None:
        """Takes batches; returns the next offset to read (the log's end: no more), None: nothing could be read."""
        try:
            for pos, header in iter_headers(batches):
                if header.next_offset <= self.reached:
                    continue
                self._bytes += header.size_in_bytes
                if header.is_control:
                    self._end_transaction(batches, pos, header)
                elif self._since is None or header.max_timestamp >= self._since:
                    self._keep(batches, pos, header)
                self.reached = header.next_offset
                if self.is_done() or self._bytes >= MOST_BYTES or len(self._records) >= MOST_RECORDS:
                    return max(self.end, self.reached)
        except CorruptRecord:
            return None
        return self.reached

    def _wants(self, offset: int) -> bool:
        return offset >= self.start

    def _keep(self, batches: bytes, pos: int, header: BatchHeader) -> None:
        state = None if header.is_transactional else False
        for record in read_records(batches, pos, header=header):
            if self._wants(record.offset) and (self._since is None or record.timestamp >= self._since):
                digest, origin = self._look(record)
                self._records[record.offset] = Kept(
                    record.offset, record.timestamp, header.has_log_append_time, state, digest, origin, state is None
                )
                if state is None:
                    self._open.setdefault(header.producer_id, []).append(record.offset)

    def _end_transaction(self, batches: bytes, pos: int, header: BatchHeader) -> None:
        for record in read_records(batches, pos, header=header):
            marker = read_end_transaction(record)
            if marker is not None:
                for offset in self._open.pop(header.producer_id, ()):
                    self._records[offset] = self._records[offset]._replace(is_aborted=not marker.is_commit)


class Search(Walk):
    """Walks to the first record from a time on; `skips_aborted`: to one that is not aborted."""

    def __init__(self, start: int, end: int, since: int | None = None, *, skips_aborted: bool = False) -> None:
        super().__init__(start, end, since)
        self._skips_aborted = skips_aborted

    @property
    def found(self) -> Kept | None:
        """The record found so far. Its transaction may still be open."""
        return next((one for one in self._records.values() if not (self._skips_aborted and one.is_aborted)), None)

    def is_done(self) -> bool:
        found = self.found
        return found is not None and not (self._skips_aborted and found.is_aborted is None)


class Tour(Walk):
    """Walks over all records before an offset, and to the ends of their transactions."""

    def __init__(self, start: int, until: int, end: int, look: Look = no_look) -> None:
        super().__init__(start, max(until, end), look=look)
        self.until = until

    def is_done(self) -> bool:
        return self.is_whole and not self._open

    def _wants(self, offset: int) -> bool:
        return self.start <= offset < self.until

    @property
    def is_whole(self) -> bool:
        return self.reached >= self.until


async def walk(
    admin: Admin, walks: Mapping[TopicPartition, Walk], *, max_bytes: int | None = None
) -> dict[TopicPartition, Failure]:
    """Does each walk as far as needed; returns the failures of those not finished. `max_bytes`: as in read_logs."""
    ranges = {tp: (one.start, one.end) for tp, one in walks.items() if one.start < one.end}
    if not ranges:
        return {}
    read = await admin.read_logs(ranges, lambda tp, batches: walks[tp].take(batches), max_bytes=max_bytes)
    return dict(read.failed)
