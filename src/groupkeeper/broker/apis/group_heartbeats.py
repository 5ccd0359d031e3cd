"""ConsumerGroupHeartbeat (68, KIP-848), ShareGroupHeartbeat (76, KIP-932) and StreamsGroupHeartbeat (88, KIP-1071):
members join, stay and leave; StreamsGroupTopologyDescriptionUpdate (93, KIP-1331): a member describes its topology.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from groupkeeper.broker.apis._access import may_cluster, may_topic, require_group, require_topic
from groupkeeper.broker.apis._groups import require_served
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
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Topology
from groupkeeper.protocol.primitives import Message


async def handle_consumer(broker: Broker, call: Call, request: m.ConsumerGroupHeartbeatRequest) -> Message:
    require_served(broker, "consumer")
    require_group(broker, call, Operation.READ, request.group_id)
    async for name in in_turns(request.subscribed_topic_names or ()):
        require_topic(broker, call, Operation.DESCRIBE, name)
    return await broker.groups.ask(request.group_id, request, call)


_LONGEST_MEMBER_ID = 36


async def handle_share(broker: Broker, call: Call, request: m.ShareGroupHeartbeatRequest) -> Message:
    require_served(broker, "share")
    require_group(broker, call, Operation.READ, request.group_id)
    if not 0 < len(request.member_id) <= _LONGEST_MEMBER_ID:
        raise errors.InvalidRequest
    async for name in in_turns(request.subscribed_topic_names or ()):
        require_topic(broker, call, Operation.DESCRIBE, name)
    return await broker.groups.ask(request.group_id, request, call)


async def handle_streams(
    broker: Broker, call: Call, request: m.StreamsGroupHeartbeatRequest
) -> m.StreamsGroupHeartbeatResponse:
    require_served(broker, "streams")
    require_group(broker, call, Operation.READ, request.group_id)
    if request.topology is not None:
        _check_topics(broker, call, _topics(request.topology))
    response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, m.StreamsGroupHeartbeatResponse)
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            shard = broker.groups.shard_for_request(request.group_id, call.node)
            missing = shard.missing_topics_of(request.group_id)
            status.status_detail += _create(broker, call, missing)
    return response


def _check_topics(broker: Broker, call: Call, names: Collection[str]) -> None:
    """Raises `StreamsInvalidTopology`, `TopicAuthorizationFailed`."""
    if prohibited := [name for name in names if broker.is_internal(name)]:
        raise errors.StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited."
        )
    if invalid := [name for name in names if not _is_valid(name)]:
        raise errors.StreamsInvalidTopology(f"Topic names {','.join(invalid)} are not valid topic names.")
    for name in names:
        require_topic(broker, call, Operation.DESCRIBE, name)


def _topics(topology: Topology) -> Collection[str]:
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
    require_served(broker, "streams")
    require_group(broker, call, Operation.READ, request.group_id)
    if not broker.config.group_streams_topology_description_plugin_class:
        raise errors.UnsupportedVersion("The broker has no streams group topology description plugin configured.")
    check_texts(MemberId=request.member_id, GroupId=request.group_id)
    return await broker.groups.ask(request.group_id, request, call)
