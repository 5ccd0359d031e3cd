"""Heartbeat (12)."""

from __future__ import annotations

from collections.abc import Awaitable

from groupkeeper.broker.apis._groups import ask, reply_of
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import NONE, CoordinatorLoadInProgress
from groupkeeper.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupkeeper.protocol.primitives import RootMessage


def reply(broker: Broker, call: Call, request: HeartbeatRequest) -> RootMessage | Awaitable[RootMessage]:
    if broker.answers_may_wait:
        return _replicated(broker, call, request)
    response = reply_of(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, HeartbeatResponse)
    if response.error_code == CoordinatorLoadInProgress.code:
        # No member lost its place in a group that is still being loaded.
        return HeartbeatResponse(error_code=NONE)
    return response


async def _replicated(broker: Broker, call: Call, request: HeartbeatRequest) -> RootMessage:
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, HeartbeatResponse)
    return HeartbeatResponse() if response.error_code == CoordinatorLoadInProgress.code else response
