"""Authorization. By default every client may do everything; still every API calls the authorizer."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypedDict, Unpack

from groupkeeper.broker.call import Call


class Operation(IntEnum):
    """Operations by their codes in ACLs."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Resource types by their codes in ACLs."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CLUSTER_NAME = "kafka-cluster"
NOT_REQUESTED = -(2**31)
"""Authorized operations in responses to requests without the flag for them."""
_ANY = "*"
_OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
_ALL_OPERATIONS = {kind: sum(1 << one for one in operations) for kind, operations in _OPERATIONS.items()}
IMPLIED_BY: dict[int, tuple[Operation, ...]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""By operation: other operations with a permission that implies it."""


class Authorizer:
    """Allows everything. A subclass decides otherwise; it is passed to a `Broker`, and called for every request."""

    @property
    def decisive(self) -> Authorizer:
        """The authorizer that decides, if this one only observes it."""
        return self

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the sender of a request may do the operation on a resource."""
        return True

    def allows_any(self, call: Call, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of the type on which the sender may do the operation."""
        return True

    def allowed_operations(self, call: Call, resource_type: ResourceType, name: str) -> int:
        """The operations on a resource as a bit field."""
        if type(self) is Authorizer:
            return _ALL_OPERATIONS[resource_type]
        return sum(
            1 << operation
            for operation in _OPERATIONS[resource_type]
            if self.allows(call, operation, resource_type, name)
        )


class Rule(NamedTuple):
    """A rule that allows or denies something."""

    is_allowed: bool
    operation: Operation
    resource_type: ResourceType
    name: str = _ANY
    """A name, or with `*` at its end a prefix; `*`: every name."""
    principal: str = _ANY
    """`*`: every principal."""
    host: str = _ANY
    """The client's address; `*`: every address."""
    client_id: str = _ANY
    """A client id, with `*` as in `name`."""

    def is_about(self, resource_type: ResourceType, name: str) -> bool:
        """Whether the rule applies to a resource, for any principal."""
        return self.resource_type == resource_type and _matches(self.name, name)

    def is_for(self, call: Call) -> bool:
        """Whether the rule applies to the sender of a request."""
        return (
            self.principal in (_ANY, call.principal)
            and self.host in (_ANY, call.client_host.removeprefix("/"))
            and _matches(self.client_id, call.client_id or "")
        )


class Clients(TypedDict, total=False):
    """The clients that a rule is for, as in `Rule`; all given conditions must hold."""

    principal: str
    host: str
    client_id: str


class RuleAuthorizer(Authorizer):
    """Allows what rules allow, for tests and development; rules may be added and removed while the broker runs.

        authorizer = RuleAuthorizer()
        authorizer.allow(Operation.READ, ResourceType.GROUP, "billing-*", client_id="billing")

    As Apache Kafka's: a rule that denies wins; READ, WRITE, DELETE and ALTER allow DESCRIBE too, ALTER_CONFIGS
    DESCRIBE_CONFIGS. Clients are `User:ANONYMOUS`; rules may distinguish them by host and client id.
    """

    def __init__(
        self, rules: Iterable[Rule] = (), *, super_users: Iterable[str] = (), allows_without_rules: bool = False
    ) -> None:
        """`super_users` are principals that may do everything; `allows_without_rules`: whether everyone may use
        resources without any rule (Kafka's allow.everyone.if.no.acl.found).
        """
        self.rules = tuple(rules)
        self._super_users = frozenset(super_users)
        self._allows_without_rules = allows_without_rules

    def allow(
        self, operation: Operation, resource_type: ResourceType, name: str = _ANY, **clients: Unpack[Clients]
    ) -> None:
        """Adds a rule that allows."""
        self.rules += (Rule(True, operation, resource_type, name, **clients),)

    def deny(
        self, operation: Operation, resource_type: ResourceType, name: str = _ANY, **clients: Unpack[Clients]
    ) -> None:
        """Adds a rule that denies."""
        self.rules += (Rule(False, operation, resource_type, name, **clients),)

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if call.principal in self._super_users:
            return True
        about = [rule for rule in self.rules if rule.is_about(resource_type, name)]
        if not about:
            return self._allows_without_rules
        mine = [rule for rule in about if rule.is_for(call)]
        if any(rule.operation in (operation, Operation.ALL) for rule in mine if not rule.is_allowed):
            return False
        enough = (operation, Operation.ALL, *IMPLIED_BY.get(operation, ()))
        return any(rule.operation in enough for rule in mine if rule.is_allowed)

    def allows_any(self, call: Call, operation: Operation, resource_type: ResourceType) -> bool:
        if call.principal in self._super_users:
            return True
        mine = [rule for rule in self.rules if rule.resource_type == resource_type and rule.is_for(call)]
        wanted = [rule for rule in mine if rule.operation in (operation, Operation.ALL)]
        denied = [rule.name for rule in wanted if not rule.is_allowed]
        if _ANY in denied:
            return False
        allowed = [rule.name for rule in wanted if rule.is_allowed]
        return self._allows_without_rules or any(
            not any(_matches(pattern, name.removesuffix(_ANY)) for pattern in denied) for name in allowed
        )


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith(_ANY) else pattern == name
