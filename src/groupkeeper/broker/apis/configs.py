"""The settings of topics, groups, the broker and subscriptions to clients' metrics: DescribeConfigs (32), AlterConfigs
(33), IncrementalAlterConfigs (44) and ListConfigResources (74).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.apis._access import require_cluster, require_group, require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.settings.catalog import broker_setting
from groupkeeper.broker.settings.described import (
    UNKNOWN_TYPE,
    DescribedSetting,
    describe_all_brokers,
    describe_broker,
    describe_group,
    describe_subscription,
    describe_topic,
)
from groupkeeper.broker.settings.dynamic import ALL_BROKERS
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import alter_configs_response as alter_response
from groupkeeper.protocol.messages import incremental_alter_configs_response as incremental_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.settings.client_metrics import MetricsSubscription
    from groupkeeper.broker.settings.group_overrides import GroupConfig
    from groupkeeper.broker.settings.stored import StoredSettings
    from groupkeeper.broker.settings.table import SettingsTable
    from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsResource as Whole
    from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterableConfig
    from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterConfigsResource as Incremental

    A = TypeVar("A")
    R = TypeVar("R", Whole, Incremental)


TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32


class Resource(NamedTuple):
    """A topic, a group, the broker or a subscription with its settings."""

    config: SettingsTable
    """The settings in force."""
    overrides: Mapping[str, str]
    """The resource's own settings, as texts by name."""
    check: Callable[[Mapping[str, str]], object]
    configure: Callable[[Mapping[str, str]], None]
    refusal: type[errors.KafkaError] = errors.InvalidConfig

    def replace(self, overrides: Mapping[str, str], *, validate_only: bool) -> None:
        """Replaces the resource's own settings.

        Raises `InvalidConfig` (for the broker `InvalidRequest`), `KafkaStorageError`.
        """
        try:
            self.check(overrides)
        except InvalidSetting as error:
            raise self.refusal(str(error)) from None
        if not validate_only:
            self.configure(overrides)


async def alter_each(
    broker: Broker,
    resources: Sequence[R],
    alter: Callable[[R], None],
    response: Callable[[R, errors.KafkaError | None], A],
) -> list[A]:
    """Alters each resource; returns the responses. Refuses repeated resources, as Apache Kafka does."""
    seen: set[tuple[int, str]] = set()
    repeated: set[tuple[int, str]] = set()
    async for one in in_turns(resources):
        named = one.resource_type, one.resource_name
        (repeated if named in seen else seen).add(named)
    responses = []
    refused = errors.InvalidRequest("Each resource must appear at most once.")
    async for one in in_turns(resources):
        error: errors.KafkaError | None = None
        if repeated and (one.resource_type, one.resource_name) in repeated:
            error = refused
        else:
            try:
                alter(one)
            except errors.KafkaError as refusal:
                error = refusal
        responses.append(response(one, error))
    await broker.resume_held_changes()
    return responses


def find_resource(broker: Broker, call: Call, resource_type: int, name: str) -> Resource:
    """The resource with the settings to change.

    Raises `InvalidRequest`, `UnknownTopicOrPartition`, `TopicAuthorizationFailed`, `GroupAuthorizationFailed`.
    """
    require_allowed(broker, call, Operation.ALTER_CONFIGS, resource_type, name)
    if resource_type == TOPIC:
        if not name:
            raise errors.InvalidRequest("Default topic resources are not allowed.")
        topic = broker.topics.get(name)
        if topic is None:
            raise errors.UnknownTopicOrPartition(f"The topic '{name}' does not exist.")
        topics = broker.topics
        return Resource(
            topic.config, topic.config.overrides, topics.config_of, lambda given: topics.configure(topic, given)
        )
    if resource_type == GROUP:
        if not name:
            raise errors.InvalidRequest("Default group resources are not allowed.")
        return _named(broker.group_configs, name)
    if resource_type == CLIENT_METRICS:
        if not name:
            raise errors.InvalidRequest("Subscription name can't be empty")
        return _named(broker.client_metrics, name)
    if resource_type == BROKER_LOGGER:
        return Resource(broker.config, {}, _refuse_loggers, lambda given: None)
    if resource_type == BROKER:
        if name != ALL_BROKERS and not name.lstrip("-").isdigit():
            raise errors.InvalidRequest(f"Node id must be an integer, but it is: {name}")
        if name not in (ALL_BROKERS, str(call.node)):
            raise errors.InvalidRequest(f"Unexpected broker id, expected {call.node}, but received {name}")
        changes = broker.dynamic_config
        return Resource(
            broker.config,
            broker.config.changed.get(name, {}),
            lambda given: changes.check(name, given),
            lambda given: changes.configure(name, given),
            errors.InvalidRequest,
        )
    raise errors.InvalidRequest(f"Unknown resource type {resource_type}")


def _named(stored: StoredSettings[GroupConfig] | StoredSettings[MetricsSubscription], name: str) -> Resource:
    found = stored.of(name)
    return Resource(found, found.overrides, stored.check, lambda given: stored.configure(name, given))


