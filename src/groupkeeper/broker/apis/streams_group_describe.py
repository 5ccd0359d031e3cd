"""StreamsGroupDescribe (89): streams groups with their topology, epochs and members (KIP-1071)."""

from __future__ import annotations

from groupkeeper.broker.apis._described import describe_visible
from groupkeeper.broker.apis._streams_groups import trouble_of
from groupkeeper.coordinator.streams.describe import streams_describe_failure
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from groupkeeper.protocol.messages.streams_group_describe_response import DescribedGroup, StreamsGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

_NOT_STORED = 1
"""The status of topology descriptions in Kafka without a plugin that keeps them."""


async def handle(broker: Broker, call: Call) -> RootMessage:
    assert isinstance(call.message, StreamsGroupDescribeRequest)
    trouble = trouble_of(broker)
    if trouble is not None:
        return refuse(call, trouble)
    groups = await describe_visible(broker, call, StreamsGroupDescribeRequest, streams_describe_failure, _topics_of)
    if call.message.include_topology_description:
        for group in groups:
            group.topology_description_status = NONE if group.error_code else _NOT_STORED
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
        groups=[streams_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )
