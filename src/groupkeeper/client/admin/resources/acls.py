"""ACLs: DescribeAcls, CreateAcls, DeleteAcls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from groupkeeper.client.admin.resources.access_types import (
    Acl,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from groupkeeper.client.admin.types import Batch
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import IllegalArgument, MissingResult
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

_ANY = 1

# By code. Code 1 is ANY, for filters only.
_RESOURCE_TYPES = dict(zip((0, 2, 3, 4, 5, 6, 7), AclResourceType, strict=True))
_PATTERN_TYPES = dict(zip((0, 2, 3, 4), AclPatternType, strict=True))
_OPERATIONS = dict(zip((0, *range(2, 16)), AclOperation, strict=True))
_PERMISSIONS = dict(zip((0, 2, 3), AclPermission, strict=True))


async def describe_acls(cluster: Cluster, wanted: AclFilter, timeout_ms: int | None) -> list[Acl]:
    """Admin.describe_acls."""
    request = m.DescribeAclsRequest(*_fields(wanted))
    deadline = cluster.deadline("describeAcls", timeout_ms)
    answer = await cluster.ask_any(m.DescribeAclsResponse, request, deadline)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return [
        _acl(resource.resource_type, resource.resource_name, resource.pattern_type, each.principal, each.host,
             each.operation, each.permission_type)
        for resource in answer.resources
        for each in resource.acls
    ]  # fmt: skip


async def create_acls(cluster: Cluster, acls: Iterable[Acl], timeout_ms: int | None) -> Batch[Acl, None]:
    """Admin.create_acls."""

    def creation(acl: Acl) -> m.AclCreation:
        resource_type, _, pattern_type, _, _, operation, permission = _fields(acl)
        return m.AclCreation(resource_type, acl.name, pattern_type, acl.principal, acl.host, operation, permission)

    wanted = list(dict.fromkeys(acls))
    for acl in wanted:
        if None in acl or acl.pattern_type == AclPatternType.MATCH:
            raise IllegalArgument(f"None and the pattern MATCH are for filters only, not for an ACL: {acl}")
    request = m.CreateAclsRequest([creation(acl) for acl in wanted])
    deadline = cluster.deadline("createAcls", timeout_ms)
    batch: Batch[Acl, None] = Batch()
    if not wanted:
        return batch
    answer = await cluster.ask_any(m.CreateAclsResponse, request, deadline)
    if len(answer.results) != len(wanted):
        raise MissingResult(
            f"createAcls: {len(wanted)} ACLs were sent, and the reply has {len(answer.results)} results"
        )
    for acl, result in zip(wanted, answer.results, strict=True):
        if result.error_code:
            batch.failed[acl] = error_for(result.error_code, result.error_message)
        else:
            batch.done[acl] = None
    return batch


async def delete_acls(
    cluster: Cluster, filters: Iterable[AclFilter], timeout_ms: int | None
) -> Batch[AclFilter, Batch[Acl, None]]:
    """Admin.delete_acls."""
    wanted = list(dict.fromkeys(filters))
    request = m.DeleteAclsRequest([m.DeleteAclsFilter(*_fields(each)) for each in wanted])
    deadline = cluster.deadline("deleteAcls", timeout_ms)
    batch: Batch[AclFilter, Batch[Acl, None]] = Batch()
    if not wanted:
        return batch
    answer = await cluster.ask_any(m.DeleteAclsResponse, request, deadline)
    if len(answer.filter_results) != len(wanted):
        raise MissingResult(
            f"deleteAcls: {len(wanted)} filters were sent, and the reply has {len(answer.filter_results)} results"
        )
    for each, result in zip(wanted, answer.filter_results, strict=True):
        if result.error_code:
            batch.failed[each] = error_for(result.error_code, result.error_message)
        else:
            batch.done[each] = _deleted(result.matching_acls)
    return batch


def _deleted(matching: Iterable[m.DeleteAclsMatchingAcl]) -> Batch[Acl, None]:
    batch: Batch[Acl, None] = Batch()
    for one in matching:
        acl = _acl(one.resource_type, one.resource_name, one.pattern_type, one.principal, one.host, one.operation,
                   one.permission_type)  # fmt: skip
        if one.error_code:
            batch.failed[acl] = error_for(one.error_code, one.error_message)
        else:
            batch.done[acl] = None
    return batch


def _fields(acl: Acl | AclFilter) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    """The codes and names of an ACL or a filter, in the order of the messages' fields."""
    return (
        _code(_RESOURCE_TYPES, acl.resource_type, "type of resource"),
        acl.name,
        _code(_PATTERN_TYPES, acl.pattern_type, "pattern"),
        acl.principal,
        acl.host,
        _code(_OPERATIONS, acl.operation, "operation"),
        _code(_PERMISSIONS, acl.permission, "permission"),
    )


def _code(names: Mapping[int, StrEnum], name: str | None, what: str) -> int:
    """The code of a name; None, which matches all, is ANY."""
    if name is None:
        return _ANY
    for code, each in names.items():
        if each == name and code:
            return code
    raise IllegalArgument(f"there is no {what} {str(name)!r}; there are {', '.join(list(names.values())[1:])}")


def _acl(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> Acl:
    return Acl(
        principal,
        _OPERATIONS.get(operation, AclOperation.UNKNOWN),
        _RESOURCE_TYPES.get(resource_type, AclResourceType.UNKNOWN),
        name,
        _PATTERN_TYPES.get(pattern_type, AclPatternType.UNKNOWN),
        _PERMISSIONS.get(permission, AclPermission.UNKNOWN),
        host,
    )
