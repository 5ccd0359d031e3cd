"""Errors as messages and as names, with the missing ACL when a broker refuses (Kafka's authorization table)."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from groupkeeper.client.batch import Failure
from groupkeeper.client.errors import BrokersNotFound, ClientError, NotABroker
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError


class MissingAcl(NamedTuple):
    """A permission. `name` is None where the broker doesn't tell which topic it is about."""

    operation: str
    resource_type: str
    name: str | None

    def __str__(self) -> str:
        if self.resource_type == "CLUSTER":
            return f"{self.operation} on the cluster"
        name = "(one of the group's topics)" if self.name is None else self.name or "''"
        return f"{self.operation} on {self.resource_type.lower().replace('_', ' ')} {name}"


class Attempt(Enum):
    """An attempt: the operations that it needs on groups, topics, and the cluster and transactional ids."""

    DESCRIBE = ("DESCRIBE", "DESCRIBE")
    READ_RECORDS = ("DESCRIBE", "READ")
    READ_SETTINGS = ("DESCRIBE", "DESCRIBE_CONFIGS")
    COMMIT = ("READ", "READ")
    DELETE_OFFSETS = ("DELETE", "READ")
    DELETE = ("DELETE", "DESCRIBE")
    ABORT = ("DESCRIBE", "READ", "CLUSTER_ACTION", "WRITE")


def missing_acl(
    failure: Failure, deed: Attempt, *, group_id: str | None = None, topic: str | None = None
) -> MissingAcl | None:
    """The missing ACL that explains the failure, None for other failures."""
    on_group, on_topic, on_cluster, on_id = (*deed.value, "DESCRIBE", "DESCRIBE")[:4]
    if isinstance(failure, errors.GroupAuthorizationFailed):
        return MissingAcl(on_group, "GROUP", group_id)
    if isinstance(failure, errors.TopicAuthorizationFailed):
        return MissingAcl(on_topic, "TOPIC", topic)
    if isinstance(failure, errors.ClusterAuthorizationFailed):
        return MissingAcl(on_cluster, "CLUSTER", "kafka-cluster")
    if isinstance(failure, errors.TransactionalIdAuthorizationFailed):
        return MissingAcl(on_id, "TRANSACTIONAL_ID", None)
    return None


class Problem(NamedTuple):
    """A problem, and its subject. None: there is none, unless a field says otherwise."""

    error: str
    """The error's name in capitals."""
    message: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    acl: MissingAcl | None = None
    """The missing ACL that explains it."""
    cluster: str | None = None
    """The cluster's name, with several clusters; else None."""


_OF_A_CONTROLLER = "this is the address of a KRaft controller, which serves no clients: give a broker's address"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def error_name(failure: Exception) -> str:
    """Kafka's name of an error, or our own in the same form: GROUP_IS_ACTIVE."""
    if isinstance(failure, KafkaError):
        return failure.name
    return _CAPITAL.sub("_", type(failure).__name__).upper()


def problem_of(
    failure: Failure,
    deed: Attempt = Attempt.DESCRIBE,
    *,
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> Problem:
    """The problem for a failure, with the missing ACL that explains it."""
    if isinstance(failure, BrokersNotFound) and isinstance(failure.__cause__, KafkaError | ClientError):
        failure = failure.__cause__  # which says why
    acl = missing_acl(failure, deed, group_id=group, topic=topic)
    text = _OF_A_CONTROLLER if isinstance(failure, NotABroker) else str(failure)
    return Problem(error_name(failure), text, group, topic, partition, broker, acl)
