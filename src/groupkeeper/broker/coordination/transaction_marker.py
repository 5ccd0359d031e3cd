"""The marker that ends a producer's transaction in a partition's log."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.protocol.record_batch import EndTransaction, end_transaction_record, write_batch


class Marker(NamedTuple):
    """A marker of one producer, for any number of partitions.

    Attributes:
        transaction_version: from 2 on, the marker's epoch is higher than that of the transaction's records.
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0

    def batch(self, now_ms: int) -> bytes:
        """The control batch."""
        return write_batch(
            [end_transaction_record(EndTransaction(self.is_commit, self.coordinator_epoch), now_ms)],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_transactional=True,
            is_control=True,
        )
