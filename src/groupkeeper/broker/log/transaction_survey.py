"""Finds the transactions that still have records in a log, read from its beginning, for compaction."""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.broker.log.producers import Aborted
from groupkeeper.protocol.record_batch import BatchHeader


class TransactionSurvey:
    """Follows batches and markers in the order of the log (Kafka 4.4.0 CleanedTransactionMetadata).

    Attributes:
        observed: aborted transactions with a batch that was seen; readers still need them.
        gone: aborted transactions without any such batch.
    """

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self.observed: list[Aborted] = []
        self.gone: list[Aborted] = []
        self._waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborting: dict[int, Aborted] = {}
        self._met: set[int] = set()
        self._committing: set[int] = set()

    def note_batch(self, header: BatchHeader) -> bool:
        """Notes a batch of records; returns whether it belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborting:
            self._met.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def note_marker(self, header: BatchHeader, *, is_commit: bool) -> bool:
        """Notes the end of a transaction; returns whether one of its batches was seen, so that the marker must stay."""
        self._advance(header.last_offset)
        producer_id = header.producer_id
        if is_commit and producer_id not in self._aborting:
            is_met = producer_id in self._committing
            self._committing.discard(producer_id)
            return is_met
        one = self._aborting.pop(producer_id, None)
        is_met = producer_id in self._met
        self._met.discard(producer_id)
        if one is not None:
            (self.observed if is_met else self.gone).append(one)
        return is_met

    def _advance(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            one = self._waiting.pop()
            self._aborting[one.producer_id] = one
