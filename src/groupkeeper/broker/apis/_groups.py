"""The common code of the group APIs."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.refusals import refuse
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError, UnsupportedVersion
from groupkeeper.protocol.primitives import Message


def may(broker: Broker, call: Call, operation: Operation, group_id: str) -> bool:
    """Whether the caller may do the operation on the group."""
    return broker.authorizer.allows(call, operation, ResourceType.GROUP, group_id)


def may_topic(broker: Broker, call: Call, operation: Operation, topic: str) -> bool:
    """Whether the caller may do the operation on the topic."""
    return broker.authorizer.allows(call, operation, ResourceType.TOPIC, topic)


def reply_of(broker: Broker, call: Call, operation: Operation, group_id: str, request: Message) -> Message:
    """As `ask`, for requests that never wait (`Shard.reply`)."""
    if not may(broker, call, operation, group_id):
        return refuse(request, GroupAuthorizationFailed())
    return broker.groups.reply(group_id, request, call)


async def ask(broker: Broker, call: Call, operation: Operation, group_id: str, request: Message) -> Message:
    """The coordinator's answer, or its refusal for a principal that may not do `operation`."""
    if not may(broker, call, operation, group_id):
        return refuse(request, GroupAuthorizationFailed())
    return await broker.groups.ask(group_id, request, call)


def without_consumer_groups(broker: Broker) -> KafkaError | None:
    """The error for every request of the consumer protocol if it is not served; None if it is."""
    is_allowed = "consumer" in broker.config.group_coordinator_rebalance_protocols
    is_on = broker.config.features.get("group.version", 1) > 0
    return None if is_allowed and is_on else UnsupportedVersion()


def without_share_groups(broker: Broker) -> KafkaError | None:
    """The error for every request of share groups if they are not served; None if they are."""
    return UnsupportedVersion() if broker.config.features.get("share.version", 1) < 1 else None


def without_streams_groups(broker: Broker) -> KafkaError | None:
    """The error for every request of streams groups if they are not served; None if they are."""
    is_allowed = "streams" in broker.config.group_coordinator_rebalance_protocols
    is_on = broker.config.features.get("streams.version", 1) > 0
    return None if is_allowed and is_on else UnsupportedVersion()
