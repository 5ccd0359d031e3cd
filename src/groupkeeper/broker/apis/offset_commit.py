"""OffsetCommit (8)."""

from __future__ import annotations

from collections.abc import Awaitable
from copy import copy
from typing import Final

from groupkeeper.broker.apis._commits import Refused, known_topics
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.refusals import refuse_commit
from groupkeeper.protocol.errors import GroupAuthorizationFailed, KafkaError
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupkeeper.protocol.primitives import Message, RootMessage

_TOPIC_IDS_SINCE: Final = 10
_READ: Final = Operation.READ
_GROUP: Final = ResourceType.GROUP


def reply(broker: Broker, call: Call, request: OffsetCommitRequest) -> RootMessage | Awaitable[RootMessage]:
    if not broker.authorizer.allows(call, _READ, _GROUP, request.group_id):
        raise GroupAuthorizationFailed
    refused = Refused(OffsetCommitResponseTopic, OffsetCommitResponsePartition)
    is_by_id = call.api_version >= _TOPIC_IDS_SINCE
    accepted = known_topics(broker, call, request.topics, refused, is_by_id=is_by_id)
    if not accepted:
        return OffsetCommitResponse(topics=refused.topics())
    if refused.partitions:
        request = copy(request)  # kept for the error of a whole request, which lists refused topics, too
    request.topics = accepted
    if broker.answers_may_wait:
        return _replicated(broker, call, request, refused)
    return _with_refused(broker.groups.reply(request.group_id, request, call), refused)


async def _replicated(broker: Broker, call: Call, request: OffsetCommitRequest, refused: Refused) -> RootMessage:
    return _with_refused(await broker.groups.ask(request.group_id, request, call), refused)


def _with_refused(response: Message, refused: Refused) -> RootMessage:
    """The coordinator's response is unchanged, repeated topics included, unless partitions were refused."""
    assert isinstance(response, OffsetCommitResponse)
    if refused.partitions:
        response.topics = refused.topics(response.topics)
    return response


def refuse(call: Call, request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return refuse_commit(request, error)
