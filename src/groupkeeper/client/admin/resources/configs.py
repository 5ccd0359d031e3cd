"""Configs of topics, brokers, groups … (DescribeConfigs, IncrementalAlterConfigs)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from groupkeeper.client.admin.arguments import changes_each, keyed, of_kind, several
from groupkeeper.client.admin.resources.controller import ask_broker
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.deadlines import Deadline
from groupkeeper.client.errors import ClientError, IllegalArgument, MissingResult
from groupkeeper.client.peer import Request
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.primitives import RootMessage

if TYPE_CHECKING:
    from groupkeeper.client.admin.resources.types import Config, ConfigResource, ListChange

A = TypeVar("A", bound=RootMessage)
V = TypeVar("V")

_RESOURCES_PER_REQUEST = 1000
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


class ConfigCalls:
    """Calls of Admin on configs."""

    _cluster: Cluster

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, dict[str, Config]]:
        """Configs by name of topics, brokers, groups …, defaults included.

        `names` None: all configs; a name that the broker doesn't have is left out. Sensitive configs have the value
        None. A broker's configs are requested from that broker. Fails per resource: UnknownTopicOrPartition,
        TopicAuthorizationFailed, GroupAuthorizationFailed, ClusterAuthorizationFailed (this needs DESCRIBE_CONFIGS),
        InvalidRequest for a type that the broker doesn't support, IllegalArgument for a broker that doesn't exist.
        """
        from groupkeeper.client.admin.resources.types import ConfigResource

        wanted = of_kind(resources, ConfigResource, "resources")
        keys = None if names is None else several(names, "names")

        def build(part: Sequence[ConfigResource]) -> Callable[[int], m.DescribeConfigsRequest]:
            resources = [m.DescribeConfigsResource(_code(each), each.name, keys) for each in part]
            return lambda version: m.DescribeConfigsRequest(
                resources, include_synonyms, include_documentation=include_documentation and version >= 3
            )

        def read(response: m.DescribeConfigsResponse) -> dict[ConfigResource, dict[str, Config] | Failure]:
            return {
                _resource(each.resource_type, each.resource_name): failure_of(each.error_code, each.error_message)
                or {config.name: _config(config) for config in each.configs}
                for each in response.results
            }

        deadline = self._cluster.deadline("describeConfigs", timeout_ms)
        return await _in_parts(self._cluster, deadline, m.DescribeConfigsResponse, wanted, build, read)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, str | ListChange | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[ConfigResource, None]:
        """Change configs by name (KIP-339); configs that aren't named are unchanged.

        A text sets the value, None restores the default, and a `ListChange` adds items to a list or removes some. A
        resource gets all of its changes or none; brokers apply them within moments. `validate_only`: the broker only
        validates the changes and makes none. Fails per resource: InvalidConfig, UnknownTopicOrPartition,
        TopicAuthorizationFailed, ClusterAuthorizationFailed (this needs ALTER_CONFIGS) … Raises UnsupportedVersion when
        the brokers are older than 2.3.
        """
        from groupkeeper.client.admin.resources.types import ConfigResource
        from groupkeeper.protocol.messages import incremental_alter_configs_request as sent

        keyed(changes_each(changes), ConfigResource, "changes")

        def build(part: Sequence[ConfigResource]) -> m.IncrementalAlterConfigsRequest:
            resources = [
                sent.AlterConfigsResource(
                    _code(each),
                    each.name,
                    [sent.AlterableConfig(name, *_operation(name, change)) for name, change in changes[each].items()],
                )
                for each in part
            ]
            return m.IncrementalAlterConfigsRequest(resources, validate_only)

        def read(response: m.IncrementalAlterConfigsResponse) -> dict[ConfigResource, Failure | None]:
            return {
                _resource(each.resource_type, each.resource_name): failure_of(each.error_code, each.error_message)
                for each in response.responses
            }

        deadline = self._cluster.deadline("incrementalAlterConfigs", timeout_ms)
        return await _in_parts(self._cluster, deadline, m.IncrementalAlterConfigsResponse, changes, build, read)

    async def broker_settings(self, names: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, str]:
        """Values of configs of one broker by name; configs that are not in its response are left out.

        For details, or for every broker, see `describe_configs`. Raises ClusterAuthorizationFailed without
        DESCRIBE_CONFIGS on the cluster.
        """
        from groupkeeper.client.admin.resources.types import ConfigResource

        wanted = several(names, "names")
        await self._cluster.refresh(self._cluster.deadline("describeConfigs", timeout_ms))
        if not self._cluster.nodes:
            raise MissingResult("describeConfigs: the cluster names no broker")
        broker = ConfigResource.broker(min(self._cluster.nodes))
        return _values((await self.describe_configs([broker], names=wanted, timeout_ms=timeout_ms)).result(broker))

    async def topic_settings(
        self, topics: Iterable[str], names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Batch[str, dict[str, str]]:
        """Values of configs of topics by name, defaults included; configs that are not in the response are left out.

        Fails per topic: UnknownTopicOrPartition, TopicAuthorizationFailed (this needs DESCRIBE_CONFIGS on it).
        """
        from groupkeeper.client.admin.resources.types import ConfigResource

        resources = map(ConfigResource.topic, several(topics, "topics"))
        described = await self.describe_configs(resources, names=several(names, "names"), timeout_ms=timeout_ms)
        return Batch(
            {topic.name: _values(configs) for topic, configs in described.done.items()},
            {topic.name: failure for topic, failure in described.failed.items()},
        )


def _operation(name: str, change: str | ListChange | None) -> tuple[int, str | None]:
    from groupkeeper.client.admin.resources.types import ListChange

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
    results: dict[ConfigResource, V | Failure] = {}

    async def ask(broker_id: int, part: list[ConfigResource]) -> None:
        try:
            results.update(read(await ask_broker(cluster, broker_id, answer_type, build(part), deadline)))
        except (ClientError, KafkaError) as error:
            results.update(dict.fromkeys(part, error))

    anywhere = iter(by_broker.pop(None, []))
    async with asyncio.TaskGroup() as group:
        for broker_id, part in by_broker.items():
            if broker_id is not None:
                group.create_task(ask(broker_id, part))
    while part := list(islice(anywhere, _RESOURCES_PER_REQUEST)):
        results.update(read(await cluster.ask_any(answer_type, build(part), deadline)))
    return batch_of(wanted, results, f"{deadline.name}: the reply has no result for {{}}")


def _code(resource: ConfigResource) -> int:
    from groupkeeper.client.admin.resources.types import CONFIG_CODES

    try:
        return CONFIG_CODES[resource.type]
    except KeyError:
        raise IllegalArgument(f"there are no configs of {resource.type!r}") from None


def _resource(code: int, name: str) -> ConfigResource:
    from groupkeeper.client.admin.resources.types import CONFIG_TYPES, ConfigResource

    return ConfigResource(CONFIG_TYPES.get(code, CONFIG_TYPES[0]), name)


def _config(config: m.DescribeConfigsResourceResult) -> Config:
    from groupkeeper.client.admin.resources.types import CONFIG_SOURCES, CONFIG_VALUE_TYPES, Config, ConfigSynonym

    return Config(
        name=config.name,
        value=config.value,
        source=CONFIG_SOURCES.get(config.config_source, CONFIG_SOURCES[0]),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        type=CONFIG_VALUE_TYPES.get(config.config_type, CONFIG_VALUE_TYPES[0]),
        synonyms=tuple(
            ConfigSynonym(each.name, each.value, CONFIG_SOURCES.get(each.source, CONFIG_SOURCES[0]))
            for each in config.synonyms
        ),
        documentation=config.documentation or None,
    )


def _values(configs: Mapping[str, Config]) -> dict[str, str]:
    return {name: config.value for name, config in configs.items() if config.value is not None}
