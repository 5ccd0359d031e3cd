"""CreateTopics (19)."""

from __future__ import annotations

import asyncio
from collections import Counter

from groupkeeper.broker.apis._access import may_cluster, require_topic
from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.settings.described import source_of
from groupkeeper.broker.settings.table import InvalidSetting
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.directory import random_uuid
from groupkeeper.protocol.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
)
from groupkeeper.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from groupkeeper.protocol.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.quotas.client_quotas import Mutations
    from groupkeeper.protocol.primitives import RootMessage

_STRICT_SINCE = 6
MAX_PARTITIONS = 10_000
"""That a request may create."""
TOO_LARGE = "Unable to perform excessively large batch operation."


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, CreateTopicsRequest)
    occurrences = Counter(topic.name for topic in request.topics)
    _require_moderate([topic for topic in request.topics if occurrences[topic.name] == 1], broker.config.num_partitions)
    mutations = broker.quotas.mutations(call, strict_since=_STRICT_SINCE)
    results = []
    for topic in request.topics:
        if occurrences[topic.name] == 1:
            try:
                if not may_cluster(broker, call, Operation.CREATE):
                    require_topic(broker, call, Operation.CREATE, topic.name)
                results.append(create_topic(broker, call, topic, mutations, request.validate_only))
            except KafkaError as error:
                results.append(_refused(topic.name, error))
            await asyncio.sleep(0)
    twice = [name for name, count in occurrences.items() if count > 1]
    results += [_refused(name, InvalidRequest("Duplicate topic name.")) for name in twice]
    return CreateTopicsResponse(mutations.throttle_ms, results)


def _require_moderate(topics: Sequence[CreatableTopic], default_count: int) -> None:
    """Raises `PolicyViolation` for a request that Apache Kafka's controller refuses, too."""
    counts = [
        len(topic.assignments) or (default_count if topic.num_partitions == -1 else topic.num_partitions)
        for topic in topics
    ]
    if sum(counts) > MAX_PARTITIONS:
        raise PolicyViolation("Excessively large number of partitions per request.")
    # A record for each partition, topic and setting.
    if sum(counts) + sum(1 + len(topic.configs) for topic in topics) > MAX_PARTITIONS:
        raise PolicyViolation(TOO_LARGE)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, CreateTopicsRequest)
    return CreateTopicsResponse(topics=[_refused(topic.name, error) for topic in request.topics])


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    message = None if isinstance(error, ThrottlingQuotaExceeded) else error.message
    return CreatableTopicResult(name, error_code=error.code, error_message=message)


def create_topic(
    broker: Broker, call: Call, topic: CreatableTopic, mutations: Mutations, validate_only: bool
) -> CreatableTopicResult:
    broker.topics.check_new(topic.name)
    overrides = _overrides(topic)
    try:
        config = broker.topics.config_of(overrides)
    except InvalidSetting as error:
        raise InvalidConfig(str(error)) from None
    num_partitions = _partition_count(broker, topic)
    mutations.count(num_partitions)
    topic_id = random_uuid()
    if not validate_only:
        topic_id = broker.topics.create(topic.name, num_partitions, overrides).topic_id
    if not may_topic(broker, call, Operation.DESCRIBE_CONFIGS, topic.name):
        code = TopicAuthorizationFailed.code
        return CreatableTopicResult(topic.name, topic_id, 0, None, topic_config_error_code=code)
    return CreatableTopicResult(
        topic.name,
        topic_id,
        error_message=None,
        num_partitions=num_partitions,
        replication_factor=1,
        configs=_configs(config, broker),
    )


def _overrides(topic: CreatableTopic) -> dict[str, str]:
    overrides = {}
    for config in topic.configs:
        if config.value is None:
            raise InvalidConfig(f"Null value not supported for topic configs: {config.name}")
        overrides[config.name] = config.value
    return overrides


def _partition_count(broker: Broker, topic: CreatableTopic) -> int:
    if topic.assignments:
        return _assigned_partition_count(broker, topic)
    if topic.replication_factor != -1:
        _check_replication_factor(topic.replication_factor, is_lenient=broker.config.groupkeeper_lenient_replication)
    if topic.num_partitions == -1:
        return broker.config.num_partitions
    if topic.num_partitions <= 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    return topic.num_partitions


def _check_replication_factor(factor: int, *, is_lenient: bool) -> None:
    if factor <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
    if factor > 1 and not is_lenient:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            "cannot be reached because only 1 broker(s) are registered "
            "or some brokers have all their log directories cordoned."
        )


def _assigned_partition_count(broker: Broker, topic: CreatableTopic) -> int:
    if topic.replication_factor != -1:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    if {assignment.partition_index for assignment in topic.assignments} != set(range(len(topic.assignments))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    for assignment in topic.assignments:
        check_assignment(assignment.broker_ids, broker.config.node_id)
    return len(topic.assignments)


def check_assignment(broker_ids: Sequence[int], node_id: int) -> None:
    """Raises `InvalidReplicaAssignment` unless the replicas of a partition are this one node."""
    if not broker_ids:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    for broker_id in broker_ids:
        if broker_id != node_id:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
    if len(broker_ids) > 1:
        raise InvalidReplicaAssignment(f"The manual partition assignment includes the broker {node_id} more than once.")


def _configs(config: TopicConfig, broker: Broker) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            setting.name,
            setting.format(getattr(config, setting.attribute)),
            False,
            source_of(setting.name, config, broker.config),
            False,
        )
        for setting in TopicConfig.settings()
        if getattr(config, setting.attribute) is not None
    ]
