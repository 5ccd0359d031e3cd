"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.apis._access import may_cluster, may_topic, require_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.placement.placements import Placements, Replicas
from groupkeeper.broker.quotas.client_quotas import Mutations
from groupkeeper.broker.settings.described import source_of
from groupkeeper.broker.settings.topic import TopicConfig
from groupkeeper.broker.storage.directory import random_uuid
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from groupkeeper.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from groupkeeper.protocol.primitives import ZERO_UUID

_CREATE_STRICT_SINCE = 6
MAX_PARTITIONS = 10_000
"""The most partitions that a request may create."""
TOO_LARGE = "Unable to perform excessively large batch operation."


async def handle_create(broker: Broker, call: Call, request: m.CreateTopicsRequest) -> m.CreateTopicsResponse:
    occurrences = Counter(topic.name for topic in request.topics)
    _require_moderate([topic for topic in request.topics if occurrences[topic.name] == 1], broker.config.num_partitions)
    mutations = broker.quotas.mutations(call, strict_since=_CREATE_STRICT_SINCE)
    results = []
    async for topic in in_turns(request.topics):
        if occurrences[topic.name] == 1:
            try:
                if not may_cluster(broker, call, Operation.CREATE):
                    require_topic(broker, call, Operation.CREATE, topic.name)
                results.append(create_topic(broker, call, topic, mutations, request.validate_only))
                await asyncio.sleep(0)
            except errors.KafkaError as error:
                results.append(_not_created(topic.name, error))
    twice = [name for name, count in occurrences.items() if count > 1]
    results += [_not_created(name, errors.InvalidRequest("Duplicate topic name.")) for name in twice]
    return m.CreateTopicsResponse(mutations.throttle_ms, results)


def _require_moderate(topics: Sequence[m.CreatableTopic], default_count: int) -> None:
    """Raises `PolicyViolation` for a request that Apache Kafka's controller refuses, too."""
    counts = [
        len(topic.assignments) or (default_count if topic.num_partitions == -1 else topic.num_partitions)
        for topic in topics
    ]
    if sum(counts) > MAX_PARTITIONS:
        raise errors.PolicyViolation("Excessively large number of partitions per request.")
    # The controller writes a record for each partition, topic and setting.
    if sum(counts) + sum(1 + len(topic.configs) for topic in topics) > MAX_PARTITIONS:
        raise errors.PolicyViolation(TOO_LARGE)


def refuse_create(call: Call, request: m.CreateTopicsRequest, error: errors.KafkaError) -> m.CreateTopicsResponse:
    return m.CreateTopicsResponse(topics=[_not_created(topic.name, error) for topic in request.topics])


def _not_created(name: str, error: errors.KafkaError) -> m.CreatableTopicResult:
    message = None if isinstance(error, errors.ThrottlingQuotaExceeded) else error.message
    return m.CreatableTopicResult(name, error_code=error.code, error_message=message)


def create_topic(
    broker: Broker, call: Call, topic: m.CreatableTopic, mutations: Mutations, validate_only: bool
) -> m.CreatableTopicResult:
    broker.topics.check_new(topic.name)
    overrides = _overrides(topic)
    try:
        config = broker.topics.config_of(overrides)
    except InvalidSetting as error:
        raise errors.InvalidConfig(str(error)) from None
    num_partitions, replicas = _placed(broker, topic)
    mutations.count(num_partitions)
    topic_id = random_uuid()
    factor = replicas if isinstance(replicas, int) else len(replicas[0])
    if not validate_only:
        created = broker.topics.create(topic.name, num_partitions, overrides, replicas)
        topic_id, factor = created.topic_id, len(created.partitions[0].placement.replicas)
    if not may_topic(broker, call, Operation.DESCRIBE_CONFIGS, topic.name):
        code = errors.TopicAuthorizationFailed.code
        return m.CreatableTopicResult(topic.name, topic_id, 0, None, topic_config_error_code=code)
    return m.CreatableTopicResult(
        topic.name,
        topic_id,
        error_message=None,
        num_partitions=num_partitions,
        replication_factor=factor,
        configs=_configs(config, broker),
    )


def _overrides(topic: m.CreatableTopic) -> dict[str, str]:
    overrides = {}
    for config in topic.configs:
        if config.value is None:
            raise errors.InvalidConfig(f"Null value not supported for topic configs: {config.name}")
        overrides[config.name] = config.value
    return overrides


