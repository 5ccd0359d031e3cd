"""The operators' view of transactional ids: list and describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupkeeper.coordinator.transactions.result import TransactionResult
from groupkeeper.coordinator.transactions.transaction import Transaction, TransactionStatus, by_topic
from groupkeeper.protocol.errors import TransactionalIdNotFound
from groupkeeper.protocol.messages import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    describe_transactions_response,
    list_transactions_response,
)

STATE_NAMES = frozenset(status.value for status in TransactionStatus)


def list_transactions(known: Iterable[Transaction], request: ListTransactionsRequest, now_ms: int) -> TransactionResult:
    """Transactional ids that pass every filter; an empty filter, or a negative duration, passes all of them. The driver
    evaluates patterns, and reports unknown state names.
    """
    states, producer_ids = set(request.state_filters), set(request.producer_id_filters)
    found = [
        list_transactions_response.TransactionState(one.transactional_id, one.producer_id, one.status.value)
        for one in known
        if (not producer_ids or one.producer_id in producer_ids)
        and (not states or one.status.value in states)
        and (request.duration_filter < 0 or now_ms - one.started_ms > request.duration_filter)
    ]
    return TransactionResult(list_transactions_response.ListTransactionsResponse(transaction_states=found))


def describe_transactions(known: Mapping[str, Transaction], request: DescribeTransactionsRequest) -> TransactionResult:
    """The state of each transactional id, with the partitions of its transaction."""
    states = []
    for transactional_id in request.transactional_ids:
        one = known.get(transactional_id)
        if one is None:
            states.append(
                describe_transactions_response.TransactionState(
                    error_code=TransactionalIdNotFound.code, transactional_id=transactional_id
                )
            )
            continue
        states.append(
            describe_transactions_response.TransactionState(
                transactional_id=transactional_id,
                transaction_state=one.status.value,
                transaction_timeout_ms=one.timeout_ms,
                transaction_start_time_ms=one.started_ms,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                topics=[
                    describe_transactions_response.TopicData(topic, found) for topic, found in by_topic(one.partitions)
                ],
            )
        )
    return TransactionResult(describe_transactions_response.DescribeTransactionsResponse(transaction_states=states))
