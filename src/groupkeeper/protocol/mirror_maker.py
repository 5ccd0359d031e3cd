"""The records of MirrorMaker 2's internal topics: which offset of the source became which offset of the target.

Keys, and the value of an offset sync, are structs without a version; a checkpoint's value is an INT16 version and the
struct. Each record is read on its own; tombstones and records of other kinds give None.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.primitives import read_text

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_OFFSETS = Struct(">qq")


class OffsetSync(NamedTuple):
    """The source's record at ``upstream`` was copied to ``downstream``. ``topic``: as the source calls it."""

    topic: str
    partition: int
    upstream: int
    downstream: int


class Checkpoint(NamedTuple):
    """A group that had committed ``upstream`` can go on at ``downstream``. ``topic``: as the target calls it."""

    group_id: str
    topic: str
    partition: int
    upstream: int
    downstream: int


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync | None:
    """None: a tombstone. Raises MalformedMessage."""
    if key is None or value is None:
        return None
    try:
        topic, pos = read_text(key, 0)
        (partition,) = _INT32.unpack_from(key, pos)
        return OffsetSync(topic, partition, *_OFFSETS.unpack_from(value))
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"no offset sync: {problem}") from None


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint | None:
    """None: a tombstone. From later versions the fields of the first version are read. Raises MalformedMessage."""
    if key is None or value is None:
        return None
    try:
        group_id, pos = read_text(key, 0)
        topic, pos = read_text(key, pos)
        (partition,) = _INT32.unpack_from(key, pos)
        return Checkpoint(group_id, topic, partition, *_OFFSETS.unpack_from(value, _INT16.size))
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"no checkpoint: {problem}") from None
