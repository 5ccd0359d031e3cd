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
    described: dict[str, TransactionState] = {}
    for transactional_id in request.transactional_ids:
        if not transactional_id:
            described[transactional_id] = _failure(transactional_id, InvalidRequest())
        elif not may_use(broker, call, transactional_id, Operation.DESCRIBE):
            described[transactional_id] = _failure(transactional_id, TransactionalIdAuthorizationFailed())
    known = [one for one in dict.fromkeys(request.transactional_ids) if one not in described]
    for ids in broker.transactions.split_by_shard(known):
        answer = await broker.transactions.ask(ids[0], DescribeTransactionsRequest(ids), call)
        assert isinstance(answer, DescribeTransactionsResponse)
        for found in answer.transaction_states:
            if found.topics:
                topics = (one for one in found.topics if may_topic(broker, call, Operation.DESCRIBE, one.topic))
                found.topics = list(topics)
            described[found.transactional_id] = found
    return DescribeTransactionsResponse(transaction_states=[described[one] for one in request.transactional_ids])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeTransactionsRequest)
    return DescribeTransactionsResponse(
        transaction_states=[_failure(transactional_id, error) for transactional_id in request.transactional_ids]
    )


def _failure(transactional_id: str, error: KafkaError) -> TransactionState:
    return TransactionState(error_code=error.code, transactional_id=transactional_id)
