"""The calls of Admin on rights: ACLs, passwords and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupkeeper.client.admin.arguments import keyed, mapped, mapped_each, of_kind, one_of, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from groupkeeper.client.admin.resources.access_types import (
        Acl,
        AclFilter,
        QuotaEntity,
        ScramCredential,
        ScramPassword,
        ScramRemoval,
    )
    from groupkeeper.client.batch import Batch
    from groupkeeper.client.cluster import Cluster


class AccessCalls:
    """Calls of Admin about ACLs, quotas, users and delegation tokens."""

    _cluster: Cluster

    async def describe_acls(self, wanted: AclFilter | None = None, *, timeout_ms: int | None = None) -> list[Acl]:
        """The ACLs that match a filter; None: all ACLs. The result may be empty.

        Raises ClusterAuthorizationFailed without DESCRIBE on the cluster, SecurityDisabled when the brokers have no
        authorizer.
        """
        from groupkeeper.client.admin.resources import acls
        from groupkeeper.client.admin.resources.access_types import AclFilter

        meant = AclFilter() if wanted is None else one_of(wanted, AclFilter, "wanted")
        return await acls.describe_acls(self._cluster, meant, timeout_ms)

    async def create_acls(self, acls: Iterable[Acl], *, timeout_ms: int | None = None) -> Batch[Acl, None]:
        """Add ACLs; an existing one is in ``done``, too. Brokers apply them within moments. Fails per ACL:
        InvalidRequest (an invalid name, a principal without "User:"), ClusterAuthorizationFailed (this needs ALTER on
        the cluster), SecurityDisabled when the brokers have no authorizer.
        """
        from groupkeeper.client.admin.resources import acls as acls_
        from groupkeeper.client.admin.resources.access_types import Acl

        return await acls_.create_acls(self._cluster, of_kind(acls, Acl, "acls"), timeout_ms)

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: int | None = None
    ) -> Batch[AclFilter, Batch[Acl, None]]:
        """Delete all ACLs that match a filter, for each filter; the inner ``done`` has the deleted ones. No match is no
        failure. Fails per filter: ClusterAuthorizationFailed (this needs ALTER on the cluster), SecurityDisabled when
        the brokers have no authorizer.
        """
        from groupkeeper.client.admin.resources import acls
        from groupkeeper.client.admin.resources.access_types import AclFilter

        return await acls.delete_acls(self._cluster, of_kind(filters, AclFilter, "filters"), timeout_ms)

    async def describe_scram_users(
        self, names: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Batch[str, tuple[ScramCredential, ...]]:
        """The mechanisms for which users have passwords (KIP-554); None: all users with a password. Fails per user:
        ResourceNotFound for a user without one. Raises ClusterAuthorizationFailed without DESCRIBE on the cluster,
        UnsupportedVersion when the brokers are older than 2.7.
        """
        from groupkeeper.client.admin.resources import users

        if names is not None:
            several(names, "names")
        return await users.describe_scram_users(self._cluster, names, timeout_ms)

    async def alter_scram_users(
        self, changes: Mapping[str, ScramPassword | ScramRemoval], *, timeout_ms: int | None = None
    ) -> Batch[str, None]:
        """Set or delete passwords, one per user and call.

        ``{"alice": ScramPassword("secret"), "bob": ScramRemoval(ScramMechanism.SCRAM_SHA_256)}``. Fails per user:
        ResourceNotFound for a password that doesn't exist, UnacceptableCredential (an empty name, too few or too many
        iterations), ClusterAuthorizationFailed (this needs ALTER on the cluster). Raises UnsupportedVersion when the
        brokers are older than 2.7.
        """
        from groupkeeper.client.admin.resources import users
        from groupkeeper.client.admin.resources.access_types import ScramPassword, ScramRemoval

        for change in mapped(changes, "changes").values():
            one_of(change, (ScramPassword, ScramRemoval), "changes", secret=True)
        return await users.alter_scram_users(self._cluster, changes, timeout_ms)

    async def describe_client_quotas(
        self, wanted: QuotaEntity | None = None, *, strict: bool = False, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas by entity, then by name (producer_byte_rate: bytes per second and broker …). ``wanted`` None: all
        quotas; else those that match its fields. ``strict``: without entities that have further fields (user and client
        id when only a user is wanted). Raises ClusterAuthorizationFailed without DESCRIBE_CONFIGS on the cluster,
        InvalidRequest, UnsupportedVersion when the brokers are older than 2.6.
        """
        from groupkeeper.client.admin.resources import quotas
        from groupkeeper.client.admin.resources.access_types import QuotaEntity

        meant = QuotaEntity() if wanted is None else one_of(wanted, QuotaEntity, "wanted")
        return await quotas.describe_client_quotas(self._cluster, meant, strict, timeout_ms)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[QuotaEntity, None]:
        """Set quotas by name, None deletes one; quotas that aren't named are unchanged.

        ``{QuotaEntity(user="alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": None}}``. Fails per entity:
        InvalidRequest (an unknown name, or an invalid value), ClusterAuthorizationFailed (this needs ALTER_CONFIGS on
        the cluster). Raises UnsupportedVersion when the brokers are older than 2.6.
        """
        from groupkeeper.client.admin.resources import quotas
        from groupkeeper.client.admin.resources.access_types import QuotaEntity

        keyed(mapped_each(changes, "changes"), QuotaEntity, "changes")
        return await quotas.alter_client_quotas(self._cluster, changes, validate_only, timeout_ms)
