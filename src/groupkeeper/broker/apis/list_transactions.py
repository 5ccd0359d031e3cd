"""ListTransactions (66): the transactional ids of this broker."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from groupkeeper.broker.apis._transactions import may_use
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.topics_view import regex_trouble
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.coordinator.transactions.views import STATE_NAMES
from groupkeeper.protocol.errors import InvalidRegularExpression
from groupkeeper.protocol.messages.list_transactions_request import ListTransactionsRequest
from groupkeeper.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ListTransactionsRequest)
    matches = _matcher(request.transactional_id_pattern)
    found: list[TransactionState] = []
    unknown = [name async for name in in_turns(request.state_filters) if name not in STATE_NAMES]
    # Coordinators do not read unknown names; an empty one stays where no other does.
    known = copy(request)
    known.state_filters = sorted(STATE_NAMES.intersection(request.state_filters)) or [""] * bool(unknown)
    for shard in broker.transactions.shards_on(call.node):
        answer = shard.ask(known, call.api_version)
        assert isinstance(answer, ListTransactionsResponse)
        if answer.error_code:
            return answer
        found += answer.transaction_states
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            one
            for one in found
            if matches(one.transactional_id) and may_use(broker, call, one.transactional_id, Operation.DESCRIBE)
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], object]:
    """Whether a whole id matches; everything does without a pattern. Raises `InvalidRegularExpression`."""
    if not pattern:
        return lambda _: True
    trouble = regex_trouble(pattern)
    if trouble is not None:
        raise InvalidRegularExpression(trouble)
    import re2

    compiled = re2.compile(pattern)
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None
