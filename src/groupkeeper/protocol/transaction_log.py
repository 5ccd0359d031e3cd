"""The records of `__transaction_state`: key and value bytes ⇄ typed records.

As in `__consumer_offsets` a key is an INT16 type and the struct of that type, a value an INT16 version and the struct
in that version; a null value is a tombstone.
"""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.protocol.codec import decode_int16, decode_prefix, decode_value, encode_behind
from groupkeeper.protocol.messages import TransactionLogKey, TransactionLogValue

PLAIN_VERSION = 0
FLEXIBLE_VERSION = 1
"""Value version written from transaction.version 1 on."""


class TransactionEntry(NamedTuple):
    """A record that sets the state of a transactional id."""

    transactional_id: str
    value: TransactionLogValue


class TransactionTombstone(NamedTuple):
    """A record that removes a transactional id."""

    transactional_id: str


TransactionRecord = TransactionEntry | TransactionTombstone


def decode_transaction(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """The record with these bytes; None for a key of an unknown type, which is skipped. Raises MalformedMessage."""
    if decode_int16(key, "key") != TransactionLogKey.RECORD_TYPE:
        return None
    decoded, _ = decode_prefix(TransactionLogKey, key, 0, 2)
    if value is None:
        return TransactionTombstone(decoded.transactional_id)
    return TransactionEntry(decoded.transactional_id, decode_value(TransactionLogValue, value))


def encode_transaction(record: TransactionRecord, version: int) -> tuple[bytes, bytes | None]:
    """Key and value bytes of a record, the value in a version; None for a tombstone."""
    key = encode_behind(TransactionLogKey.RECORD_TYPE, TransactionLogKey(record.transactional_id), 0)
    if isinstance(record, TransactionTombstone):
        return key, None
    return key, encode_behind(version, record.value if version > PLAIN_VERSION else _plain(record.value), version)


def _plain(value: TransactionLogValue) -> TransactionLogValue:
    """The value without the fields that version 0 lacks, which only serve repeated requests."""
    return TransactionLogValue(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        transaction_timeout_ms=value.transaction_timeout_ms,
        transaction_status=value.transaction_status,
        transaction_partitions=value.transaction_partitions,
        transaction_last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=value.transaction_start_timestamp_ms,
    )
