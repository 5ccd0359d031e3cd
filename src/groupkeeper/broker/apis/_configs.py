"""The resources with settings that clients may change: topics, groups, the broker, subscriptions to clients'
metrics.
"""

from __future__ import annotations

from groupkeeper.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.broker.settings.client_metrics import MetricsSubscription
from groupkeeper.broker.settings.dynamic import ALL_BROKERS
from groupkeeper.broker.settings.table import InvalidSetting
from groupkeeper.protocol import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.settings.table import SettingsTable
    from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsResource as Whole
    from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterConfigsResource as Incremental

    A = TypeVar("A")
    R = TypeVar("R", Whole, Incremental)

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32


class Resource:
    """A topic, a group, the broker or a subscription with its settings.

    Attributes:
        config: the settings in force.
        overrides: those given to the resource itself, as texts by name.
    """

    def __init__(
        self,
        config: SettingsTable,
        overrides: Mapping[str, str],
        check: Callable[[Mapping[str, str]], object],
        configure: Callable[[Mapping[str, str]], None],
        refusal: type[errors.KafkaError] = errors.InvalidConfig,
    ) -> None:
        self.config = config
        self._refusal = refusal
        self.overrides = overrides
        self._check = check
        self._configure = configure

    def replace(self, overrides: Mapping[str, str], *, validate_only: bool) -> None:
        """Gives the resource these settings and no others.

        Raises `InvalidConfig` (for the broker `InvalidRequest`), `KafkaStorageError`.
        """
        try:
            self._check(overrides)
        except InvalidSetting as error:
            raise self._refusal(str(error)) from None
        if not validate_only:
            self._configure(overrides)


async def alter_each(
    broker: Broker,
    resources: Sequence[R],
    alter: Callable[[R], None],
    answer: Callable[[R, errors.KafkaError | None], A],
) -> list[A]:
    """The answers to all resources. Those that appear more than once are refused, as by Apache Kafka."""
    seen: set[tuple[int, str]] = set()
    repeated: set[tuple[int, str]] = set()
    async for one in in_turns(resources):
        place = one.resource_type, one.resource_name
        (repeated if place in seen else seen).add(place)
    answers = []
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
        answers.append(answer(one, error))
    await broker.go_on()
    return answers


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
        return Resource(topic.config, topic.configs, topics.config_of, lambda given: topics.configure(topic, given))
    if resource_type == GROUP:
        if not name:
            raise errors.InvalidRequest("Default group resources are not allowed.")
        configs = broker.group_configs
        config = configs.of(name)
        return Resource(config, config.overrides, configs.check, lambda given: configs.configure(name, given))
    if resource_type == CLIENT_METRICS:
        if not name:
            raise errors.InvalidRequest("Subscription name can't be empty")
        metrics = broker.client_metrics
        found = metrics.of(name)
        return Resource(found, found.overrides, MetricsSubscription, lambda given: metrics.configure(name, given))
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


def _refuse_loggers(given: Mapping[str, str]) -> None:
    """Raises `InvalidConfig`: there is no logger that clients could name."""
    for name in given:
        raise errors.InvalidConfig(f"Logger {name} does not exist!")


def require_allowed(broker: Broker, call: Call, operation: Operation, resource_type: int, name: str) -> None:
    """Raises `TopicAuthorizationFailed`, `GroupAuthorizationFailed` or `ClusterAuthorizationFailed`."""
    if resource_type == TOPIC and not broker.authorizer.allows(call, operation, ResourceType.TOPIC, name):
        raise errors.TopicAuthorizationFailed
    if resource_type == GROUP and not broker.authorizer.allows(call, operation, ResourceType.GROUP, name):
        raise errors.GroupAuthorizationFailed
    if resource_type not in (TOPIC, GROUP) and not broker.authorizer.allows(
        call, operation, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        raise errors.ClusterAuthorizationFailed
