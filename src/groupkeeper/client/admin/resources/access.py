"""ACLs, users with passwords (KIP-554), and client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import changes_each, keyed, mapped, of_kind, one_of, several
from groupkeeper.client.admin.resources.controller import NOT_CONTROLLER, ask_controller
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import IllegalArgument, MissingResult
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

if TYPE_CHECKING:
    from groupkeeper.client.admin.resources.access_types import (
        Acl,
        AclFilter,
        EntityName,
        QuotaEntity,
        ScramCredential,
        ScramPassword,
        ScramRemoval,
    )

_FITS_ALL = 1
"""Only filters have it."""

_KINDS = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""The fields of an entity by their names in messages."""

_EXACT, _DEFAULT, _ANY = range(3)


class AccessCalls:
    """Calls of Admin on ACLs, users with passwords, and quotas."""

    _cluster: Cluster

    async def describe_acls(self, wanted: AclFilter | None = None, *, timeout_ms: int | None = None) -> list[Acl]:
        """The ACLs that match a filter; None: all ACLs. The result may be empty.

        Raises ClusterAuthorizationFailed without DESCRIBE on the cluster, SecurityDisabled when the brokers have no
        authorizer.
        """
        from groupkeeper.client.admin.resources.access_types import AclFilter

        meant = AclFilter() if wanted is None else one_of(wanted, AclFilter, "wanted")
        request = m.DescribeAclsRequest(*_fields(meant))
        deadline = self._cluster.deadline("describeAcls", timeout_ms)
        response = await self._cluster.ask_any(m.DescribeAclsResponse, request, deadline)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return [
            _acl(resource.resource_type, resource.resource_name, resource.pattern_type, each.principal, each.host,
                 each.operation, each.permission_type)
            for resource in response.resources
            for each in resource.acls
        ]  # fmt: skip

    async def create_acls(self, acls: Iterable[Acl], *, timeout_ms: int | None = None) -> Batch[Acl, None]:
        """Add ACLs; an existing one is in `done`, too. Brokers apply them within moments. Fails per ACL:
        InvalidRequest (an invalid name, a principal without "User:"), ClusterAuthorizationFailed (this needs ALTER on
        the cluster), SecurityDisabled when the brokers have no authorizer.
        """
        from groupkeeper.client.admin.resources.access_types import Acl, AclPatternType

        def creation(acl: Acl) -> m.AclCreation:
            resource_type, _, pattern_type, _, _, operation, permission = _fields(acl)
            return m.AclCreation(resource_type, acl.name, pattern_type, acl.principal, acl.host, operation, permission)

        wanted = list(dict.fromkeys(of_kind(acls, Acl, "acls")))
        for acl in wanted:
            if None in acl or acl.pattern_type == AclPatternType.MATCH:
                raise IllegalArgument(f"None and the pattern MATCH are for filters only, not for an ACL: {acl}")
        request = m.CreateAclsRequest([creation(acl) for acl in wanted])
        deadline = self._cluster.deadline("createAcls", timeout_ms)
        if not wanted:
            return Batch()
        response = await self._cluster.ask_any(m.CreateAclsResponse, request, deadline)
        if len(response.results) != len(wanted):
            raise MissingResult(
                f"createAcls: {len(wanted)} ACLs were sent, and the reply has {len(response.results)} results"
            )
        results = {
            acl: failure_of(result.error_code, result.error_message)
            for acl, result in zip(wanted, response.results, strict=True)
        }
        return batch_of(wanted, results, "")

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: int | None = None
    ) -> Batch[AclFilter, Batch[Acl, None]]:
        """Delete all ACLs that match a filter, for each filter; the inner `done` has the deleted ones. No match is no
        failure. Fails per filter: ClusterAuthorizationFailed (this needs ALTER on the cluster), SecurityDisabled when
        the brokers have no authorizer.
        """
        from groupkeeper.client.admin.resources.access_types import AclFilter

        wanted = list(dict.fromkeys(of_kind(filters, AclFilter, "filters")))
        request = m.DeleteAclsRequest([m.DeleteAclsFilter(*_fields(each)) for each in wanted])
        deadline = self._cluster.deadline("deleteAcls", timeout_ms)
        if not wanted:
            return Batch()
        response = await self._cluster.ask_any(m.DeleteAclsResponse, request, deadline)
        if len(response.filter_results) != len(wanted):
            raise MissingResult(
                f"deleteAcls: {len(wanted)} filters were sent, and the reply has {len(response.filter_results)} results"
            )
        results = {
            each: failure_of(result.error_code, result.error_message) or _deleted(result.matching_acls)
            for each, result in zip(wanted, response.filter_results, strict=True)
        }
        return batch_of(wanted, results, "")

    async def describe_scram_users(
        self, names: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Batch[str, tuple[ScramCredential, ...]]:
        """The mechanisms for which users have passwords (KIP-554); None: all users with a password. Fails per user:
        ResourceNotFound for a user without one. Raises ClusterAuthorizationFailed without DESCRIBE on the cluster,
        UnsupportedVersion when the brokers are older than 2.7.
        """
        from groupkeeper.client.admin.resources.access_types import MECHANISMS, ScramCredential

        deadline = self._cluster.deadline("describeUserScramCredentials", timeout_ms)
        wanted = None if names is None else list(dict.fromkeys(several(names, "names")))
        if wanted == []:
            return Batch()
        request = m.DescribeUserScramCredentialsRequest(
            None if wanted is None else [m.UserName(name) for name in wanted]
        )
        response = await self._cluster.ask_any(m.DescribeUserScramCredentialsResponse, request, deadline)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        users: dict[str, tuple[ScramCredential, ...] | Failure] = {
            user.user: failure_of(user.error_code, user.error_message)
            or tuple(
                ScramCredential(MECHANISMS.get(each.mechanism, MECHANISMS[0]), each.iterations)
                for each in user.credential_infos
            )
            for user in response.results
        }
        return batch_of(users if wanted is None else wanted, users, f"{deadline.name}: the reply has no user {{}}")

    async def alter_scram_users(
        self, changes: Mapping[str, ScramPassword | ScramRemoval], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Set or delete passwords, one per user and call.

        `{"alice": ScramPassword("secret"), "bob": ScramRemoval(ScramMechanism.SCRAM_SHA_256)}`. Fails per user:
        ResourceNotFound for a password that doesn't exist, UnacceptableCredential (an empty name, too few or too many
        iterations), ClusterAuthorizationFailed (this needs ALTER on the cluster). Raises UnsupportedVersion when the
        brokers are older than 2.7.
        """
        from groupkeeper.client.admin.resources.access_types import ScramPassword, ScramRemoval

        for change in mapped(changes, "changes").values():
            one_of(change, (ScramPassword, ScramRemoval), "changes", secret=True)
        deadline = self._cluster.deadline("alterUserScramCredentials", timeout_ms)
        request = _alteration(changes)
        if not changes:
            return Batch()
        response = await ask_controller(
            self._cluster,
            m.AlterUserScramCredentialsResponse,
            request,
            deadline,
            lambda response: any(user.error_code == NOT_CONTROLLER for user in response.results),
        )
        results: dict[str, Failure | None] = {
            user.user: failure_of(user.error_code, user.error_message) for user in response.results
        }
        return batch_of(changes, results, f"{deadline.name}: the reply has no user {{}}")

    async def describe_client_quotas(
        self, wanted: QuotaEntity | None = None, *, strict: bool = False, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas by entity, then by name (producer_byte_rate: bytes per second and broker …). `wanted` None: all
        quotas; else those that match its fields. `strict`: without entities that have further fields (user and client
        id when only a user is wanted). Raises ClusterAuthorizationFailed without DESCRIBE_CONFIGS on the cluster,
        InvalidRequest, UnsupportedVersion when the brokers are older than 2.6.
        """
        from groupkeeper.client.admin.resources.access_types import EntityName, QuotaEntity

        meant = QuotaEntity() if wanted is None else one_of(wanted, QuotaEntity, "wanted")

        def component(kind: str, name: str | EntityName) -> m.ComponentData:
            if isinstance(name, EntityName):
                return m.ComponentData(kind, _DEFAULT if name is EntityName.DEFAULT else _ANY, None)
            return m.ComponentData(kind, _EXACT, name)

        request = m.DescribeClientQuotasRequest([component(kind, name) for kind, name in _parts(meant)], strict)
        deadline = self._cluster.deadline("describeClientQuotas", timeout_ms)
        response = await self._cluster.ask_any(m.DescribeClientQuotasResponse, request, deadline)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return {
            _entity((each.entity_type, each.entity_name) for each in entry.entity): {
                each.key: each.value for each in entry.values
            }
            for entry in response.entries or ()
        }

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[QuotaEntity, None]:
        """Set quotas by name, None deletes one; quotas that aren't named are unchanged.

        `{QuotaEntity(user="alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": None}}`. Fails per entity:
        InvalidRequest (an unknown name, or an invalid value), ClusterAuthorizationFailed (this needs ALTER_CONFIGS on
        the cluster). Raises UnsupportedVersion when the brokers are older than 2.6.
        """
        from groupkeeper.client.admin.resources.access_types import EntityName, QuotaEntity
        from groupkeeper.protocol.messages.alter_client_quotas_request import EntityData, EntryData

        keyed(changes_each(changes), QuotaEntity, "changes")

        def entry(entity: QuotaEntity, quotas: Mapping[str, float | None]) -> EntryData:
            parts = _parts(entity)
            if not parts or EntityName.ANY in entity:
                raise IllegalArgument(f"a quota is for a user, a client id or an address, by name or DEFAULT: {entity}")
            return EntryData(
                [EntityData(kind, None if isinstance(name, EntityName) else name) for kind, name in parts],
                [m.OpData(key, 0.0 if value is None else float(value), value is None) for key, value in quotas.items()],
            )

        request = m.AlterClientQuotasRequest(
            [entry(entity, quotas) for entity, quotas in changes.items()], validate_only
        )
        deadline = self._cluster.deadline("alterClientQuotas", timeout_ms)
        if not changes:
            return Batch()
        response = await self._cluster.ask_any(m.AlterClientQuotasResponse, request, deadline)
        results: dict[QuotaEntity, Failure | None] = {
            _entity((each.entity_type, each.entity_name) for each in entry.entity): failure_of(
                entry.error_code, entry.error_message
            )
            for entry in response.entries
        }
        return batch_of(changes, results, f"{deadline.name}: the reply has no result for {{}}")


def _deleted(matching: Iterable[m.DeleteAclsMatchingAcl]) -> Batch[Acl, None]:
    results: dict[Acl, Failure | None] = {
        _acl(one.resource_type, one.resource_name, one.pattern_type, one.principal, one.host, one.operation,
             one.permission_type): failure_of(one.error_code, one.error_message)
        for one in matching
    }  # fmt: skip
    return batch_of(results, results, "")


def _fields(acl: Acl | AclFilter) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    """The codes and names of an ACL or a filter, in the order of the messages' fields."""
    from groupkeeper.client.admin.resources.access_types import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES

    return (
        _code(RESOURCE_TYPES, acl.resource_type, "type of resource"),
        acl.name,
        _code(PATTERN_TYPES, acl.pattern_type, "pattern"),
        acl.principal,
        acl.host,
        _code(OPERATIONS, acl.operation, "operation"),
        _code(PERMISSIONS, acl.permission, "permission"),
    )


def _code(names: Mapping[int, StrEnum], name: str | None, what: str) -> int:
    """The code of a name; None, which matches all, is ANY."""
    if name is None:
        return _FITS_ALL
    for code, each in names.items():
        if each == name and code:
            return code
    raise IllegalArgument(f"there is no {what} {str(name)!r}; there are {', '.join(list(names.values())[1:])}")


def _acl(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> Acl:
    from groupkeeper.client.admin.resources.access_types import (
        OPERATIONS,
        PATTERN_TYPES,
        PERMISSIONS,
        RESOURCE_TYPES,
        Acl,
    )

    return Acl(
        principal,
        OPERATIONS.get(operation, OPERATIONS[0]),
        RESOURCE_TYPES.get(resource_type, RESOURCE_TYPES[0]),
        name,
        PATTERN_TYPES.get(pattern_type, PATTERN_TYPES[0]),
        PERMISSIONS.get(permission, PERMISSIONS[0]),
        host,
    )


def _alteration(changes: Mapping[str, ScramPassword | ScramRemoval]) -> m.AlterUserScramCredentialsRequest:
    from groupkeeper.client.admin.resources.access_types import MECHANISMS, ScramRemoval
    from groupkeeper.security.mechanisms.scram import new_salt, salted_password

    deletions, upsertions = [], []
    for user, change in changes.items():
        code = _code(MECHANISMS, str(change.mechanism), "password mechanism")  # None is no mechanism
        if isinstance(change, ScramRemoval):
            deletions.append(m.ScramCredentialDeletion(user, code))
            continue
        salt = new_salt() if change.salt is None else change.salt
        if change.iterations < 1:
            raise IllegalArgument(f"{user}: a password is hashed at least once, not {change.iterations} times")
        salted = salted_password(change.mechanism, change.password, salt, change.iterations)
        upsertions.append(m.ScramCredentialUpsertion(user, code, change.iterations, salt, salted))
    return m.AlterUserScramCredentialsRequest(deletions, upsertions)


def _parts(entity: QuotaEntity) -> list[tuple[str, str | EntityName]]:
    return [(kind, name) for kind, field in _KINDS.items() if (name := getattr(entity, field)) is not None]


def _entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    from groupkeeper.client.admin.resources.access_types import EntityName, QuotaEntity

    names = {_KINDS[kind]: EntityName.DEFAULT if name is None else name for kind, name in parts if kind in _KINDS}
    return QuotaEntity(**names)
