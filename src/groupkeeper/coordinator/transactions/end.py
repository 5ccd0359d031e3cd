"""EndTxn, and the end of transactions by timeout.

Up to version 4 the epoch belongs to the producer. From version 5 on (transaction.version 2, KIP-890) it belongs to the
transaction, so a repeated request is recognized by its epoch.
"""

from __future__ import annotations

from groupkeeper.coordinator.transactions.result import TransactionCall, TransactionResult, moved
from groupkeeper.coordinator.transactions.transaction import (
    EPOCH_BUMP_SINCE,
    LAST_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionStatus,
)
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import EndTxnRequest, EndTxnResponse

EPOCH_BUMP_SINCE_VERSION = 5

_ENDING = {True: TransactionStatus.PREPARE_COMMIT, False: TransactionStatus.PREPARE_ABORT}
_ENDED = {True: TransactionStatus.COMPLETE_COMMIT, False: TransactionStatus.COMPLETE_ABORT}


def end_transaction(
    known: Transaction, call: TransactionCall, request: EndTxnRequest, now_ms: int
) -> TransactionResult:
    """Decides the outcome; a repeated request gets the same response."""
    if call.version >= EPOCH_BUMP_SINCE_VERSION:
        return _end_with_epoch_bump(known, call, request, now_ms)
    if known.producer_id != request.producer_id:
        raise errors.InvalidProducerIdMapping
    if known.producer_epoch != request.producer_epoch:
        raise errors.ProducerFenced
    if known.status is TransactionStatus.ONGOING:
        return moved(known.ended(request.committed, now_ms, 0), EndTxnResponse())
    if known.status is _ENDED[request.committed]:
        return TransactionResult(EndTxnResponse())
    if known.status is _ENDING[request.committed]:
        raise errors.ConcurrentTransactions
    raise errors.InvalidTxnState


def _end_with_epoch_bump(
    known: Transaction, call: TransactionCall, request: EndTxnRequest, now_ms: int
) -> TransactionResult:
    is_after_rotation = (
        known.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_EPOCH - 1
        and known.producer_epoch == 0
    )
    is_repeated = is_after_rotation or known.producer_epoch == request.producer_epoch + 1
    if known.producer_id != request.producer_id and not is_after_rotation:
        raise errors.InvalidProducerIdMapping
    if not _is_valid_epoch(known, request.producer_epoch, is_repeated):
        raise errors.ProducerFenced
    if known.status is TransactionStatus.ONGOING:
        return _decide(known, call, request, now_ms)
    if known.status.is_ending:
        if known.status is _ENDING[request.committed]:
            raise errors.ConcurrentTransactions
        raise errors.InvalidTxnState
    if is_repeated and known.status is _ENDED[request.committed]:
        return TransactionResult(EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.producer_epoch))
    if is_repeated or request.committed:
        raise errors.InvalidTxnState
    # No transaction is ongoing, but the producer may not know that: aborting is always allowed.
    return _decide(known, call, request, now_ms)


def _is_valid_epoch(known: Transaction, claimed_epoch: int, is_repeated: bool) -> bool:
    if known.status.is_ending:
        return is_repeated
    if known.status in (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT):
        return is_repeated or claimed_epoch == known.producer_epoch
    return claimed_epoch == known.producer_epoch


def _decide(known: Transaction, call: TransactionCall, request: EndTxnRequest, now_ms: int) -> TransactionResult:
    rotates = known.has_used_up_epochs
    next_producer_id = call.spare_producer_id if rotates else NO_PRODUCER_ID
    ended = known.ended(request.committed, now_ms, EPOCH_BUMP_SINCE, next_producer_id=next_producer_id)
    response = EndTxnResponse(
        producer_id=next_producer_id if rotates else ended.producer_id,
        producer_epoch=0 if rotates else ended.producer_epoch,
    )
    return moved(ended, response, takes_producer_id=rotates)
