"""ConsumerGroupDescribe (69): groups of the consumer protocol. There are none yet, and it says so in Kafka's words."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may
from groupkeeper.broker.authorizer import Operation
from groupkeeper.coordinator.refusals import consumer_describe_failure
from groupkeeper.protocol.errors import GroupAuthorizationFailed, UnsupportedVersion
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.config import Config
    from groupkeeper.protocol.errors import KafkaError
    from groupkeeper.protocol.primitives import RootMessage

KEY = 69
VERSIONS = (0, 1)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, ConsumerGroupDescribeRequest)
    if not _is_consumer_protocol_on(broker.config):
        return refuse(call, UnsupportedVersion())
    described = {}
    for group_id in request.group_ids:
        if not may(broker, call, Operation.DESCRIBE, group_id):
            described[group_id] = consumer_describe_failure(group_id, GroupAuthorizationFailed())
    for group_ids in broker.groups.split_by_shard(one for one in request.group_ids if one not in described):
        response = await broker.groups.ask(group_ids[0], ConsumerGroupDescribeRequest(group_ids), call)
        assert isinstance(response, ConsumerGroupDescribeResponse)
        described.update(zip(group_ids, response.groups, strict=True))
    return ConsumerGroupDescribeResponse(groups=[described[group_id] for group_id in request.group_ids])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, ConsumerGroupDescribeRequest)
    return ConsumerGroupDescribeResponse(
        groups=[consumer_describe_failure(group_id, error) for group_id in call.message.group_ids]
    )


def _is_consumer_protocol_on(config: Config) -> bool:
    """K1099-23."""
    is_allowed = "consumer" in config.group_coordinator_rebalance_protocols
    return is_allowed and config.features.get("group.version", 1) > 0
