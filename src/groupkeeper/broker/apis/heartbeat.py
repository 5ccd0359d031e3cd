"""Heartbeat (12)."""

from __future__ import annotations

from collections.abc import Awaitable

from groupkeeper.broker.apis._access import require_group
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import CoordinatorLoadInProgress
from groupkeeper.protocol.messages import HeartbeatRequest, HeartbeatResponse
from groupkeeper.protocol.primitives import Message


def reply(broker: Broker, call: Call, request: HeartbeatRequest) -> Message | Awaitable[Message]:
    require_group(broker, call, Operation.READ, request.group_id)
    if broker.answers_may_wait:
        return _replicated(broker, call, request)
    return _without_loading(broker.groups.reply(request.group_id, request, call))


async def _replicated(broker: Broker, call: Call, request: HeartbeatRequest) -> Message:
    return _without_loading(await broker.groups.ask(request.group_id, request, call))


def _without_loading(response: Message) -> Message:
    """No member lost its place in a group that is still being loaded."""
    assert isinstance(response, HeartbeatResponse)
    return HeartbeatResponse() if response.error_code == CoordinatorLoadInProgress.code else response
