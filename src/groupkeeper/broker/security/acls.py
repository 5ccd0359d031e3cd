"""ACLs and what they decide, as Apache Kafka's StandardAuthorizer reads them. Pure: no files, no sockets."""

from __future__ import annotations

import ipaddress
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from groupkeeper.broker.authorizer import CLUSTER_NAME, IMPLIED_BY, Operation, ResourceType
from groupkeeper.protocol.errors import InvalidRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

ANY = 1
"""What a filter's type, operation and permission are when all fit."""
WILDCARD = "*"
EVERYBODY = "User:*"


class PatternType(IntEnum):
    """How an ACL's name is read; by their codes."""

    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """By their codes."""

    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """Who may, or may not, do an operation on the resources of a pattern. Types are codes of the wire.

    `name` is `*` for all resources of the type (as a literal name). `host` is an address, a network (`10.0.0.0/8`), or
    `*`. `principal` is `Type:name`, `User:*` is everybody.
    """

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def check(self) -> None:
        """Raises `InvalidRequest`, in Kafka's words and order. Codes that only a filter may have are the caller's."""
        if self.resource_type == ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        if not self.name:
            raise InvalidRequest("Invalid empty resource name")
        if self.resource_type not in _RESOURCE_TYPES:
            raise InvalidRequest("Invalid resourceType UNKNOWN")
        if self.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise InvalidRequest("Invalid patternType UNKNOWN")
        if self.operation not in _OPERATIONS:
            raise InvalidRequest("Invalid operation UNKNOWN")
        if self.permission not in (Permission.DENY, Permission.ALLOW):
            raise InvalidRequest("Invalid permissionType UNKNOWN")
        if ":" not in self.principal:
            raise InvalidRequest(
                f"Could not parse principal from `{self.principal}` (no colon is present separating the principal "
                "type from the principal name)"
            )


_RESOURCE_TYPES = frozenset(map(int, ResourceType))
_OPERATIONS = frozenset(map(int, Operation))


class AclFilter(NamedTuple):
    """Which ACLs are meant. Names that are None, and codes that are `ANY`, fit all.

    With the pattern type MATCH, `name` is that of a resource: the ACLs that are about it fit.
    """

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def check(self) -> None:
        """Raises `InvalidRequest` for codes that don't exist."""
        if self.resource_type not in _RESOURCE_TYPES | {ANY} or self.pattern_type not in (ANY, *PatternType):
            raise InvalidRequest("Unknown patternFilter.")
        if self.operation not in _OPERATIONS | {ANY} or self.permission not in (ANY, *Permission):
            raise InvalidRequest("Unknown entryFilter.")

    def fits(self, acl: Acl) -> bool:
        """Whether an ACL is meant."""
        return (
            self.resource_type in (ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self._fits_pattern(acl)
        )

    def _fits_pattern(self, acl: Acl) -> bool:
        if self.pattern_type == PatternType.MATCH:
            return self.name is None or (
                self.name.startswith(acl.name)
                if acl.pattern_type == PatternType.PREFIXED
                else acl.name in (self.name, WILDCARD)
            )
        return self.pattern_type in (ANY, acl.pattern_type) and self.name in (None, acl.name)


class Asker(NamedTuple):
    """Who asks, and from which address."""

    principal: str
    host: str

    def is_meant_by(self, acl: Acl) -> bool:
        """Whether an ACL is about this principal and host."""
        return acl.principal in (self.principal, EVERYBODY) and (
            acl.host in (WILDCARD, self.host) or ("/" in acl.host and _is_within(self.host, acl.host))
        )


@lru_cache(maxsize=4096)
def _is_within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


class Acls:
    """A set of ACLs, found by resource."""

    def __init__(self) -> None:
        self._all: dict[Acl, None] = {}
        self._literal: dict[tuple[int, str], list[Acl]] = {}
        self._prefixed: dict[tuple[int, str], list[Acl]] = {}
        self._lengths: dict[int, dict[int, int]] = {}  # by type: how many prefixed ACLs have names of a length

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._all)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._all

    def add(self, acl: Acl) -> None:
        """Does nothing when it is there."""
        if acl in self._all:
            return
        self._all[acl] = None
        self._place(acl).setdefault((acl.resource_type, acl.name), []).append(acl)
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths.setdefault(acl.resource_type, {})
            lengths[len(acl.name)] = lengths.get(len(acl.name), 0) + 1

    def remove(self, acl: Acl) -> None:
        """Raises KeyError when it isn't there."""
        del self._all[acl]
        place, key = self._place(acl), (acl.resource_type, acl.name)
        place[key].remove(acl)
        if not place[key]:
            del place[key]
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.name)] -= 1
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]

    def _place(self, acl: Acl) -> dict[tuple[int, str], list[Acl]]:
        return self._prefixed if acl.pattern_type == PatternType.PREFIXED else self._literal

    def meant_by(self, wanted: AclFilter) -> list[Acl]:
        """In the order in which they were added."""
        return [acl for acl in self._all if wanted.fits(acl)]

    def about(self, resource_type: int, name: str) -> Iterator[Acl]:
        """The ACLs about one resource."""
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                yield from self._prefixed.get((resource_type, name[:length]), ())

    def decide(self, asker: Asker, operation: int, resource_type: int, name: str) -> bool | None:
        """Whether the operation is allowed: a denial wins, without a permission it is not. None: no ACL is about the
        resource, for anybody.
        """
        enough = (operation, Operation.ALL, *IMPLIED_BY.get(operation, ()))
        decision = None
        for acl in self.about(resource_type, name):
            decision = decision or False
            if not asker.is_meant_by(acl):
                continue
            if acl.permission == Permission.ALLOW:
                decision = decision or acl.operation in enough
            elif acl.operation in (operation, Operation.ALL):
                return False
        return decision

    def allows_some(self, asker: Asker, operation: int, resource_type: int) -> bool:
        """Whether the operation is allowed on any resource of the type, which need not exist: a permission counts
        unless a denial covers it. As in Kafka, implied operations don't count here.
        """
        allowed: list[Acl] = []
        denied: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        for acl in self._all:
            if acl.resource_type != resource_type or acl.operation not in (operation, Operation.ALL):
                continue
            if not asker.is_meant_by(acl):
                continue
            if acl.permission == Permission.ALLOW:
                allowed.append(acl)
            else:
                denied[acl.pattern_type].add(acl.name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        return any(
            (acl.pattern_type == PatternType.LITERAL and acl.name == WILDCARD)
            or not (
                (acl.pattern_type == PatternType.LITERAL and acl.name in denied[PatternType.LITERAL])
                or _has_prefix_in(acl.name, denied[PatternType.PREFIXED])
            )
            for acl in allowed
        )


def _has_prefix_in(name: str, prefixes: Container[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))
