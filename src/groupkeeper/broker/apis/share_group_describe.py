"""ShareGroupDescribe (77): share groups with their epochs and members (KIP-932, KIP-1099)."""

from __future__ import annotations

from groupkeeper.broker.apis._described import describe_visible
from groupkeeper.broker.apis._groups import without_share_groups
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.kernel.failures import failure_of
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from groupkeeper.protocol.messages.share_group_describe_response import DescribedGroup, ShareGroupDescribeResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    assert isinstance(call.message, ShareGroupDescribeRequest)
    trouble = without_share_groups(broker)
    if trouble is not None:
        return refuse(call, trouble)
    groups = describe_visible(broker, call, ShareGroupDescribeRequest, DescribedGroup, _topics_of)
    return ShareGroupDescribeResponse(groups=groups)


def _topics_of(group: DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ShareGroupDescribeRequest)
    return ShareGroupDescribeResponse(
        groups=[failure_of(DescribedGroup, group_id, error) for group_id in call.message.group_ids]
    )
