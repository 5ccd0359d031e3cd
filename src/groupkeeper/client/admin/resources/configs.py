"""Configs of topics, brokers, groups … (DescribeConfigs, IncrementalAlterConfigs)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from groupkeeper.client.admin.resources.controller import ask_broker
from groupkeeper.client.admin.resources.types import (
    Config,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    ListChange,
)
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import ClientError, IllegalArgument, MissingResult
from groupkeeper.client.peer import Request
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError, error_for
from groupkeeper.protocol.primitives import RootMessage

A = TypeVar("A", bound=RootMessage)
V = TypeVar("V")

_RESOURCES_PER_REQUEST = 1000

_TYPE_BY_CODE = {
    2: ConfigResourceType.TOPIC,
    4: ConfigResourceType.BROKER,
    8: ConfigResourceType.BROKER_LOGGER,
    16: ConfigResourceType.CLIENT_METRICS,
    32: ConfigResourceType.GROUP,
}
_CODE_BY_TYPE = {kind: code for code, kind in _TYPE_BY_CODE.items()}
_SOURCES = dict(enumerate(ConfigSource))
_VALUE_TYPES = dict(enumerate(ConfigType))
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    names: Iterable[str] | None,
    include_synonyms: bool,
    include_documentation: bool,
    timeout_ms: int | None,
) -> Batch[ConfigResource, dict[str, Config]]:
    """Admin.describe_configs."""
    keys = None if names is None else list(names)

    def build(part: Sequence[ConfigResource]) -> Callable[[int], m.DescribeConfigsRequest]:
        resources = [m.DescribeConfigsResource(_code(each), each.name, keys) for each in part]
        return lambda version: m.DescribeConfigsRequest(
            resources, include_synonyms, include_documentation=include_documentation and version >= 3
        )

    def read(answer: m.DescribeConfigsResponse) -> dict[ConfigResource, dict[str, Config] | Failure]:
        return {
            _resource(each.resource_type, each.resource_name): (
                error_for(each.error_code, each.error_message)
                if each.error_code
                else {config.name: _config(config) for config in each.configs}
            )
            for each in answer.results
        }

    deadline = cluster.deadline("describeConfigs", timeout_ms)
    return await _in_parts(cluster, deadline, m.DescribeConfigsResponse, resources, build, read)


async def alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Mapping[str, str | ListChange | None]],
    validate_only: bool,
    timeout_ms: int | None,
) -> Batch[ConfigResource, None]:
    """Admin.alter_configs."""
    from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource

    def build(part: Sequence[ConfigResource]) -> m.IncrementalAlterConfigsRequest:
        resources = [
            AlterConfigsResource(
                _code(each),
                each.name,
                [AlterableConfig(name, *_operation(name, change)) for name, change in changes[each].items()],
            )
            for each in part
        ]
        return m.IncrementalAlterConfigsRequest(resources, validate_only)

    def read(answer: m.IncrementalAlterConfigsResponse) -> dict[ConfigResource, Failure | None]:
        return {
            _resource(each.resource_type, each.resource_name): failure_of(each.error_code, each.error_message)
            for each in answer.responses
        }

    deadline = cluster.deadline("incrementalAlterConfigs", timeout_ms)
    return await _in_parts(cluster, deadline, m.IncrementalAlterConfigsResponse, changes, build, read)


def _operation(name: str, change: str | ListChange | None) -> tuple[int, str | None]:
    if change is None:
        return _DELETE, None
    if isinstance(change, str):
        return _SET, change
    if isinstance(change, ListChange):
        return (_SUBTRACT if change.is_removal else _APPEND), change.items
    raise IllegalArgument(f"{name}: a config's value is a text, None or a ListChange, not {change!r}")


async def _in_parts(
    cluster: Cluster,
    deadline: Deadline,
    answer_type: type[A],
    resources: Iterable[ConfigResource],
    build: Callable[[Sequence[ConfigResource]], Request],
    read: Callable[[A], dict[ConfigResource, V | Failure]],
) -> Batch[ConfigResource, V]:
    """A call on resources: a broker's configs are requested from that broker, all others from any broker.

    A failing broker fails its own resources only.
    """
    wanted = list(dict.fromkeys(resources))
    by_broker: dict[int | None, list[ConfigResource]] = {}
    for each in wanted:
        by_broker.setdefault(each.broker_id, []).append(each)
    answers: dict[ConfigResource, V | Failure] = {}

    async def ask(broker_id: int, part: list[ConfigResource]) -> None:
        try:
            answers.update(read(await ask_broker(cluster, broker_id, answer_type, build(part), deadline)))
        except (ClientError, KafkaError) as error:
            answers.update(dict.fromkeys(part, error))

    anywhere = iter(by_broker.pop(None, []))
    async with asyncio.TaskGroup() as group:
        for broker_id, part in by_broker.items():
            if broker_id is not None:
                group.create_task(ask(broker_id, part))
    while part := list(islice(anywhere, _RESOURCES_PER_REQUEST)):
        answers.update(read(await cluster.ask_any(answer_type, build(part), deadline)))
    return batch_of(wanted, answers, f"{deadline.name}: the reply has no result for {{}}")


def _code(resource: ConfigResource) -> int:
    try:
        return _CODE_BY_TYPE[resource.type]
    except KeyError:
        raise IllegalArgument(f"there are no configs of {resource.type!r}") from None


def _resource(code: int, name: str) -> ConfigResource:
    return ConfigResource(_TYPE_BY_CODE.get(code, ConfigResourceType.UNKNOWN), name)


def _config(config: m.DescribeConfigsResourceResult) -> Config:
    return Config(
        name=config.name,
        value=config.value,
        source=_SOURCES.get(config.config_source, ConfigSource.UNKNOWN),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        type=_VALUE_TYPES.get(config.config_type, ConfigType.UNKNOWN),
        synonyms=tuple(
            ConfigSynonym(each.name, each.value, _SOURCES.get(each.source, ConfigSource.UNKNOWN))
            for each in config.synonyms
        ),
        documentation=config.documentation or None,
    )


async def broker_settings(cluster: Cluster, names: Iterable[str], timeout_ms: int | None) -> dict[str, str]:
    """Admin.broker_settings."""
    await cluster.refresh(cluster.deadline("describeConfigs", timeout_ms))
    if not cluster.nodes:
        raise MissingResult("describeConfigs: the cluster names no broker")
    broker = ConfigResource.broker(min(cluster.nodes))
    return _values((await describe_configs(cluster, [broker], names, False, False, timeout_ms)).result(broker))


async def topic_settings(
    cluster: Cluster, topics: Iterable[str], names: Iterable[str], timeout_ms: int | None
) -> Batch[str, dict[str, str]]:
    """Admin.topic_settings."""
    resources = map(ConfigResource.topic, topics)
    described = await describe_configs(cluster, resources, names, False, False, timeout_ms)
    return Batch(
        {topic.name: _values(configs) for topic, configs in described.done.items()},
        {topic.name: failure for topic, failure in described.failed.items()},
    )


def _values(configs: Mapping[str, Config]) -> dict[str, str]:
    return {name: config.value for name, config in configs.items() if config.value is not None}
