"""One log file of a partition: whole record batches one after the other, and a sparse index of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from logging import getLogger
from struct import Struct
from typing import ClassVar, Final

from google_crc32c import value as crc32c

from groupkeeper.broker.log.producer_snapshot import decode_aborted
from groupkeeper.broker.log.producers import Aborted
from groupkeeper.broker.log.scan import MAGIC, Damage, scan
from groupkeeper.broker.log.segment_index import NO_TIMESTAMP, SegmentIndex, replace_bytes
from groupkeeper.broker.storage.open_files import OpenFiles
from groupkeeper.native import mypyc_attr
from groupkeeper.protocol.record_batch import HEADER_SIZE, BatchHeader, CorruptRecord, check_crc, read_header

_log = getLogger("groupkeeper.broker")

_LENGTH_PREFIX = 12
# base offset, batch length, leader epoch, magic, crc, attributes, last offset delta: the fields for iteration.
_WALK = Struct(">qiibIhi")
_CHUNK = 1 << 20
_HAS_WRITEV: Final = hasattr(os, "writev")  # PyPy 7.3 has none
_CHECKED = Struct(">qqqqIII")

ABORTED = ".txnindex"
CHECKSUMS = ".checksums"
INDEX_SUFFIXES = (".index", ".timeindex")


def file_name(base_offset: int, suffix: str = ".log") -> str:
    """Kafka's name of a segment file: its base offset in 20 digits."""
    return f"{base_offset:020d}{suffix}"


@mypyc_attr(native_class=False)
class TornTail(OSError):
    """A partly written batch could not be removed: anything appended after it would be at the wrong place."""


class Segment:
    """A segment file with the positions of its batches. The partition log interprets the batches."""

    __slots__: ClassVar[tuple[str, ...]] = (
        "_files",
        "_from_earlier",
        "_index_interval",
        "_intact",
        "_is_verified",
        "base_offset",
        "damage",
        "first_timestamp",
        "index",
        "next_offset",
        "path",
        "size",
    )

    def __init__(self, path: str, base_offset: int, files: OpenFiles, index_interval: int = 4096) -> None:
        self.path = path
        self.base_offset = base_offset
        """The offset that the file is named after; no record in it is lower."""
        self._files = files
        self._index_interval = index_interval
        self.forget()

    def forget(self) -> None:
        """Resets all that is known of the file, to the state before `load` or `scan`."""
        self.size = 0
        """Bytes of whole batches in the file."""
        self.first_timestamp = NO_TIMESTAMP
        """The largest timestamp of the first batch; −1: empty or unknown."""
        self.next_offset = self.base_offset
        """The offset after the last record; `base_offset`: empty."""
        self.index = SegmentIndex(self.base_offset, self._index_interval)
        """The positions of batches."""
        self.damage: list[Damage] = []
        """The known damaged ranges, in the order of the file."""
        self._is_verified = True
        self._from_earlier = 0
        self._intact = (0, 0)
        """`_from_earlier`: bytes written by an earlier process; `_intact`: the range of them that was verified."""

    @property
    def max_timestamp(self) -> int:
        """Largest batch timestamp, −1 when empty."""
        return self.index.max_timestamp

    @property
    def has_damaged_end(self) -> bool:
        """Whether the last bytes are known to be damaged."""
        return bool(self.damage) and self.damage[-1].end == self.size

    def append(self, last_offset: int, max_timestamp: int, length: int, parts: Sequence[bytes | memoryview]) -> None:
        """Appends one batch of that many bytes, given in several parts, and indexes it.

        Raises OSError; then the file is unchanged. `TornTail` is the exception: the partly written batch could not be
        removed.
        """
        descriptor = self._files.descriptor(self.path)
        try:
            if len(parts) == 1:  # a commit: saves a sixth of the time
                written = os.write(descriptor, parts[0])
            else:
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
        """Indexes a batch at the end of the file."""
        if self.size == 0:
            self.first_timestamp = max_timestamp
        self.index.add(last_offset, max_timestamp, self.size, length)
        self.size += length
        self.next_offset = last_offset + 1

    def read_at(self, position: int, length: int) -> bytes:
        """The bytes at a position, from the page cache; fewer at the end of the file."""
        length = min(length, self.size - position)
        return os.pread(self._files.descriptor(self.path), length, position) if length > 0 else b""

    def position_of(self, offset: int) -> int:
        """Position of the first intact batch with `offset` or a later offset; `size` when there is no such batch."""
        try:
            return self._position_of(offset)
        except CorruptRecord:
            self.reread()
            return self._position_of(offset)

    def _position_of(self, offset: int) -> int:
        position = self.index.position_before(offset)
        previous = self.base_offset - 1
        while (position := self._behind_damage(position)) < self.size:
            block = self.read_at(position, self._index_interval + HEADER_SIZE)
            at = 0
            while at + HEADER_SIZE <= len(block):
                base_offset, length, _, magic, _, _, last_delta = _WALK.unpack_from(block, at)
                last = base_offset + last_delta
                if magic != MAGIC or length < HEADER_SIZE - _LENGTH_PREFIX or not previous < base_offset <= last:
                    raise CorruptRecord("no batch")
                if last >= offset:
                    if base_offset > offset:
                        self._check_gap(last + 1, position + at + _LENGTH_PREFIX + length)
                    return position + at
                previous = last
                at += _LENGTH_PREFIX + length
                if self.damage:
                    break
            position += at
            if at == 0 or position > self.size:
                if self._is_verified:
                    break  # less than a batch remains: another process has truncated the file
                raise CorruptRecord("no whole batch")
        return self.size

    def _check_gap(self, next_offset: int, end: int) -> None:
        """Raises CorruptRecord when a batch that ends at position `end` overlaps the next batch."""
        behind = self.read_at(end, 8)
        following = int.from_bytes(behind, "big") if len(behind) == 8 else self.next_offset
        if next_offset > following and not self._is_verified:
            raise CorruptRecord("a base offset is wrong")

    def batches(self, position: int = 0) -> Iterator[tuple[int, bytes, int, BatchHeader]]:
        """Every intact batch from a batch's position on: its position, a buffer, its position there, and its header.

        Damage is passed over. Raises CorruptRecord when the file has changed since it was read.
        """
        while position < self.size:
            try:
                for found in self._batches(position):
                    yield found
                    position = found[0] + found[3].size_in_bytes
                return
            except CorruptRecord:
                if self._is_verified:
                    raise
                self.reread()

    def _batches(self, position: int) -> Iterator[tuple[int, bytes, int, BatchHeader]]:
        next_offset = self.base_offset
        while (position := self._behind_damage(position)) < self.size:
            block = self.read_at(position, _CHUNK)
            length = _LENGTH_PREFIX + int.from_bytes(block[8:12], "big")
            if len(block) < length <= self.size - position:
                block = self.read_at(position, length)
            at = 0
            for header in self._checked(block, position, next_offset):
                yield position + at, block, at, header
                next_offset = header.next_offset
                at += header.size_in_bytes
                if self.damage:
                    break
            if at == 0:
                raise CorruptRecord("no whole batch")
            position += at

    def _checked(self, block: bytes, position: int, next_offset: int) -> Iterator[BatchHeader]:
        """The headers of the whole batches in a block of the file at `position`. Raises CorruptRecord at damage."""
        at = 0
        while at + HEADER_SIZE <= len(block):
            header = read_header(block, at)
            end = at + header.size_in_bytes
            if end > len(block):
                return
            check_crc(block, at, header)
            if header.base_offset < next_offset or header.next_offset > self.next_offset:
                raise CorruptRecord("a base offset is wrong")
            if header.base_offset != next_offset:
                self._check_gap(header.next_offset, position + end)
            yield header
            next_offset = header.next_offset
            at = end

    def is_intact(self, position: int, found: bytes) -> bool:
        """Whether the whole batches in `found`, read at `position`, are valid. Bytes that this process wrote or
        verified are, unless `damage` has them. If bytes of an earlier process are invalid, rereads the file, and
        returns False.
        """
        if self._is_verified or position >= self._from_earlier or not found:
            end = position + len(found)
            return not self.damage or not any(one.position < end and position < one.end for one in self.damage)
        begin, end = self._intact
        if not begin <= position <= end:
            begin = end = position
        try:
            for header in self._checked(found[end - position :], end, self.base_offset):
                end += header.size_in_bytes
        except CorruptRecord:
            end = position
        if end == position:
            self.reread()
            return False
        self._intact = begin, end
        return True

    def _behind_damage(self, position: int) -> int:
        for one in self.damage:
            if one.position <= position < one.end:
                return one.end
        return position

    def scan(self, next_offset: int, limit: int, known_end: int) -> Iterator[tuple[int, BatchHeader]]:
        """Reads and indexes the whole file; yields position and header of each intact batch, as `log.scan` does.

        Raises OSError.
        """
        descriptor = self._files.descriptor(self.path)
        size = os.fstat(descriptor).st_size
        self.forget()
        for position, header in scan(descriptor, size, next_offset, limit, known_end, self.damage):
            self.size = position
            self.add(header.last_offset, header.max_timestamp, header.size_in_bytes)
            yield position, header
        self.size = size

    def end_scan(self, known_end: int, *, may_cut: bool = True) -> int:
        """Logs the damage that `scan` found; returns the end offset of the file's records, lost ones included. Damage
        at the end of the file had the records up to `known_end`; if none of these is missing, it is a torn write, and
        is cut off. Raises OSError.
        """
        tail = self.damage[-1] if self.has_damaged_end else None
        if tail is not None:
            del self.damage[-1]
            end = max(known_end, tail.next_offset)
            if end > self.next_offset or not may_cut:
                self.damage.append(tail._replace(next_offset=end))
                self.next_offset = end
            else:
                count = tail.end - tail.position
                _log.warning(
                    "%s: torn write at position %d (%s), cut off %d bytes", self.path, tail[0], tail.why, count
                )
                os.ftruncate(self._files.descriptor(self.path), tail.position)
                self.size = tail.position
        for one in self.damage:
            _log.error("%s: %s", self.path, one)
        return self.next_offset

    def reread(self) -> None:
        """Scans a file again that turned out to be damaged, and logs the damage. Raises OSError; then nothing has
        changed.
        """
        end = self.next_offset
        found = Segment(self.path, self.base_offset, self._files, self._index_interval)
        for _ in found.scan(self.base_offset, end, end):
            pass
        found.end_scan(end, may_cut=False)
        for name in self.__slots__:
            setattr(self, name, getattr(found, name))

    def batch_at(self, position: int) -> bytes:
        """The whole batch that begins at a position."""
        prefix = self.read_at(position, _LENGTH_PREFIX)
        return self.read_at(position, _LENGTH_PREFIX + int.from_bytes(prefix[8:12], "big"))

    def close(self) -> None:
        self._files.close(self.path)

    def create(self) -> None:
        """Makes the file, empty. Raises OSError."""
        self._files.descriptor(self.path)

    # ------------------------------------------------------------------ the files beside it

    def file(self, suffix: str) -> str:
        """The path of a file beside the segment's: `.index`, `.timeindex`, `.txnindex`, `.checksums`."""
        stem, _, rest = self.path.rpartition(".log")
        return stem + suffix + rest

    def save(self) -> None:
        """Writes the index files, and the checksums of all files beside the segment's. Raises OSError."""
        for suffix, content in zip(INDEX_SUFFIXES, self.index.encode(), strict=True):
            replace_bytes(self.file(suffix), content)
        packed = _CHECKED.pack(
            self.base_offset, self.size, self.next_offset, self.first_timestamp, *map(crc32c, self._contents())
        )
        replace_bytes(self.file(CHECKSUMS), packed + crc32c(packed).to_bytes(4, "big"))

    def load(self, limit: int) -> list[Aborted]:
        """Loads the segment from the files beside it instead of reading all batches; returns the aborted transactions.
        Its records must end at or before `limit`. Raises OSError, and ValueError when a file is damaged or of another
        log.
        """
        with open(self.file(CHECKSUMS), "rb") as file:
            packed = file.read()
        if len(packed) != _CHECKED.size + 4 or crc32c(packed[:-4]).to_bytes(4, "big") != packed[-4:]:
            raise ValueError(f"{self.file(CHECKSUMS)} is damaged")
        base_offset, size, next_offset, first_timestamp, *sums = _CHECKED.unpack(packed[:-4])
        contents = self._contents()
        for suffix, content, expected in zip((*INDEX_SUFFIXES, ABORTED), contents, sums, strict=True):
            if crc32c(content) != expected:
                raise ValueError(f"{self.file(suffix)} is damaged")
        if base_offset != self.base_offset or size != os.stat(self.path).st_size or next_offset > limit:
            raise ValueError(f"{self.path} has changed")
        self.index = SegmentIndex.decode(self.base_offset, self._index_interval, *contents[:2])
        self.size, self.next_offset, self.first_timestamp = size, next_offset, first_timestamp
        self._is_verified, self._from_earlier = False, size
        return decode_aborted(contents[2])

    def _contents(self) -> list[bytes]:
        contents = []
        for suffix in (*INDEX_SUFFIXES, ABORTED):
            try:
                with open(self.file(suffix), "rb") as file:
                    contents.append(file.read())
            except FileNotFoundError:
                contents.append(b"")
        return contents
