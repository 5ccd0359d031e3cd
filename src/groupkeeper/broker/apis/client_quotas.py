"""DescribeClientQuotas and AlterClientQuotas, as ClientQuotasImage and ClientQuotaControlManager of Kafka 4.4.0."""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.quotas.entities import CLIENT_ID, IP, USER, Component, Entity
from groupkeeper.coordinator.refusals import own_message
from groupkeeper.protocol.errors import InvalidRequest, KafkaError
from groupkeeper.protocol.messages import alter_client_quotas_response as altered
from groupkeeper.protocol.messages import describe_client_quotas_response as described
from groupkeeper.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntryData
from groupkeeper.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from groupkeeper.protocol.primitives import RootMessage

_ORDER = {CLIENT_ID: 0, USER: 1, IP: 2}
"""The order of Java's HashMap, in which Kafka's responses name the parts of an entity."""


async def handle_describe(broker: Broker, call: Call, request: DescribeClientQuotasRequest) -> RootMessage:
    require_cluster(broker, call, Operation.DESCRIBE_CONFIGS)
    components = [Component(one.entity_type, one.match_type, one.match) for one in request.components]
    return described.DescribeClientQuotasResponse(
        entries=[
            described.EntryData(
                [described.EntityData(kind, name) for kind, name in sorted(entity, key=str)],
                [described.ValueData(key, value) for key, value in values.items()],
            )
            for entity, values in broker.quotas.table.matching(components, is_strict=request.strict)
        ]
    )


def refuse_describe(call: Call, request: DescribeClientQuotasRequest, error: KafkaError) -> RootMessage:
    return described.DescribeClientQuotasResponse(
        error_code=error.code, error_message=own_message(error) or error.text, entries=None
    )


async def handle_alter(broker: Broker, call: Call, request: AlterClientQuotasRequest) -> RootMessage:
    require_cluster(broker, call, Operation.ALTER_CONFIGS)
    results: dict[Entity, altered.EntryData] = {}
    async for entry in in_turns(request.entries):
        parts = _parts(entry)
        entity = frozenset(parts.items())
        changes = {op.key: None if op.remove else op.value for op in entry.ops}
        error: KafkaError | None = None
        if entity in results or len(changes) < len(entry.ops):
            error = InvalidRequest(f"Ignoring duplicate entity {_text(entity)}")
        else:
            try:
                broker.quotas.alter(entity, changes, validate_only=request.validate_only)
            except KafkaError as refusal:
                error = refusal
        results[entity] = _result(parts, error)
    return altered.AlterClientQuotasResponse(entries=list(results.values()))


def refuse_alter(call: Call, request: AlterClientQuotasRequest, error: KafkaError) -> RootMessage:
    return altered.AlterClientQuotasResponse(entries=[_result(_parts(entry), error) for entry in request.entries])


def _parts(entry: EntryData) -> dict[str, str | None]:
    """The entity's names by kind; the last one of a kind counts, as in Kafka."""
    return {one.entity_type: one.entity_name for one in entry.entity}


def _result(parts: dict[str, str | None], error: KafkaError | None) -> altered.EntryData:
    kinds = sorted(parts, key=lambda kind: _ORDER.get(kind, len(_ORDER))) if len(parts) > 1 else parts
    names = [altered.EntityData(kind, parts[kind]) for kind in kinds]
    return altered.EntryData(0 if error is None else error.code, None if error is None else own_message(error), names)


def _text(entity: Entity) -> str:
    parts = ", ".join(f"{kind}={name or 'null'}" for kind, name in sorted(entity, key=str))
    return f"ClientQuotaEntity(entries={{{parts}}})"
