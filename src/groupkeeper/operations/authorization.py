"""Which ACL is missing when a broker refuses (Kafka's authorization table)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from groupkeeper.client.admin.types import Failure
from groupkeeper.protocol.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
)


class Acl(NamedTuple):
    """A permission. ``name`` is None where the broker doesn't tell which topic it is about."""

    operation: str
    resource_type: str
    name: str | None

    def __str__(self) -> str:
        if self.resource_type == "CLUSTER":
            return f"{self.operation} on the cluster"
        name = "(one of the group's topics)" if self.name is None else self.name or "''"
        return f"{self.operation} on {self.resource_type.lower()} {name}"


class Deed(Enum):
    """What was tried: the operation that it needs on groups, and on topics."""

    DESCRIBE = ("DESCRIBE", "DESCRIBE")
    READ_RECORDS = ("DESCRIBE", "READ")
    READ_SETTINGS = ("DESCRIBE", "DESCRIBE_CONFIGS")
    COMMIT = ("READ", "READ")
    DELETE_OFFSETS = ("DELETE", "READ")
    DELETE = ("DELETE", "DESCRIBE")


def missing_acl(failure: Failure, deed: Deed, *, group_id: str | None = None, topic: str | None = None) -> Acl | None:
    """The missing ACL that explains the failure, None for other failures."""
    on_group, on_topic = deed.value
    if isinstance(failure, GroupAuthorizationFailed):
        return Acl(on_group, "GROUP", group_id)
    if isinstance(failure, TopicAuthorizationFailed):
        return Acl(on_topic, "TOPIC", topic)
    if isinstance(failure, ClusterAuthorizationFailed):
        return Acl("DESCRIBE", "CLUSTER", "kafka-cluster")
    return None
