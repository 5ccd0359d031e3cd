"""DescribeConfigs (32): settings of topics, groups, the broker and subscriptions, with where they come from."""

from __future__ import annotations

from collections.abc import Iterable

from groupkeeper.broker.apis._configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, require_allowed
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.settings.described import (
    UNKNOWN_TYPE,
    DescribedSetting,
    describe_all_brokers,
    describe_broker,
    describe_group,
    describe_subscription,
    describe_topic,
)
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.primitives import RootMessage

_RESOURCES = frozenset((TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))
_TYPES = {UNKNOWN_TYPE: 0, "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7,
          "class": 8, "password": 9}  # fmt: skip


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DescribeConfigsRequest)
    if any(resource.resource_type not in _RESOURCES for resource in request.resources):
        raise InvalidRequest  # for all of them, as in Kafka
    results = []
    for resource in request.resources:
        try:
            found = _described(broker, call, resource)
            wanted = frozenset(resource.configuration_keys or ())
            configs = [_config(one, request) for one in found if not wanted or one.name in wanted]
            results.append(m.DescribeConfigsResult(0, "", resource.resource_type, resource.resource_name, configs))
        except KafkaError as error:
            results.append(_refused(resource, error))
    return m.DescribeConfigsResponse(results=results)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, m.DescribeConfigsRequest)
    return m.DescribeConfigsResponse(results=[_refused(resource, error) for resource in request.resources])


def _refused(resource: m.DescribeConfigsResource, error: KafkaError) -> m.DescribeConfigsResult:
    message = "" if isinstance(error, UnknownTopicOrPartition) else error.message
    return m.DescribeConfigsResult(error.code, message, resource.resource_type, resource.resource_name)


def _described(broker: Broker, call: Call, resource: m.DescribeConfigsResource) -> Iterable[DescribedSetting]:
    name = resource.resource_name
    require_allowed(broker, call, Operation.DESCRIBE_CONFIGS, resource.resource_type, name)
    if resource.resource_type == TOPIC:
        require_valid_name(name)
        topic = broker.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition
        return describe_topic(broker.topics.config_at(topic.config, call.node), broker.config.of(call.node))
    if resource.resource_type == CLIENT_METRICS:
        if not name:
            raise InvalidRequest("Client metrics subscription name must not be empty")
        return describe_subscription(broker.client_metrics.of(name))
    if resource.resource_type in (BROKER, BROKER_LOGGER):
        return _of_broker(broker, call.node, name, resource.resource_type)
    if not name:
        raise InvalidRequest("Group name must not be empty")
    return describe_group(broker.group_configs.of(name), broker.config)


def _of_broker(broker: Broker, node: int, name: str, resource_type: int) -> Iterable[DescribedSetting]:
    """There are no loggers that clients could set."""
    is_logger = resource_type == BROKER_LOGGER
    if name == "":
        if is_logger:
            raise InvalidRequest("Broker id must not be empty")
        return describe_all_brokers(broker.config)
    if not name.lstrip("-").isdigit():
        raise InvalidRequest(f"Broker id must be an integer, but it is: {name}")
    if name != str(node):
        expected = f"{node} but" if is_logger else f"{node} or empty string, but"
        raise InvalidRequest(f"Unexpected broker id, expected {expected} received {name}")
    return () if is_logger else describe_broker(broker.front(node).config)


def _config(setting: DescribedSetting, request: m.DescribeConfigsRequest) -> m.DescribeConfigsResourceResult:
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
