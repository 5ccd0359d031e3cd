"""DescribeTransactions (65): the state of transactional ids."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.apis._transactions import may_use
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import InvalidRequest, KafkaError, TransactionalIdAuthorizationFailed
from groupkeeper.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from groupkeeper.protocol.messages.describe_transactions_response import DescribeTransactionsResponse, TransactionState
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeTransactionsRequest)
    return DescribeTransactionsResponse(
        transaction_states=[_describe(broker, call, transactional_id) for transactional_id in request.transactional_ids]
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeTransactionsRequest)
    return DescribeTransactionsResponse(
        transaction_states=[_failure(transactional_id, error) for transactional_id in request.transactional_ids]
    )


def _describe(broker: Broker, call: Call, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return _failure(transactional_id, InvalidRequest())
    if not may_use(broker, call, transactional_id, Operation.DESCRIBE):
        return _failure(transactional_id, TransactionalIdAuthorizationFailed())
    answer = broker.transactions.ask(transactional_id, DescribeTransactionsRequest([transactional_id]), call)
    assert isinstance(answer, DescribeTransactionsResponse)
    (found,) = answer.transaction_states
    return TransactionState(
        found.error_code,
        transactional_id,
        found.transaction_state,
        found.transaction_timeout_ms,
        found.transaction_start_time_ms,
        found.producer_id,
        found.producer_epoch,
        [topic for topic in found.topics if may_topic(broker, call, Operation.DESCRIBE, topic.topic)],
    )


def _failure(transactional_id: str, error: KafkaError) -> TransactionState:
    return TransactionState(error_code=error.code, transactional_id=transactional_id)
