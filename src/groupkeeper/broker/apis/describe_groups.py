"""DescribeGroups (15): classic groups and their members."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import ask_each
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.kernel.failures import describe_failure
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from groupkeeper.protocol.primitives import RootMessage

_MESSAGES_SINCE = 6


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DescribeGroupsRequest)
    groups = await ask_each(broker, call, Operation.DESCRIBE, request, "groups", describe_failure)
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
        if call.api_version < _MESSAGES_SINCE:
            group.error_message = None
    return DescribeGroupsResponse(groups=groups)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, DescribeGroupsRequest)
    return DescribeGroupsResponse(groups=[describe_failure(group_id, error) for group_id in call.message.groups])
