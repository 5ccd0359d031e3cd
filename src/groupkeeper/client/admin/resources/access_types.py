"""Typed results and arguments of the calls on rights: ACLs, passwords, quotas. Plain immutable values."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class AclResourceType(StrEnum):
    """The type of resource that an ACL is for. A type that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"
    USER = "USER"


class AclPatternType(StrEnum):
    """How an ACL's name matches resources. MATCH is for filters: all ACLs that apply to a name, also `*`, prefixes."""

    UNKNOWN = "UNKNOWN"
    MATCH = "MATCH"
    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class AclOperation(StrEnum):
    """An operation that an ACL allows or denies. One that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    ALL = "ALL"
    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ALTER = "ALTER"
    DESCRIBE = "DESCRIBE"
    CLUSTER_ACTION = "CLUSTER_ACTION"
    DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
    ALTER_CONFIGS = "ALTER_CONFIGS"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    CREATE_TOKENS = "CREATE_TOKENS"
    DESCRIBE_TOKENS = "DESCRIBE_TOKENS"
    TWO_PHASE_COMMIT = "TWO_PHASE_COMMIT"


class AclPermission(StrEnum):
    """Whether an ACL allows or denies. DENY takes precedence over ALLOW."""

    UNKNOWN = "UNKNOWN"
    DENY = "DENY"
    ALLOW = "ALLOW"


class Acl(NamedTuple):
    """An ACL: a principal may, or may not, do an operation on a resource."""

    principal: str
    """Such as "User:alice"; "User:*" for every principal."""
    operation: AclOperation
    resource_type: AclResourceType
    name: str
    """The resource's name, "*" for all of the type, "kafka-cluster" for CLUSTER; a prefix of names, if PREFIXED."""
    pattern_type: AclPatternType = AclPatternType.LITERAL
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"
    """An address, "*" for any."""


class AclFilter(NamedTuple):
    """A filter of ACLs: None matches any value. `AclFilter()` matches every ACL of the cluster."""

    principal: str | None = None
    operation: AclOperation | None = None
    resource_type: AclResourceType | None = None
    name: str | None = None
    pattern_type: AclPatternType | None = None
    permission: AclPermission | None = None
    host: str | None = None


class ScramMechanism(StrEnum):
    """A SCRAM mechanism. One that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class ScramCredential(NamedTuple):
    """A user's password for a mechanism; brokers reveal nothing else."""

    mechanism: ScramMechanism
    iterations: int


class ScramPassword(NamedTuple):
    """A password to set for a mechanism. Only its salted hash leaves this process. `salt` None: a random one. Brokers
    accept 4096 to 16384 `iterations`.
    """

    password: str
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = 8192
    salt: bytes | None = None

    def __repr__(self) -> str:
        return f"ScramPassword('…', {self.mechanism!r}, {self.iterations})"


class ScramRemoval(NamedTuple):
    """Deletes the password for a mechanism."""

    mechanism: ScramMechanism


class EntityName(Enum):
    """Used in place of a name. DEFAULT: entities without a quota of their own. ANY: every name."""

    DEFAULT = "DEFAULT"
    ANY = "ANY"


class QuotaEntity(NamedTuple):
    """The entity of a quota: a user, a client id, both together, or an address. None: the quota does not depend on that
    field. `EntityName.DEFAULT` applies to all without a quota of their own. `EntityName.ANY` is for describing
    only: it matches every name, and the default.
    """

    user: str | EntityName | None = None
    client_id: str | EntityName | None = None
    ip: str | EntityName | None = None


# By their codes in messages; 0: those of newer brokers; 1 is ANY, which only filters have.
RESOURCE_TYPES = dict(zip((0, 2, 3, 4, 5, 6, 7), AclResourceType, strict=True))
PATTERN_TYPES = dict(zip((0, 2, 3, 4), AclPatternType, strict=True))
OPERATIONS = dict(zip((0, *range(2, 16)), AclOperation, strict=True))
PERMISSIONS = dict(zip((0, 2, 3), AclPermission, strict=True))
MECHANISMS = dict(enumerate(ScramMechanism))
