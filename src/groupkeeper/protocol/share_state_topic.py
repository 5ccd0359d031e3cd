"""The records of `__share_group_state`: key and value bytes ⇄ typed records.

As in `__consumer_offsets` a key is an INT16 type and the struct of that type, a value an INT16 version and the struct
in that version; a null value is a tombstone.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple, TypeAlias

from groupkeeper.protocol.codec import MalformedMessage, decode_prefix, encode_into
from groupkeeper.protocol.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

_INT16 = Struct(">h")
_VERSION = 0


class ShareSnapshot(NamedTuple):
    """The full state of a share-partition; replaces all earlier records."""

    key: ShareSnapshotKey
    value: ShareSnapshotValue


class ShareUpdate(NamedTuple):
    """Changes of a share-partition since its last snapshot and the updates after it."""

    key: ShareUpdateKey
    value: ShareUpdateValue


class ShareTombstone(NamedTuple):
    """The state of the share-partition was deleted."""

    key: ShareSnapshotKey


ShareStateRecord: TypeAlias = ShareSnapshot | ShareUpdate | ShareTombstone


def decode_share_state(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    """The record with these bytes; None for one of an unknown type, and for a tombstone of updates, which no broker
    writes: both are skipped. Raises `MalformedMessage`.
    """
    record_type = _leading_int16(key, "key")
    if record_type == ShareSnapshotKey.RECORD_TYPE:
        snapshot_key, _ = decode_prefix(ShareSnapshotKey, key, 0, 2)
        if value is None:
            return ShareTombstone(snapshot_key)
        _require_version(value)
        return ShareSnapshot(snapshot_key, decode_prefix(ShareSnapshotValue, value, _VERSION, 2)[0])
    if record_type == ShareUpdateKey.RECORD_TYPE and value is not None:
        _require_version(value)
        update_key, _ = decode_prefix(ShareUpdateKey, key, 0, 2)
        return ShareUpdate(update_key, decode_prefix(ShareUpdateValue, value, _VERSION, 2)[0])
    return None


def encode_share_state(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Key and value bytes of a record; no value for a tombstone."""
    key = bytearray(_INT16.pack(record.key.RECORD_TYPE))
    encode_into(key, record.key, 0)
    if isinstance(record, ShareTombstone):
        return bytes(key), None
    value = bytearray(_INT16.pack(_VERSION))
    encode_into(value, record.value, _VERSION)
    return bytes(key), bytes(value)


def _require_version(value: bytes) -> None:
    version = _leading_int16(value, "value")
    if version != _VERSION:
        raise MalformedMessage(f"records of share state have no version {version}")


def _leading_int16(buf: bytes, what: str) -> int:
    try:
        return int(_INT16.unpack_from(buf)[0])
    except struct_error as error:
        raise MalformedMessage(f"{what} of {len(buf)} bytes") from error
