"""AlterConfigs (33): the older form, which replaces all settings of a topic, a group, the broker or a subscription."""

from __future__ import annotations

from groupkeeper.broker.apis._configs import alter_each, find_resource
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import InvalidRequest, KafkaError
from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsRequest, AlterConfigsResource
from groupkeeper.protocol.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, AlterConfigsRequest)
    only_check = request.validate_only
    return AlterConfigsResponse(
        responses=await alter_each(
            broker, request.resources, lambda one: _alter(broker, call, one, only_check), _answer
        )
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, AlterConfigsRequest)
    return AlterConfigsResponse(responses=[_answer(resource, error) for resource in request.resources])


def _answer(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    code, message = (0, None) if error is None else (error.code, error.message)
    return AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)


def _alter(broker: Broker, call: Call, resource: AlterConfigsResource, validate_only: bool) -> None:
    found = find_resource(broker, call, resource.resource_type, resource.resource_name)
    overrides = {}
    for config in resource.configs:
        if config.value is None:
            raise InvalidRequest(f"Null value not supported for : {config.name}")
        overrides[config.name] = config.value
    found.replace(overrides, validate_only=validate_only)
