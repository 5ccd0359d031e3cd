"""The state of idempotent and transactional producers in a partition. It is used to drop duplicate batches, to refuse
batches out of order, and to track open transactions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from groupkeeper.java_numbers import INT_MAX
from groupkeeper.protocol import errors
from groupkeeper.protocol.record_batch import BatchHeader

_EXPECTED_PRODUCERS = 1000
REMEMBERED_BATCHES = 5
"""The most batches that a producer may have in flight (Kafka 4.4.0 ProducerStateEntry)."""


def sequence_after(sequence: int, count: int) -> int:
    """The sequence number `count` records later; it wraps to 0 after 2^31−1."""
    return (sequence + count) & INT_MAX


class _Written:
    """One remembered batch: its sequence numbers and offsets."""

    __slots__ = ("base_offset", "first_sequence", "last_sequence", "timestamp")

    def __init__(self, header: BatchHeader) -> None:
        self.first_sequence = header.base_sequence
        self.last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        self.base_offset = header.base_offset
        self.timestamp = header.max_timestamp


class Producer:
    """State of one producer id in one partition.

    Attributes:
        epoch: the latest epoch seen.
        written: the last batches of that epoch, oldest first.
        seen_ms: when it last wrote, milliseconds.
        coordinator_epoch: epoch in the last transaction marker; −1 before the first marker.
        transaction_start: offset of the first record of the open transaction; None when none is open.
    """

    __slots__ = ("coordinator_epoch", "epoch", "seen_ms", "transaction_start", "written")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.written: list[_Written] = []
        self.seen_ms = 0
        self.coordinator_epoch = -1
        self.transaction_start: int | None = None

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; −1 when no batch of the epoch is remembered."""
        return self.written[-1].last_sequence if self.written else -1

    @property
    def last_timestamp(self) -> int:
        """Largest timestamp of the last batch; −1 when no batch is remembered."""
        return self.written[-1].timestamp if self.written else -1


