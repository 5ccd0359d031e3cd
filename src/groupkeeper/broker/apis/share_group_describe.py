"""ShareGroupDescribe (77): share groups. There are none yet, and it says so in Kafka's words."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.refusals import share_describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed
from groupkeeper.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from groupkeeper.protocol.messages.share_group_describe_response import ShareGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

KEY = 77
VERSIONS = (1, 1)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ShareGroupDescribeRequest)
    described = {}
    for group_id in request.group_ids:
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = share_describe_failure(group_id, GroupAuthorizationFailed())
    for group_ids in broker.groups.split_by_shard(one for one in request.group_ids if one not in described):
        response = await broker.groups.ask(group_ids[0], ShareGroupDescribeRequest(group_ids), call)
        assert isinstance(response, ShareGroupDescribeResponse)
        described.update(zip(group_ids, response.groups, strict=True))
    return ShareGroupDescribeResponse(groups=[described[group_id] for group_id in request.group_ids])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ShareGroupDescribeRequest)
    return ShareGroupDescribeResponse(
        groups=[share_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )
