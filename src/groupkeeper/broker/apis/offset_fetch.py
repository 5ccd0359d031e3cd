"""OffsetFetch (9): committed offsets of groups, of named partitions or of all (KIP-88, KIP-709)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from copy import copy
from operator import attrgetter

from groupkeeper.broker.apis._access import may_topic
from groupkeeper.broker.apis._groups import ask_each, at_once
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import KafkaError, TopicAuthorizationFailed, UnknownTopicId
from groupkeeper.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from groupkeeper.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from groupkeeper.protocol.primitives import RootMessage

_ID = attrgetter("group_id")
_GROUP_ERROR_SINCE = 2
_SEVERAL_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_LONG = 20_000
"""Up to so many offsets are read in one turn of 30 ms, as of one instant. With more, a commit may come in between."""


def reply(broker: Broker, call: Call, request: OffsetFetchRequest) -> RootMessage | Awaitable[RootMessage]:
    answering = _answer(broker, call, request)
    return answering if broker.answers_may_wait else at_once(answering)


async def _answer(broker: Broker, call: Call, request: OffsetFetchRequest) -> RootMessage:
    groups = request.groups = _groups(request, call.api_version)
    hidden: dict[int, list[OffsetFetchResponseTopics]] = {}

    def known(group: OffsetFetchRequestGroup) -> OffsetFetchRequestGroup:
        if not group.topics:
            return group
        visible = copy(group)
        visible.topics, hidden[id(group)] = _sort_topics(broker, call, group.topics)
        return visible

    response: OffsetFetchResponse = await ask_each(
        broker, call, Operation.DESCRIBE, request, "groups", _refused, id_of=_ID, known=known
    )
    for group, group_response in zip(groups, response.groups, strict=True):  # a repeated group has two responses
        if group_response.error_code:
            continue
        if group.topics is None:
            group_response.topics = _visible_topics(broker, call, group_response.topics)
        elif others := hidden.get(id(group)):
            group_response.topics = [*group_response.topics, *others]
    return _response(request, call.api_version, response)


def name_all(broker: Broker, call: Call, request: OffsetFetchRequest) -> RootMessage | None:
    """The request with all partitions named, if a group has too many offsets for one turn; else None."""
    if request.topics is not None and all(one.topics is not None for one in request.groups):
        return None
    groups = _groups(request, call.api_version)
    named = [one if one.topics is not None else _named(broker, call, one) for one in groups]
    if named == groups:
        return None
    whole = copy(request)
    if call.api_version >= _SEVERAL_GROUPS_SINCE:
        whole.groups = named
    else:
        whole.topics = [OffsetFetchRequestTopic(one.name, one.partition_indexes) for one in named[0].topics or ()]
    return whole


def _named(broker: Broker, call: Call, group: OffsetFetchRequestGroup) -> OffsetFetchRequestGroup:
    offsets = broker.groups.offsets_of(group.group_id, call.node)
    if sum(map(len, offsets.values())) <= _LONG:
        return group
    topics = _visible_topics(broker, call, [OffsetFetchResponseTopics(name) for name in sorted(offsets)])
    named = copy(group)
    named.topics = [OffsetFetchRequestTopics(one.name, one.topic_id, sorted(offsets[one.name])) for one in topics]
    return named


def refuse(call: Call, request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    groups = _groups(request, call.api_version)
    return _response(
        request, call.api_version, OffsetFetchResponse(groups=[_refused(group.group_id, error) for group in groups])
    )


def _groups(request: OffsetFetchRequest, version: int) -> Sequence[OffsetFetchRequestGroup]:
    """The request's groups; before version 8 a request has a single one."""
    if version >= _SEVERAL_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [OffsetFetchRequestTopics(one.name, partition_indexes=one.partition_indexes) for one in request.topics]
    return [OffsetFetchRequestGroup(request.group_id, topics=topics)]


def _refused(group_id: str, error: KafkaError) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id, error_code=error.code)


def _sort_topics(
    broker: Broker, call: Call, topics: Sequence[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """The topics to request from the coordinator, and the responses for the others."""
    allowed: list[OffsetFetchRequestTopics] = []
    refused: list[OffsetFetchResponseTopics] = []
    for topic in topics:
        name = topic.name
        if call.api_version >= _TOPIC_IDS_SINCE:
            found = broker.topics.by_id(topic.topic_id)
            if found is None:
                refused.append(_refused_topic(topic, UnknownTopicId.code))
                continue
            name = found.name
        if may_topic(broker, call, Operation.DESCRIBE, name):
            topic.name = name
            allowed.append(topic)
        else:
            refused.append(_refused_topic(topic, TopicAuthorizationFailed.code))
    return allowed, refused


def _refused_topic(topic: OffsetFetchRequestTopics, error_code: int) -> OffsetFetchResponseTopics:
    partitions = [OffsetFetchResponsePartitions(index, -1, -1, "", error_code) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _visible_topics(
    broker: Broker, call: Call, topics: Sequence[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """The topics of a group that the caller may see, with their ids if the version uses ids."""
    visible = []
    for topic in topics:
        if not may_topic(broker, call, Operation.DESCRIBE, topic.name):
            continue
        if call.api_version < _TOPIC_IDS_SINCE:
            visible.append(topic)
            continue
        found = broker.topics.get(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id
            visible.append(topic)
    return visible


# --- versions


def _response(request: OffsetFetchRequest, version: int, response: OffsetFetchResponse) -> OffsetFetchResponse:
    if version >= _SEVERAL_GROUPS_SINCE:
        return response
    (group_response,) = response.groups
    if version >= _GROUP_ERROR_SINCE or not group_response.error_code:
        return OffsetFetchResponse(
            topics=[OffsetFetchResponseTopic(one.name, _old_partitions(one)) for one in group_response.topics],
            error_code=group_response.error_code,
        )
    # Version 1 has no field for a group's error, so each partition gets it.
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(index, -1, -1, "", group_response.error_code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _old_partitions(topic: OffsetFetchResponseTopics) -> list[OffsetFetchResponsePartition]:
    return [
        OffsetFetchResponsePartition(
            one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code
        )
        for one in topic.partitions
    ]
