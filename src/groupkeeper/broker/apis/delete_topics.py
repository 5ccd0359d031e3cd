"""DeleteTopics (20)."""

from __future__ import annotations

from groupkeeper.protocol.errors import (
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from groupkeeper.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from groupkeeper.protocol.primitives import ZERO_UUID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEY = 20
VERSIONS = (1, 6)

_WITH_STATES = 6


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteTopicsRequest)
    if not broker.config.delete_topic_enable:
        raise TopicDeletionDisabled if call.api_version >= 3 else InvalidRequest
    results = []
    for wanted in _wanted(request, call.api_version):
        try:
            results.append(_delete(broker, wanted))
        except KafkaError as error:
            results.append(DeletableTopicResult(wanted.name, wanted.topic_id, error.code, error.message))
    return DeleteTopicsResponse(responses=results)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    request = call.message
    assert isinstance(request, DeleteTopicsRequest)
    wanted = _wanted(request, call.api_version)
    return DeleteTopicsResponse(
        responses=[DeletableTopicResult(topic.name, topic.topic_id, error.code, error.message) for topic in wanted]
    )


def _wanted(request: DeleteTopicsRequest, version: int) -> list[DeleteTopicState]:
    if version >= _WITH_STATES:
        return list(request.topics)
    return [DeleteTopicState(name) for name in request.topic_names]


def _delete(broker: Broker, wanted: DeleteTopicState) -> DeletableTopicResult:
    if wanted.name is not None and wanted.topic_id != ZERO_UUID:
        raise InvalidRequest("You may not specify both topic name and topic id.")
    if wanted.name is None and wanted.topic_id == ZERO_UUID:
        raise InvalidRequest("Neither topic name nor id were specified.")
    if wanted.name is None:
        topic = broker.topics.by_id(wanted.topic_id)
        if topic is None:
            raise UnknownTopicId
    else:
        topic = broker.topics.get(wanted.name)
        if topic is None:
            raise UnknownTopicOrPartition
        if not topic.name:
            raise InvalidTopicException
    broker.topics.delete(topic.name)
    return DeletableTopicResult(topic.name, topic.topic_id)
