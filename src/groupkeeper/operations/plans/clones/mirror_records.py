"""The records of MirrorMaker 2's internal topics, which map offsets of the source to offsets of the target.

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
    """The record at offset `upstream` was copied to offset `downstream`. `topic`: its name at the source."""

    topic: str
    partition: int
    upstream: int
    downstream: int


class Checkpoint(NamedTuple):
    """A group that committed offset `upstream` can go on at `downstream`. `topic`: its name at the target."""

    group_id: str
    topic: str
    partition: int
    upstream: int
    downstream: int


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync | None:
    """The offset sync in a record; None for a tombstone. Raises MalformedMessage."""
    if key is None or value is None:
        return None
    try:
        topic, pos = read_text(key, 0)
        (partition,) = _INT32.unpack_from(key, pos)
        return OffsetSync(topic, partition, *_OFFSETS.unpack_from(value))
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"no offset sync: {problem}") from None


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint | None:
    """The checkpoint in a record; None for a tombstone. All versions begin alike. Raises MalformedMessage."""
    if key is None or value is None:
        return None
    try:
        group_id, pos = read_text(key, 0)
        topic, pos = read_text(key, pos)
        (partition,) = _INT32.unpack_from(key, pos)
        return Checkpoint(group_id, topic, partition, *_OFFSETS.unpack_from(value, _INT16.size))
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedMessage(f"no checkpoint: {problem}") from None