class Aborted(NamedTuple):
    """A transaction that was aborted.

    Attributes:
        first_offset: offset of its first record.
        last_offset: offset of its marker.
        stable_offset: the last stable offset once the marker was written.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class Producers:
    """The producers of one partition, by id, least recently seen first.

    Attributes:
        aborted: aborted transactions, in the order of their markers.
        expiration_ms: how long an idle producer is remembered.
    """

    __slots__ = ("_expected", "_open_starts", "_producer_by_id", "aborted", "expiration_ms", "where")

    def __init__(self, where: str, expiration_ms: int) -> None:
        self.where = where
        self.aborted: list[Aborted] = []
        self.expiration_ms = expiration_ms
        self._producer_by_id: dict[int, Producer] = {}
        # Open transactions: start offset → producer id. Offsets only grow, so the first entry is the earliest.
        self._open_starts: dict[int, int] = {}
        # Producer id → epoch and sequence number of the first batch that an unknown producer tried to write.
        self._expected: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._producer_by_id)

    def items(self) -> Iterable[tuple[int, Producer]]:
        """Every producer with its id."""
        return self._producer_by_id.items()

    @property
    def first_open_offset(self) -> int | None:
        """First offset of the earliest open transaction; None when no transaction is open."""
        return next(iter(self._open_starts), None)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has written records of a transaction that hasn't ended here."""
        producer = self._producer_by_id.get(producer_id)
        return producer is not None and producer.epoch == producer_epoch and producer.transaction_start is not None

    def aborted_between(self, offset: int, end_offset: int) -> Iterator[Aborted]:
        """Aborted transactions that may have records in a range of offsets."""
        for index in range(bisect_left(self.aborted, offset, key=lambda one: one.last_offset), len(self.aborted)):
            one = self.aborted[index]
            if one.first_offset < end_offset:
                yield one
            if one.stable_offset >= end_offset:
                return

    def forget_before(self, offset: int) -> None:
        """Records before an offset were removed: drops their aborted transactions."""
        del self.aborted[: bisect_left(self.aborted, offset, key=lambda one: one.last_offset)]

    def duplicate_of(self, header: BatchHeader) -> int | None:
        """Base offset of the earlier batch that this batch repeats, or None."""
        producer = self._producer_by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch or header.base_sequence < 0:
            return None
        last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        for written in producer.written:
            if written.first_sequence == header.base_sequence and written.last_sequence == last_sequence:
                return written.base_offset
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises `InvalidProducerEpoch`, `OutOfOrderSequenceNumber` or `InvalidTxnState` (Kafka 4.4.0
        ProducerAppendInfo).

        A producer without state in the partition may start with any sequence number (KIP-360). A batch without a
        sequence number comes from the group coordinator.
        """
        producer = self._producer_by_id.get(header.producer_id)
        if producer is None:
            return
        self._check_epoch(header, producer)
        if header.base_sequence >= 0:
            self._check_sequence(header, producer)
        if producer.transaction_start is not None and not header.is_transactional:
            raise errors.InvalidTxnState(
                f"Expected transactional write from producer {header.producer_id} at {self.where}"
            )

    def expect(self, header: BatchHeader) -> None:
        """Registers a transactional batch before it is written: if the producer must retry it, later batches
        must wait.
        """
        if header.producer_id in self._producer_by_id:
            return
        epoch, sequence = self._expected.get(header.producer_id, (-1, 0))
        if epoch != header.producer_epoch or header.base_sequence < sequence:
            self._expected[header.producer_id] = (header.producer_epoch, header.base_sequence)
            if len(self._expected) > _EXPECTED_PRODUCERS:
                del self._expected[next(iter(self._expected))]

    def check_expected(self, header: BatchHeader, *, begins_with_0: bool) -> None:
        """Raises `OutOfOrderSequenceNumber` for a batch of an unknown producer that overtook an earlier batch, or, if
        transactions have epochs of their own, isn't the first batch.
        """
        if header.producer_id in self._producer_by_id:
            return
        _, sequence = self._expected.get(header.producer_id, (-1, header.base_sequence))
        if header.base_sequence > (0 if begins_with_0 else sequence):
            raise errors.OutOfOrderSequenceNumber(
                f"Out of order sequence number for producer {header.producer_id} at {self.where}: "
                f"{header.base_sequence} (incoming seq. number), {sequence} (earliest seen sequence)"
            )

    def _check_epoch(self, header: BatchHeader, producer: Producer) -> None:
        if header.producer_epoch < producer.epoch:
            raise errors.InvalidProducerEpoch(
                f"Epoch of producer {header.producer_id} at {self.where} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}"
            )

    def _check_sequence(self, header: BatchHeader, producer: Producer) -> None:
        if header.producer_epoch > producer.epoch:
            if header.base_sequence != 0:
                raise errors.OutOfOrderSequenceNumber(
                    f"Invalid sequence number for new epoch of producer {header.producer_id} at {self.where}: "
                    f"{header.producer_epoch} (request epoch), {header.base_sequence} (seq. number), "
                    f"{producer.epoch} (current producer epoch)"
                )
            return
        last = producer.last_sequence
        if header.base_sequence != sequence_after(last, 1):
            raise errors.OutOfOrderSequenceNumber(
                f"Out of order sequence number for producer {header.producer_id} at {self.where}: "
                f"{header.base_sequence} (incoming seq. number), {last} (current end sequence number)"
            )

    def remember(self, header: BatchHeader, seen_ms: int) -> None:
        """Records an appended batch, with its final offsets."""
        producer = self._touch(header, seen_ms)
        if header.base_sequence >= 0:
            producer.written.append(_Written(header))
            del producer.written[:-REMEMBERED_BATCHES]
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = header.base_offset
            self._open_starts[header.base_offset] = header.producer_id

    def _touch(self, header: BatchHeader, seen_ms: int) -> Producer:
        producer = self._producer_by_id.pop(header.producer_id, None)
        if producer is None:
            self._expected.pop(header.producer_id, None)
            self.expire(seen_ms)
            producer = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.written.clear()
        self._producer_by_id[header.producer_id] = producer
        producer.seen_ms = seen_ms
        return producer

    def check_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Raises `InvalidProducerEpoch` or `TransactionCoordinatorFenced` for a marker that comes too late."""
        producer = self._producer_by_id.get(header.producer_id)
        if producer is None:
            return
        self._check_epoch(header, producer)
        if coordinator_epoch < producer.coordinator_epoch:
            raise errors.TransactionCoordinatorFenced(
                f"Invalid coordinator epoch for producerId {header.producer_id} at {self.where}: {coordinator_epoch} "
                f"(zombie), {producer.coordinator_epoch} (current)"
            )

    def end_transaction(self, header: BatchHeader, seen_ms: int, *, is_commit: bool, coordinator_epoch: int) -> None:
        """Records an appended transaction marker."""
        producer = self._touch(header, seen_ms)
        producer.coordinator_epoch = coordinator_epoch
        start, producer.transaction_start = producer.transaction_start, None
        if start is None:
            return
        del self._open_starts[start]
        if not is_commit:
            first_open = self.first_open_offset
            stable = header.next_offset if first_open is None else first_open
            self.aborted.append(Aborted(header.producer_id, start, header.base_offset, stable))

    def expire(self, now_ms: int) -> None:
        """Removes the state of producers that were idle for too long and have no open transaction."""
        expired = []
        for producer_id, producer in self._producer_by_id.items():
            if producer.seen_ms + self.expiration_ms > now_ms:
                break  # so are all later producers
            if producer.transaction_start is None:
                expired.append(producer_id)
        for producer_id in expired:
            del self._producer_by_id[producer_id]
