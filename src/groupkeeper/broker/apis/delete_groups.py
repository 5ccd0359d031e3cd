"""DeleteGroups (42)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import ask_each
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteGroupsRequest)
    once = copy(request)
    once.groups_names = list(dict.fromkeys(request.groups_names))
    results = await ask_each(broker, call, Operation.DELETE, once, "groups_names", _refused, parks=True)
    return DeleteGroupsResponse(results=results)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, DeleteGroupsRequest)
    return DeleteGroupsResponse(results=[_refused(group_id, error) for group_id in call.message.groups_names])


def _refused(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id, error.code)
