"""ConsumerGroupDescribe (69): groups of the consumer protocol (KIP-848, KIP-1099)."""

from __future__ import annotations

from groupkeeper.broker.apis._described import describe_visible
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.config import Config
from groupkeeper.coordinator.kernel.failures import failure_of
from groupkeeper.protocol.errors import KafkaError, UnsupportedVersion
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse, DescribedGroup
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    assert isinstance(call.message, ConsumerGroupDescribeRequest)
    if not is_consumer_protocol_on(broker.config):
        return refuse(call, UnsupportedVersion())
    groups = describe_visible(broker, call, ConsumerGroupDescribeRequest, DescribedGroup, _topics_of)
    return ConsumerGroupDescribeResponse(groups=groups)


def _topics_of(group: DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ConsumerGroupDescribeRequest)
    return ConsumerGroupDescribeResponse(
        groups=[failure_of(DescribedGroup, group_id, error) for group_id in call.message.group_ids]
    )


def is_consumer_protocol_on(config: Config) -> bool:
    """Whether groups of the consumer protocol are served."""
    is_allowed = "consumer" in config.group_coordinator_rebalance_protocols
    return is_allowed and config.features.get("group.version", 1) > 0
