"""Client quotas (KIP-546): DescribeClientQuotas, AlterClientQuotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupkeeper.client.admin.resources.access_types import EntityName, QuotaEntity
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for

_KINDS = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""The fields of an entity by their names in messages."""

_EXACT, _DEFAULT, _ANY = range(3)


async def describe_client_quotas(
    cluster: Cluster, wanted: QuotaEntity, is_strict: bool, timeout_ms: int | None
) -> dict[QuotaEntity, dict[str, float]]:
    """Admin.describe_client_quotas."""

    def component(kind: str, name: str | EntityName) -> m.ComponentData:
        if isinstance(name, EntityName):
            return m.ComponentData(kind, _DEFAULT if name is EntityName.DEFAULT else _ANY, None)
        return m.ComponentData(kind, _EXACT, name)

    request = m.DescribeClientQuotasRequest([component(kind, name) for kind, name in _parts(wanted)], is_strict)
    deadline = cluster.deadline("describeClientQuotas", timeout_ms)
    answer = await cluster.ask_any(m.DescribeClientQuotasResponse, request, deadline)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return {
        _entity((each.entity_type, each.entity_name) for each in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries or ()
    }


async def alter_client_quotas(
    cluster: Cluster,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    validate_only: bool,
    timeout_ms: int | None,
) -> Batch[QuotaEntity, None]:
    """Admin.alter_client_quotas."""
    from groupkeeper.protocol.messages.alter_client_quotas_request import EntityData, EntryData

    def entry(entity: QuotaEntity, quotas: Mapping[str, float | None]) -> EntryData:
        parts = _parts(entity)
        if not parts or EntityName.ANY in entity:
            raise IllegalArgument(f"a quota is for a user, a client id or an address, by name or DEFAULT: {entity}")
        return EntryData(
            [EntityData(kind, None if isinstance(name, EntityName) else name) for kind, name in parts],
            [m.OpData(key, 0.0 if value is None else float(value), value is None) for key, value in quotas.items()],
        )

    request = m.AlterClientQuotasRequest([entry(entity, quotas) for entity, quotas in changes.items()], validate_only)
    deadline = cluster.deadline("alterClientQuotas", timeout_ms)
    if not changes:
        return Batch()
    answer = await cluster.ask_any(m.AlterClientQuotasResponse, request, deadline)
    results: dict[QuotaEntity, Failure | None] = {
        _entity((each.entity_type, each.entity_name) for each in entry.entity): failure_of(
            entry.error_code, entry.error_message
        )
        for entry in answer.entries
    }
    return batch_of(changes, results, f"{deadline.name}: the reply has no result for {{}}")


def _parts(entity: QuotaEntity) -> list[tuple[str, str | EntityName]]:
    return [(kind, name) for kind, field in _KINDS.items() if (name := getattr(entity, field)) is not None]


def _entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    names = {_KINDS[kind]: EntityName.DEFAULT if name is None else name for kind, name in parts if kind in _KINDS}
    return QuotaEntity(**names)
