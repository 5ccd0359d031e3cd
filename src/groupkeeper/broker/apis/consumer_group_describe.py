"""ConsumerGroupDescribe (69): groups of the consumer protocol (KIP-848, KIP-1099)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.refusals import consumer_describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed, UnsupportedVersion
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.config import Config
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

KEY = 69
VERSIONS = (0, 1)
_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ConsumerGroupDescribeRequest)
    if not is_consumer_protocol_on(broker.config):
        return refuse(call, UnsupportedVersion())
    described = {}
    for group_id in request.group_ids:
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = consumer_describe_failure(group_id, GroupAuthorizationFailed())
    for group_ids in broker.groups.split_by_shard(one for one in request.group_ids if one not in described):
        response = await broker.groups.ask(group_ids[0], ConsumerGroupDescribeRequest(group_ids), call)
        assert isinstance(response, ConsumerGroupDescribeResponse)
        for group in response.groups:
            described[group.group_id] = _visible(broker, call, group, request.include_authorized_operations)
    return ConsumerGroupDescribeResponse(groups=[described[group_id] for group_id in request.group_ids])


def _visible(broker: Broker, call: Call, group: DescribedGroup, has_operations: bool) -> DescribedGroup:
    """A described group as its caller may see it (K1099-21, K1099-22)."""
    if group.error_code:
        return group
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in topics):
        return consumer_describe_failure(group.group_id, TopicAuthorizationFailed(_HIDDEN_TOPICS))
    if has_operations:
        group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
    return group


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ConsumerGroupDescribeRequest)
    return ConsumerGroupDescribeResponse(
        groups=[consumer_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )


def is_consumer_protocol_on(config: Config) -> bool:
    """Whether groups of the consumer protocol are served (K1099-23)."""
    is_allowed = "consumer" in config.group_coordinator_rebalance_protocols
    return is_allowed and config.features.get("group.version", 1) > 0
