"""The authorization checks of all APIs."""

from __future__ import annotations

from groupkeeper.broker.authorizer import CLUSTER_NAME, NOT_REQUESTED, Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)


def may_group(broker: Broker, call: Call, operation: Operation, group_id: str) -> bool:
    """Whether the caller may do the operation on the group."""
    return broker.authorizer.allows(call, operation, ResourceType.GROUP, group_id)


def may_topic(broker: Broker, call: Call, operation: Operation, topic: str) -> bool:
    """Whether the caller may do the operation on the topic."""
    return broker.authorizer.allows(call, operation, ResourceType.TOPIC, topic)


def may_use(broker: Broker, call: Call, transactional_id: str, operation: Operation = Operation.WRITE) -> bool:
    """Whether the caller may do the operation with the transactional id."""
    return broker.authorizer.allows(call, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


def may_cluster(broker: Broker, call: Call, operation: Operation) -> bool:
    """Whether the caller may do the operation on the cluster."""
    return broker.authorizer.allows(call, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def require_cluster(broker: Broker, call: Call, operation: Operation) -> None:
    """Raises `ClusterAuthorizationFailed`."""
    if not may_cluster(broker, call, operation):
        raise ClusterAuthorizationFailed


def require_group(broker: Broker, call: Call, operation: Operation, group_id: str) -> None:
    """Raises `GroupAuthorizationFailed`, even if the group does not exist."""
    if not may_group(broker, call, operation, group_id):
        raise GroupAuthorizationFailed


def require_use(broker: Broker, call: Call, transactional_id: str, operation: Operation = Operation.WRITE) -> None:
    """Raises `TransactionalIdAuthorizationFailed`."""
    if not may_use(broker, call, transactional_id, operation):
        raise TransactionalIdAuthorizationFailed


def require_topic(broker: Broker, call: Call, operation: Operation, topic: str) -> None:
    """Raises `TopicAuthorizationFailed`, even if the topic does not exist."""
    if not may_topic(broker, call, operation, topic):
        raise TopicAuthorizationFailed


def topic_operations(broker: Broker, call: Call, topic: str, *, wanted: bool = True) -> int:
    """The operations that the caller may do on a topic, as a bit field."""
    return broker.authorizer.allowed_operations(call, ResourceType.TOPIC, topic) if wanted else NOT_REQUESTED


def cluster_operations(broker: Broker, call: Call, *, wanted: bool) -> int:
    """The operations that the caller may do on the cluster, as a bit field; 0 if it may not describe the cluster."""
    if not wanted:
        return NOT_REQUESTED
    if not may_cluster(broker, call, Operation.DESCRIBE):
        return 0
    return broker.authorizer.allowed_operations(call, ResourceType.CLUSTER, CLUSTER_NAME)
