"""Typed results and arguments of the calls on rights: ACLs, passwords, quotas. Plain immutable values."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class AclResourceType(StrEnum):
    """What rights are about. A type that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    TOPIC = "TOPIC"
    GROUP = "GROUP"
    CLUSTER = "CLUSTER"
    TRANSACTIONAL_ID = "TRANSACTIONAL_ID"
    DELEGATION_TOKEN = "DELEGATION_TOKEN"
    USER = "USER"


class AclPatternType(StrEnum):
    """How a resource's name is read. MATCH is for filters: every pattern that fits the name, `*` and prefixes, too."""

    UNKNOWN = "UNKNOWN"
    MATCH = "MATCH"
    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class AclOperation(StrEnum):
    """What may be done, or not. An operation that a newer broker invents reads as UNKNOWN."""

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
    """An ACL: a principal may, or may not, do an operation on a resource.

    ``principal`` is "User:alice", "User:*" for every principal. ``name`` is that of the resource, "*" for all of the
    type,
    "kafka-cluster" for CLUSTER; with the pattern PREFIXED all names that begin so. ``host`` is an address, "*" for any.
    """

    principal: str
    operation: AclOperation
    resource_type: AclResourceType
    name: str
    pattern_type: AclPatternType = AclPatternType.LITERAL
    permission: AclPermission = AclPermission.ALLOW
    host: str = "*"


class AclFilter(NamedTuple):
    """A filter of ACLs: None fits all. ``AclFilter()`` means every ACL of the cluster."""

    principal: str | None = None
    operation: AclOperation | None = None
    resource_type: AclResourceType | None = None
    name: str | None = None
    pattern_type: AclPatternType | None = None
    permission: AclPermission | None = None
    host: str | None = None


class ScramMechanism(StrEnum):
    """How a password is proven. A mechanism that a newer broker invents reads as UNKNOWN."""

    UNKNOWN = "UNKNOWN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class ScramCredential(NamedTuple):
    """That a user has a password for a mechanism. Brokers tell nothing else of it."""

    mechanism: ScramMechanism
    iterations: int


class ScramPassword(NamedTuple):
    """A password to set for a mechanism. It doesn't leave this process: its salted hash does.

    ``salt`` None: a random one. Brokers take 4096 to 16384 ``iterations``.
    """

    password: str
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = 8192
    salt: bytes | None = None

    def __repr__(self) -> str:
        return f"ScramPassword('…', {self.mechanism!r}, {self.iterations})"


class ScramRemoval(NamedTuple):
    """A password to take away: the one of that mechanism."""

    mechanism: ScramMechanism


class EntityName(Enum):
    """Stands where a name could: the default that holds for all without a quota of their own, or any name."""

    DEFAULT = "DEFAULT"
    ANY = "ANY"


class QuotaEntity(NamedTuple):
    """The entity of a quota: a user, a client id, both together, or an address. None: it isn't by that.

    ``EntityName.DEFAULT`` applies to all without a quota of their own. ``EntityName.ANY`` is for describing only: it
    fits every name, and the default.
    """

    user: str | EntityName | None = None
    client_id: str | EntityName | None = None
    ip: str | EntityName | None = None
