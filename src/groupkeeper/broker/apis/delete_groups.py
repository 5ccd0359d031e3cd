"""DeleteGroups (42)."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import may
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError
from groupkeeper.protocol.messages import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteGroupsRequest)
    results = {}
    group_ids = dict.fromkeys(request.groups_names)
    allowed = [one for one in group_ids if may(broker, call, Operation.DELETE, one)]
    for names in broker.groups.split_by_shard(allowed):
        part = copy(request)
        part.groups_names = names
        response = await broker.groups.ask(names[0], part, call)
        assert isinstance(response, DeleteGroupsResponse)
        for result in response.results:
            results[result.group_id] = result
    return DeleteGroupsResponse(
        results=[results.get(one) or DeletableGroupResult(one, GroupAuthorizationFailed.code) for one in group_ids]
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, DeleteGroupsRequest)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id, error.code) for group_id in call.message.groups_names]
    )
