"""JoinGroup (11), LeaveGroup (13) and SyncGroup (14)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import ask
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InconsistentGroupProtocol
from groupkeeper.protocol.primitives import Message

_SEVERAL_MEMBERS_SINCE = 3
_PROTOCOL_REQUIRED_SINCE = 5
_NULLABLE_PROTOCOL_NAME_SINCE = 7


async def handle_join(broker: Broker, call: Call, request: m.JoinGroupRequest) -> Message:
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, m.JoinGroupResponse)
    if response.protocol_name is None and call.api_version < _NULLABLE_PROTOCOL_NAME_SINCE:
        response = copy(response)  # other callers may have the same object
        response.protocol_name = ""
    return response


async def handle_leave(broker: Broker, call: Call, request: m.LeaveGroupRequest) -> Message:
    names_one = call.api_version < _SEVERAL_MEMBERS_SINCE
    if names_one:
        request = m.LeaveGroupRequest(request.group_id, members=[m.MemberIdentity(request.member_id)])
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, m.LeaveGroupResponse)
    if names_one:
        error_code = response.error_code or next((member.error_code for member in response.members), 0)
        return m.LeaveGroupResponse(error_code=error_code)
    return response


async def handle_sync(broker: Broker, call: Call, request: m.SyncGroupRequest) -> Message:
    lacks_protocol = None in (request.protocol_type, request.protocol_name)
    if lacks_protocol and call.api_version >= _PROTOCOL_REQUIRED_SINCE:  # checked before authorization
        return m.SyncGroupResponse(error_code=InconsistentGroupProtocol.code)
    return await ask(broker, call, Operation.READ, request.group_id, request)
