"""One log file of a partition: whole record batches one after the other, and a sparse index of them in memory."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from struct import Struct

from groupkeeper.protocol.record_batch import check_crc, read_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from groupkeeper.broker.open_files import OpenFiles
    from groupkeeper.protocol.record_batch import BatchHeader

HEADER_SIZE = 61
_LENGTH_PREFIX = 12
# base offset, batch length, leader epoch, magic, crc, attributes, last offset delta: what walking needs.
_WALK = Struct(">qiibIhi")
_SCAN_CHUNK = 1 << 20
_SEARCH_LIMIT = 1 << 26
_NO_TIMESTAMP = -1


def file_name(base_offset: int, suffix: str = ".log") -> str:
    """Kafka's name of a segment file: its base offset in 20 digits."""
    return f"{base_offset:020d}{suffix}"


class Segment:
    """A segment file. Knows where batches lie; what they mean is the partition log's business.

    Attributes:
        base_offset: offset the file is named after; no record in it is lower.
        size: bytes of whole batches in the file.
        max_timestamp: largest batch timestamp, −1 when empty.
        max_timestamp_position: where the first batch with that timestamp begins.
    """

    __slots__ = (
        "_entry_offsets",
        "_entry_positions",
        "_files",
        "_index_interval",
        "_running_max",
        "_unindexed",
        "base_offset",
        "max_timestamp",
        "max_timestamp_position",
        "path",
        "size",
    )

    def __init__(self, path: str, base_offset: int, files: OpenFiles, index_interval: int = 4096) -> None:
        self.path = path
        self.base_offset = base_offset
        self.size = 0
        self.max_timestamp = _NO_TIMESTAMP
        self.max_timestamp_position = 0
        self._files = files
        self._index_interval = index_interval
        # Entry i: the batch at position[i] begins with offset[i]; before it no timestamp exceeds running_max[i].
        self._entry_offsets = array("q")
        self._entry_positions = array("q")
        self._running_max = array("q")
        self._unindexed = index_interval

    def append(self, header: BatchHeader, *parts: bytes | memoryview) -> None:
        """Writes one batch at the end and indexes it. Raises OSError; then the file is as it was before."""
        descriptor = self._files.descriptor(self.path)
        length = sum(map(len, parts))
        try:
            written = os.writev(descriptor, parts)
            if written < length:
                rest = memoryview(b"".join(parts))[written:]
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
        except OSError:
            os.ftruncate(descriptor, self.size)
            raise
        self.add(header, length)

    def add(self, header: BatchHeader, length: int) -> None:
        """Indexes a batch that lies at the end of the file."""
        if self._unindexed >= self._index_interval:
            self._entry_offsets.append(header.base_offset)
            self._entry_positions.append(self.size)
            self._running_max.append(self.max_timestamp)
            self._unindexed = 0
        self._unindexed += length
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_position = self.size
        self.size += length

    def read_at(self, position: int, length: int) -> bytes:
        """The bytes at a position, from the page cache; fewer at the end of the file."""
        length = min(length, self.size - position)
        return os.pread(self._files.descriptor(self.path), length, position) if length > 0 else b""

    def position_of(self, offset: int) -> int:
        """Where the first batch begins that holds `offset` or a later one; `size` when there is none."""
        entry = bisect_right(self._entry_offsets, offset) - 1
        position = self._entry_positions[entry] if entry > 0 else 0
        while position < self.size:
            block = self.read_at(position, self._index_interval + HEADER_SIZE)
            at = 0
            while at + HEADER_SIZE <= len(block):
                base_offset, length, _, _, _, _, last_delta = _WALK.unpack_from(block, at)
                if base_offset + last_delta >= offset:
                    return position + at
                at += _LENGTH_PREFIX + length
            position += at
        return self.size

    def positions_since(self, timestamp: int) -> Iterator[int]:
        """Where batches begin whose largest timestamp is at least `timestamp`, in file order."""
        entry = max(bisect_right(self._running_max, timestamp - 1) - 1, 0)
        position = self._entry_positions[entry] if self._entry_positions else 0
        for at, header in self.headers(position):
            if header.max_timestamp >= timestamp:
                yield at

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from a batch's position on."""
        while position < self.size:
            block = self.read_at(position, _SCAN_CHUNK)
            at = 0
            while at + HEADER_SIZE <= len(block):
                header = read_header(block, at)
                yield position + at, header
                at += header.size_in_bytes
            position += at

    def batch_at(self, position: int) -> bytes:
        """The whole batch that begins at a position."""
        prefix = self.read_at(position, _LENGTH_PREFIX)
        return self.read_at(position, _LENGTH_PREFIX + int.from_bytes(prefix[8:12], "big"))

    def close(self) -> None:
        self._files.close(self.path)

    def truncate(self, size: int) -> None:
        """Cuts the file. The index must be rebuilt by the caller if entries lie behind the cut."""
        os.ftruncate(self._files.descriptor(self.path), size)
        self.size = size


