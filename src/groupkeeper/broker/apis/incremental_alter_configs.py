"""IncrementalAlterConfigs (44) of topics."""

from __future__ import annotations

from groupkeeper.broker.apis.describe_configs import TOPIC
from groupkeeper.broker.settings import InvalidSetting
from groupkeeper.broker.topic_config import TopicConfig
from groupkeeper.protocol.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from groupkeeper.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.topics import Topic
    from groupkeeper.protocol.primitives import RootMessage

KEY = 44
VERSIONS = (0, 1)

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, IncrementalAlterConfigsRequest)
    responses = []
    for resource in request.resources:
        try:
            _alter(broker, resource, request.validate_only)
            responses.append(AlterConfigsResourceResponse(0, None, resource.resource_type, resource.resource_name))
        except KafkaError as error:
            responses.append(_refused(resource, error))
    return IncrementalAlterConfigsResponse(responses=responses)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, IncrementalAlterConfigsRequest)
    return IncrementalAlterConfigsResponse(responses=[_refused(resource, error) for resource in request.resources])


def _refused(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(error.code, error.message, resource.resource_type, resource.resource_name)


def _alter(broker: Broker, resource: AlterConfigsResource, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise InvalidRequest("Error due to duplicate config keys")
    topic = require_topic(broker, resource.resource_type, resource.resource_name)
    overrides = dict(topic.configs)
    for config in resource.configs:
        _change(overrides, config, topic.config)
    replace_settings(broker, topic, overrides, validate_only)


def require_topic(broker: Broker, resource_type: int, name: str) -> Topic:
    """The topic whose settings are to be changed. Raises `InvalidRequest`, `UnknownTopicOrPartition`."""
    if resource_type != TOPIC:
        raise InvalidRequest(f"Unknown resource type {resource_type}")
    topic = broker.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
    return topic


def replace_settings(broker: Broker, topic: Topic, overrides: dict[str, str], validate_only: bool) -> None:
    """Gives a topic these settings and no others. Raises `InvalidConfig`."""
    try:
        broker.topics.config_of(overrides)
    except InvalidSetting as error:
        raise InvalidConfig(str(error)) from None
    if not validate_only:
        broker.topics.configure(topic, overrides)


def _change(overrides: dict[str, str], config: AlterableConfig, current: TopicConfig) -> None:
    if config.config_operation == _DELETE:
        overrides.pop(config.name, None)
        return
    if config.value is None:
        raise InvalidRequest(f"Null value not supported for : {config.name}")
    if config.config_operation == _SET:
        overrides[config.name] = config.value
        return
    setting = TopicConfig.setting(config.name)
    if setting is None:
        raise InvalidConfig(f"Unknown topic config name: {config.name}")
    if config.config_operation not in (_APPEND, _SUBTRACT):
        raise InvalidRequest(f"Unknown operation {config.config_operation}")
    if setting.type != "list":
        word = "APPEND" if config.config_operation == _APPEND else "SUBTRACT"
        raise InvalidConfig(f"Can't {word} to key {config.name} because its type is not LIST.")
    parts = (setting.format(getattr(current, setting.attribute)) or "").split(",")
    values = [part for part in parts if part]
    for given in config.value.split(","):
        if config.config_operation == _APPEND and given not in values:
            values.append(given)
        elif config.config_operation == _SUBTRACT and given in values:
            values.remove(given)
    overrides[config.name] = ",".join(values)
