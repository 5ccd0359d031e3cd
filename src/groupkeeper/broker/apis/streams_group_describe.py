"""StreamsGroupDescribe (89): streams groups with their topology, epochs and members (KIP-1071)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, may_topic
from groupkeeper.broker.apis._streams_groups import trouble_of
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.streams_group_describe import streams_describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

KEY = 89
VERSIONS = (0, 0)
_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, StreamsGroupDescribeRequest)
    trouble = trouble_of(broker)
    if trouble is not None:
        return refuse(call, trouble)
    described = {}
    for group_id in request.group_ids:
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = streams_describe_failure(group_id, GroupAuthorizationFailed())
    for group_ids in broker.groups.split_by_shard(one for one in request.group_ids if one not in described):
        response = await broker.groups.ask(group_ids[0], StreamsGroupDescribeRequest(group_ids), call)
        assert isinstance(response, StreamsGroupDescribeResponse)
        for group in response.groups:
            described[group.group_id] = _visible(broker, call, group, request.include_authorized_operations)
    return StreamsGroupDescribeResponse(groups=[described[group_id] for group_id in request.group_ids])


def _visible(broker: Broker, call: Call, group: DescribedGroup, has_operations: bool) -> DescribedGroup:
    """A described group as its caller may see it."""
    if group.error_code:
        return group
    topics: set[str] = set()
    for one in () if group.topology is None else group.topology.subtopologies or ():
        topics.update(one.source_topics, one.repartition_sink_topics)
        topics.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    if not all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in topics):
        return streams_describe_failure(group.group_id, TopicAuthorizationFailed(_HIDDEN_TOPICS))
    if has_operations:
        group.authorized_operations = broker.authorizer.allowed_group_operations(call, group.group_id)
    return group


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, StreamsGroupDescribeRequest)
    return StreamsGroupDescribeResponse(
        groups=[streams_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )
