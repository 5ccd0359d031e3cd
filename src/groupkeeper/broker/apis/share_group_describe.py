"""ShareGroupDescribe (77): share groups with their epochs and members (KIP-932, KIP-1099)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.apis._share_groups import trouble_of
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.share_group_describe import share_describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from groupkeeper.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

KEY = 77
VERSIONS = (1, 1)
_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ShareGroupDescribeRequest)
    trouble = trouble_of(broker)
    if trouble is not None:
        return refuse(call, trouble)
    described = {}
    for group_id in request.group_ids:
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = share_describe_failure(group_id, GroupAuthorizationFailed())
    for group_ids in broker.groups.split_by_shard(one for one in request.group_ids if one not in described):
        response = await broker.groups.ask(group_ids[0], ShareGroupDescribeRequest(group_ids), call)
        assert isinstance(response, ShareGroupDescribeResponse)
        for group in response.groups:
            described[group.group_id] = _visible(broker, call, group, request.include_authorized_operations)
    return ShareGroupDescribeResponse(groups=[described[group_id] for group_id in request.group_ids])


def _visible(broker: Broker, call: Call, group: DescribedGroup, has_operations: bool) -> DescribedGroup:
    """A described group as its caller may see it (K1099-21, K1099-22)."""
    if group.error_code:
        return group
    topics = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if not all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in topics):
        return share_describe_failure(group.group_id, TopicAuthorizationFailed(_HIDDEN_TOPICS))
    if has_operations:
        group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
    return group


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ShareGroupDescribeRequest)
    return ShareGroupDescribeResponse(
        groups=[share_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )
