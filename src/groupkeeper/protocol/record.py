"""A record and the header of its batch, for every batch format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupkeeper.protocol.compression import CODECS, CorruptRecord

CODEC_MASK = 0x07
"""The bits of a batch's attributes that are the number of its codec."""
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40


class Record:
    """A record, compared by its fields. `key` and `value` are None for null (a null value is a tombstone in a compacted
    topic); `headers` are (name, value or None) in order; `timestamp` is in milliseconds since the epoch, −1 for none;
    `offset` is the offset in the partition, −1 before the append.
    """

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int = -1,
        offset: int = -1,
    ) -> None:
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Record(key={self.key!r}, value={self.value!r}, headers={self.headers!r}, "
            f"timestamp={self.timestamp}, offset={self.offset})"
        )

    def _fields(self) -> tuple[object, ...]:
        return self.key, self.value, tuple(self.headers), self.timestamp, self.offset


class BatchHeader(NamedTuple):
    """The header of a batch, as in its bytes. In the formats 0 and 1 every message is a batch of its own."""

    base_offset: int
    """In formats 0 and 1 the offset of the message, or of the last one inside a compressed message."""
    batch_length: int
    partition_leader_epoch: int
    """−1 in formats 0 and 1."""
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    """0 in formats 0 and 1."""
    base_timestamp: int
    """In formats 0 and 1 as `max_timestamp`."""
    max_timestamp: int
    """In format 1 the message's timestamp; −1 in format 0."""
    producer_id: int
    """−1, as the next two: no producer, or formats 0 and 1."""
    producer_epoch: int
    base_sequence: int
    record_count: int
    """In formats 0 and 1: 1, or −1 for a compressed message (unknown without decompressing)."""

    @property
    def compression(self) -> str:
        """Name of the codec. Raises CorruptRecord for an unknown codec number."""
        codec = self.attributes & CODEC_MASK
        if codec >= len(CODECS):
            raise CorruptRecord(f"unknown compression codec {codec}")
        return CODECS[codec]

    @property
    def has_log_append_time(self) -> bool:
        """Whether all records have the broker's append time (`max_timestamp`), not their producer's timestamps."""
        return self.magic > 0 and bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction of its producer."""
        return self.magic > 1 and bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record (a transaction marker), which consumers do not see."""
        return self.magic > 1 and bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones and markers of the batch; None when no time is set."""
        return self.base_timestamp if self.magic > 1 and self.attributes & _DELETE_HORIZON else None

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch; compaction may have removed its last records, but keeps the offset range."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_in_bytes(self) -> int:
        """All bytes of the batch, its offset and length fields included."""
        return 12 + self.batch_length
