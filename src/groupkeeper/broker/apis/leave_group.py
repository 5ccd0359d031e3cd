"""LeaveGroup (13)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import ask
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.messages import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from groupkeeper.protocol.primitives import RootMessage

_SEVERAL_MEMBERS_SINCE = 3


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, LeaveGroupRequest)
    if call.api_version < _SEVERAL_MEMBERS_SINCE:
        request = LeaveGroupRequest(request.group_id, members=[MemberIdentity(request.member_id)])
    response = await ask(broker, call, Operation.READ, request.group_id, request)
    assert isinstance(response, LeaveGroupResponse)
    if call.api_version < _SEVERAL_MEMBERS_SINCE:
        error_code = response.error_code or next((member.error_code for member in response.members), 0)
        return LeaveGroupResponse(error_code=error_code)
    return response
