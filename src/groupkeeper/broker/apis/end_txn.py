"""EndTxn (26): commits or aborts; from version 5 on it names the epoch of the next transaction (KIP-890)."""

from __future__ import annotations

from groupkeeper.broker.apis._transactions import may_use, told_before
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import TransactionalIdAuthorizationFailed
from groupkeeper.protocol.messages import EndTxnRequest, EndTxnResponse
from groupkeeper.protocol.primitives import RootMessage

_FENCED_SINCE = 2


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, EndTxnRequest)
    if not may_use(broker, call, request.transactional_id):
        return EndTxnResponse(error_code=TransactionalIdAuthorizationFailed.code)
    answer = await broker.transactions.ask(request.transactional_id, request, call)
    assert isinstance(answer, EndTxnResponse)
    if answer.error_code:
        return EndTxnResponse(error_code=told_before(_FENCED_SINCE, call.api_version, answer.error_code))
    return answer
