"""StreamsGroupDescribe (89): streams groups with their topology, epochs and members (KIP-1071)."""

from __future__ import annotations

from groupkeeper.broker.apis._described import describe_visible
from groupkeeper.broker.apis._groups import without_streams_groups
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.kernel.failures import failure_of
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    assert isinstance(call.message, StreamsGroupDescribeRequest)
    trouble = without_streams_groups(broker)
    if trouble is not None:
        return refuse(call, trouble)
    includes = call.message.include_topology_description

    def request_of(group_ids: list[str]) -> StreamsGroupDescribeRequest:
        return StreamsGroupDescribeRequest(group_ids, include_topology_description=includes)

    groups = describe_visible(broker, call, request_of, DescribedGroup, _topics_of)
    return StreamsGroupDescribeResponse(groups=groups)


def _topics_of(group: DescribedGroup) -> set[str]:
    topics: set[str] = set()
    for one in () if group.topology is None else group.topology.subtopologies or ():
        topics.update(one.source_topics, one.repartition_sink_topics)
        topics.update(topic.name for topic in (*one.repartition_source_topics, *one.state_changelog_topics))
    return topics


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, StreamsGroupDescribeRequest)
    return StreamsGroupDescribeResponse(
        groups=[failure_of(DescribedGroup, group_id, error) for group_id in call.message.group_ids]
    )
