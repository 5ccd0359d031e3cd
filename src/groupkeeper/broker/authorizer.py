"""Who may do what. There is no authorizer yet, so everybody may do everything (GA-01); every API asks all the same."""

from __future__ import annotations

from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.call import Call


class Operation(IntEnum):
    """Operations by their codes in ACLs."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


class ResourceType(IntEnum):
    """Resource types by their codes in ACLs."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


CLUSTER_NAME = "kafka-cluster"
NOT_REQUESTED = -(2**31)
"""Authorized operations of somebody who didn't ask for them."""
GROUP_OPERATIONS = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)


class Authorizer:
    """Allows everything."""

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the sender of a request may do the operation on a resource."""
        return True

    def allowed_group_operations(self, call: Call, group_id: str) -> int:
        """The operations on a group as a bit field (K1099-22)."""
        return sum(
            1 << operation
            for operation in GROUP_OPERATIONS
            if self.allows(call, operation, ResourceType.GROUP, group_id)
        )
