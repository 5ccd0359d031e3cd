"""JoinGroup (11), LeaveGroup (13) and SyncGroup (14)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import ask
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InconsistentGroupProtocol
from groupkeeper.protocol.primitives import Message, RootMessage

_SEVERAL_MEMBERS_SINCE = 3
_PROTOCOL_REQUIRED_SINCE = 5
_NULLABLE_PROTOCOL_NAME_SINCE = 7


async def handle(broker: Broker, call: Call) -> RootMessage:
    request, version = call.message, call.api_version
    assert isinstance(request, (m.JoinGroupRequest, m.LeaveGroupRequest, m.SyncGroupRequest))
    if isinstance(request, m.LeaveGroupRequest) and version < _SEVERAL_MEMBERS_SINCE:
        request = m.LeaveGroupRequest(request.group_id, members=[m.MemberIdentity(request.member_id)])
    if isinstance(request, m.SyncGroupRequest) and _lacks_protocol(request, version):  # this comes before authorization
        return m.SyncGroupResponse(error_code=InconsistentGroupProtocol.code)
    return _as_of(version, await ask(broker, call, Operation.READ, request.group_id, request))


def _lacks_protocol(request: m.SyncGroupRequest, version: int) -> bool:
    return version >= _PROTOCOL_REQUIRED_SINCE and None in (request.protocol_type, request.protocol_name)


def _as_of(version: int, response: Message) -> RootMessage:
    """The coordinator's answer as a version has it."""
    if isinstance(response, m.JoinGroupResponse):
        if response.protocol_name is None and version < _NULLABLE_PROTOCOL_NAME_SINCE:
            response = copy(response)  # several callers may have been given this one
            response.protocol_name = ""
    elif isinstance(response, m.LeaveGroupResponse) and version < _SEVERAL_MEMBERS_SINCE:
        error_code = response.error_code or next((member.error_code for member in response.members), 0)
        return m.LeaveGroupResponse(error_code=error_code)
    assert isinstance(response, RootMessage)
    return response
