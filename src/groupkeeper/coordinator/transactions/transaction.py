"""One transactional id: its state and its possible transitions.

A transition is a new value; nothing here checks whether it is allowed now (`init` and `end` do).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.messages.transaction_log_value import PartitionsSchema, TransactionLogValue
from groupkeeper.protocol.transaction_log import TransactionEntry

NO_PRODUCER_ID = -1
NO_EPOCH = -1
LAST_EPOCH = 2**15 - 1
"""The last producer epoch. Used only between a transaction's end and its completion; clients get lower epochs."""
EPOCH_BUMP_SINCE = 2
"""From this transaction.version on every transaction has its own epoch (KIP-890)."""

TopicPartition: TypeAlias = tuple[str, int]


class TransactionStatus(Enum):
    """State of a transactional id; names as on the wire, `code` as in the log."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def code(self) -> int:
        return _CODES[self]

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is decided, but not all markers are written."""
        return self in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)


_CODES = {status: code for code, status in enumerate(TransactionStatus)}
_BY_CODE = dict(enumerate(TransactionStatus))


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id and its current or last transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """The transaction timeout that the producer requested."""
    status: TransactionStatus = TransactionStatus.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """The partitions that the ongoing or ending transaction may have written to."""
    started_ms: int = -1
    """When the transaction began; −1: none since the last InitProducerId."""
    updated_ms: int = -1
    """When the last record was made."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last record; −1: none."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after this transaction when the epochs are exhausted; −1 otherwise."""
    client_version: int = 0
    """The transaction.version with which partitions were last added to it, or it was ended."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch that a producer may repeat its last request with; −1: none. In memory only."""

    @property
    def has_used_up_epochs(self) -> bool:
        return is_used_up(self.producer_epoch)

    @property
    def is_commit(self) -> bool:
        """Whether the ending transaction was committed."""
        return self.status is TransactionStatus.PREPARE_COMMIT

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether the ongoing transaction is older than its producer allowed."""
        return self.status is TransactionStatus.ONGOING and self.started_ms + self.timeout_ms < now_ms

    def begun(self, partitions: Iterable[TopicPartition], now_ms: int, client_version: int) -> Transaction:
        """The transaction with more partitions; begins it if it has not begun."""
        return replace(
            self,
            status=TransactionStatus.ONGOING,
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if self.status is TransactionStatus.ONGOING else now_ms,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def ended(
        self, is_commit: bool, now_ms: int, client_version: int, *, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transaction:
        """The transaction with its outcome decided."""
        bumps = client_version >= EPOCH_BUMP_SINCE
        return replace(
            self,
            status=TransactionStatus.PREPARE_COMMIT if is_commit else TransactionStatus.PREPARE_ABORT,
            producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH) if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            started_ms=self.started_ms if self.status is TransactionStatus.ONGOING else now_ms,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            client_version=client_version,
        )

    def fenced(self, now_ms: int, server_version: int) -> Transaction:
        """The transaction aborted, with a fencing epoch that no producer has. From transaction.version 2 on, its
        producer can request the new epoch.
        """
        aborted = self.ended(False, now_ms, server_version)
        if server_version >= EPOCH_BUMP_SINCE:
            return aborted
        return replace(aborted, producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH), last_producer_epoch=NO_EPOCH)

    def completed(self, now_ms: int) -> Transaction:
        """The transaction after all its markers were written."""
        rotates = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=TransactionStatus.COMPLETE_COMMIT if self.is_commit else TransactionStatus.COMPLETE_ABORT,
            partitions=frozenset(),
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def record(self) -> TransactionEntry:
        """The record that stores this state."""
        return TransactionEntry(
            self.transactional_id,
            TransactionLogValue(
                producer_id=self.producer_id,
                previous_producer_id=self.previous_producer_id,
                next_producer_id=self.next_producer_id,
                producer_epoch=self.producer_epoch,
                transaction_timeout_ms=self.timeout_ms,
                transaction_status=self.status.code,
                transaction_partitions=None
                if self.status is TransactionStatus.EMPTY
                else [PartitionsSchema(topic, found) for topic, found in by_topic(self.partitions)],
                transaction_last_update_timestamp_ms=self.updated_ms,
                transaction_start_timestamp_ms=self.started_ms,
                client_transaction_version=self.client_version,
            ),
        )


def read_transaction(transactional_id: str, value: TransactionLogValue) -> Transaction | None:
    """The transactional id as stored in a record; None when it is being removed (Dead). Raises `MalformedMessage`."""
    status = _BY_CODE.get(value.transaction_status)
    if status is None:
        raise MalformedMessage(f"transactional id {transactional_id} has the unknown status {value.transaction_status}")
    if status is TransactionStatus.DEAD:
        return None
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        status,
        frozenset((one.topic, index) for one in value.transaction_partitions or () for index in one.partition_ids),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions grouped by topic, both sorted."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return list(found.items())


def is_used_up(producer_epoch: int) -> bool:
    """Whether the producer id of this epoch may get no further epochs."""
    return producer_epoch >= LAST_EPOCH - 1
