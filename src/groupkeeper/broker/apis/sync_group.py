"""SyncGroup (14)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import ask
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import InconsistentGroupProtocol
from groupkeeper.protocol.messages import SyncGroupRequest, SyncGroupResponse
from groupkeeper.protocol.primitives import RootMessage

_PROTOCOL_REQUIRED_SINCE = 5


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, SyncGroupRequest)
    # This comes before authorization.
    if call.api_version >= _PROTOCOL_REQUIRED_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=InconsistentGroupProtocol.code)
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, SyncGroupResponse)
    return response
