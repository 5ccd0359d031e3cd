"""The coordinator of the transactional ids of one partition of `__transaction_state`.

A state machine like the group coordinator: it computes results, and changes its state only in `replay` and `apply`.
`groupkeeper.coordinator.transactions.result` describes how to drive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from groupkeeper.coordinator.transactions import views as transaction_views
from groupkeeper.coordinator.transactions.end import end_transaction
from groupkeeper.coordinator.transactions.init import init_producer_id
from groupkeeper.coordinator.transactions.result import (
    LastEpoch,
    TransactionCall,
    TransactionResult,
    TransactionSettings,
    moved,
)
from groupkeeper.coordinator.transactions.transaction import (
    TopicPartition,
    Transaction,
    TransactionStatus,
    read_transaction,
)
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import describe_transactions_response
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.transaction_log import TransactionRecord, TransactionTombstone

_FINISHED = (TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)


class TransactionCoordinator:
    """One per partition of the transaction log."""

    def __init__(self, settings: TransactionSettings) -> None:
        self.settings = settings
        self._transactions: dict[str, Transaction] = {}

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """Every transactional id, read-only."""
        return self._transactions

    # --- computing: none of these changes anything

    def handle(self, call: TransactionCall, now_ms: int) -> TransactionResult:
        """Answers a request. A protocol error is a response too; the state is unchanged then."""
        try:
            match call.request:
                case m.InitProducerIdRequest() as request:
                    known = self._transactions.get(request.transactional_id or "")
                    return init_producer_id(known, self.settings, call, request, now_ms)
                case m.EndTxnRequest() as request:
                    return end_transaction(self._find(request.transactional_id), call, request, now_ms)
                case m.ListTransactionsRequest() as request:
                    return transaction_views.list_transactions(self._transactions.values(), request, now_ms)
                case m.DescribeTransactionsRequest() as request:
                    return transaction_views.describe_transactions(self._transactions, request)
        except KafkaError as error:
            return TransactionResult(self.refuse(call.request, error))
        raise AssertionError(f"no transaction request: {type(call.request).__name__}")

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        now_ms: int,
        client_version: int = 0,
    ) -> TransactionResult:
        """Adds partitions to the producer's transaction; begins the transaction if necessary.

        Raises `InvalidProducerIdMapping`, `ProducerFenced`, `ConcurrentTransactions` (the last one is still ending).
        """
        known = self._find_of(transactional_id, producer_id, producer_epoch)
        if known.status is TransactionStatus.ONGOING and known.partitions.issuperset(partitions):
            return TransactionResult()
        return moved(known.begun(partitions, now_ms, client_version))

    def verify_partition(
        self, transactional_id: str, producer_id: int, producer_epoch: int, tp: TopicPartition
    ) -> None:
        """Raises as `add_partitions`, and `TransactionAbortable` unless the partition is part of the transaction."""
        if tp not in self._find_of(transactional_id, producer_id, producer_epoch).partitions:
            raise errors.TransactionAbortable

    def _find(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise errors.InvalidRequest
        known = self._transactions.get(transactional_id)
        if known is None:
            raise errors.InvalidProducerIdMapping
        return known

    def _find_of(self, transactional_id: str, producer_id: int, producer_epoch: int) -> Transaction:
        known = self._find(transactional_id)
        if known.producer_id != producer_id:
            raise errors.InvalidProducerIdMapping
        if known.producer_epoch != producer_epoch:
            raise errors.ProducerFenced
        if known.status.is_ending:
            raise errors.ConcurrentTransactions
        return known

    def abort_timed_out(self, now_ms: int) -> Iterator[TransactionResult]:
        """Aborts every transaction that is older than its producer allowed; fences the producer."""
        for known in list(self._transactions.values()):
            if known.has_timed_out(now_ms):
                yield moved(known.fenced(now_ms, self.settings.transaction_version))

    def expire_ids(self, now_ms: int) -> TransactionResult:
        """Expires transactional ids that have not been used for a long time."""
        oldest_ms = now_ms - self.settings.transactional_id_expiration_ms
        return TransactionResult(
            records=tuple(
                TransactionTombstone(known.transactional_id)
                for known in self._transactions.values()
                if known.status in _FINISHED and known.updated_ms <= oldest_ms
            ),
            is_atomic=False,
        )

    def complete(self, transactional_id: str, now_ms: int) -> TransactionResult:
        """Completes the ending transaction after all its markers were written. Does nothing if there is no such
        transaction.
        """
        known = self._transactions.get(transactional_id)
        if known is None or not known.status.is_ending:
            return TransactionResult()
        return moved(known.completed(now_ms))

    def resume(self) -> Iterator[TransactionResult]:
        """The operations after the log is replayed: they complete transactions with a decided outcome."""
        for known in list(self._transactions.values()):
            if known.status.is_ending:
                yield TransactionResult(ending=known)

    @staticmethod
    def refuse(request: Message, error: KafkaError) -> Message:
        """The response to a request that failed as a whole."""
        match request:
            case m.InitProducerIdRequest():
                return m.InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
            case m.EndTxnRequest():
                return m.EndTxnResponse(error_code=error.code)
            case m.ListTransactionsRequest():
                return m.ListTransactionsResponse(error_code=error.code)
            case m.DescribeTransactionsRequest():
                return m.DescribeTransactionsResponse(
                    transaction_states=[
                        describe_transactions_response.TransactionState(
                            error_code=error.code, transactional_id=transactional_id
                        )
                        for transactional_id in request.transactional_ids
                    ]
                )
        raise AssertionError(f"no transaction request: {type(request).__name__}")

    # --- changing: driven by results and by the log, nothing else

    def replay(self, record: TransactionRecord) -> None:
        """Applies a record of the log to the state."""
        transaction = None
        if not isinstance(record, TransactionTombstone):
            transaction = read_transaction(record.transactional_id, record.value)
        if transaction is None:
            self._transactions.pop(record.transactional_id, None)
        else:
            self._transactions[record.transactional_id] = transaction

    def apply(self, change: LastEpoch) -> None:
        """Applies a change of the state that is not in the log."""
        known = self._transactions.get(change.transactional_id)
        if known is not None and known.last_producer_epoch != change.last_producer_epoch:
            self._transactions[change.transactional_id] = replace(known, last_producer_epoch=change.last_producer_epoch)