def _placed(broker: Broker, topic: m.CreatableTopic) -> tuple[int, Replicas]:
    """The new topic's number of partitions, and their replicas."""
    if topic.assignments:
        replicas = _assigned(broker, topic)
        return len(replicas), replicas
    count, factor = len(broker.topics.placements.nodes), topic.replication_factor
    if factor == -1:
        factor = min(broker.config.default_replication_factor, count)
    elif not broker.config.groupkeeper_lenient_replication or factor <= 0:
        _check_replication_factor(factor, count)
    if topic.num_partitions == -1:
        return broker.config.num_partitions, min(factor, count)
    if topic.num_partitions <= 0:
        raise errors.InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    return topic.num_partitions, min(factor, count)


def _check_replication_factor(factor: int, count: int) -> None:
    if factor <= 0:
        raise errors.InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if factor > count:
        raise errors.InvalidReplicationFactor(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            f"cannot be reached because only {count} broker(s) are registered "
            "or some brokers have all their log directories cordoned."
        )


def _assigned(broker: Broker, topic: m.CreatableTopic) -> list[Sequence[int]]:
    """The replicas of each partition."""
    if topic.replication_factor != -1:
        raise errors.InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != -1:
        raise errors.InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    if {assignment.partition_index for assignment in topic.assignments} != set(range(len(topic.assignments))):
        raise errors.InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    ordered = sorted(topic.assignments, key=lambda assignment: assignment.partition_index)
    replicas = [assignment.broker_ids for assignment in ordered]
    check_assignments(broker.topics.placements, replicas)
    return replicas


def check_assignments(
    placements: Placements, replicas: Sequence[Sequence[int]], first: int = 0, factor: int | None = None
) -> None:
    """Raises `InvalidReplicaAssignment` unless partitions (from index `first` on) can have these replicas; `factor`:
    the existing topic's replication factor.
    """
    for index, broker_ids in enumerate(replicas, first):
        check_assignment(placements, broker_ids)
        factor = factor or len(broker_ids)
        if len(broker_ids) != factor:
            raise errors.InvalidReplicaAssignment(
                f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is "
                f"not consistent with previous partitions, which have {factor} replica(s)."
            )
        if not placements.running.intersection(broker_ids):
            raise errors.InvalidReplicaAssignment(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )


def check_assignment(placements: Placements, broker_ids: Sequence[int]) -> None:
    """Raises `InvalidReplicaAssignment` unless the replicas of a partition are different nodes."""
    if not broker_ids:
        raise errors.InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    for before, broker_id in pairwise([None, *sorted(broker_ids)]):
        if broker_id not in placements.nodes:
            raise errors.InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == before:
            raise errors.InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )


def _configs(config: TopicConfig, broker: Broker) -> list[m.CreatableTopicConfigs]:
    return [
        m.CreatableTopicConfigs(
            setting.name,
            setting.format(getattr(config, setting.attribute)),
            False,
            source_of(setting.name, config, broker.config),
            False,
        )
        for setting in TopicConfig.settings()
        if getattr(config, setting.attribute) is not None
    ]


_GROW_STRICT_SINCE = 3


async def handle_grow(broker: Broker, call: Call, request: m.CreatePartitionsRequest) -> m.CreatePartitionsResponse:
    occurrences = Counter(topic.name for topic in request.topics)
    twice = [name for name, count in occurrences.items() if count > 1]
    results = [_not_grown(name, errors.InvalidRequest("Duplicate topic name.")) for name in twice]
    mutations = broker.quotas.mutations(call, strict_since=_GROW_STRICT_SINCE)
    room = MAX_PARTITIONS
    async for topic in in_turns(request.topics):
        if occurrences[topic.name] == 1:
            try:
                require_topic(broker, call, Operation.ALTER, topic.name)
                room -= _grow(broker, topic, mutations, room, validate_only=request.validate_only)
                results.append(m.CreatePartitionsTopicResult(topic.name))
                await asyncio.sleep(0)
            except errors.KafkaError as error:
                results.append(_not_grown(topic.name, error))
    return m.CreatePartitionsResponse(mutations.throttle_ms, results)


def refuse_grow(call: Call, request: m.CreatePartitionsRequest, error: errors.KafkaError) -> m.CreatePartitionsResponse:
    return m.CreatePartitionsResponse(results=[_not_grown(topic.name, error) for topic in request.topics])


