"""Records of the transaction log: bytes ⇄ values."""

import pytest

from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.messages.transaction_log_value import PartitionsSchema, TransactionLogValue
from groupkeeper.protocol.transaction_log import (
    FLEXIBLE_VERSION,
    PLAIN_VERSION,
    TransactionEntry,
    TransactionTombstone,
    decode_transaction,
    encode_transaction,
)

VALUE = TransactionLogValue(7, 6, 8, 3, -1, 1000, 1, [PartitionsSchema("t", [0, 1])], 55, 44, 2)


def test_round_trip() -> None:
    for record in (TransactionEntry("tx", VALUE), TransactionTombstone("tx")):
        assert decode_transaction(*encode_transaction(record, FLEXIBLE_VERSION)) == record


def test_the_plain_version_holds_less() -> None:
    record = decode_transaction(*encode_transaction(TransactionEntry("tx", VALUE), PLAIN_VERSION))
    plain = TransactionLogValue(
        7, -1, -1, 3, transaction_timeout_ms=1000, transaction_status=1,
        transaction_partitions=[PartitionsSchema("t", [0, 1])],
        transaction_last_update_timestamp_ms=55, transaction_start_timestamp_ms=44,
    )  # fmt: skip
    assert record == TransactionEntry("tx", plain)


def test_other_records_are_passed_over() -> None:
    assert decode_transaction(b"\x00\x05rest", b"") is None


@pytest.mark.parametrize(
    ("key", "value"), [(b"", b""), (b"\x00\x00\x00\x02tx", b"\x00\x09"), (b"\x00\x00\x00\x02tx", b"")]
)
def test_nonsense(key: bytes, value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_transaction(key, value)