def _refuse_loggers(given: Mapping[str, str]) -> None:
    """Raises `InvalidConfig` for any logger: this broker offers none."""
    for name in given:
        raise errors.InvalidConfig(f"Logger {name} does not exist!")


def require_allowed(broker: Broker, call: Call, operation: Operation, resource_type: int, name: str) -> None:
    """Raises `TopicAuthorizationFailed`, `GroupAuthorizationFailed` or `ClusterAuthorizationFailed`."""
    if resource_type == TOPIC:
        require_topic(broker, call, operation, name)
    elif resource_type == GROUP:
        require_group(broker, call, operation, name)
    else:
        require_cluster(broker, call, operation)


_TYPES = {UNKNOWN_TYPE: 0, "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7,
          "class": 8, "password": 9}  # fmt: skip


async def handle_describe(broker: Broker, call: Call, request: m.DescribeConfigsRequest) -> m.DescribeConfigsResponse:
    """The settings of resources, with their sources."""
    if any(resource.resource_type not in _LISTED for resource in request.resources):
        raise errors.InvalidRequest  # for all resources, as in Kafka
    results = []
    for resource in request.resources:
        try:
            found = _settings_of(broker, call, resource)
            wanted = frozenset(resource.configuration_keys or ())
            configs = [_described_setting(one, request) for one in found if not wanted or one.name in wanted]
            results.append(m.DescribeConfigsResult(0, "", resource.resource_type, resource.resource_name, configs))
        except KafkaError as error:
            results.append(_not_described(resource, error))
    return m.DescribeConfigsResponse(results=results)


def refuse_describe(call: Call, request: m.DescribeConfigsRequest, error: KafkaError) -> m.DescribeConfigsResponse:
    return m.DescribeConfigsResponse(results=[_not_described(resource, error) for resource in request.resources])


def _not_described(resource: m.DescribeConfigsResource, error: KafkaError) -> m.DescribeConfigsResult:
    message = "" if isinstance(error, errors.UnknownTopicOrPartition) else error.message
    return m.DescribeConfigsResult(error.code, message, resource.resource_type, resource.resource_name)


def _settings_of(broker: Broker, call: Call, resource: m.DescribeConfigsResource) -> Iterable[DescribedSetting]:
    name = resource.resource_name
    require_allowed(broker, call, Operation.DESCRIBE_CONFIGS, resource.resource_type, name)
    if resource.resource_type == TOPIC:
        require_valid_name(name)
        topic = broker.topics.get(name)
        if topic is None:
            raise errors.UnknownTopicOrPartition
        return describe_topic(broker.topics.config_at(topic.config, call.node), broker.config.of(call.node))
    if resource.resource_type == CLIENT_METRICS:
        if not name:
            raise errors.InvalidRequest("Client metrics subscription name must not be empty")
        return describe_subscription(broker.client_metrics.of(name))
    if resource.resource_type in (BROKER, BROKER_LOGGER):
        return _of_broker(broker, call.node, name, resource.resource_type)
    if not name:
        raise errors.InvalidRequest("Group name must not be empty")
    return describe_group(broker.group_configs.at(name, call.node), broker.config.of(call.node))


def _of_broker(broker: Broker, node: int, name: str, resource_type: int) -> Iterable[DescribedSetting]:
    """The settings of a broker; a broker has no loggers."""
    is_logger = resource_type == BROKER_LOGGER
    if name == "":
        if is_logger:
            raise errors.InvalidRequest("Broker id must not be empty")
        return describe_all_brokers(broker.config)
    if not name.lstrip("-").isdigit():
        raise errors.InvalidRequest(f"Broker id must be an integer, but it is: {name}")
    if name != str(node):
        expected = f"{node} but" if is_logger else f"{node} or empty string, but"
        raise errors.InvalidRequest(f"Unexpected broker id, expected {expected} received {name}")
    return () if is_logger else describe_broker(broker.fronts[node].config)


def _described_setting(setting: DescribedSetting, request: m.DescribeConfigsRequest) -> m.DescribeConfigsResourceResult:
    return m.DescribeConfigsResourceResult(
        setting.name,
        setting.value,
        setting.is_read_only,
        setting.source,
        setting.is_sensitive,
        [m.DescribeConfigsSynonym(*one) for one in setting.synonyms] if request.include_synonyms else [],
        _TYPES[setting.type],
        setting.doc if request.include_documentation else None,
    )


async def handle_alter(broker: Broker, call: Call, request: m.AlterConfigsRequest) -> m.AlterConfigsResponse:
    """AlterConfigs: the older form, which replaces all settings of a resource."""
    only_check = request.validate_only
    return m.AlterConfigsResponse(
        responses=await alter_each(
            broker, request.resources, lambda one: _replace(broker, call, one, only_check), _replaced
        )
    )


def refuse_alter(call: Call, request: m.AlterConfigsRequest, error: KafkaError) -> m.AlterConfigsResponse:
    return m.AlterConfigsResponse(responses=[_replaced(resource, error) for resource in request.resources])


def _replaced(resource: Whole, error: KafkaError | None) -> alter_response.AlterConfigsResourceResponse:
    code, message = (0, None) if error is None else (error.code, error.message)
    return alter_response.AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)


