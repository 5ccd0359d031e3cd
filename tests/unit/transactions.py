"""Batches of transactions, and the markers that end these."""

from collections.abc import Sequence

from groupkeeper.protocol.record_batch import EndTransaction, Record, end_transaction_record, write_batch


def in_transaction(producer_id: int, records: Sequence[Record], base_offset: int = 0) -> bytes:
    return write_batch(
        records, base_offset=base_offset, producer_id=producer_id, producer_epoch=0, is_transactional=True
    )


def marker(producer_id: int, *, is_commit: bool, base_offset: int = 0, at_ms: int = 0, epoch: int = 0) -> bytes:
    """`epoch`: the coordinator's."""
    return control_batch(producer_id, end_transaction_record(EndTransaction(is_commit, epoch), at_ms), base_offset)


def control_batch(producer_id: int, record: Record, base_offset: int = 0) -> bytes:
    return write_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
