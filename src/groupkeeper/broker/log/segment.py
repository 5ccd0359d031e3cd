"""One log file of a partition: whole record batches one after the other, and a sparse index of them."""

from __future__ import annotations

import os
from struct import Struct

from groupkeeper.broker.log.segment_index import NO_TIMESTAMP, SegmentIndex, replace_bytes
from groupkeeper.protocol.record_batch import check_crc, read_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from groupkeeper.broker.storage.open_files import OpenFiles
    from groupkeeper.protocol.record_batch import BatchHeader

HEADER_SIZE = 61
_LENGTH_PREFIX = 12
# base offset, batch length, leader epoch, magic, crc, attributes, last offset delta: the fields for iteration.
_WALK = Struct(">qiibIhi")
_SCAN_CHUNK = 1 << 20
_MAGIC = 2
_HAS_WRITEV = hasattr(os, "writev")  # PyPy 7.3 has none

INDEX_SUFFIXES = (".index", ".timeindex")


def file_name(base_offset: int, suffix: str = ".log") -> str:
    """Kafka's name of a segment file: its base offset in 20 digits."""
    return f"{base_offset:020d}{suffix}"


class TornTail(OSError):
    """A partly written batch could not be removed: anything appended after it would be at the wrong place."""


class Segment:
    """A segment file with the positions of its batches. The partition log interprets the batches.

    Attributes:
        base_offset: offset the file is named after; no record in it is lower.
        size: bytes of whole batches in the file.
        first_timestamp: largest timestamp of the first batch, −1 when empty or unknown.
        index: the positions of batches.
    """

    __slots__ = ("_files", "_index_interval", "base_offset", "first_timestamp", "index", "path", "size")

    def __init__(self, path: str, base_offset: int, files: OpenFiles, index_interval: int = 4096) -> None:
        self.path = path
        self.base_offset = base_offset
        self.size = 0
        self.first_timestamp = NO_TIMESTAMP
        self._files = files
        self._index_interval = index_interval
        self.index = SegmentIndex(base_offset, index_interval)

    @property
    def max_timestamp(self) -> int:
        """Largest batch timestamp, −1 when empty."""
        return self.index.max_timestamp

    def append(self, last_offset: int, max_timestamp: int, length: int, parts: Sequence[bytes | memoryview]) -> None:
        """Appends one batch of that many bytes, given in several parts, and indexes it.

        Raises OSError; then the file is unchanged. `TornTail` is the exception: the partly written batch could not be
        removed.
        """
        descriptor = self._files.descriptor(self.path)
        try:
            written = os.writev(descriptor, parts) if _HAS_WRITEV else os.write(descriptor, b"".join(parts))
            if written < length:
                rest = memoryview(b"".join(parts))[written:]
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
        except OSError:
            try:
                os.ftruncate(descriptor, self.size)
            except OSError as error:
                raise TornTail(error.errno, error.strerror, self.path) from error
            raise
        self.add(last_offset, max_timestamp, length)

    def add(self, last_offset: int, max_timestamp: int, length: int) -> None:
        """Indexes a batch that lies at the end of the file."""
        if self.size == 0:
            self.first_timestamp = max_timestamp
        self.index.add(last_offset, max_timestamp, self.size, length)
        self.size += length

    def read_at(self, position: int, length: int) -> bytes:
        """The bytes at a position, from the page cache; fewer at the end of the file."""
        length = min(length, self.size - position)
        return os.pread(self._files.descriptor(self.path), length, position) if length > 0 else b""

    def position_of(self, offset: int) -> int:
        """Position of the first batch with `offset` or a later offset; `size` when there is no such batch."""
        position = self.index.position_before(offset)
        while position < self.size:
            block = self.read_at(position, self._index_interval + HEADER_SIZE)
            at = 0
            while at + HEADER_SIZE <= len(block):
                base_offset, length, _, _, _, _, last_delta = _WALK.unpack_from(block, at)
                if base_offset + last_delta >= offset:
                    return position + at
                at += _LENGTH_PREFIX + length
            if at == 0:
                break  # less than a header remains: another process has shortened the file
            position += at
        return self.size

    def positions_since(self, timestamp: int) -> Iterator[int]:
        """Positions of batches whose largest timestamp is at least `timestamp`, in file order."""
        position = self.position_of(self.index.offset_before(timestamp))
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
            if at == 0:
                return  # less than a header remains: no whole batch
            position += at

    def batches(self, position: int = 0) -> Iterator[tuple[bytes, int, BatchHeader]]:
        """Every whole batch from a batch's position on: a buffer, the batch's position in it, and its header."""
        while position < self.size:
            block = self.read_at(position, _SCAN_CHUNK)
            if len(block) >= _LENGTH_PREFIX:
                first = _LENGTH_PREFIX + int.from_bytes(block[8:12], "big")
                if first > len(block):
                    block = self.read_at(position, first)
            at = 0
            while at + HEADER_SIZE <= len(block):
                header = read_header(block, at)
                end = at + header.size_in_bytes
                if end > len(block):
                    break
                yield block, at, header
                at = end
            if at == 0:
                return
            position += at

    def batch_at(self, position: int) -> bytes:
        """The whole batch that begins at a position."""
        prefix = self.read_at(position, _LENGTH_PREFIX)
        return self.read_at(position, _LENGTH_PREFIX + int.from_bytes(prefix[8:12], "big"))

    def close(self) -> None:
        self._files.close(self.path)

    def create(self) -> None:
        """Makes the file, empty. Raises OSError."""
        self._files.descriptor(self.path)

    # ------------------------------------------------------------------ the index on disk

    def file(self, suffix: str) -> str:
        """The path of a file beside the segment's: `.index`, `.timeindex`, `.txnindex`."""
        return self.path.removesuffix(".log") + suffix

    def save_index(self) -> None:
        """Writes the index files unless they are there already. Raises OSError."""
        for suffix, content in zip(INDEX_SUFFIXES, self.index.encode(), strict=True):
            replace_bytes(self.file(suffix), content)

    def forget_index(self) -> None:
        """Undoes `load_index`: nothing is known about the file then."""
        self.size = 0
        self.index = SegmentIndex(self.base_offset, self._index_interval)

    def load_index(self, next_offset: int) -> None:
        """Takes the size from the file and the index from its files, instead of reading all batches.

        `next_offset` is where the next segment begins. Raises OSError, and ValueError when the files don't fit to the
        batches at the end.
        """
        self.size = os.fstat(self._files.descriptor(self.path)).st_size
        contents = []
        for suffix in INDEX_SUFFIXES:
            with open(self.file(suffix), "rb") as file:
                contents.append(file.read())
        index = SegmentIndex.decode(self.base_offset, self._index_interval, *contents)
        last_offset, indexed = index.last_entry or (None, 0)
        position = indexed
        if indexed >= self.size > 0:
            raise ValueError("the index reaches beyond the log")
        for at, header in self.headers(indexed):
            if at == indexed and last_offset not in (None, header.last_offset):
                raise ValueError("the index belongs to another log")
            position = at + header.size_in_bytes
            if header.next_offset > next_offset or position > self.size:
                raise ValueError("the log doesn't end with a whole batch")
        if position != self.size or (self.size and index.max_timestamp == NO_TIMESTAMP):
            raise ValueError("the index is incomplete")
        self.index = index


class BrokenBatch(Exception):
    """The bytes at `position` of a segment file are not a complete, valid batch."""

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
    if header.magic != _MAGIC:
        raise BrokenBatch(position, f"magic {header.magic}")
    if header.base_offset < next_offset:
        raise BrokenBatch(position, f"base offset {header.base_offset} where at least {next_offset} is due")
    if header.size_in_bytes < HEADER_SIZE or header.last_offset_delta < 0:
        raise BrokenBatch(position, f"a batch of {header.size_in_bytes} bytes")
    return header
