"""OffsetCommit (8)."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.coordinator.refusals import refuse_commit
from groupkeeper.protocol.errors import (
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestTopic
from groupkeeper.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.log.topics import Topic
    from groupkeeper.protocol.primitives import RootMessage

KEY = 8
VERSIONS = (2, 10)

_TOPIC_IDS_SINCE = 10
_READ, _GROUP, _TOPIC = Operation.READ, ResourceType.GROUP, ResourceType.TOPIC


def reply(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, OffsetCommitRequest)
    if not broker.authorizer.allows(call, _READ, _GROUP, request.group_id):
        return refuse_commit(request, GroupAuthorizationFailed())
    refused = _Refused()
    accepted = []
    for topic in request.topics:
        try:
            found = _resolve(broker, call, topic)
        except KafkaError as error:
            refused.add(topic.name, topic.topic_id, {one.partition_index: error.code for one in topic.partitions})
            continue
        count = len(found.partitions)
        known = []
        for one in topic.partitions:
            if 0 <= one.partition_index < count:
                known.append(one)
            else:
                refused.add(found.name, found.topic_id, {one.partition_index: UnknownTopicOrPartition.code})
        if known:
            # The id is stored with the offset also when the request named the topic.
            topic.name, topic.topic_id, topic.partitions = found.name, found.topic_id, known
            accepted.append(topic)
    if not accepted:
        return OffsetCommitResponse(topics=refused.topics())
    if refused:
        request = _with_topics(request, accepted)
    else:
        request.topics = accepted
    response = broker.groups.reply(request.group_id, request, call)
    assert isinstance(response, OffsetCommitResponse)
    # The coordinator's answer is taken as it is, a topic named twice included, unless something was refused.
    return OffsetCommitResponse(topics=refused.topics(response.topics)) if refused else response


def refuse(call: Call, error: KafkaError) -> RootMessage:
    assert isinstance(call.message, OffsetCommitRequest)
    return refuse_commit(call.message, error)


def _resolve(broker: Broker, call: Call, topic: OffsetCommitRequestTopic) -> Topic:
    """An existing topic that the caller may read."""
    is_by_id = call.api_version >= _TOPIC_IDS_SINCE
    found = broker.topics.by_id(topic.topic_id) if is_by_id else broker.topics.get(topic.name)
    if is_by_id and found is None:
        raise UnknownTopicId
    name = topic.name if found is None else found.name
    if not broker.authorizer.allows(call, _READ, _TOPIC, name):
        raise TopicAuthorizationFailed
    if found is None:
        raise UnknownTopicOrPartition
    return found


def _with_topics(request: OffsetCommitRequest, topics: Sequence[OffsetCommitRequestTopic]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=topics,
    )


class _Refused(dict[tuple[str, bytes], list[OffsetCommitResponsePartition]]):
    """Partitions refused before the request to the coordinator, by name and id of the topic."""

    def add(self, name: str, topic_id: bytes, code_by_partition: Mapping[int, int]) -> None:
        answers = [OffsetCommitResponsePartition(index, code) for index, code in code_by_partition.items()]
        if answers:
            self.setdefault((name, topic_id), []).extend(answers)

    def topics(self, others: Iterable[OffsetCommitResponseTopic] = ()) -> list[OffsetCommitResponseTopic]:
        """The answer as Apache Kafka orders it: partitions refused here by topic, then those of the coordinator's
        response.
        """
        for topic in others:
            self.setdefault((topic.name, topic.topic_id), []).extend(topic.partitions)
        return [OffsetCommitResponseTopic(*topic, partitions) for topic, partitions in self.items()]