def _replace(broker: Broker, call: Call, resource: Whole, validate_only: bool) -> None:
    found = find_resource(broker, call, resource.resource_type, resource.resource_name)
    overrides = {}
    for config in resource.configs:
        if config.value is None:
            raise errors.InvalidRequest(f"Null value not supported for : {config.name}")
        overrides[config.name] = config.value
    found.replace(overrides, validate_only=validate_only)


_OPERATIONS = _SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def handle_incremental(
    broker: Broker, call: Call, request: m.IncrementalAlterConfigsRequest
) -> m.IncrementalAlterConfigsResponse:
    only_check = request.validate_only
    return m.IncrementalAlterConfigsResponse(
        responses=await alter_each(
            broker, request.resources, lambda one: _change_each(broker, call, one, only_check), _changed
        )
    )


def refuse_incremental(
    call: Call, request: m.IncrementalAlterConfigsRequest, error: KafkaError
) -> m.IncrementalAlterConfigsResponse:
    return m.IncrementalAlterConfigsResponse(responses=[_changed(resource, error) for resource in request.resources])


def _changed(resource: Incremental, error: KafkaError | None) -> incremental_response.AlterConfigsResourceResponse:
    code = 0 if error is None else error.code
    message = None if error is None or code == errors.UnknownServerError.code else error.message
    return incremental_response.AlterConfigsResourceResponse(
        code, message, resource.resource_type, resource.resource_name
    )


def _change_each(broker: Broker, call: Call, resource: Incremental, validate_only: bool) -> None:
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise errors.InvalidRequest("Error due to duplicate config keys")
    found = find_resource(broker, call, resource.resource_type, resource.resource_name)
    overrides = dict(found.overrides)
    for config in resource.configs:
        if resource.resource_type == BROKER:
            _require_fitting(config)
            broker.dynamic_config.require_insync_kept(resource.resource_name, config.name)
        elif config.config_operation not in _OPERATIONS:
            raise errors.UnknownServerError  # Apache Kafka gives no details either
        elif resource.resource_type == CLIENT_METRICS and config.config_operation in (_APPEND, _SUBTRACT):
            raise _no_list(config)  # Kafka has no list settings here
        _change(overrides, config, found.config)
    found.replace(overrides, validate_only=validate_only)


def _require_fitting(config: AlterableConfig) -> None:
    """Raises `InvalidRequest` or `InvalidConfig`, in Apache Kafka's words for brokers."""
    if config.config_operation not in _OPERATIONS:
        raise errors.InvalidRequest(f"Unknown operations type {config.config_operation}")
    setting = broker_setting(config.name)
    if config.config_operation in (_APPEND, _SUBTRACT) and (setting is None or setting.type != "list"):
        word = "append" if config.config_operation == _APPEND else "subtract"
        raise errors.InvalidConfig(f"Config value {word} is not allowed for config key: {config.name}")


def _no_list(config: AlterableConfig) -> errors.InvalidConfig:
    word = "APPEND" if config.config_operation == _APPEND else "SUBTRACT"
    return errors.InvalidConfig(f"Can't {word} to key {config.name} because its type is not LIST.")


def _change(overrides: dict[str, str], config: AlterableConfig, current: SettingsTable) -> None:
    if config.config_operation == _DELETE:
        overrides.pop(config.name, None)
        return
    if config.value is None:
        raise errors.InvalidRequest(f"Null value not supported for : {config.name}")
    if config.config_operation == _SET:
        overrides[config.name] = config.value
        return
    setting = broker_setting(config.name) if current.setting(config.name) is None else current.setting(config.name)
    if setting is None or setting.type != "list":
        raise _no_list(config)
    # Kafka adds to the resource's own value, else to the setting's default.
    parts = overrides.get(config.name, setting.format(setting.default) or "").split(",")
    values = [part for part in parts if part]
    for given in config.value.split(","):
        if config.config_operation == _APPEND and given not in values:
            values.append(given)
        elif config.config_operation == _SUBTRACT and given in values:
            values.remove(given)
    overrides[config.name] = ",".join(values)


_LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
"""The types that may be requested, in the response's order."""


async def handle_list(
    broker: Broker, call: Call, request: m.ListConfigResourcesRequest
) -> m.ListConfigResourcesResponse:
    """Resources with settings that can be described. Version 0 lists client metrics only (KIP-1142)."""
    require_cluster(broker, call, Operation.DESCRIBE_CONFIGS)
    if not set(request.resource_types) <= set(_LISTED):
        raise errors.UnsupportedVersion
    wanted = set(request.resource_types or _LISTED) if call.api_version else {CLIENT_METRICS}
    nodes = [str(node) for node in broker.fronts]
    listed = {
        GROUP: broker.group_configs.names(),
        CLIENT_METRICS: broker.client_metrics.names(),
        BROKER_LOGGER: nodes,
        BROKER: nodes,
        TOPIC: broker.topics.names(),
    }
    resources = [m.ConfigResource(name, one) for one in _LISTED if one in wanted for name in listed[one]]
    return m.ListConfigResourcesResponse(config_resources=resources)
