"""DescribeGroups (15): classic groups and their members."""

from __future__ import annotations

from copy import copy

from groupkeeper.broker.apis._groups import may
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.kernel.failures import describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError
from groupkeeper.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from groupkeeper.protocol.primitives import RootMessage

_MESSAGES_SINCE = 6


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeGroupsRequest)
    described = {}
    visible = [one for one in request.groups if may(broker, call, Operation.DESCRIBE, one)]
    for group_ids in broker.groups.split_by_shard(visible):
        part = copy(request)
        part.groups = group_ids
        response = broker.groups.reply(group_ids[0], part, call)
        assert isinstance(response, DescribeGroupsResponse)
        for group in response.groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
            if call.api_version < _MESSAGES_SINCE:
                group.error_message = None
            described[group.group_id] = group
    return DescribeGroupsResponse(
        groups=[described.get(one) or describe_failure(one, GroupAuthorizationFailed()) for one in request.groups]
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, DescribeGroupsRequest)
    return DescribeGroupsResponse(groups=[describe_failure(group_id, error) for group_id in call.message.groups])
