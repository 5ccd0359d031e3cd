"""A record of the offsets topic with its type and the version of its value, which protocol.offsets_topic leaves out."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.protocol.offsets_topic import Tombstone, UnknownRecord, decode_record
from groupkeeper.protocol.primitives import RootMessage


class KnownRecords(NamedTuple):
    """A record as its schemas describe it; the value is None, and so is its version, for a tombstone."""

    record_type: int
    key: RootMessage
    value: RootMessage | None
    version: int | None


def read_record(key: bytes, value: bytes | None) -> KnownRecords | UnknownRecord:
    """The record with these bytes. Raises MalformedMessage, also for a version of the value that no schema has."""
    found = decode_record(key, value)
    record_type = int.from_bytes(key[:2], "big", signed=True)
    version = None if value is None else int.from_bytes(value[:2], "big", signed=True)
    if isinstance(found, UnknownRecord):
        return found
    return KnownRecords(record_type, found.key, None if isinstance(found, Tombstone) else found.value, version)


def name_of(key: RootMessage) -> str:
    """Kafka's name of a record: the key's class without its ending."""
    return type(key).__name__.removesuffix("Key")