class BrokenBatch(Exception):
    """What lies at `position` of a segment file is no whole, valid batch."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position
        self.why = why


def scan(descriptor: int, size: int, next_offset: int) -> Iterator[tuple[BatchHeader, int]]:
    """Header and length of every batch of a file, checksums verified. Raises `BrokenBatch` where one isn't whole.

    `next_offset` is the lowest offset the first batch may have.
    """
    position = 0
    chunk = b""
    chunk_start = 0
    while position < size:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_start, at = os.pread(descriptor, _SCAN_CHUNK, position), position, 0
        if len(chunk) - at < HEADER_SIZE:
            raise BrokenBatch(position, f"{size - position} bytes are no batch header")
        header = _plausible_header(chunk, at, position, next_offset)
        length = header.size_in_bytes
        if position + length > size:
            raise BrokenBatch(position, f"a batch of {length} bytes where the file has {size - position}")
        if at + length > len(chunk):
            chunk, chunk_start, at = os.pread(descriptor, max(_SCAN_CHUNK, length), position), position, 0
        try:
            check_crc(chunk, at, header)
        except ValueError as error:
            raise BrokenBatch(position, str(error)) from None
        yield header, length
        position += length
        next_offset = header.next_offset


def _plausible_header(chunk: bytes, at: int, position: int, next_offset: int) -> BatchHeader:
    try:
        header = read_header(chunk, at)
    except ValueError as error:
        raise BrokenBatch(position, str(error)) from None
    if header.magic != 2:
        raise BrokenBatch(position, f"magic {header.magic}")
    if header.base_offset < next_offset:
        raise BrokenBatch(position, f"base offset {header.base_offset} where at least {next_offset} is due")
    if header.size_in_bytes < HEADER_SIZE or header.last_offset_delta < 0:
        raise BrokenBatch(position, f"a batch of {header.size_in_bytes} bytes")
    return header


def find_batch_behind(descriptor: int, size: int, position: int, next_offset: int) -> int | None:
    """Where a whole, valid batch of a later offset begins behind `position`, or None.

    This tells a torn tail from corruption in the middle. Batches inside records' values have lower offsets.
    """
    rest = os.pread(descriptor, min(size - position, _SEARCH_LIMIT), position)
    found = rest.find(b"\x02", HEADER_SIZE)
    while found != -1:
        start = found - 16
        if start > 0 and len(rest) - start >= HEADER_SIZE and _is_whole(rest, start, next_offset):
            return position + start
        found = rest.find(b"\x02", found + 1)
    return None


def _is_whole(rest: bytes, start: int, next_offset: int) -> bool:
    length = int.from_bytes(rest[start + 8 : start + 12], "big", signed=True) + _LENGTH_PREFIX
    if length < HEADER_SIZE or start + length > len(rest):
        return False
    try:
        header = read_header(rest, start)
        check_crc(rest, start, header)
    except ValueError:
        return False
    return header.base_offset > next_offset
