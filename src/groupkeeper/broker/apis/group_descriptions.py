"""DescribeGroups (15), ConsumerGroupDescribe (69), ShareGroupDescribe (77) and StreamsGroupDescribe (89): groups with
their members (KIP-848, KIP-932, KIP-1071, KIP-1099).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from groupkeeper.broker.apis._access import may_topic
from groupkeeper.broker.apis._groups import ask_each, require_served
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.refusals import describe_failure, failure_of
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import consumer_group_describe_response as consumer
from groupkeeper.protocol.messages import share_group_describe_response as share
from groupkeeper.protocol.messages import streams_group_describe_response as streams
from groupkeeper.protocol.primitives import RootMessage

_MESSAGES_SINCE = 6


async def handle_classic(broker: Broker, call: Call, request: m.DescribeGroupsRequest) -> RootMessage:
    response: m.DescribeGroupsResponse = await ask_each(
        broker, call, Operation.DESCRIBE, request, "groups", describe_failure
    )
    for group in response.groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = broker.authorizer.allowed_operations(call, ResourceType.GROUP, group.group_id)
        if call.api_version < _MESSAGES_SINCE:
            group.error_message = None
    return response


def refuse_classic(call: Call, request: m.DescribeGroupsRequest, error: KafkaError) -> m.DescribeGroupsResponse:
    return m.DescribeGroupsResponse(groups=[describe_failure(group_id, error) for group_id in request.groups])


_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


class DescribeApi(NamedTuple):
    """A describe API: the type of group; the classes of its response and of a described group; the topics in a group's
    description.
    """

    group_type: str
    response: Callable[..., RootMessage]
    group: Callable[..., Any]
    topics: Callable[[Any], Iterable[str]]


async def handle_epochs(broker: Broker, call: Call, request: Any) -> RootMessage:
    """Describes the requested groups, in the order of the request, as far as the caller may see them."""
    api = _APIS[type(request)]
    require_served(broker, api.group_type)
    refused = partial(failure_of, api.group)
    response = await ask_each(broker, call, Operation.DESCRIBE, request, "group_ids", refused)
    for at, group in enumerate(response.groups):
        if group.error_code:
            continue
        if not all(may_topic(broker, call, Operation.DESCRIBE, topic) for topic in api.topics(group)):
            response.groups[at] = refused(group.group_id, errors.TopicAuthorizationFailed(_HIDDEN_TOPICS))
        elif request.include_authorized_operations:
            group.authorized_operations = broker.authorizer.allowed_operations(call, ResourceType.GROUP, group.group_id)
    return response  # type: ignore[no-any-return]


def refuse_epochs(call: Call, request: Any, error: KafkaError) -> RootMessage:
    api = _APIS[type(request)]
    return api.response(groups=[failure_of(api.group, group_id, error) for group_id in request.group_ids])


def _topics_of_consumers(group: consumer.DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def _topics_of_share_group(group: share.DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


def _topics_of_streams(group: streams.DescribedGroup) -> set[str]:
    topics: set[str] = set()
    for one in () if group.topology is None else group.topology.subtopologies or ():
        topics.update(one.source_topics, one.repartition_sink_topics)
        topics.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    return topics


_APIS: dict[type[RootMessage], DescribeApi] = {
    m.ConsumerGroupDescribeRequest: DescribeApi(
        "consumer", m.ConsumerGroupDescribeResponse, consumer.DescribedGroup, _topics_of_consumers
    ),
    m.ShareGroupDescribeRequest: DescribeApi(
        "share", m.ShareGroupDescribeResponse, share.DescribedGroup, _topics_of_share_group
    ),
    m.StreamsGroupDescribeRequest: DescribeApi(
        "streams", m.StreamsGroupDescribeResponse, streams.DescribedGroup, _topics_of_streams
    ),
}
