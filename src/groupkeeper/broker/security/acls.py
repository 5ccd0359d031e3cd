"""ACLs and their decisions, as in Apache Kafka's StandardAuthorizer. Pure: no files, no sockets."""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from groupkeeper.broker.authorizer import CLUSTER_NAME, IMPLIED_BY, Operation, ResourceType
from groupkeeper.protocol.errors import InvalidRequest

ANY = 1
"""The code of a filter's types, operation or permission that matches all."""
WILDCARD = "*"
EVERYBODY = "User:*"


class PatternType(IntEnum):
    """How an ACL's name is matched; values are Kafka's codes."""

    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an ACL allows or denies; values are Kafka's codes."""

    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """An ACL: it allows or denies a principal an operation on the resources of a pattern. Types are codes of the
    protocol.
    """

    resource_type: int
    name: str
    """`*` for all resources of the type (as a literal name)."""
    pattern_type: int
    principal: str
    """`Type:name`; `User:*` is every principal."""
    host: str
    """An address, a network (`10.0.0.0/8`), or `*`."""
    operation: int
    permission: int

    def check(self) -> None:
        """Raises `InvalidRequest` for an invalid ACL, with Kafka's texts and in Kafka's order. The caller checks for
        codes that only filters may have.
        """
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
    """A filter of ACLs. Codes that are `ANY` match all ACLs. None matches any value."""

    resource_type: int
    name: str | None
    """With the pattern type MATCH, a resource's name: the ACLs that apply to this resource match."""
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
        """Whether an ACL matches."""
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
    """The principal of a request, and the client's address."""

    principal: str
    host: str

    def comes_from(self, host: str) -> bool:
        """Whether the host of an ACL (an address, a network, or all hosts) matches."""
        if host in (WILDCARD, self.host):
            return True
        return _is_within(self.host, host) if "/" in host else ":" in host and _is_same(self.host, host)


@lru_cache(maxsize=4096)
def _is_same(host: str, other: str) -> bool:
    """Whether two addresses are equal: Java writes 0:0:0:0:0:0:0:1 for ::1."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]) == ipaddress.ip_address(other.partition("%")[0])
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _is_within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


class Acls:
    """A set of ACLs, found by resource and principal."""

    def __init__(self) -> None:
        self._all: dict[Acl, None] = {}
        self._by_pattern: dict[tuple[int, int, str], dict[str, list[Acl]]] = {}  # pattern → principal → ACLs
        # Resource type → length of a prefix → how many patterns.
        self._lengths: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._all)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._all

    def add(self, acl: Acl) -> None:
        """Adds an ACL; does nothing if it is in the set already."""
        if acl in self._all:
            return
        self._all[acl] = None
        pattern = (acl.resource_type, acl.pattern_type, acl.name)
        if pattern not in self._by_pattern:
            self._by_pattern[pattern] = {}
            self._count_prefix(acl, 1)
        self._by_pattern[pattern].setdefault(acl.principal, []).append(acl)

    def remove(self, acl: Acl) -> None:
        """Removes an ACL. Raises KeyError if it isn't in the set."""
        del self._all[acl]
        pattern = (acl.resource_type, acl.pattern_type, acl.name)
        by_principal = self._by_pattern[pattern]
        by_principal[acl.principal].remove(acl)
        if not by_principal[acl.principal]:
            del by_principal[acl.principal]
        if not by_principal:
            del self._by_pattern[pattern]
            self._count_prefix(acl, -1)

    def _count_prefix(self, acl: Acl, change: int) -> None:
        if acl.pattern_type == PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.name)] += change
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]

    def meant_by(self, wanted: AclFilter) -> list[Acl]:
        """The matching ACLs, in the order in which they were added."""
        return [acl for acl in self._all if wanted.fits(acl)]

    def _about(self, resource_type: int, name: str) -> Iterator[dict[str, list[Acl]]]:
        """For each pattern that matches a resource, its ACLs by principal."""
        patterns = [(resource_type, PatternType.LITERAL, name)]
        if name != WILDCARD:
            patterns.append((resource_type, PatternType.LITERAL, WILDCARD))
        patterns += [
            (resource_type, PatternType.PREFIXED, name[:length])
            for length in self._lengths.get(resource_type, ())
            if length <= len(name)
        ]
        for pattern in patterns:
            by_principal = self._by_pattern.get(pattern)
            if by_principal is not None:
                yield by_principal

    def decide(self, asker: Asker, operation: int, resource_type: int, name: str) -> bool | None:
        """Whether the operation is allowed: a denial wins; without a permission it is not allowed. None: no ACL applies
        to the resource, for any principal.
        """
        enough = (operation, Operation.ALL, *IMPLIED_BY.get(operation, ()))
        has_acls = is_allowed = False
        for by_principal in self._about(resource_type, name):
            has_acls = True
            for acl in (*by_principal.get(asker.principal, ()), *by_principal.get(EVERYBODY, ())):
                if not asker.comes_from(acl.host):
                    continue
                if acl.permission == Permission.ALLOW:
                    is_allowed = is_allowed or acl.operation in enough
                elif acl.operation in (operation, Operation.ALL):
                    return False
        return is_allowed if has_acls else None

    def allows_some(self, asker: Asker, operation: int, resource_type: int) -> bool:
        """Whether the operation is allowed on at least one resource of the type, which need not exist: a permission
        counts unless a denial covers it. As in Kafka, implied operations don't count here.
        """
        allowed: list[Acl] = []
        denied: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        for acl in self._all:
            if acl.resource_type != resource_type or acl.operation not in (operation, Operation.ALL):
                continue
            if acl.principal not in (asker.principal, EVERYBODY) or not asker.comes_from(acl.host):
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
                or any(acl.name[:length] in denied[PatternType.PREFIXED] for length in range(1, len(acl.name) + 1))
            )
            for acl in allowed
        )
