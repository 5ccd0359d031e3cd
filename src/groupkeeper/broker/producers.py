"""What a partition remembers of idempotent producers, to drop repeated batches and to refuse those out of order."""

from __future__ import annotations

from groupkeeper.protocol.errors import InvalidProducerEpoch, OutOfOrderSequenceNumber

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.protocol.record_batch import BatchHeader

INT_MAX = 2**31 - 1
REMEMBERED_BATCHES = 5
"""As many batches as a producer may have in flight (Kafka 4.3.1 ProducerStateEntry)."""


def sequence_after(sequence: int, count: int) -> int:
    """The sequence number `count` records later; it wraps to 0 behind 2^31−1."""
    return (sequence + count) & INT_MAX


class _Written:
    """One remembered batch: its sequence numbers and where it is."""

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
    """

    __slots__ = ("epoch", "seen_ms", "written")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.written: list[_Written] = []
        self.seen_ms = 0


class Producers:
    """The producers of one partition, by id, least recently seen first."""

    __slots__ = ("_expiration_ms", "_producer_by_id", "where")

    def __init__(self, where: str, expiration_ms: int) -> None:
        self.where = where
        self._expiration_ms = expiration_ms
        self._producer_by_id: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._producer_by_id)

    def get(self, producer_id: int) -> Producer | None:
        return self._producer_by_id.get(producer_id)

    def duplicate_of(self, header: BatchHeader) -> int | None:
        """Base offset of the batch that this one repeats, or None."""
        producer = self._producer_by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        for written in producer.written:
            if written.first_sequence == header.base_sequence and written.last_sequence == last_sequence:
                return written.base_offset
        return None

    def check(self, header: BatchHeader) -> None:
        """Raises `InvalidProducerEpoch` or `OutOfOrderSequenceNumber` (Kafka 4.3.1 ProducerAppendInfo).

        A producer that the partition doesn't know may begin with any sequence number (KIP-360).
        """
        producer = self._producer_by_id.get(header.producer_id)
        if producer is None:
            return
        if header.producer_epoch < producer.epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {header.producer_id} at {self.where} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}"
            )
        if header.producer_epoch > producer.epoch:
            if header.base_sequence != 0:
                raise OutOfOrderSequenceNumber(
                    f"Invalid sequence number for new epoch of producer {header.producer_id} at {self.where}: "
                    f"{header.producer_epoch} (request epoch), {header.base_sequence} (seq. number), "
                    f"{producer.epoch} (current producer epoch)"
                )
            return
        if producer.written:
            last = producer.written[-1].last_sequence
            if header.base_sequence != sequence_after(last, 1):
                raise OutOfOrderSequenceNumber(
                    f"Out of order sequence number for producer {header.producer_id} at {self.where}: "
                    f"{header.base_sequence} (incoming seq. number), {last} (current end sequence number)"
                )

    def remember(self, header: BatchHeader, seen_ms: int) -> None:
        """Takes note of a batch that is in the log, with its final offsets."""
        producer = self._producer_by_id.pop(header.producer_id, None)
        if producer is None:
            self._expire(seen_ms)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = Producer(header.producer_epoch)
        self._producer_by_id[header.producer_id] = producer
        producer.seen_ms = seen_ms
        if header.base_sequence >= 0:
            producer.written.append(_Written(header))
            del producer.written[:-REMEMBERED_BATCHES]

    def _expire(self, now_ms: int) -> None:
        while self._producer_by_id:
            oldest = next(iter(self._producer_by_id))
            if self._producer_by_id[oldest].seen_ms + self._expiration_ms > now_ms:
                return
            del self._producer_by_id[oldest]