def _not_grown(name: str, error: errors.KafkaError) -> m.CreatePartitionsTopicResult:
    return m.CreatePartitionsTopicResult(name, error.code, None if error.message == error.text else error.message)


def _grow(
    broker: Broker, wanted: m.CreatePartitionsTopic, mutations: Mutations, room: int, *, validate_only: bool
) -> int:
    """Adds partitions, at most `room`; returns how many."""
    topic = broker.topics.get(wanted.name)
    if topic is None:
        raise errors.UnknownTopicOrPartition
    count = len(topic.partitions)
    if wanted.count == count:
        raise errors.InvalidPartitions(f"Topic already has {count} partition(s).")
    if wanted.count < count:
        raise errors.InvalidPartitions(
            f"The topic {wanted.name} currently has {count} partition(s); {wanted.count} would not be an increase."
        )
    if wanted.assignments is not None:
        added = wanted.count - count
        if len(wanted.assignments) != added:
            raise errors.InvalidReplicaAssignment(
                f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
                "were specified."
            )
        replicas = [one.broker_ids for one in wanted.assignments]
        factor = len(topic.partitions[0].placement.replicas)
        check_assignments(broker.topics.placements, replicas, count, factor)
    if wanted.count - count > room:
        raise errors.PolicyViolation(TOO_LARGE)  # Apache Kafka answers UNKNOWN_SERVER_ERROR
    mutations.count(wanted.count - count)
    if not validate_only:
        assigned = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
        broker.topics.grow(topic, wanted.count, assigned)
    return wanted.count - count


_DELETE_STRICT_SINCE = 5
_WITH_STATES = 6


async def handle_delete(broker: Broker, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not broker.config.delete_topic_enable:
        raise errors.TopicDeletionDisabled if call.api_version >= 3 else errors.InvalidRequest
    wanted_topics = _wanted(request, call.api_version)
    names = Counter(wanted.name for wanted in wanted_topics)
    twice = [name for name, count in names.items() if count > 1 and name is not None]
    results = [_not_deleted(DeleteTopicState(name), errors.InvalidRequest("Duplicate topic name.")) for name in twice]
    mutations = broker.quotas.mutations(call, strict_since=_DELETE_STRICT_SINCE)
    async for wanted in in_turns(wanted_topics):
        if wanted.name is not None and names[wanted.name] > 1:
            continue
        try:
            results.append(_delete(broker, call, wanted, mutations))
            await asyncio.sleep(0)
        except errors.KafkaError as error:
            results.append(_not_deleted(wanted, error))
    return DeleteTopicsResponse(mutations.throttle_ms, results)


def refuse_delete(call: Call, request: DeleteTopicsRequest, error: errors.KafkaError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[_not_deleted(topic, error) for topic in _wanted(request, call.api_version)])


def _not_deleted(topic: DeleteTopicState, error: errors.KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(topic.name, topic.topic_id, error.code, error.message)


def _wanted(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= _WITH_STATES:
        return list(request.topics)
    return [DeleteTopicState(name) for name in request.topic_names]


def _delete(broker: Broker, call: Call, wanted: DeleteTopicState, mutations: Mutations) -> DeletableTopicResult:
    if wanted.name is not None and wanted.topic_id != ZERO_UUID:
        raise errors.InvalidRequest("You may not specify both topic name and topic id.")
    if wanted.name is None and wanted.topic_id == ZERO_UUID:
        raise errors.InvalidRequest("Neither topic name nor id were specified.")
    topic = broker.topics.by_id(wanted.topic_id) if wanted.name is None else broker.topics.get(wanted.name)
    name = wanted.name if topic is None else topic.name
    if name is None:
        raise errors.UnknownTopicId
    may_all = may_cluster(broker, call, Operation.DELETE)
    if not may_all:
        require_topic(broker, call, Operation.DESCRIBE, name)
    if topic is None:
        raise errors.UnknownTopicOrPartition
    if not may_all and not may_topic(broker, call, Operation.DELETE, name):
        return _not_deleted(DeleteTopicState(name, wanted.topic_id), errors.TopicAuthorizationFailed())
    try:
        mutations.count(len(topic.partitions))
    except errors.ThrottlingQuotaExceeded as error:
        return DeletableTopicResult(topic.name, topic.topic_id, error.code, None)
    broker.topics.delete(topic.name)
    return DeletableTopicResult(topic.name, topic.topic_id)
