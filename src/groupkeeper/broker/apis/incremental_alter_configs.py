"""IncrementalAlterConfigs (44) of topics, groups, the broker and subscriptions."""

from __future__ import annotations

from groupkeeper.broker.apis._configs import BROKER, CLIENT_METRICS, alter_each, find_resource
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.catalog import broker_setting
from groupkeeper.broker.settings.table import SettingsTable
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownServerError
from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from groupkeeper.protocol.messages.incremental_alter_configs_response import AlterConfigsResourceResponse
from groupkeeper.protocol.primitives import RootMessage

_OPERATIONS = _SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.IncrementalAlterConfigsRequest)
    only_check = request.validate_only
    return m.IncrementalAlterConfigsResponse(
        responses=await alter_each(
            broker, request.resources, lambda one: _alter(broker, call, one, only_check), _answer
        )
    )


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.IncrementalAlterConfigsRequest)
    return m.IncrementalAlterConfigsResponse(responses=[_answer(resource, error) for resource in request.resources])


def _answer(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    code = 0 if error is None else error.code
    message = None if error is None or code == UnknownServerError.code else error.message
    return AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)


def _alter(broker: Broker, call: Call, resource: AlterConfigsResource, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    found = find_resource(broker, call, resource.resource_type, resource.resource_name)
    overrides = dict(found.overrides)
    for config in resource.configs:
        if resource.resource_type == BROKER:
            _require_fitting(config)
            broker.dynamic_config.require_insync_kept(resource.resource_name, config.name)
        elif config.config_operation not in _OPERATIONS:
            raise UnknownServerError  # Apache Kafka gives no details either
        elif resource.resource_type == CLIENT_METRICS:
            _require_no_list(config)
        _change(overrides, config, found.config)
    found.replace(overrides, validate_only=validate_only)


def _require_fitting(config: AlterableConfig) -> None:
    """Raises `InvalidRequest` or `InvalidConfig`, in Apache Kafka's words for brokers."""
    if config.config_operation not in _OPERATIONS:
        raise InvalidRequest(f"Unknown operations type {config.config_operation}")
    setting = broker_setting(config.name)
    if config.config_operation in (_APPEND, _SUBTRACT) and (setting is None or setting.type != "list"):
        word = "append" if config.config_operation == _APPEND else "subtract"
        raise InvalidConfig(f"Config value {word} is not allowed for config key: {config.name}")


def _require_no_list(config: AlterableConfig) -> None:
    """Raises `InvalidConfig`: Kafka has no lists here where something is added or taken."""
    if config.config_operation in (_APPEND, _SUBTRACT):
        raise _no_list(config)


def _no_list(config: AlterableConfig) -> InvalidConfig:
    word = "APPEND" if config.config_operation == _APPEND else "SUBTRACT"
    return InvalidConfig(f"Can't {word} to key {config.name} because its type is not LIST.")


def _change(overrides: dict[str, str], config: AlterableConfig, current: SettingsTable) -> None:
    if config.config_operation == _DELETE:
        overrides.pop(config.name, None)
        return
    if config.value is None:
        raise InvalidRequest(f"Null value not supported for : {config.name}")
    if config.config_operation == _SET:
        overrides[config.name] = config.value
        return
    setting = broker_setting(config.name) if current.setting(config.name) is None else current.setting(config.name)
    if setting is None or setting.type != "list":
        raise _no_list(config)
    # Kafka adds to what was given to the resource itself, else to the setting's own default.
    parts = overrides.get(config.name, setting.format(setting.default) or "").split(",")
    values = [part for part in parts if part]
    for given in config.value.split(","):
        if config.config_operation == _APPEND and given not in values:
            values.append(given)
        elif config.config_operation == _SUBTRACT and given in values:
            values.remove(given)
    overrides[config.name] = ",".join(values)
