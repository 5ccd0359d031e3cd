"""JoinGroup (11)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import ask
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.messages import JoinGroupRequest, JoinGroupResponse
from groupkeeper.protocol.primitives import RootMessage

_NULLABLE_PROTOCOL_NAME_SINCE = 7


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, JoinGroupRequest)
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, JoinGroupResponse)
    if response.protocol_name is None and call.api_version < _NULLABLE_PROTOCOL_NAME_SINCE:
        response = copy(response)  # several callers may have been given this one
        response.protocol_name = ""
    return response
