"""InitProducerId of transactional producers: gives the id a new epoch, and ends the transaction that the last producer
left open.
"""

from __future__ import annotations

from dataclasses import replace

from groupkeeper.coordinator.transactions.result import TransactionCall, TransactionResult, TransactionSettings, moved
from groupkeeper.coordinator.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionStatus,
    is_used_up,
)
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import InitProducerIdRequest, InitProducerIdResponse


def init_producer_id(
    known: Transaction | None,
    settings: TransactionSettings,
    call: TransactionCall,
    request: InitProducerIdRequest,
    now_ms: int,
) -> TransactionResult:
    """Gives the caller the next epoch of its transactional id.

    A producer that sends its id and epoch continues after an error; it is fenced when another producer has taken over.
    """
    if (request.producer_id < 0) != (request.producer_epoch < 0) or not request.transactional_id:
        raise errors.InvalidRequest
    if not 0 < request.transaction_timeout_ms <= settings.transaction_max_timeout_ms:
        raise errors.InvalidTransactionTimeout
    if known is None:
        first = Transaction(
            request.transactional_id, call.spare_producer_id, 0, request.transaction_timeout_ms, updated_ms=now_ms
        )
        return moved(first, _answer(first), takes_producer_id=True)
    if request.producer_id >= 0 and not _is_known_producer(known, request):
        raise errors.ProducerFenced
    if known.status.is_ending:
        raise errors.ConcurrentTransactions
    if known.status is TransactionStatus.ONGOING:
        # The caller retries and finds the transaction aborted; no producer gets the epoch of that abort.
        fenced = known.fenced(now_ms, settings.transaction_version)
        wait = InitProducerIdResponse(
            error_code=errors.ConcurrentTransactions.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
        return moved(fenced, wait)
    rotates = known.has_used_up_epochs and request.producer_epoch in (NO_EPOCH, known.producer_epoch)
    if rotates:
        following = replace(
            known,
            producer_id=call.spare_producer_id,
            producer_epoch=0,
            last_producer_epoch=known.producer_epoch if request.producer_epoch >= 0 else NO_EPOCH,
        )
    else:
        epoch, last_epoch = _next_epochs(known, request.producer_epoch)
        following = replace(known, producer_epoch=epoch, last_producer_epoch=last_epoch)
    ready = replace(
        following,
        timeout_ms=request.transaction_timeout_ms,
        status=TransactionStatus.EMPTY,
        partitions=frozenset(),
        started_ms=-1,
        updated_ms=now_ms,
        previous_producer_id=known.producer_id,
    )
    return moved(ready, _answer(ready), takes_producer_id=rotates)


def _is_known_producer(known: Transaction, request: InitProducerIdRequest) -> bool:
    """Whether the caller is the current producer, or a retry under the previous producer id, whose epochs are
    exhausted.
    """
    if request.producer_id == known.producer_id:
        return True
    return request.producer_id == known.previous_producer_id and is_used_up(request.producer_epoch)


def _next_epochs(known: Transaction, claimed_epoch: int) -> tuple[int, int]:
    """The producer's epoch from now on, and the epoch with which it may repeat this request."""
    if claimed_epoch == NO_EPOCH:
        return known.producer_epoch + 1, NO_EPOCH
    if claimed_epoch == known.producer_epoch:
        return known.producer_epoch + 1, known.producer_epoch
    if claimed_epoch == known.last_producer_epoch:
        return known.producer_epoch, known.last_producer_epoch
    raise errors.ProducerFenced


def _answer(ready: Transaction) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=ready.producer_id, producer_epoch=ready.producer_epoch)
