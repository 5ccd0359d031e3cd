"""ConsumerGroupHeartbeat (68, KIP-848), ShareGroupHeartbeat (76, KIP-932) and StreamsGroupHeartbeat (88, KIP-1071):
members join, stay and leave; StreamsGroupTopologyDescriptionUpdate (93, KIP-1331): a member describes its topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupkeeper.broker.apis._access import may_cluster, may_group, may_topic
from groupkeeper.broker.apis._groups import (
    refuse_or_ask,
    without_consumer_groups,
    without_share_groups,
    without_streams_groups,
)
from groupkeeper.broker.apis.topics import create_topic
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.log.topic_names import require_valid_name
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.coordinator.epochs.checks import check_texts
from groupkeeper.coordinator.streams.topology import MissingTopic, StatusCode
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Topology
from groupkeeper.protocol.primitives import Message


async def handle_consumer(broker: Broker, call: Call, request: m.ConsumerGroupHeartbeatRequest) -> Message:
    refusal = without_consumer_groups(broker) or await _consumer_refusal(broker, call, request)
    return await refuse_or_ask(broker, call, request, refusal)


async def _consumer_refusal(
    broker: Broker, call: Call, request: m.ConsumerGroupHeartbeatRequest
) -> errors.KafkaError | None:
    """The error that refuses the request before its group is read, or None."""
    if not may_group(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    async for name in in_turns(request.subscribed_topic_names or ()):
        if not may_topic(broker, call, Operation.DESCRIBE, name):
            return errors.TopicAuthorizationFailed()
    return None


_LONGEST_MEMBER_ID = 36


async def handle_share(broker: Broker, call: Call, request: m.ShareGroupHeartbeatRequest) -> Message:
    refusal = without_share_groups(broker) or await _share_refusal(broker, call, request)
    return await refuse_or_ask(broker, call, request, refusal)


async def _share_refusal(broker: Broker, call: Call, request: m.ShareGroupHeartbeatRequest) -> KafkaError | None:
    """The error that refuses the request before its group is read, or None."""
    if not may_group(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    if not 0 < len(request.member_id) <= _LONGEST_MEMBER_ID:
        return errors.InvalidRequest()
    async for name in in_turns(request.subscribed_topic_names or ()):
        if not may_topic(broker, call, Operation.DESCRIBE, name):
            return errors.TopicAuthorizationFailed()
    return None


async def handle_streams(
    broker: Broker, call: Call, request: m.StreamsGroupHeartbeatRequest
) -> m.StreamsGroupHeartbeatResponse:
    refusal = without_streams_groups(broker) or _streams_refusal(broker, call, request)
    response = await refuse_or_ask(broker, call, request, refusal)
    assert isinstance(response, m.StreamsGroupHeartbeatResponse)
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            shard = broker.groups.shard_for_request(request.group_id, call.node)
            missing = shard.missing_topics_of(request.group_id)
            status.status_detail += _create(broker, call, missing)
    return response


def _streams_refusal(broker: Broker, call: Call, request: m.StreamsGroupHeartbeatRequest) -> errors.KafkaError | None:
    """The error that refuses the request before its group is read, or None."""
    if not may_group(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    names = [] if request.topology is None else _topics(request.topology)
    if prohibited := [name for name in names if broker.is_internal(name)]:
        return errors.StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
    if invalid := [name for name in names if not _is_valid(name)]:
        return errors.StreamsInvalidTopology(f"Topic names {','.join(invalid)} are not valid topic names.")
    if not all(may_topic(broker, call, Operation.DESCRIBE, name) for name in names):
        return errors.TopicAuthorizationFailed()
    return None


def _topics(topology: Topology) -> Iterable[str]:
    """All topics of a topology, each once."""
    names = {}
    for one in topology.subtopologies:
        internal = (*one.repartition_source_topics, *one.state_changelog_topics)
        made = (topic.name for topic in internal)
        names.update(dict.fromkeys((*one.source_topics, *one.repartition_sink_topics, *made)))
    return names


def _is_valid(name: str) -> bool:
    try:
        require_valid_name(name)
    except errors.InvalidTopicException:
        return False
    return True


def _create(broker: Broker, call: Call, missing: Sequence[MissingTopic]) -> str:
    """Creates internal topics, all or none unless one fails; returns a text that explains why some stay missing."""
    if not may_cluster(broker, call, Operation.CREATE):
        hidden = [topic.name for topic in missing if not may_topic(broker, call, Operation.CREATE, topic.name)]
        if hidden:
            return f"; Unauthorized to CREATE on topics {', '.join(hidden)}."
    mutations = broker.quotas.mutations(call, strict_since=0)
    failures = []
    for topic in missing:
        configs = [m.CreatableTopicConfig(name, value) for name, value in topic.configs.items()]
        creatable = m.CreatableTopic(topic.name, topic.partition_count, topic.replication_factor, configs=configs)
        try:
            create_topic(broker, call, creatable, mutations, validate_only=False)
        except errors.TopicAlreadyExists:
            pass  # another request created it
        except errors.KafkaError as error:
            failures.append(f"{topic.name} ({error.message})")
    return f"; Creation failed: {', '.join(failures)}." if failures else ""


async def handle_topology(
    broker: Broker, call: Call, request: m.StreamsGroupTopologyDescriptionUpdateRequest
) -> Message:
    refusal = without_streams_groups(broker) or _topology_refusal(broker, call, request)
    return await refuse_or_ask(broker, call, request, refusal)


def _topology_refusal(
    broker: Broker, call: Call, request: m.StreamsGroupTopologyDescriptionUpdateRequest
) -> KafkaError | None:
    """The error that refuses the request before its group is read, or None."""
    if not may_group(broker, call, Operation.READ, request.group_id):
        return errors.GroupAuthorizationFailed()
    if not broker.config.group_streams_topology_description_plugin_class:
        return errors.UnsupportedVersion("The broker has no streams group topology description plugin configured.")
    try:
        check_texts(MemberId=request.member_id, GroupId=request.group_id)
    except errors.InvalidRequest as refusal:
        return refusal
    return None
