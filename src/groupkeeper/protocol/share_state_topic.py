"""The records of `__share_group_state`: key and value bytes ⇄ typed records.

As in `__consumer_offsets` a key is an INT16 type and the struct of that type, a value an INT16 version and the struct
in that version; a null value is a tombstone.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from groupkeeper.protocol.codec import decode_int16, decode_prefix, decode_value, encode_behind
from groupkeeper.protocol.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

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
    record_type = decode_int16(key, "key")
    if record_type == ShareSnapshotKey.RECORD_TYPE:
        snapshot_key, _ = decode_prefix(ShareSnapshotKey, key, 0, 2)
        if value is None:
            return ShareTombstone(snapshot_key)
        return ShareSnapshot(snapshot_key, decode_value(ShareSnapshotValue, value))
    if record_type == ShareUpdateKey.RECORD_TYPE and value is not None:
        return ShareUpdate(decode_prefix(ShareUpdateKey, key, 0, 2)[0], decode_value(ShareUpdateValue, value))
    return None


def encode_share_state(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Key and value bytes of a record; no value for a tombstone."""
    key = encode_behind(record.key.RECORD_TYPE, record.key, 0)
    return key, None if isinstance(record, ShareTombstone) else encode_behind(_VERSION, record.value, _VERSION)
