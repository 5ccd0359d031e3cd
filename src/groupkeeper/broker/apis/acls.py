"""DescribeAcls, CreateAcls and DeleteAcls, as AclApis and AclControlManager of Kafka 4.4.0 answer them."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.security.acl_authorizer import AclAuthorizer
from groupkeeper.broker.security.acls import ANY, Acl, AclFilter, PatternType
from groupkeeper.coordinator.refusals import own_message
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, SecurityDisabled, UnknownServerError

_UNKNOWN = 0
_OF_FILTERS = (ANY, PatternType.MATCH)


async def handle_describe(broker: Broker, call: Call, request: m.DescribeAclsRequest) -> m.DescribeAclsResponse:
    wanted = _filter(request)
    require_cluster(broker, call, Operation.DESCRIBE)
    resources: dict[tuple[int, str, int], list[m.AclDescription]] = {}
    for acl in _authorizer(broker, " on the broker").acls.meant_by(wanted):
        described = m.AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        resources.setdefault(acl[:3], []).append(described)
    return m.DescribeAclsResponse(
        resources=[m.DescribeAclsResource(*pattern, acls) for pattern, acls in resources.items()]
    )


def refuse_describe(call: Call, request: m.DescribeAclsRequest, error: KafkaError) -> m.DescribeAclsResponse:
    return m.DescribeAclsResponse(error_code=error.code, error_message=error.message)


async def handle_create(broker: Broker, call: Call, request: m.CreateAclsRequest) -> m.CreateAclsResponse:
    acls = [
        Acl(
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for one in request.creations
    ]
    for acl in acls:
        _require_known(acl.resource_type, acl.pattern_type, acl.operation, acl.permission)
    require_cluster(broker, call, Operation.ALTER)
    authorizer = _authorizer(broker)
    if any(
        ANY in (acl.resource_type, acl.operation, acl.permission) or acl.pattern_type in _OF_FILTERS for acl in acls
    ):
        raise UnknownServerError  # a value for filters only; Kafka fails on the whole request
    results = []
    for acl in acls:
        try:
            authorizer.create(acl)
        except KafkaError as error:
            results.append(m.AclCreationResult(error.code, error.message))
        else:
            results.append(m.AclCreationResult())
    return m.CreateAclsResponse(results=results)


def refuse_create(call: Call, request: m.CreateAclsRequest, error: KafkaError) -> m.CreateAclsResponse:
    return m.CreateAclsResponse(
        results=[m.AclCreationResult(error.code, own_message(error)) for _ in request.creations]
    )


async def handle_delete(broker: Broker, call: Call, request: m.DeleteAclsRequest) -> m.DeleteAclsResponse:
    filters = [_filter(one) for one in request.filters]
    require_cluster(broker, call, Operation.ALTER)
    authorizer = _authorizer(broker)
    results = []
    # An ACL that several filters match is listed for each of them.
    known = list(authorizer.acls)
    for wanted in filters:
        try:
            authorizer.delete(wanted)
        except KafkaError as error:
            results.append(m.DeleteAclsFilterResult(error.code, error.message))
        else:
            deleted = [m.DeleteAclsMatchingAcl(0, None, *acl) for acl in known if wanted.fits(acl)]
            results.append(m.DeleteAclsFilterResult(error_message=None, matching_acls=deleted))
    return m.DeleteAclsResponse(filter_results=results)


def refuse_delete(call: Call, request: m.DeleteAclsRequest, error: KafkaError) -> m.DeleteAclsResponse:
    return m.DeleteAclsResponse(
        filter_results=[m.DeleteAclsFilterResult(error.code, error.message) for _ in request.filters]
    )


def _authorizer(broker: Broker, where: str = ".") -> AclAuthorizer:
    authorizer = broker.authorizer.decisive
    if not isinstance(authorizer, AclAuthorizer):
        raise SecurityDisabled(f"No Authorizer is configured{where}")
    return authorizer


def _filter(one: m.DescribeAclsRequest | m.DeleteAclsFilter) -> AclFilter:
    _require_known(one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
    return AclFilter(
        one.resource_type_filter,
        one.resource_name_filter,
        one.pattern_type_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def _require_known(*codes: int) -> None:
    # Kafka cannot parse such a request, and closes the connection.
    if _UNKNOWN in codes:
        raise CloseConnection("an ACL or a filter of ACLs with an UNKNOWN element")
