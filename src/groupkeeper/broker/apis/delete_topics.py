"""DeleteTopics (20)."""

from __future__ import annotations

import asyncio
from collections import Counter

from groupkeeper.broker.apis._access import may_cluster, require_topic
from groupkeeper.broker.apis._groups import may_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.long_requests import in_turns
from groupkeeper.broker.quotas.client_quotas import Mutations
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from groupkeeper.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from groupkeeper.protocol.primitives import ZERO_UUID, RootMessage

_STRICT_SINCE = 5
_WITH_STATES = 6


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteTopicsRequest)
    if not broker.config.delete_topic_enable:
        raise errors.TopicDeletionDisabled if call.api_version >= 3 else errors.InvalidRequest
    wanted_topics = _wanted(request, call.api_version)
    names = Counter(wanted.name for wanted in wanted_topics)
    twice = [name for name, count in names.items() if count > 1 and name is not None]
    results = [_refused(DeleteTopicState(name), errors.InvalidRequest("Duplicate topic name.")) for name in twice]
    mutations = broker.quotas.mutations(call, strict_since=_STRICT_SINCE)
    async for wanted in in_turns(wanted_topics):
        if wanted.name is not None and names[wanted.name] > 1:
            continue
        try:
            results.append(_delete(broker, call, wanted, mutations))
            await asyncio.sleep(0)
        except errors.KafkaError as error:
            results.append(_refused(wanted, error))
    return DeleteTopicsResponse(mutations.throttle_ms, results)


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteTopicsRequest)
    return DeleteTopicsResponse(responses=[_refused(topic, error) for topic in _wanted(request, call.api_version)])


def _refused(topic: DeleteTopicState, error: errors.KafkaError) -> DeletableTopicResult:
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
    if wanted.name is None:
        topic = broker.topics.by_id(wanted.topic_id)
        if topic is None:
            raise errors.UnknownTopicId
        may_all = may_cluster(broker, call, Operation.DELETE)
        if not may_all:
            require_topic(broker, call, Operation.DESCRIBE, topic.name)
        if not may_all and not may_topic(broker, call, Operation.DELETE, topic.name):
            return _refused(DeleteTopicState(topic.name, topic.topic_id), errors.TopicAuthorizationFailed())
    else:
        may_all = may_cluster(broker, call, Operation.DELETE)
        if not may_all:
            require_topic(broker, call, Operation.DESCRIBE, wanted.name)
        topic = broker.topics.get(wanted.name)
        if topic is None:
            raise errors.UnknownTopicOrPartition
        if not may_all:
            require_topic(broker, call, Operation.DELETE, wanted.name)
    try:
        mutations.count(len(topic.partitions))
    except errors.ThrottlingQuotaExceeded as error:
        return DeletableTopicResult(topic.name, topic.topic_id, error.code, None)
    broker.topics.delete(topic.name)
    return DeletableTopicResult(topic.name, topic.topic_id)
