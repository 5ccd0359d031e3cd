"""Metadata (3): the nodes, and topics with their partitions; creates requested topics where that is allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from groupkeeper.broker.apis._access import cluster_operations, may_cluster, may_topic, require_topic, topic_operations
from groupkeeper.broker.apis.topics import MAX_PARTITIONS
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.log.topics import Topic
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.placement.placement import NO_LEADER
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.metadata_request import MetadataRequest
from groupkeeper.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from groupkeeper.protocol.primitives import ZERO_UUID

_TOPIC_IDS_SINCE = 12


async def handle(broker: Broker, call: Call, request: MetadataRequest) -> MetadataResponse:
    _check(request, call.api_version)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(*one) for one in broker.endpoints(call)],
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_known_to(call.node),
        topics=await _topics(broker, call, request),
        cluster_authorized_operations=cluster_operations(
            broker, call, wanted=request.include_cluster_authorized_operations
        ),
    )


def refuse(call: Call, request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    topics = [MetadataResponseTopic(error.code, topic.name or "", topic.topic_id) for topic in request.topics or ()]
    return MetadataResponse(topics=topics, error_code=error.code)


def _check(request: MetadataRequest, version: int) -> None:
    for topic in request.topics or ():
        if topic.name is None and version < _TOPIC_IDS_SINCE:
            raise errors.InvalidRequest(f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID and version < _TOPIC_IDS_SINCE:
            raise errors.InvalidRequest(f"Topic IDs are not supported in requests for version {version}")


async def _topics(broker: Broker, call: Call, request: MetadataRequest) -> list[MetadataResponseTopic]:
    wanted = request.topics
    if wanted is None or (call.api_version == 0 and not wanted):
        responses = []
        names = [name for name in broker.topics.names() if may_topic(broker, call, Operation.DESCRIBE, name)]
        async for name in in_turns(names):
            topic = broker.topics.get(name)
            if topic is not None:
                responses.append(_describe(broker, call, request, topic))
        return responses
    # Each topic once; a request that names any topic by id uses ids only.
    ids = [topic_id for topic_id in dict.fromkeys(topic.topic_id for topic in wanted) if topic_id != ZERO_UUID]
    if ids:
        responses = [_by_id(broker, call, request, topic_id) async for topic_id in in_turns(ids)]
    else:
        names = list(dict.fromkeys(topic.name or "" for topic in wanted))
        creates = _creates(broker, request, names)
        responses = []
        async for name in in_turns(names):
            responses.append(_by_name(broker, call, request, name, creates=creates))
            if creates and responses[-1].error_code:
                await asyncio.sleep(0)  # another request may create it
    return sorted(responses, key=_rank)


def _creates(broker: Broker, request: MetadataRequest, names: Sequence[str]) -> bool:
    """Whether to create unknown topics: none if there are too many, as Apache Kafka's controller refuses them all."""
    if not request.allow_auto_topic_creation:
        return False
    most = MAX_PARTITIONS // (1 + broker.config.num_partitions)  # a record for each topic and partition
    return len(names) <= most or sum(broker.topics.get(name) is None for name in names) <= most


def _rank(response: MetadataResponseTopic) -> int:
    """A sort key: unknown ids first, then existing topics, missing topics, and unauthorized topics."""
    ranks = {errors.UnknownTopicId.code: 0, 0: 1, errors.TopicAuthorizationFailed.code: 3}
    return ranks.get(response.error_code, 2)


def _by_id(broker: Broker, call: Call, request: MetadataRequest, topic_id: bytes) -> MetadataResponseTopic:
    topic = broker.topics.by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(errors.UnknownTopicId.code, None, topic_id)
    if not may_topic(broker, call, Operation.DESCRIBE, topic.name):
        return MetadataResponseTopic(errors.TopicAuthorizationFailed.code, None, topic_id)
    return _describe(broker, call, request, topic)


def _by_name(
    broker: Broker, call: Call, request: MetadataRequest, name: str, *, creates: bool
) -> MetadataResponseTopic:
    if not may_topic(broker, call, Operation.DESCRIBE, name):
        return MetadataResponseTopic(errors.TopicAuthorizationFailed.code, name)
    topic = broker.topics.get(name)
    if topic is not None:
        return _describe(broker, call, request, topic)
    code = errors.UnknownTopicOrPartition.code  # as in Kafka, while the topic is created; the next request finds it
    try:
        require_valid_name(name)
        if creates and broker.may_create_automatically(name):
            if not may_cluster(broker, call, Operation.CREATE):
                require_topic(broker, call, Operation.CREATE, name)
            broker.create_automatically(name, broker.quotas.mutations(call, strict_since=0))
    except errors.TopicAuthorizationFailed as error:
        return MetadataResponseTopic(error.code, name, is_internal=broker.is_internal(name))
    except KafkaError as error:
        code = error.code
    operations = topic_operations(broker, call, name, wanted=request.include_topic_authorized_operations)
    return MetadataResponseTopic(code, name, ZERO_UUID, broker.is_internal(name), (), operations)


def _describe(broker: Broker, call: Call, request: MetadataRequest, topic: Topic) -> MetadataResponseTopic:
    running = broker.topics.placements.running_known_to(call.node)
    partitions = [
        MetadataResponsePartition(
            errors.LeaderNotAvailable.code if (at := log.placement.known_to(call.node)).leader == NO_LEADER else 0,
            log.index,
            at.leader,
            at.epoch,
            at.replicas,
            at.isr,
            [node for node in at.replicas if node not in running],
        )
        for log in topic.partitions
    ]
    if call.api_version == 0:  # these clients expect all replicas to be reachable
        for part in partitions:
            reached = [node for node in part.replica_nodes if node in running]
            if len(reached) < len(part.replica_nodes) and not part.error_code:
                part.error_code = errors.ReplicaNotAvailable.code
            part.replica_nodes, part.isr_nodes = reached, [node for node in part.isr_nodes if node in running]
    operations = topic_operations(broker, call, topic.name, wanted=request.include_topic_authorized_operations)
    return MetadataResponseTopic(0, topic.name, topic.topic_id, topic.is_internal, partitions, operations)
